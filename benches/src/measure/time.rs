//! How long one call takes, in thread CPU time.

use std::time::Duration;

use super::Spread;
use super::allocations::uncounted;
use super::clock::{ns, thread_cpu};
use crate::row::Call;

const BATCHES: usize = 201;
/// Reading the clock costs a fraction of a microsecond, which must not show.
const BATCH_AT_LEAST: Duration = Duration::from_micros(50);

/// Of a call that may be made any number of times.
pub(crate) fn repeated(call: &mut Call) -> Spread {
    let mut batch = 100_u32;
    while timed(batch, call) < BATCH_AT_LEAST && batch < 1 << 20 {
        batch *= 2;
    }
    spread((0..BATCHES).map(|_| ns(timed(batch, call)) / f64::from(batch)))
}

/// Of calls that change what is measured: each batch is one of a new start.
pub(crate) fn fresh(calls: u32, start: fn() -> Call) -> Spread {
    spread((0..BATCHES / 4).map(|_| {
        let mut call = start();
        ns(timed(calls, &mut call)) / f64::from(calls)
    }))
}

fn timed(calls: u32, call: &mut Call) -> Duration {
    let mut took = Duration::ZERO;
    uncounted(|| {
        let before = thread_cpu();
        (0..calls).for_each(|_| call());
        took = thread_cpu().saturating_sub(before);
    });
    took
}

fn spread(samples: impl Iterator<Item = f64>) -> Spread {
    Spread::of(samples.collect()).unwrap_or_default().rounded(1)
}
