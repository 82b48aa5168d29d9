//! Sends that are under way, by the time at which they left (B8).
//!
//! A silent region must not stay trusted because its callers are less patient than its time-outs.
//! So whenever a failure is recorded, the sends that left long enough ago, and after the region's
//! last answer, count as failures as well, each once. To find them, sends are counted by the slot
//! of time that they left in; a slot is a tenth of `suspect_after`.
//!
//! Thirty-two slots are kept apart, which is three times `suspect_after`. What is older is lumped
//! together: how many of those were counted already, and how many still may be. There a send is
//! known by its number only, so an outcome is first taken to be one that was counted.

use super::Circuit;
use crate::sync::{AtomicU64, Relaxed};

pub(crate) const SLOTS: usize = 32;

const COUNT_BITS: u32 = 20;
const EPOCH_SHIFT: u32 = 40;
const EPOCH: u64 = (1 << 24) - 1;
/// In each count of a slot, the topmost bit says that its sends were counted as failures.
const COUNTED: u64 = 1 << (COUNT_BITS - 1);
const SLOT_COUNT: u64 = COUNTED - 1;
const OLD_COUNT: u64 = (1 << COUNT_BITS) - 1;
/// A slot that is ahead by no more than this is ahead because the caller is late; by more, it is
/// old, and the epochs have wrapped since.
const LATE: u64 = 1 << 12;

const fn shift(circuit: Circuit) -> u32 {
    match circuit {
        Circuit::Reads => 0,
        Circuit::Writes => COUNT_BITS,
    }
}

/// Whether `a` is at or after `b`, both cut to 24 bits.
const fn at_or_after(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) & EPOCH) < EPOCH / 2
}

/// The sends of one region on one stripe.
///
/// A slot is `epoch 24 | writes: counted 1, count 19 | reads: counted 1, count 19`; what is older
/// is, for each circuit, `epoch of the latest 24 | counted 20 | pending 20`.
#[derive(Debug)]
pub(crate) struct Flight {
    slots: [AtomicU64; SLOTS],
    old: [AtomicU64; 2],
}

