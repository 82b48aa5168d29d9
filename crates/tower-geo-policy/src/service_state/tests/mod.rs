//! The shared state, rule by rule.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may unwrap as tests may; clippy spares only the tests themselves"
)]

mod automatic;
mod gates;
mod groups;
mod model;
mod operators;
mod probes;
mod silence;
mod threads;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, StatusCode, Uri};

use crate::breaker::{
    Admission, BreakerSettings, Circuit, Circuits, OpenJitter, Outcome, ProbeSlot, Standing,
};
use crate::events::{Event, EventKind};
use crate::gate::{GateCheck, GateMode};
use crate::group::GroupHandle;
use crate::intent::{Intent, Ruling};
use crate::provider::Provider;
use crate::region::{Endpoint, Region, RegionId, Regions};
use crate::service_state::{ServiceConfig, ServiceRoot, ServiceState};
use crate::tick::Tick;
use crate::verdict::{Evidence, FromCopy, Verdict};

const P: RegionId = RegionId::FIRST;
const S: RegionId = RegionId::new(1);
const READS: Circuit = Circuit::Reads;
const WRITES: Circuit = Circuit::Writes;

#[derive(Debug)]
struct Anything;

impl Provider for Anything {
    fn intent(&self, _: &Method, _: &Uri, _: &HeaderMap) -> Ruling {
        Ruling::new(Intent::READ, "everything is a read here")
    }

    fn verdict(&self, _: Intent, _: StatusCode, _: &HeaderMap) -> Verdict {
        Verdict::Answered
    }

    fn judge_copy(&self, _: StatusCode, _: &HeaderMap) -> FromCopy {
        FromCopy::Usual
    }
}

fn ms(millis: u64) -> Tick {
    Tick::ZERO + Duration::from_millis(millis)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[expect(clippy::disallowed_methods, reason = "any instant will do for a base")]
fn base() -> Instant {
    Instant::now()
}

fn regions(count: u8) -> Regions {
    let region = |i: u8| {
        let url = format!("https://r{i}.example");
        Region::new(format!("r{i}"), Endpoint::parse(&url).unwrap()).writable(i == 0)
    };
    Regions::new((0..count).map(region).collect()).unwrap()
}

/// Settings whose times are exact.
fn exact() -> BreakerSettings {
    BreakerSettings::new().jitter(OpenJitter::None).ramp([])
}

/// A service with a primary and a secondary, and everything that it told.
struct World {
    root: ServiceRoot,
    state: ServiceState,
    told: Told,
}

#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Event>>>);

impl Told {
    fn listener(&self) -> Arc<dyn crate::events::Listener> {
        let told = self.clone();
        Arc::new(move |event: &Event| told.0.lock().unwrap().push(event.clone()))
    }

    /// `"1010 blob r0 reads closed>open streak"`, `"1010 blob gate read-only breaker"` and so on.
    fn lines(&self) -> Vec<String> {
        let line = |event: &Event| {
            let at = event.at.as_nanos() / 1_000_000;
            let service = &event.service;
            match event.kind {
                EventKind::Breaker {
                    region,
                    circuit,
                    from,
                    to,
                    why,
                    ..
                } => format!(
                    "{at} {service} r{} {circuit} {from}>{to} {why}",
                    region.index()
                ),
                EventKind::Gate { to, why } => format!("{at} {service} gate {to} {why}"),
                EventKind::Secondary { region, to } => {
                    format!("{at} {service} r{} {to}", region.index())
                }
                EventKind::RampOver { region, circuit } => {
                    format!("{at} {service} r{} {circuit} ramp over", region.index())
                }
                EventKind::Resend(resend) => format!("{at} {service} {resend:?}"),
            }
        };
        self.0.lock().unwrap().iter().map(line).collect()
    }
}

impl World {
    fn new(settings: BreakerSettings) -> Self {
        Self::with(settings, |config| config)
    }

    fn with(
        settings: BreakerSettings,
        change: impl FnOnce(ServiceConfig) -> ServiceConfig,
    ) -> Self {
        Self::member(
            "blob",
            &GroupHandle::new(base()),
            &Told::default(),
            settings,
            change,
        )
    }

    fn member(
        name: &str,
        group: &GroupHandle,
        told: &Told,
        settings: BreakerSettings,
        change: impl FnOnce(ServiceConfig) -> ServiceConfig,
    ) -> Self {
        let config = ServiceConfig::new(name, Arc::new(Anything), regions(2), base(), ())
            .breaker(settings)
            .group(group.clone())
            .listener(told.listener());
        let root = ServiceRoot::build(change(config)).unwrap();
        Self {
            state: root.handle(),
            root,
            told: told.clone(),
        }
    }

    /// Without a gate that follows the circuits.
    fn ungated(settings: BreakerSettings) -> Self {
        Self::with(settings, |config| config.gate(GateMode::Manual))
    }

    /// A call that leaves at `at` and has its outcome 10 ms later; refused calls are told by
    /// `None`.
    fn call(
        &self,
        region: RegionId,
        circuit: Circuit,
        at: u64,
        outcome: Outcome,
    ) -> Option<Circuits> {
        self.call_taking(region, circuit, at, 10, outcome)
    }

    fn call_taking(
        &self,
        region: RegionId,
        circuit: Circuit,
        at: u64,
        took: u64,
        outcome: Outcome,
    ) -> Option<Circuits> {
        let sent = match self.state.admit(region, circuit, ms(at)).ok()? {
            Admission::Plain => self.state.send_started(region, circuit, ms(at)),
            Admission::Probe(slot) => {
                self.state
                    .probe_started(slot, circuit, Circuits::NONE, ms(at))
            }
        };
        Some(
            self.state
                .send_settled(sent.unwrap(), outcome, ms(at + took), || 1.0),
        )
    }

    fn read(&self, at: u64, outcome: Outcome) -> bool {
        self.call(P, READS, at, outcome).is_some()
    }

    fn write(&self, at: u64, outcome: Outcome) -> bool {
        self.call(P, WRITES, at, outcome).is_some()
    }

    /// Opens the circuit of reads with 503s, the last of them settled at `at`.
    fn open_reads(&self, at: u64, streak: u64) {
        for i in 0..streak {
            assert!(self.read(at - 10 - (streak - 1 - i), FAILURE));
        }
        assert!(matches!(self.reads(at), Standing::Open { .. }));
    }

    fn reads(&self, at: u64) -> Standing {
        self.state.standing(P, READS, ms(at))
    }

    fn writes(&self, at: u64) -> Standing {
        self.state.standing(P, WRITES, ms(at))
    }

    fn probe(&self, circuit: Circuit, at: u64) -> Option<ProbeSlot> {
        match self.state.admit(P, circuit, ms(at)) {
            Ok(Admission::Probe(slot)) => Some(slot),
            _ => None,
        }
    }

    fn gate(&self, at: u64) -> &'static str {
        match self.state.check_gate(ms(at)) {
            GateCheck::Pass => "pass",
            GateCheck::Trial(_) => "trial",
            GateCheck::Refused(_) => "refused",
        }
    }
}

const SUCCESS: Outcome = Outcome::answer(Evidence::Success);
const FAILURE: Outcome = Outcome::answer(Evidence::Failure);
const UNREACHABLE: Outcome = Outcome::fault(Evidence::FailureOfBoth);
const TIMEOUT: Outcome = Outcome::fault(Evidence::Failure);
const REFUSED: Outcome = Outcome::answer(Evidence::Nothing);
const ALIVE: Outcome = Outcome::answer(Evidence::Alive);
const THROTTLED: Outcome = Outcome::answer(Evidence::FailsProbe);
