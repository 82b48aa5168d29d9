//! What an operator does and sees, and what a monitor says.

use std::time::Instant;

use super::{Calm, Inner, Look, ServiceState};
use crate::breaker::{Circuit, CircuitPhase, Manual, end};
use crate::config_error::ConfigError;
use crate::gate::{GateState, GateStatus, OfAccount, ReadOnlyWhy};
use crate::region::RegionId;
use crate::sync::Acquire;
use crate::tick::{Tick, nanos};

/// A circuit, to be shown to people.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct CircuitState {
    /// The state that callers meet, the group left out.
    pub phase: CircuitPhase,
    /// Whether an operator forces it.
    pub forced: bool,
    /// Since when.
    pub since: Tick,
    /// While it is open by itself: when it may be tried; none if that depends on a monitor.
    pub until: Option<Tick>,
    /// The longest wait of another service of the group that holds this circuit back.
    pub held_until: Option<Tick>,
    /// How often the automatic state has changed.
    pub generation: u32,
    /// Failures in a row.
    pub streak: u32,
    /// Probes that are out.
    pub probes: u32,
    /// Good probes so far.
    pub good_probes: u32,
    /// The share of reads that is let back; none when all are.
    pub ramp: Option<f32>,
}

impl<X> ServiceState<X> {
    /// What a circuit looks like now; none for a region that there is not.
    #[must_use]
    pub fn circuit(&self, region: RegionId, circuit: Circuit, now: Tick) -> Option<CircuitState> {
        let core = &*self.0.lane.core;
        let cell = core.cell(region)?;
        let half = cell.half(circuit);
        let phase = CircuitPhase::from(half.effective());
        let forced = half.manual() != Manual::None;
        let held = cell.shut_until(circuit);
        let until = core.until(region, circuit).as_nanos();
        Some(CircuitState {
            phase,
            forced,
            since: Tick::from_nanos(circuit.of(&cell.since).load(Acquire)),
            until: if phase == CircuitPhase::Open && !forced {
                end(until)
            } else {
                None
            },
            held_until: (held > now.as_nanos() && phase == CircuitPhase::Closed && !forced)
                .then(|| Tick::from_nanos(held)),
            generation: half.generation(),
            streak: cell.streak(circuit),
            probes: half.probes(),
            good_probes: half.good(),
            ramp: core
                .breaker
                .as_ref()
                .and_then(|settings| cell.ramp(circuit, settings, now.as_nanos())),
        })
    }

    /// Holds both circuits of a region open until further notice (B9).
    pub fn force_open(&self, region: RegionId, now: Tick) {
        self.set_manual(region, Manual::Open, now);
    }

    /// Holds both circuits of a region closed, whatever it answers (B9).
    pub fn force_closed(&self, region: RegionId, now: Tick) {
        self.set_manual(region, Manual::Closed, now);
    }

    /// Hands both circuits of a region back: they return to the state that they would have had.
    pub fn automatic(&self, region: RegionId, now: Tick) {
        self.set_manual(region, Manual::None, now);
    }

    fn set_manual(&self, region: RegionId, manual: Manual, now: Tick) {
        self.update(now, |change| {
            change.set_manual(&self.0.lane.core, self.member(), region, manual);
        });
    }

    /// Clears the evidence of both circuits of a region and closes them; what an operator forces
    /// stays forced.
    pub fn reset(&self, region: RegionId, now: Tick) {
        self.update(now, |change| {
            change.reset(&self.0.lane.core, self.member(), region);
        });
    }

    /// A monitor had a good answer: waits of this region that are not over are (B11). The next
    /// operation finds its circuits half open.
    pub fn monitor_succeeded(&self, region: RegionId, now: Tick) {
        if self.0.lane.core.calm().has(Calm::CIRCUITS) {
            self.update(now, |change| {
                change.end_wait(&self.0.lane.core, self.member(), region);
            });
        }
    }

    /// A monitor watches from now on: open circuits of regions that take writes wait for it instead
    /// of time, those that are open already included (B11).
    pub fn monitor_started(&self, now: Tick) {
        self.count_monitors(true, now);
    }

    /// A monitor has ended. With the last one, waits that only a monitor could have ended are over,
    /// so that a region is not given up because its monitor was.
    pub fn monitor_stopped(&self, now: Tick) {
        self.count_monitors(false, now);
    }

    fn count_monitors(&self, one_more: bool, now: Tick) {
        let core = &self.0.lane.core;
        self.update(now, |change| {
            core.count_monitors(one_more);
            change.hand_waits_over(core);
        });
    }

    /// Makes the service read-only, or withdraws that; what its circuits, its account or
    /// maintenance say is another matter (G1).
    pub fn set_read_only(&self, read_only: bool, now: Tick) {
        self.update(now, |change| {
            change.set_flags(self.member(), |flags| flags.operator = read_only);
        });
    }

    /// Begins maintenance (G4): read-only, and reads are for the secondary only.
    ///
    /// # Errors
    ///
    /// Without a second region there would be nothing left to read from.
    pub fn begin_maintenance(&self, now: Tick) -> Result<(), ConfigError> {
        if self.0.lane.core.region_count() < 2 {
            return Err(ConfigError::new(
                "maintenance",
                "needs a second region to read from; make the service read-only instead",
            ));
        }
        self.set_maintenance(true, now);
        Ok(())
    }

