//! Regions that come and go: what the circuits and the gate have to know of it.

use std::sync::Arc;

use super::ServiceState;
use crate::breaker::Manual;
use crate::region::{RegionId, Regions};
use crate::tick::Tick;

impl<X> ServiceState<X> {
    /// The service has these regions from now on, of which `listed` has a bit for each that is in
    /// use: the gate follows those that take writes (G1). Numbers of `reassigned` mean another
    /// region than before: what is known of their circuits, an operator's say included, is
    /// forgotten.
    ///
    /// For a service that was built with
    /// [`changing_regions`](super::ServiceConfig::changing_regions); any other has no circuits for
    /// regions beyond those that it was built with. [`regions`](Self::regions) goes on to be what
    /// the service was built with: whoever changes the regions knows them.
    pub fn set_regions(&self, regions: &Regions, listed: u16, reassigned: u16, now: Tick) {
        let core = &*self.0.lane.core;
        let names: Arc<[Box<str>]> = regions
            .iter()
            .map(|(_, region)| region.name().into())
            .collect();
        let writable = regions
            .iter()
            .filter(|(_, region)| region.is_writable())
            .fold(0, |bits, (id, _)| bits | 1_u16 << id.index());
        self.update(now, |change| {
            for region in core.regions() {
                if reassigned & (1 << region.index()) != 0 {
                    change.set_manual(core, self.member(), region, Manual::None);
                    change.reset(core, self.member(), region);
                }
            }
            core.set_regions(names, listed, writable & listed);
            change.look_again();
        });
    }

    /// The regions that take writes, by number.
    pub fn writers(&self) -> impl Iterator<Item = RegionId> + use<X> {
        self.0.lane.core.writers()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::breaker::{BreakerSettings, Circuit, CircuitPhase};
    use crate::gate::GateStatus;
    use crate::region::{Endpoint, Region};
    use crate::service_state::{ServiceConfig, ServiceRoot};
    use crate::static_service::StaticService;

    const R0: RegionId = RegionId::FIRST;
    const R1: RegionId = RegionId::new(1);

    fn second(n: u64) -> Tick {
        Tick::ZERO + Duration::from_secs(n)
    }

    fn regions(writes: &[bool]) -> Regions {
        let all = writes.iter().enumerate().map(|(i, &writes)| {
            let endpoint = Endpoint::parse(&format!("https://r{i}.example")).unwrap();
            Region::new(format!("r{i}"), endpoint).writable(writes)
        });
        Regions::new(all.collect()).unwrap()
    }

    fn root() -> ServiceRoot {
        #[expect(clippy::disallowed_methods, reason = "any instant will do as the base")]
        let base = Instant::now();
        let provider = Arc::new(StaticService::new());
        let config = ServiceConfig::new("docs", provider, regions(&[true]), base, ())
            .changing_regions(true)
            .breaker(BreakerSettings::new().streak(1));
        ServiceRoot::build(config).unwrap()
    }

    fn gate(state: &ServiceState, now: Tick) -> GateStatus {
        state.gate(now).status
    }

    /// G1: with several regions that take writes the gate closes only when all are open, and it
    /// follows the writer when that changes.
    #[test]
    fn the_gate_follows_the_regions_that_take_writes() {
        let root = root();
        let state = root.handle();
        state.set_regions(&regions(&[true, true]), 0b11, 0, second(1));
        assert_eq!(state.writers().collect::<Vec<_>>(), [R0, R1]);
        state.force_open(R0, second(2));
        assert_eq!(gate(&state, second(2)), GateStatus::ReadWrite);
        state.force_open(R1, second(3));
        assert_eq!(gate(&state, second(3)), GateStatus::ReadOnly);
        state.automatic(R1, second(4));
        assert_eq!(gate(&state, second(4)), GateStatus::ReadWrite);
        state.set_regions(&regions(&[true, false]), 0b11, 0, second(5));
        assert_eq!(gate(&state, second(5)), GateStatus::ReadOnly);
        state.set_regions(&regions(&[false, true]), 0b11, 0, second(6));
        assert_eq!(gate(&state, second(6)), GateStatus::ReadWrite);
    }

    /// C13: a number that means another region has a fresh circuit, whoever had opened the old.
    #[test]
    fn a_number_that_changes_hands_is_forgotten() {
        let root = root();
        let state = root.handle();
        state.set_regions(&regions(&[true, false, false]), 0b111, 0, second(1));
        let reads = |now| state.circuit(R1, Circuit::Reads, now).unwrap();
        state.force_open(R1, second(2));
        state.set_regions(&regions(&[true, false]), 0b11, 0, second(3));
        assert_eq!(reads(second(3)).phase, CircuitPhase::Open);
        state.set_regions(&regions(&[true, false]), 0b11, 0b10, second(4));
        assert_eq!(reads(second(4)).phase, CircuitPhase::Closed);
        assert!(state.is_calm());
    }

    /// G4: maintenance needs a second region at the time when it begins.
    #[test]
    fn maintenance_looks_at_the_regions_of_the_moment() {
        let root = root();
        let state = root.handle();
        assert!(state.begin_maintenance(second(1)).is_err());
        state.set_regions(&regions(&[true, false]), 0b11, 0, second(2));
        assert!(state.begin_maintenance(second(3)).is_ok());
        state.end_maintenance(second(4));
        state.set_regions(&regions(&[true, false]), 0b01, 0, second(5));
        assert!(state.begin_maintenance(second(6)).is_err());
    }
}
