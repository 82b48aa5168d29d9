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
    rate: Rate,
    pub(crate) stripe: u8,
}

/// What a good call adds to the windows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rate {
    Nothing,
    ACall,
    /// Slow calls count: how long it took matters.
    CloserLook,
}

impl Lane {
    pub(super) fn new(core: Arc<Core>, tallies: Arc<[RegionTally]>, stripe: u8) -> Self {
        let (suspect, rate) = match &core.breaker {
            Some(settings) if settings.slow.is_some() => (settings.suspect, Rate::CloserLook),
            Some(settings) if settings.rate.is_some() => (settings.suspect, Rate::ACall),
            Some(settings) => (settings.suspect, Rate::Nothing),
            None => (Epochs::NEVER, Rate::Nothing),
        };
        Self {
            core,
            tallies,
            suspect,
            rate,
            stripe,
        }
    }

    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.core.calm().is_calm()
    }

    /// A send leaves, if nothing at all is unusual.
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
        let Some(tally) = self.tallies.get(region.index()) else {
            return self.start(region, circuit, Flags::NONE, now);
        };
        let slot = cut(self.suspect.at(now.as_nanos()));
        if !tally.of(circuit).flight.try_enter(slot) {
            return self.start(region, circuit, Flags::NONE, now);
        }
        if circuit == Circuit::Writes {
            tally.writes.fetch_add(1, Relaxed);
        }
        let word = tally.cell.word();
        Some(Sent {
            word,
            at: now.as_nanos(),
            slot,
            region,
            stripe: self.stripe,
            circuit,
            // Calm was read before the word: what happened in between is seen in the word.
            flags: if word.is_plain() {
                Flags::NONE
            } else {
                Flags::CLOSER
            },
        })
    }

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

        if outcome != GOOD || !sent.flags.is_none() || sent.stripe != self.stripe {
            return false;
        }
        let Some(region) = self.tallies.get(sent.region.index()) else {
            return false;
        };
        let (cell, tally) = (&*region.cell, region.of(sent.circuit));
        // The word was plain when the send left, and nothing has changed since (B6).
        if cell.word() != sent.word
            || !cell.has_answered_by(now.as_nanos())
            || !cell.is_without_streak(Circuit::Reads)
        {
            return false;
        }
        match self.rate {
            Rate::ACall if !tally.rate.is_current(now.as_nanos()) => return false,
            Rate::CloserLook => return false,
            Rate::ACall | Rate::Nothing => {}
        }
        let write = sent.circuit == Circuit::Writes;
        if write && !cell.is_without_streak(Circuit::Writes) {
            return false;
        }
        if !tally.flight.try_leave(sent.slot) {
            return false;
        }
        if self.rate == Rate::ACall {
            tally.rate.add_one();
        }
        if write {
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
