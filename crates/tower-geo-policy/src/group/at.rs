//! One circuit in the middle of a change, and its evidence.

use crate::breaker::{Auto, Cell, Circuit, Compiled, Manual, Tally};
use crate::region::RegionId;
use crate::service_state::Core;
use crate::tick::Tick;

/// One circuit, with everything that is needed to change it.
pub(super) struct At<'a> {
    pub(super) core: &'a Core,
    pub(super) member: usize,
    pub(super) cell: &'a Cell,
    pub(super) region: RegionId,
    pub(super) circuit: Circuit,
    pub(super) settings: &'a Compiled,
}

impl At<'_> {
    fn tally(&self, stripe: u8) -> Option<&Tally> {
        let tally = self.core.tally(stripe, self.region)?;
        Some(tally.of(self.circuit))
    }

    pub(super) fn add_calls(&self, stripe: u8, now: Tick) {
        if let (Some(rate), Some(tally)) = (self.settings.rate, self.tally(stripe)) {
            tally.rate.add_calls(rate.epochs, now.as_nanos(), 1);
        }
    }

    pub(super) fn add_bad(&self, stripe: u8, failures: u64, now: Tick) {
        if let (Some(rate), Some(tally)) = (self.settings.rate, self.tally(stripe)) {
            tally.rate.add_bad(rate.epochs, now.as_nanos(), failures);
        }
    }

    /// Counts a call for the rate of slow calls, and says whether that is too high now.
    pub(super) fn add_slow(&self, stripe: u8, slow: bool, now: Tick) -> bool {
        let now = now.as_nanos();
        let (Some(rule), Some(tally)) = (self.settings.slow, self.tally(stripe)) else {
            return false;
        };
        if !slow {
            tally.slow.add_calls(rule.epochs, now, 1);
            return false;
        }
        tally.slow.add_bad(rule.epochs, now, 1);
        let (calls, slow) = self.sum(|tally| tally.slow.sum(rule.epochs, now));
        rule.is_reached(calls, slow)
    }

    pub(super) fn rate_is_reached(&self, now: Tick) -> bool {
        let Some(rule) = self.settings.rate else {
            return false;
        };
        let (calls, bad) = self.sum(|tally| tally.rate.sum(rule.epochs, now.as_nanos()));
        rule.is_reached(calls, bad)
    }

    /// The sum over all stripes.
    fn sum(&self, of: impl Fn(&Tally) -> (u64, u64)) -> (u64, u64) {
        self.core
            .stripes_of(self.region)
            .map(|tally| of(tally.of(self.circuit)))
            .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// Calls that have been under way for long enough, and in silence, fail with this one (B8).
    pub(super) fn mark(&self, first_slot: u64, now: u64) -> u64 {
        let Some(oldest) = now.checked_sub(self.settings.suspect_after) else {
            return 0;
        };
        let slots = self.settings.suspect;
        let from = self.cell.first_silent_slot(slots).max(first_slot);
        let until = slots.at(oldest);
        self.core
            .stripes_of(self.region)
            .map(|tally| tally.of(self.circuit).flight.mark(from, until))
            .sum()
    }

    /// A good call has something to end from now on.
    pub(super) fn look_closer(&self) {
        for tally in self.core.stripes_of(self.region) {
            tally.look_closer();
        }
    }

    /// Forgets the evidence of this circuit.
    pub(super) fn forget(&self) {
        for tally in self.core.stripes_of(self.region) {
            let tally = tally.of(self.circuit);
            tally.rate.clear();
            tally.slow.clear();
        }
    }

    /// B4: each of two or more regions that could take the request is open, this one included.
    pub(super) fn nowhere_else(&self) -> bool {
        let mut regions = 0;
        let all = self
            .core
            .regions()
            .filter(|&region| self.circuit == Circuit::Reads || self.core.is_writer(region))
            .inspect(|_| regions += 1)
            .filter(|&region| region != self.region)
            .filter_map(|region| self.core.cell(region))
            .all(|cell| {
                let half = cell.half(self.circuit);
                half.manual() == Manual::Open
                    || (half.manual() == Manual::None && half.auto() != Auto::Closed)
            });
        all && regions >= 2
    }
}
