//! The path of a good call: what a handle touches while all is well.
//!
//! Written for few instructions: everything is looked at first and changed last, and whatever is
//! not as usual goes to [`Core`] before anything has been changed, as the last thing that is done
//! here. `examples/breaker_cost.rs` counts the instructions.

use std::sync::Arc;

use super::core::{Core, Left};
use crate::breaker::{Circuit, Epochs, Flags, Outcome, RegionTally, Sent, cut};
use crate::region::RegionId;
use crate::sync::{Relaxed, Release};
use crate::tick::Tick;
use crate::verdict::Evidence;

/// One stripe of a service.
pub(crate) struct Lane {
    pub(crate) core: Arc<Core>,
    /// By region; empty without a breaker.
    tallies: Arc<[RegionTally]>,
    suspect: Epochs,
    /// The stripe whose sends [`settle_if_good`](Self::settle_if_good) may settle: this one, or
    /// [`NONE_IS`].
    usual: u8,
    has_rate: bool,
    pub(crate) stripe: u8,
}

/// Not the number of a stripe: where no send is usual.
const NONE_IS: u8 = u8::MAX;

impl Lane {
    pub(super) fn new(core: Arc<Core>, tallies: Arc<[RegionTally]>, stripe: u8) -> Self {
        let (suspect, usual, has_rate) = match &core.breaker {
            Some(settings) => {
                // Where slow calls count, it always matters how long a call took.
                let usual = if settings.slow.is_some() {
                    NONE_IS
                } else {
                    stripe
                };
                (settings.suspect, usual, settings.rate.is_some())
            }
            None => (Epochs::NEVER, stripe, false),
        };
        Self {
            core,
            tallies,
            suspect,
            usual,
            has_rate,
            stripe,
        }
    }

    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.core.is_calm()
    }

    /// A send leaves, if nothing at all is unusual. None, and nothing has changed, if anything is;
    /// the first send of a slot of time is unusual as well.
    #[inline]
    pub(super) fn start_if_calm(
        &self,
        region: RegionId,
        circuit: Circuit,
        now: Tick,
    ) -> Option<Sent> {
        if !self.is_calm() {
            return None;
        }
        let tally = self.tallies.get(region.index())?;
        // Calm means that it is plain. Should it have ceased to be in this very moment, it will be
        // another when the send is settled, or good calls are looked at closely.
        let word = tally.cell.word_now();
        let slot = cut(self.suspect.at(now.as_nanos()));
        if !tally.of(circuit).flight.try_enter(slot) {
            return None;
        }
        if circuit == Circuit::Writes {
            tally.writes.fetch_add(1, Relaxed);
        }
        Some(Sent {
            word,
            at: now.as_nanos(),
            slot,
            region,
            stripe: self.stripe,
            circuit,
            flags: Flags::NONE,
        })
    }

    /// A send leaves.
    #[cold]
    #[inline(never)]
    pub(super) fn start(
        &self,
        region: RegionId,
        circuit: Circuit,
        flags: Flags,
        now: Tick,
    ) -> Option<Sent> {
        self.core.start(self.stripe, region, circuit, flags, now)
    }

    /// A send is over: true if it was good, nothing is unusual, and it is settled. Otherwise
    /// nothing has changed.
    #[inline]
    pub(super) fn settle_if_good(&self, sent: &Sent, outcome: Outcome, now: Tick) -> bool {
        const GOOD: Outcome = Outcome::answer(Evidence::Success);

        if outcome != GOOD || !sent.is_plainly_of(self.usual) {
            return false;
        }
        let Some(region) = self.tallies.get(sent.region.index()) else {
            return false;
        };
        let (cell, tally) = (&*region.cell, region.of(sent.circuit));
        // The word was plain when the send left, and nothing has changed since (B6).
        if cell.word_now() != sent.word || !tally.is_relaxed(now.as_nanos()) {
            return false;
        }
        if !tally.flight.try_leave(sent.slot) {
            return false;
        }
        if self.has_rate {
            tally.rate.add_one();
        }
        if sent.circuit == Circuit::Writes {
            region.writes.fetch_sub(1, Release);
            // Maintenance may wait for this very write.
            if !self.is_calm() {
                self.core.tell_if_drained_in_maintenance();
            }
        }
        true
    }

    /// What is left to do for a send that is over.
    pub(super) fn settle(&self, sent: &Sent, outcome: Outcome, now: Tick) -> Option<Left> {
        self.core.settle(sent, outcome, now)
    }
}
