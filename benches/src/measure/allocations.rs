//! How often one call goes to the heap, and what stays there.
//!
//! The allocator counts by thread, and not at all inside of [`uncounted`]: what is timed, and what
//! callgrind sees, pays a look at a flag for each allocation, and shares nothing with other threads.

pub(crate) use allocation_counter::opt_out as uncounted;

use crate::row::Call;

/// Allocations and bytes of one call: the whole part of the mean, so that what grows now and then
/// (a buffer that doubles) does not show.
pub(crate) fn of_one(calls: u32, call: &mut Call) -> (u64, i64) {
    let counted = allocation_counter::measure(|| (0..calls).for_each(|_| call()));
    let calls = u64::from(calls.max(1));
    let bytes = i64::try_from(counted.bytes_total / calls).unwrap_or(i64::MAX);
    (counted.count_total / calls, bytes)
}