impl Flight {
    pub(crate) fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| AtomicU64::new(0)),
            old: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the index is masked to five bits"
    )]
    fn slot(&self, epoch: u64) -> Option<&AtomicU64> {
        self.slots.get((epoch % SLOTS as u64) as usize)
    }

    /// A send leaves now. `answered` is the first epoch after the region's last answer.
    #[inline]
    pub(crate) fn enter(&self, epoch: u64, circuit: Circuit, answered: &AtomicU64) {
        let Some(slot) = self.slot(epoch) else { return };
        let seen = slot.load(Relaxed);
        let count = (seen >> shift(circuit)) & SLOT_COUNT;
        // Adding and turning the page exclude each other: a count in the wrong epoch would be
        // taken for a send that never ends.
        if seen >> EPOCH_SHIFT == epoch & EPOCH
            && count < SLOT_COUNT
            && slot
                .compare_exchange(seen, seen + (1 << shift(circuit)), Relaxed, Relaxed)
                .is_ok()
        {
            return;
        }
        self.enter_slowly(slot, epoch & EPOCH, circuit, answered);
    }

    #[cold]
    fn enter_slowly(&self, slot: &AtomicU64, epoch: u64, circuit: Circuit, answered: &AtomicU64) {
        let one = 1 << shift(circuit);
        let mut seen = slot.load(Relaxed);
        loop {
            let theirs = seen >> EPOCH_SHIFT;
            let next = if theirs == epoch {
                if (seen >> shift(circuit)) & SLOT_COUNT == SLOT_COUNT {
                    // Half a million sends in one slot of one stripe: the rest is not watched.
                    return;
                }
                seen + one
            } else if theirs.wrapping_sub(epoch) & EPOCH <= LATE {
                // This thread slept for so long that its own slot is gone.
                return;
            } else {
                epoch << EPOCH_SHIFT | one
            };
            match slot.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) if theirs == epoch => return,
                Ok(_) => {
                    let answered = answered.load(Relaxed);
                    self.grow_old(seen, Circuit::Reads, answered);
                    self.grow_old(seen, Circuit::Writes, answered);
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Lumps what is left of a slot together with what is older still.
    fn grow_old(&self, slot: u64, circuit: Circuit, answered: u64) {
        let epoch = slot >> EPOCH_SHIFT;
        let left = slot >> shift(circuit);
        let count = left & SLOT_COUNT;
        if count == 0 {
            return;
        }
        let counted = left & COUNTED != 0;
        if !counted && !at_or_after(epoch, answered & EPOCH) {
            // An answer came after these were sent: they can never be suspect.
            return;
        }
        self.update_old(circuit, |old| {
            if counted {
                return Old {
                    counted: (old.counted + count).min(OLD_COUNT),
                    ..old
                };
            }
            let still = if at_or_after(old.epoch, answered & EPOCH) {
                old.pending
            } else {
                0
            };
            Old {
                epoch,
                pending: (still + count).min(OLD_COUNT),
                ..old
            }
        });
    }

    /// A send that left in `epoch` is over. Whether it was counted as a failure already.
    #[inline]
    pub(crate) fn leave(&self, epoch: u64, circuit: Circuit) -> bool {
        let Some(slot) = self.slot(epoch) else {
            return false;
        };
        let one = 1 << shift(circuit);
        let mut seen = slot.load(Relaxed);
        while seen >> EPOCH_SHIFT == epoch & EPOCH {
            let mine = seen >> shift(circuit);
            if mine & SLOT_COUNT == 0 {
                return false;
            }
            // The last one to leave takes the mark along.
            let next = if mine & SLOT_COUNT == 1 {
                seen & !((COUNTED | SLOT_COUNT) << shift(circuit))
            } else {
                seen - one
            };
            match slot.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) => return mine & COUNTED != 0,
                Err(now) => seen = now,
            }
        }
        self.leave_old(circuit)
    }

    #[cold]
    fn leave_old(&self, circuit: Circuit) -> bool {
        let before = self.update_old(circuit, |old| {
            if old.counted > 0 {
                Old {
                    counted: old.counted - 1,
                    ..old
                }
            } else {
                Old {
                    pending: old.pending.saturating_sub(1),
                    ..old
                }
            }
        });
        before.counted > 0
    }

    /// Counts the sends that left in `from..=until` as failures, and says how many there were.
    /// `now` is the current epoch.
    pub(crate) fn mark(&self, circuit: Circuit, from: u64, until: u64, now: u64) -> u64 {
        let mut marked = 0;
        for epoch in from.max(now.saturating_sub(SLOTS as u64 - 1))..=until {
            let Some(slot) = self.slot(epoch) else {
                continue;
            };
            let mut seen = slot.load(Relaxed);
            while seen >> EPOCH_SHIFT == epoch & EPOCH {
                let mine = seen >> shift(circuit);
                let count = mine & SLOT_COUNT;
                if count == 0 || mine & COUNTED != 0 {
                    break;
                }
                let next = seen | COUNTED << shift(circuit);
                match slot.compare_exchange(seen, next, Relaxed, Relaxed) {
                    Ok(_) => {
                        marked += count;
                        break;
                    }
                    Err(other) => seen = other,
                }
            }
        }
        let before = self.update_old(circuit, |old| {
            if old.pending > 0 && at_or_after(old.epoch, from & EPOCH) {
                Old {
                    pending: 0,
                    counted: (old.counted + old.pending).min(OLD_COUNT),
                    ..old
                }
            } else {
                old
            }
        });
        if at_or_after(before.epoch, from & EPOCH) {
            marked += before.pending;
        }
        marked
    }

    fn update_old(&self, circuit: Circuit, change: impl Fn(Old) -> Old) -> Old {
        let [reads, writes] = &self.old;
        let word = match circuit {
            Circuit::Reads => reads,
            Circuit::Writes => writes,
        };
        let mut seen = word.load(Relaxed);
        loop {
            let old = Old::unpack(seen);
            let next = change(old).pack();
            if next == seen {
                return old;
            }
            match word.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) => return old,
                Err(now) => seen = now,
            }
        }
    }
}

