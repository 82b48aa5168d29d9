//! The sliding window of a rate rule (B2, B3).
//!
//! Time is cut into tenths of the window. The calls of the current tenth are counted in a word of
//! their own, which is all that a good call touches; the first call of the next tenth moves it to
//! the history, one word for each of the last ten tenths. So an outcome counts for the window's
//! length, and up to a tenth longer. Bad calls are rare, and go to the history at once.
//!
//! Each word carries the epoch that it belongs to: a word that is used again, or left alone for
//! years, cannot lend its old count to a new epoch, and adding to it is one atomic step. Every
//! stripe has windows of its own; they are summed when somebody asks.

use super::compiled::Epochs;
use crate::sync::{AtomicU64, Relaxed};

const TENTHS: usize = 10;

/// An epoch that is ahead by no more than this is ahead because the caller is late; by more, it is
/// old, and the epochs have wrapped since.
const LATE: u32 = 1 << 12;

const COUNT: u64 = u32::MAX as u64;

/// A count that belongs to one epoch: 32 bits each, the epoch above.
///
/// Epochs wrap after 2^32 tenths, 1600 years at the defaults.
#[derive(Debug)]
struct Count(AtomicU64);

impl Count {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds to the count of `epoch`. A count of an earlier epoch makes room, and is returned as
    /// its word. What is late by a whole round is dropped.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "epochs are compared by their lower half"
    )]
    fn add(&self, epoch: u64, n: u64) -> Option<u64> {
        let mut seen = self.0.load(Relaxed);
        loop {
            let theirs = (seen >> 32) as u32;
            let same = theirs == epoch as u32;
            if !same && theirs.wrapping_sub(epoch as u32) <= LATE {
                return None;
            }
            let before = if same { seen & COUNT } else { 0 };
            let next = epoch << 32 | before.saturating_add(n).min(COUNT);
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
    /// The calls of the current tenth.
    current: Count,
    calls: [Count; TENTHS],
    /// One more than of calls, for the current tenth.
    bad: [Count; TENTHS + 1],
}

impl Window {
    pub(crate) fn new() -> Self {
        Self {
            current: Count::new(),
            calls: std::array::from_fn(|_| Count::new()),
            bad: std::array::from_fn(|_| Count::new()),
        }
    }

    /// Counts a call in the current tenth; the caller knows that it is not over.
    ///
    /// It may be by the time that the count is changed: then the call counts in the next one,
    /// later than it should by as long as this thread was asleep. Windows are short enough for
    /// the count not to overflow: a tenth of a day, at half a million calls a second.
    #[inline]
    pub(crate) fn add_one(&self) {
        self.current.0.fetch_add(1, Relaxed);
    }

    /// Counts `n` calls at `now`.
    pub(crate) fn add_calls(&self, epochs: Epochs, now: u64, n: u64) {
        let epoch = epochs.at(now);
        let Some(page) = self.current.add(epoch, n) else {
            return;
        };
        // Whoever begins a new tenth moves the count of the old one. Somebody may ask for the sum
        // in between and miss it; the next failure will not.
        let age = (epoch & COUNT).wrapping_sub(page >> 32) & COUNT;
        let Some(past) = epoch.checked_sub(age) else {
            return;
        };
        if let Some(calls) = self.calls.get(index(past, TENTHS)) {
            calls.add(past, page & COUNT);
        }
    }

    /// Counts `n` calls at `now` that were bad as well.
    pub(crate) fn add_bad(&self, epochs: Epochs, now: u64, n: u64) {
        self.add_calls(epochs, now, n);
        let epoch = epochs.at(now);
        if let Some(bad) = self.bad.get(index(epoch, TENTHS + 1)) {
            bad.add(epoch, n);
        }
    }

    /// Calls, and bad calls among them, in the window that ends at `now`.
    pub(crate) fn sum(&self, epochs: Epochs, now: u64) -> (u64, u64) {
        let last = epochs.at(now);
        let mut sum = (0, 0);
        for epoch in last.saturating_sub(TENTHS as u64)..=last {
            let calls = self.calls.get(index(epoch, TENTHS));
            let bad = self.bad.get(index(epoch, TENTHS + 1));
            sum.0 += self.current.of(epoch) + calls.map_or(0, |count| count.of(epoch));
            sum.1 += bad.map_or(0, |count| count.of(epoch));
        }
        sum
    }

    pub(crate) fn clear(&self) {
        for count in self.calls.iter().chain(&self.bad) {
            count.clear();
        }
        self.current.clear();
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a remainder by a small number fits a usize"
)]
const fn index(epoch: u64, of: usize) -> usize {
    (epoch % of as u64) as usize
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Ten nanoseconds a tenth, so that `at(10 * n)` is about n.
    fn tenths() -> Epochs {
        Epochs::of_length(10)
    }

    fn mid(epoch: u64) -> u64 {
        epoch * 10 + 5
    }

    #[test]
    fn an_outcome_counts_for_the_length_of_the_window() {
        let window = Window::new();
        window.add_bad(tenths(), mid(100), 3);
        for epoch in 100..=110 {
            assert_eq!(window.sum(tenths(), mid(epoch)), (3, 3), "epoch {epoch}");
        }
        assert_eq!(window.sum(tenths(), mid(111)), (0, 0));
        window.add_calls(tenths(), mid(111), 1);
        assert_eq!(window.sum(tenths(), mid(111)), (1, 0));
    }

    #[test]
    fn a_past_tenth_counts_for_the_length_of_the_window() {
        let window = Window::new();
        window.add_bad(tenths(), mid(100), 3);
        for epoch in 101..=110 {
            window.add_calls(tenths(), mid(epoch), 1);
            let calls = 3 + epoch - 100;
            assert_eq!(
                window.sum(tenths(), mid(epoch)),
                (calls, 3),
                "epoch {epoch}"
            );
        }
        window.add_calls(tenths(), mid(111), 1);
        assert_eq!(window.sum(tenths(), mid(111)), (11, 0));
    }

    /// B3: what came before makes no difference.
    #[test]
    fn old_outcomes_leave_one_tenth_after_the_other() {
        let window = Window::new();
        for epoch in 0..11 {
            window.add_calls(tenths(), mid(epoch), 10);
        }
        assert_eq!(window.sum(tenths(), mid(10)), (110, 0));
        for epoch in 11..22 {
            window.add_bad(tenths(), mid(epoch), 1);
            let bad = epoch - 10;
            let calls = (11 - bad) * 10 + bad;
            assert_eq!(window.sum(tenths(), mid(epoch)), (calls, bad));
        }
    }

    /// B3: silence of any length revives nothing.
    #[test]
    fn a_gap_revives_nothing() {
        for gap in [11, 12, 22, 110, 1 << 16, 1 << 20, 1 << 31, (1 << 31) * 55] {
            let window = Window::new();
            window.add_bad(tenths(), mid(5), 9);
            assert_eq!(window.sum(tenths(), mid(5 + gap)), (0, 0), "gap {gap}");
            window.add_calls(tenths(), mid(5 + gap), 1);
            assert_eq!(window.sum(tenths(), mid(5 + gap)), (1, 0), "gap {gap}");
        }
    }

    #[test]
    fn a_straggler_does_not_turn_the_page_back() {
        let window = Window::new();
        window.add_calls(tenths(), mid(22), 7);
        window.add_bad(tenths(), mid(11), 1);
        assert_eq!(window.sum(tenths(), mid(22)).0, 7);
        window.add_calls(tenths(), mid(23), 1);
        assert_eq!(window.sum(tenths(), mid(23)).0, 8);
    }

    #[test]
    fn a_million_calls_in_a_tenth_are_counted_exactly() {
        let window = Window::new();
        window.add_calls(tenths(), mid(3), 3_000_000);
        window.add_bad(tenths(), mid(3), 1_000_000);
        assert_eq!(window.sum(tenths(), mid(3)), (4_000_000, 1_000_000));
        window.add_calls(tenths(), mid(4), 1);
        assert_eq!(window.sum(tenths(), mid(4)), (4_000_001, 1_000_000));
    }

    #[test]
    fn cleared_is_empty() {
        let window = Window::new();
        for epoch in 0..20 {
            window.add_bad(tenths(), mid(epoch), 5);
        }
        window.clear();
        assert_eq!(window.sum(tenths(), mid(19)), (0, 0));
        window.add_bad(tenths(), mid(19), 1);
        assert_eq!(window.sum(tenths(), mid(19)), (1, 1));
    }
}
