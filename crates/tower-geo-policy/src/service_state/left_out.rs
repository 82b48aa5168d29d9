//! Regions that are left out for a while: they rest, or are set aside.

use std::time::Duration;

use super::{Calm, ServiceState};
use crate::region::RegionId;
use crate::sync::Acquire;
use crate::tick::Tick;

/// R6: for so long a copy that may not be read is left out.
const ASIDE_FOR: Duration = Duration::from_secs(300);

impl<X> ServiceState<X> {
    /// The service asked not to be asked before `until` (T1). The longest of several such waits
    /// counts.
    pub fn rest(&self, region: RegionId, until: Tick, now: Tick) {
        if until > now {
            self.update(now, |change| change.rest(&self.0.lane.core, region, until));
        }
    }

    /// Until when a region rests, if it does.
    #[must_use]
    pub fn resting(&self, region: RegionId, now: Tick) -> Option<Tick> {
        let core = &*self.0.lane.core;
        if !core.calm().has(Calm::RESTING) {
            return None;
        }
        let until = core.cell(region)?.rest.load(Acquire);
        if until > now.as_nanos() {
            return Some(Tick::from_nanos(until));
        }
        self.end_rests(region, until, now);
        None
    }

    /// The region turned out not to be readable at all (R6): it is set aside for five minutes,
    /// which one event tells. A region that is set aside already stays so no longer for it.
    pub fn set_aside(&self, region: RegionId, now: Tick) {
        self.update(now, |change| {
            change.set_aside(&self.0.lane.core, self.member(), region, now + ASIDE_FOR);
        });
    }

    /// Whether a region is set aside. The first to find that it no longer is tells so.
    #[must_use]
    pub fn is_set_aside(&self, region: RegionId, now: Tick) -> bool {
        let core = &*self.0.lane.core;
        if !core.calm().has(Calm::RESTING) {
            return false;
        }
        let Some(cell) = core.cell(region) else {
            return false;
        };
        let until = cell.aside.load(Acquire);
        if until > now.as_nanos() {
            return true;
        }
        self.end_rests(region, until, now);
        false
    }

    fn end_rests(&self, region: RegionId, until: u64, now: Tick) {
        if until != 0 {
            self.update(now, |change| {
                change.end_rests(&self.0.lane.core, self.member(), region);
            });
        }
    }
}
