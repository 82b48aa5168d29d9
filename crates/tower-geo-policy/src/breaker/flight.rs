//! Sends that are under way, by the time at which they left (B8).
//!
//! A silent region must not stay trusted because its callers are less patient than its time-outs.
//! So whenever a failure is recorded, the sends that left long enough ago, and after the region's
//! last answer, count as failures as well, each once. To find them, sends are counted by the slot
//! of time that they left in; a slot is a tenth of `suspect_after`.
//!
//! Sixteen slots are kept apart, one and a half times `suspect_after`. What is older is lumped
//! together: how many of those were counted already, and how many still may be. There a send is
//! known by its number only, so an outcome is first taken to be one that was counted. A lock of
//! its own keeps a send from being missed while it moves there; calls that end in time never see
//! it.

use crate::sync::{AtomicU64, Mutex, Relaxed, lock};

pub(crate) const SLOTS: usize = 16;

/// A slot is `epoch 32 | counted 1 | count 31`: the sends that left then, and whether they were
/// counted as failures.
const COUNTED: u64 = 1 << 31;
const COUNT: u64 = COUNTED - 1;
/// An epoch that is ahead by no more than this is ahead because the caller is late; by more, it is
/// old, and the epochs have wrapped since.
const LATE: u32 = 1 << 12;

/// The sends through one circuit of one region on one stripe.
#[derive(Debug)]
pub(crate) struct Flight {
    slots: [AtomicU64; SLOTS],
    /// An [`Old`], packed.
    old: Mutex<u64>,
}

