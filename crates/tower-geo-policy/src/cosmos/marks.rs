//! Regions that are left for last for a while (C10).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::breaker::{Circuit, Circuits};
use crate::region::{RegionId, Regions};
use crate::tick::Tick;

/// The marks of an account: for each region and kind of request (reads, writes), until when it is
/// left for last.
///
/// A mark ends by time alone: neither an account document that lists the region nor an answer of
/// it clears one, because both come and go while a region leaves (C10).
///
/// ```
/// use std::time::Duration;
/// use tower_geo_policy::breaker::Circuit;
/// use tower_geo_policy::cosmos::Marks;
/// use tower_geo_policy::region::RegionId;
/// use tower_geo_policy::tick::Tick;
///
/// let (marks, west) = (Marks::new(), RegionId::new(2));
/// let until = Tick::ZERO + Duration::from_secs(300);
/// marks.mark(west, Circuit::Writes.into(), until);
/// assert!(marks.has(west, Circuit::Writes, Tick::ZERO));
/// assert!(!marks.has(west, Circuit::Reads, Tick::ZERO));
/// assert!(!marks.has(west, Circuit::Writes, until));
/// ```
#[derive(Debug, Default)]
pub struct Marks([[AtomicU64; 2]; Regions::MAX]);

impl Marks {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn cell(&self, region: RegionId, kind: Circuit) -> Option<&AtomicU64> {
        self.0.get(region.index()).map(|pair| kind.of(pair))
    }

    /// Marks a region for these kinds, or renews its marks. A mark that lasts longer stays.
    pub fn mark(&self, region: RegionId, kinds: Circuits, until: Tick) {
        for kind in Circuit::BOTH {
            if let Some(cell) = self.cell(region, kind).filter(|_| kinds.contains(kind)) {
                cell.fetch_max(until.as_nanos(), Ordering::Relaxed);
            }
        }
    }

    /// Whether a region is marked for this kind.
    #[must_use]
    pub fn has(&self, region: RegionId, kind: Circuit, now: Tick) -> bool {
        self.cell(region, kind)
            .is_some_and(|cell| cell.load(Ordering::Relaxed) > now.as_nanos())
    }

    /// Forgets the marks of a number that now means another region.
    pub(super) fn forget(&self, region: RegionId) {
        for kind in Circuit::BOTH {
            if let Some(cell) = self.cell(region, kind) {
                cell.store(0, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// C10: renewed by a new failure, never shortened.
    #[test]
    fn marks_are_renewed() {
        let (marks, region) = (Marks::new(), RegionId::new(15));
        let at = |s| Tick::ZERO + Duration::from_secs(s);
        marks.mark(region, Circuits::BOTH, at(300));
        marks.mark(region, Circuit::Reads.into(), at(360));
        marks.mark(region, Circuits::BOTH, at(200));
        assert!(marks.has(region, Circuit::Reads, at(359)));
        assert!(!marks.has(region, Circuit::Reads, at(360)));
        assert!(marks.has(region, Circuit::Writes, at(299)));
        assert!(!marks.has(region, Circuit::Writes, at(300)));
        marks.forget(region);
        assert!(!marks.has(region, Circuit::Reads, at(1)));
    }
}
