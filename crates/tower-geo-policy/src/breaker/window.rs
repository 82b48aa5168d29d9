//! The sliding window of a rate rule (B2, B3).
//!
//! Ten buckets of a tenth of the window each, and one more for the tenth that is being filled, so
//! that an outcome counts for the window's length and up to a tenth longer. A bucket is two words,
//! calls and bad calls, and each carries the epoch that it belongs to: a bucket that is reused, or
//! left alone for a month, cannot lend its old counts to a new epoch, and adding one is one atomic
//! step. Every stripe has windows of its own; they are summed when somebody asks.

use crate::sync::{AtomicU64, Relaxed};

pub(crate) const BUCKETS: usize = 11;

const EPOCH_BITS: u32 = 24;
const COUNT_BITS: u32 = 64 - EPOCH_BITS;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const EPOCH: u64 = (1 << EPOCH_BITS) - 1;
/// A page that is ahead by no more than this is ahead because the caller is late; by more, it is
/// old, and the epochs have wrapped since.
const LATE: u64 = 1 << 12;

/// A count that belongs to one epoch: 24 bits of epoch, 40 bits of count.
///
/// Epochs of the same bucket are a multiple of [`BUCKETS`] apart, so one would have to come back
/// after exactly 11 · 2^24 epochs of silence to be taken for another: 70 years at the defaults.
#[derive(Debug)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds to the count of `epoch`, turning the page when it still belongs to an earlier one.
    /// An outcome that is late by a whole window is dropped.
    #[inline]
    pub(crate) fn add(&self, epoch: u64, n: u64) {
        let epoch = epoch & EPOCH;
        let seen = self.0.load(Relaxed);
        if seen >> COUNT_BITS == epoch {
            // Between the load and this line another thread may turn the page: then the outcome
            // counts in the new epoch, later than it should by as long as this thread was asleep.
            self.0.fetch_add(n, Relaxed);
        } else {
            self.turn(seen, epoch, n);
        }
    }

    #[cold]
    fn turn(&self, mut seen: u64, epoch: u64, n: u64) {
        loop {
            let theirs = seen >> COUNT_BITS;
            let next = if theirs == epoch {
                seen + n
            } else if theirs.wrapping_sub(epoch) & EPOCH <= LATE {
                return;
            } else {
                epoch << COUNT_BITS | n
            };
            match self.0.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// The count, if it belongs to `epoch`.
    fn of(&self, epoch: u64) -> u64 {
        let seen = self.0.load(Relaxed);
        if seen >> COUNT_BITS == epoch & EPOCH {
            seen & COUNT
        } else {
            0
        }
    }

    fn clear(&self) {
        // Loses what is added at this very moment, or keeps it: either is an outcome of before.
        self.0.fetch_and(EPOCH << COUNT_BITS, Relaxed);
    }
}

/// One circuit's window on one stripe.
#[derive(Debug)]
pub(crate) struct Window {
    calls: [Count; BUCKETS],
    bad: [Count; BUCKETS],
}

impl Window {
    pub(crate) fn new() -> Self {
        Self {
            calls: std::array::from_fn(|_| Count::new()),
            bad: std::array::from_fn(|_| Count::new()),
        }
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a remainder by eleven fits a usize"
    )]
    fn index(epoch: u64) -> usize {
        (epoch % BUCKETS as u64) as usize
    }

    /// Counts `n` calls.
    #[inline]
    pub(crate) fn add_calls(&self, epoch: u64, n: u64) {
        if let Some(count) = self.calls.get(Self::index(epoch)) {
            count.add(epoch, n);
        }
    }

    /// Counts `n` calls that were bad as well.
    pub(crate) fn add_bad(&self, epoch: u64, n: u64) {
        self.add_calls(epoch, n);
        if let Some(count) = self.bad.get(Self::index(epoch)) {
            count.add(epoch, n);
        }
    }

    /// Calls, and bad calls among them, in the window that ends with `epoch`.
    pub(crate) fn sum(&self, epoch: u64) -> (u64, u64) {
        let mut sum = (0, 0);
        for epoch in epoch.saturating_sub(BUCKETS as u64 - 1)..=epoch {
            let index = Self::index(epoch);
            if let (Some(calls), Some(bad)) = (self.calls.get(index), self.bad.get(index)) {
                sum.0 += calls.of(epoch);
                sum.1 += bad.of(epoch);
            }
        }
        sum
    }

    pub(crate) fn clear(&self) {
        for count in self.calls.iter().chain(&self.bad) {
            count.clear();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_counts_for_the_length_of_the_window() {
        let window = Window::new();
        window.add_bad(100, 3);
        for epoch in 100..=110 {
            assert_eq!(window.sum(epoch), (3, 3), "epoch {epoch}");
        }
        assert_eq!(window.sum(111), (0, 0));
    }

    /// B3: what came before makes no difference.
    #[test]
    fn old_outcomes_leave_one_tenth_after_the_other() {
        let window = Window::new();
        for epoch in 0..11 {
            window.add_calls(epoch, 10);
        }
        assert_eq!(window.sum(10), (110, 0));
        for epoch in 11..22 {
            window.add_bad(epoch, 1);
            let bad = epoch - 10;
            assert_eq!(window.sum(epoch), ((11 - bad) * 10 + bad, bad));
        }
    }

    /// B3: silence of any length revives nothing.
    #[test]
    fn a_gap_revives_nothing() {
        for gap in [
            11,
            12,
            22,
            1 << 16,
            1 << 20,
            1 << 23,
            1 << 24,
            (1 << 24) * 3 + 11,
        ] {
            let window = Window::new();
            window.add_bad(5, 9);
            window.add_calls(5 + gap, 1);
            assert_eq!(window.sum(5 + gap), (1, 0), "gap {gap}");
        }
    }

    #[test]
    fn a_straggler_does_not_turn_the_page_back() {
        let window = Window::new();
        window.add_calls(22, 7);
        window.add_bad(11, 1);
        assert_eq!(window.sum(22).0, 7);
    }

    #[test]
    fn a_million_calls_in_a_bucket_are_counted_exactly() {
        let window = Window::new();
        window.add_calls(3, 10_000_000_000);
        window.add_bad(3, 5_000_000_000);
        assert_eq!(window.sum(3), (15_000_000_000, 5_000_000_000));
    }
}