impl Flight {
    pub(crate) fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| AtomicU64::new(0)),
            old: Mutex::new(0),
        }
    }

    #[inline]
    fn slot(&self, epoch: u32) -> &AtomicU64 {
        // The index is in bounds, and the compiler sees it.
        &self.slots[epoch as usize % SLOTS]
    }

    /// A send leaves now, into a slot that is in use already. False if that is not so: then
    /// nothing has changed, and [`enter`](Self::enter) is to be called.
    #[inline]
    pub(crate) fn try_enter(&self, epoch: u32) -> bool {
        let slot = self.slot(epoch);
        let seen = slot.load(Relaxed);
        // The count, if the slot is of this epoch and was not counted; more than any otherwise.
        let count = seen.wrapping_sub(u64::from(epoch) << 32);
        // Adding and turning the page exclude each other: a send in the wrong epoch would be
        // taken for one that never ends.
        count < COUNT
            && slot
                .compare_exchange(seen, seen + 1, Relaxed, Relaxed)
                .is_ok()
    }

    /// A send leaves now. `answered` is the first epoch after the region's last answer.
    pub(crate) fn enter(&self, epoch: u32, answered: u32) {
        let slot = self.slot(epoch);
        let mut seen = slot.load(Relaxed);
        loop {
            let theirs = epoch_of(seen);
            let next = if theirs == epoch {
                if seen & COUNT == COUNT {
                    // Two thousand million sends in one slot: the rest is not watched.
                    return;
                }
                seen + 1
            } else if theirs.wrapping_sub(epoch) <= LATE {
                // This thread slept for so long that its own slot is gone.
                return;
            } else if seen & COUNT == 0 {
                u64::from(epoch) << 32 | 1
            } else {
                self.clear_out(epoch, answered);
                seen = slot.load(Relaxed);
                continue;
            };
            match slot.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Makes room for a new epoch: what is left in its slot is lumped together with what is older
    /// still.
    #[cold]
    fn clear_out(&self, epoch: u32, answered: u32) {
        let slot = self.slot(epoch);
        let mut old = lock(&self.old);
        let mut seen = slot.load(Relaxed);
        while epoch_of(seen) != epoch && seen & COUNT != 0 {
            match slot.compare_exchange(seen, u64::from(epoch) << 32, Relaxed, Relaxed) {
                Ok(_) => {
                    *old = Old::unpack(*old).joined_by(seen, answered).pack();
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// A send that left in `epoch` is over, and was not counted as a failure. False if that is not
    /// so simple: then nothing has changed, and [`leave`](Self::leave) is to be called.
    #[inline]
    pub(crate) fn try_leave(&self, epoch: u32) -> bool {
        let slot = self.slot(epoch);
        let seen = slot.load(Relaxed);
        let others = seen.wrapping_sub(u64::from(epoch) << 32).wrapping_sub(1);
        others < COUNT
            && slot
                .compare_exchange(seen, seen - 1, Relaxed, Relaxed)
                .is_ok()
    }

    /// A send that left in `epoch` is over. Whether it was counted as a failure already.
    pub(crate) fn leave(&self, epoch: u32) -> bool {
        if let Some(counted) = self.leave_slot(epoch) {
            return counted;
        }
        let mut old = lock(&self.old);
        let (counted, left) = Old::unpack(*old).left_by_one();
        *old = left.pack();
        counted
    }

    /// None if the slot is not of that epoch any more.
    fn leave_slot(&self, epoch: u32) -> Option<bool> {
        let slot = self.slot(epoch);
        let mut seen = slot.load(Relaxed);
        while epoch_of(seen) == epoch {
            let next = match seen & COUNT {
                0 => return Some(false),
                // The last one to leave takes the mark along.
                1 => u64::from(epoch) << 32,
                _ => seen - 1,
            };
            match slot.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) => return Some(seen & COUNTED != 0),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Counts the sends that left in `from..=until` as failures, and says how many there were.
    pub(crate) fn mark(&self, from: u64, until: u64) -> u64 {
        if from > until {
            return 0;
        }
        let suspect = |slot: u64| {
            let epoch = epoch_of(slot);
            slot & COUNT != 0
                && slot & COUNTED == 0
                && at_or_after(epoch, cut(from))
                && at_or_after(cut(until), epoch)
        };
        // Nothing moves while this is held.
        let mut old = lock(&self.old);
        let mut marked = 0;
        for slot in &self.slots {
            let mut seen = slot.load(Relaxed);
            while suspect(seen) {
                match slot.compare_exchange(seen, seen | COUNTED, Relaxed, Relaxed) {
                    Ok(_) => {
                        marked += seen & COUNT;
                        break;
                    }
                    Err(other) => seen = other,
                }
            }
        }
        let before = Old::unpack(*old);
        if at_or_after(before.epoch(cut(until)), cut(from)) {
            marked += before.pending;
            *old = before.marked().pack();
        }
        marked
    }
}

/// The lower half of an epoch, by which epochs are known here.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "cutting is the purpose")]
pub(crate) const fn cut(epoch: u64) -> u32 {
    epoch as u32
}

const fn epoch_of(slot: u64) -> u32 {
    cut(slot >> 32)
}

/// Whether `a` is at or after `b`.
const fn at_or_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) < 1 << 31
}

/// The sends that are older than the slots reach: `latest 24 | counted 20 | pending 20`.
#[derive(Clone, Copy, Debug)]
struct Old {
    /// When the latest of the pending ones left, the lower 24 bits.
    latest: u64,
    counted: u64,
    pending: u64,
}

impl Old {
    const COUNT: u64 = (1 << 20) - 1;
    const EPOCH: u64 = (1 << 24) - 1;

    const fn unpack(word: u64) -> Self {
        Self {
            latest: word >> 40,
            counted: (word >> 20) & Self::COUNT,
            pending: word & Self::COUNT,
        }
    }

    /// What was left in a slot joins. `answered` is the first epoch after the last answer.
    fn joined_by(self, slot: u64, answered: u32) -> Self {
        let (epoch, count) = (epoch_of(slot), slot & COUNT);
        if slot & COUNTED != 0 {
            return Self {
                counted: (self.counted + count).min(Self::COUNT),
                ..self
            };
        }
        if !at_or_after(epoch, answered) {
            // An answer came after these were sent: they can never be suspect.
            return self;
        }
        let still = if at_or_after(self.epoch(epoch), answered) {
            self.pending
        } else {
            0
        };
        Self {
            latest: u64::from(epoch) & Self::EPOCH,
            pending: (still + count).min(Self::COUNT),
            ..self
        }
    }

    /// One of them is over: whether it was counted, and what is left.
    const fn left_by_one(self) -> (bool, Self) {
        if self.counted > 0 {
            let counted = self.counted - 1;
            return (true, Self { counted, ..self });
        }
        let pending = self.pending.saturating_sub(1);
        (false, Self { pending, ..self })
    }

    /// The pending ones were counted.
    fn marked(self) -> Self {
        Self {
            pending: 0,
            counted: (self.counted + self.pending).min(Self::COUNT),
            ..self
        }
    }

    const fn pack(self) -> u64 {
        self.latest << 40 | self.counted << 20 | self.pending
    }

    /// When the latest of the pending ones left: the last epoch up to `now` that ends in these
    /// bits.
    const fn epoch(self, now: u32) -> u32 {
        let age = (now as u64).wrapping_sub(self.latest) & Self::EPOCH;
        now.wrapping_sub(cut(age))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// B8: each call counts once, whichever comes first, the mark or its own outcome.
    #[test]
    fn a_send_is_marked_once() {
        let flight = Flight::new();
        flight.enter(1, 0);
        flight.enter(1, 0);
        assert_eq!(flight.mark(0, 5), 2);
        assert_eq!(flight.mark(0, 6), 0);
        assert!(flight.leave(1));
        assert!(flight.leave(1));
        assert!(!flight.leave(1), "nobody is left");
    }

    #[test]
    fn only_the_given_span_is_marked() {
        let flight = Flight::new();
        for epoch in 1..=15 {
            flight.enter(epoch, 0);
        }
        assert_eq!(flight.mark(4, 10), 7);
        assert!(!flight.leave(3));
        assert!(flight.leave(4));
        assert!(flight.leave(10));
        assert!(!flight.leave(11));
    }

    #[test]
    fn old_sends_are_still_suspect() {
        let flight = Flight::new();
        flight.enter(1, 0);
        flight.enter(17, 0);
        flight.enter(33, 0);
        // 1 and 17 are too old for a slot of their own; all three are silent.
        assert_eq!(flight.mark(0, 40), 3);
        assert_eq!(flight.mark(0, 40), 0);
        for epoch in [1, 17, 33] {
            assert!(flight.leave(epoch), "{epoch}");
        }
        assert!(!flight.leave(1));
    }

    #[test]
    fn old_sends_that_were_marked_stay_marked() {
        let flight = Flight::new();
        flight.enter(1, 0);
        assert_eq!(flight.mark(0, 3), 1);
        flight.enter(17, 0);
        assert_eq!(flight.mark(0, 10), 0);
        assert!(flight.leave(1));
        assert!(!flight.leave(17));
    }

    /// B8: an answer since they were sent clears them of suspicion.
    #[test]
    fn an_answer_clears_old_sends() {
        let flight = Flight::new();
        flight.enter(1, 0);
        flight.enter(17, 11);
        assert_eq!(flight.mark(11, 10), 0);
        assert_eq!(flight.mark(11, 16), 0);
        assert_eq!(flight.mark(11, 17), 1);
    }

    #[test]
    fn a_full_slot_overflows_into_nothing() {
        let flight = Flight::new();
        flight.slots[7].store(7 << 32 | COUNT, Relaxed);
        flight.enter(7, 0);
        assert_eq!(flight.mark(0, 7), COUNT);
    }

    #[test]
    fn a_straggler_does_not_turn_the_page_back() {
        let flight = Flight::new();
        flight.enter(40, 0);
        flight.enter(24, 0);
        assert!(!flight.leave(24));
        assert!(!flight.leave(40));
        assert_eq!(flight.mark(0, 60), 0);
    }

    /// An idle time of any length leaves the slots usable.
    #[test]
    fn a_long_silence_stops_nothing() {
        let flight = Flight::new();
        for epoch in [3, 1 << 23, 1 << 24, (1 << 31) + 3, 1 << 30, 3] {
            assert_eq!(flight.try_enter(epoch), epoch == 0);
            flight.enter(epoch, 0);
            assert!(flight.try_enter(epoch));
            assert!(flight.try_leave(epoch));
            assert!(!flight.leave(epoch));
            flight.enter(epoch, epoch);
            assert_eq!(flight.mark(u64::from(epoch), u64::from(epoch)), 1);
            assert!(flight.leave(epoch));
        }
    }
}