    /// Ends maintenance: what holds by now holds, not what held before.
    pub fn end_maintenance(&self, now: Tick) {
        self.set_maintenance(false, now);
    }

    fn set_maintenance(&self, on: bool, now: Tick) {
        self.update(now, |change| {
            change.set_flags(self.member(), |flags| flags.maintenance = on);
        });
    }

    /// Whether the service is in maintenance.
    #[must_use]
    pub fn in_maintenance(&self) -> bool {
        self.0.lane.core.calm().has(Calm::MAINTENANCE)
    }

    /// The gate, to be shown to people (G6). A wait that is over makes it a trial, although only
    /// the next write, or another operation, will say so in an event.
    #[must_use]
    pub fn gate(&self, now: Tick) -> GateState {
        let core = &*self.0.lane.core;
        let (mut status, why) = core.gate_record();
        let since = core.gate_since();
        let until = core.gate_until();
        let by_circuit = matches!(why, ReadOnlyWhy::Breaker | ReadOnlyWhy::Group);
        if status == GateStatus::ReadOnly && by_circuit && until <= now.as_nanos() {
            status = match self.look_at_writers(now) {
                Look::Clear => GateStatus::ReadWrite,
                Look::Due => GateStatus::Trial,
                Look::Shut(_) | Look::Full => GateStatus::ReadOnly,
            };
        }
        let shut = status == GateStatus::ReadOnly && until > now.as_nanos();
        GateState::new(
            status,
            since,
            (status != GateStatus::ReadWrite).then_some(why),
            if shut { end(until) } else { None },
        )
    }
}

impl<X: Send + Sync> OfAccount for Inner<X> {
    fn account_changed(&self, now: Instant) {
        let Some(switch) = &self.account else { return };
        let now = Tick::from_nanos(nanos(now.saturating_duration_since(self.group.base)));
        self.group.update(now, |change| {
            // Read under the lock, so that of two changes at once the later one stays.
            let read_only = switch.is_read_only();
            change.set_flags(self.member, |flags| flags.account = read_only);
        });
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::breaker::{BreakerSettings, Outcome, Standing};
    use crate::region::{Endpoint, Region, Regions};
    use crate::service_state::{ServiceConfig, ServiceRoot};
    use crate::static_service::StaticService;
    use crate::verdict::Evidence;

    const P: RegionId = RegionId::FIRST;

    fn second(n: u64) -> Tick {
        Tick::ZERO + Duration::from_secs(n)
    }

    fn root(settings: BreakerSettings) -> ServiceRoot {
        let endpoint = Endpoint::parse("https://p.example").unwrap();
        let regions = Regions::new(vec![Region::new("p", endpoint).writable(true)]).unwrap();
        #[expect(clippy::disallowed_methods, reason = "any instant will do as the base")]
        let base = Instant::now();
        let provider = std::sync::Arc::new(StaticService::new());
        let config = ServiceConfig::new("shop", provider, regions, base, ()).breaker(settings);
        ServiceRoot::build(config).unwrap()
    }

    fn fails(state: &ServiceState, now: Tick) {
        let sent = state.send_started(P, Circuit::Reads, now).unwrap();
        let _ = state.send_settled(sent, Outcome::fault(Evidence::Failure), now, || 1.0);
    }

    fn is_open(state: &ServiceState, now: Tick) -> bool {
        matches!(
            state.standing(P, Circuit::Reads, now),
            Standing::Open { .. }
        )
    }

    /// B11: neither time nor a number of operations ends the wait, only the monitor's success.
    #[test]
    fn while_there_is_a_monitor_only_its_success_ends_a_wait() {
        let root = root(BreakerSettings::new().streak(1).open_for_calls(2));
        let state = root.handle();
        state.monitor_started(second(0));
        fails(&state, second(1));
        for _ in 0..9 {
            state.note_operation(P, Circuit::Reads, second(2));
        }
        assert!(is_open(&state, second(10_000)));
        state.monitor_succeeded(P, second(10_001));
        assert!(!is_open(&state, second(10_001)));
    }

    /// B11: the wait of a monitor that has gone is over: nobody is left to end it.
    #[test]
    fn a_wait_does_not_outlive_its_monitor() {
        let root = root(BreakerSettings::new().streak(1));
        let state = root.handle();
        state.monitor_started(second(0));
        state.monitor_started(second(0));
        fails(&state, second(1));
        state.monitor_stopped(second(500));
        assert!(is_open(&state, second(500)), "one is left");
        state.monitor_stopped(second(600));
        assert!(!is_open(&state, second(600)));
        assert!(state.admit(P, Circuit::Reads, second(600)).is_ok());
    }

    /// B11: a monitor that begins during an outage takes over; without one, waits end by time.
    #[test]
    fn a_monitor_takes_over_the_waits_that_it_finds() {
        let root = root(BreakerSettings::new().streak(1));
        let state = root.handle();
        fails(&state, second(1));
        assert!(!is_open(&state, second(31)));
        state.monitor_started(second(20));
        assert!(is_open(&state, second(31)));
        state.monitor_succeeded(P, second(32));
        assert!(!is_open(&state, second(32)));
    }
}