/// The sends that are older than the slots reach.
#[derive(Clone, Copy, Debug)]
struct Old {
    /// When the latest of the pending ones left.
    epoch: u64,
    counted: u64,
    pending: u64,
}

impl Old {
    const fn unpack(word: u64) -> Self {
        Self {
            epoch: word >> EPOCH_SHIFT,
            counted: (word >> COUNT_BITS) & OLD_COUNT,
            pending: word & OLD_COUNT,
        }
    }

    const fn pack(self) -> u64 {
        self.epoch << EPOCH_SHIFT | self.counted << COUNT_BITS | self.pending
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const READS: Circuit = Circuit::Reads;
    const WRITES: Circuit = Circuit::Writes;

    fn silent() -> AtomicU64 {
        AtomicU64::new(0)
    }

    /// B8: each call counts once, whichever comes first, the mark or its own outcome.
    #[test]
    fn a_send_is_marked_once() {
        let flight = Flight::new();
        flight.enter(1, READS, &silent());
        flight.enter(1, READS, &silent());
        flight.enter(2, WRITES, &silent());
        assert_eq!(flight.mark(READS, 0, 5, 15), 2);
        assert_eq!(flight.mark(READS, 0, 6, 16), 0);
        assert!(flight.leave(1, READS));
        assert!(flight.leave(1, READS));
        assert!(!flight.leave(1, READS), "nobody is left");
        assert_eq!(flight.mark(WRITES, 0, 6, 16), 1);
        assert!(flight.leave(2, WRITES));
    }

    #[test]
    fn only_the_given_span_is_marked() {
        let flight = Flight::new();
        for epoch in 1..=20 {
            flight.enter(epoch, READS, &silent());
        }
        assert_eq!(flight.mark(READS, 4, 10, 20), 7);
        assert!(!flight.leave(3, READS));
        assert!(flight.leave(4, READS));
        assert!(flight.leave(10, READS));
        assert!(!flight.leave(11, READS));
    }

    #[test]
    fn old_sends_are_still_suspect() {
        let flight = Flight::new();
        flight.enter(1, READS, &silent());
        flight.enter(33, READS, &silent());
        flight.enter(65, READS, &silent());
        // 1 and 33 are too old for a slot of their own; all three are silent.
        assert_eq!(flight.mark(READS, 0, 70, 80), 3);
        assert_eq!(flight.mark(READS, 0, 70, 80), 0);
        for epoch in [1, 33, 65] {
            assert!(flight.leave(epoch, READS), "{epoch}");
        }
        assert!(!flight.leave(1, READS));
    }

    #[test]
    fn old_sends_that_were_marked_stay_marked() {
        let flight = Flight::new();
        flight.enter(1, READS, &silent());
        assert_eq!(flight.mark(READS, 0, 3, 13), 1);
        flight.enter(33, READS, &silent());
        assert_eq!(flight.mark(READS, 0, 20, 33), 0);
        assert!(flight.leave(1, READS));
        assert!(!flight.leave(33, READS));
    }

    /// B8: an answer since they were sent clears them of suspicion.
    #[test]
    fn an_answer_clears_old_sends() {
        let flight = Flight::new();
        flight.enter(1, READS, &silent());
        let answered = AtomicU64::new(11);
        flight.enter(33, READS, &answered);
        assert_eq!(flight.mark(READS, 11, 30, 40), 0);
        assert_eq!(flight.mark(READS, 11, 33, 43), 1);
    }

    #[test]
    fn a_full_slot_overflows_into_nothing() {
        let flight = Flight::new();
        for _ in 0..SLOT_COUNT + 10 {
            flight.enter(7, READS, &silent());
        }
        assert_eq!(flight.mark(WRITES, 0, 7, 20), 0);
        assert_eq!(flight.mark(READS, 0, 7, 20), SLOT_COUNT);
    }

    #[test]
    fn a_straggler_does_not_turn_the_page_back() {
        let flight = Flight::new();
        flight.enter(40, READS, &silent());
        flight.enter(8, READS, &silent());
        assert!(!flight.leave(8, READS));
        assert!(!flight.leave(40, READS));
        assert_eq!(flight.mark(READS, 0, 60, 70), 0);
    }
}
