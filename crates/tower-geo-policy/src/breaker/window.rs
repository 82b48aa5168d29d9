//! The sliding window of a rate rule (B2, B3).
//!
//! Time is cut into tenths of the window. The calls of the current tenth are counted in a word of
//! their own, which is all that a good call touches; when the tenth is over, the next call moves
//! it to the history, one word for each of the last eleven tenths. So an outcome counts for the
//! window's length, and up to a tenth longer. Bad calls are rare, and go to the history at once.
//!
//! Each word carries the epoch that it belongs to: a word that is used again, or left alone for
//! years, cannot lend its old count to a new epoch, and adding to it is one atomic step. Every
//! stripe has windows of its own; they are summed when somebody asks.

use crate::sync::{AtomicU64, Relaxed};

pub(crate) const TENTHS: usize = 11;

/// An epoch that is ahead by no more than this is ahead because the caller is late; by more, it is
/// old, and the epochs have wrapped since.
const LATE: u32 = 1 << 12;

const COUNT: u64 = u32::MAX as u64;

/// A count that belongs to one epoch: 32 bits each, the epoch above.
///
/// Epochs wrap after 2^32 tenths, 1600 years at the defaults.
#[derive(Debug)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds to the count of `epoch`. When the word still belongs to an earlier epoch, a new page
    /// begins and what was on the old one is returned. What is late by a page is dropped.
    #[inline]
    pub(crate) fn add(&self, epoch: u64, n: u64) -> Option<u64> {
        let seen = self.0.load(Relaxed);
        // The count, if the epoch is the right one; more than any count otherwise.
        let count = seen.wrapping_sub(epoch << 32);
        if count < COUNT - n {
            // Between the load and this line another thread may turn the page: then this counts
            // in the new epoch, later than it should by as long as this thread was asleep.
            self.0.fetch_add(n, Relaxed);
            return None;
        }
        self.turn(seen, epoch, n)
    }

    #[cold]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "epochs are compared by their lower half"
    )]
    fn turn(&self, mut seen: u64, epoch: u64, n: u64) -> Option<u64> {
        loop {
            let theirs = (seen >> 32) as u32;
            let same = theirs == epoch as u32;
            let next = if same {
                // Full: four thousand million calls in a tenth.
                (epoch << 32) | ((seen & COUNT) + n).min(COUNT)
            } else if theirs.wrapping_sub(epoch as u32) <= LATE {
                return None;
            } else {
                (epoch << 32) | n
            };
            match self.0.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) => return (!same).then_some(seen),
                Err(now) => seen = now,
            }
        }
    }

    /// The count, if it belongs to `epoch`.
    fn of(&self, epoch: u64) -> u64 {
        let count = self.0.load(Relaxed).wrapping_sub(epoch << 32);
        if count <= COUNT { count } else { 0 }
    }

    fn clear(&self) {
        // Loses what is added at this very moment, or keeps it: either is an outcome of before.
        self.0.fetch_and(!COUNT, Relaxed);
    }
}

/// One circuit's window on one stripe.
#[derive(Debug)]
pub(crate) struct Window {
    now: Count,
    calls: [Count; TENTHS],
    bad: [Count; TENTHS],
}

impl Window {
    pub(crate) fn new() -> Self {
        Self {
            now: Count::new(),
            calls: std::array::from_fn(|_| Count::new()),
            bad: std::array::from_fn(|_| Count::new()),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a remainder by eleven fits a usize"
    )]
    fn of(history: &[Count; TENTHS], epoch: u64) -> Option<&Count> {
        history.get((epoch % TENTHS as u64) as usize)
    }

    /// Counts `n` calls.
    #[inline]
    pub(crate) fn add_calls(&self, epoch: u64, n: u64) {
        if let Some(page) = self.now.add(epoch, n) {
            self.keep(page, epoch);
        }
    }

    /// Moves the count of a tenth that is over to the history.
    #[cold]
    fn keep(&self, page: u64, now: u64) {
        // The page knows the lower half of its epoch; it is one of the last 2^32.
        let age = (now & COUNT).wrapping_sub(page >> 32) & COUNT;
        let Some(epoch) = now.checked_sub(age) else {
            return;
        };
        if let Some(count) = Self::of(&self.calls, epoch) {
            count.add(epoch, page & COUNT);
        }
    }

    /// Counts `n` calls that were bad as well.
    pub(crate) fn add_bad(&self, epoch: u64, n: u64) {
        self.add_calls(epoch, n);
        if let Some(count) = Self::of(&self.bad, epoch) {
            count.add(epoch, n);
        }
    }

    /// Calls, and bad calls among them, in the window that ends with `epoch`.
    pub(crate) fn sum(&self, epoch: u64) -> (u64, u64) {
        let mut sum = (0, 0);
        for epoch in epoch.saturating_sub(TENTHS as u64 - 1)..=epoch {
            if let (Some(calls), Some(bad)) =
                (Self::of(&self.calls, epoch), Self::of(&self.bad, epoch))
            {
                sum.0 += self.now.of(epoch) + calls.of(epoch);
                sum.1 += bad.of(epoch);
            }
        }
        sum
    }

    pub(crate) fn clear(&self) {
        for count in self.calls.iter().chain(&self.bad) {
            count.clear();
        }
        self.now.clear();
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
            1 << 31,
            1 << 32,
            (1 << 32) * 3 + 11,
        ] {
            let window = Window::new();
            window.add_bad(5, 9);
            if gap < 1 << 32 {
                assert_eq!(window.sum(5 + gap), (0, 0), "gap {gap}");
            }
            window.add_calls(6, 1);
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
        window.add_calls(23, 1);
        assert_eq!(window.sum(23).0, 8);
    }

    #[test]
    fn a_million_calls_in_a_tenth_are_counted_exactly() {
        let window = Window::new();
        window.add_calls(3, 3_000_000_000);
        window.add_bad(3, 1_000_000_000);
        assert_eq!(window.sum(3), (4_000_000_000, 1_000_000_000));
        window.add_bad(3, 1_000_000_000);
        assert_eq!(window.sum(3), (COUNT, 2_000_000_000), "full, not wrapped");
    }

    #[test]
    fn cleared_is_empty() {
        let window = Window::new();
        for epoch in 0..20 {
            window.add_bad(epoch, 5);
        }
        window.clear();
        assert_eq!(window.sum(19), (0, 0));
        window.add_bad(19, 1);
        assert_eq!(window.sum(19), (1, 1));
    }
}
