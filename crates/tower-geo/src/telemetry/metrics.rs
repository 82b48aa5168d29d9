//! The instruments of one service, and its gauges.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Weak};

use http::StatusCode;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Counter, Histogram, Meter};
use tower_geo_policy::breaker::{Circuit, CircuitPhase};
use tower_geo_policy::gate::GateStatus;
use tower_geo_policy::region::{Endpoint, Region, RegionId};
use tower_geo_policy::service_state::ServiceRoot;

use super::{OperationMetricsLayer, SendMetricsLayer};
use crate::known::Known;
use crate::runtime::{self, Runtime, State};
use crate::service_handle::GeoService;

/// The metrics of one service. See the [module](super) for their names.
///
/// A clone is the same. Create it once per service and keep it with the client: a second one for
/// the same service and meter reports what is looked up twice. That ends with the service; the meter
/// does not keep it alive.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    instruments: Instruments,
    service: GeoService,
    name: KeyValue,
    regions: Box<[RegionAttributes]>,
}

pub(super) struct Instruments {
    pub(super) request_duration: Histogram<f64>,
    pub(super) operation_duration: Histogram<f64>,
    pub(super) operation_sends: Histogram<u64>,
    pub(super) resends: Counter<u64>,
    pub(super) hedges: Counter<u64>,
    pub(super) refused: Counter<u64>,
    pub(super) copy_answers: Counter<u64>,
    pub(super) copy_staleness: Histogram<f64>,
}

/// What is the same for all that is told of a region.
#[derive(Clone)]
pub(super) struct RegionAttributes {
    pub(super) name: KeyValue,
    pub(super) address: KeyValue,
    pub(super) port: KeyValue,
}

/// The boundaries that the HTTP conventions advise, in seconds.
const SECONDS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];
/// Operations may wait for a return: up to the default deadline and beyond.
const LONG_SECONDS: [f64; 12] = [
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
];
/// By default an operation sends at most 6 times.
const SENDS: [f64; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 10.0];
/// From what is normal to what nobody wants, in seconds.
const STALENESS: [f64; 9] = [
    1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 21600.0, 86400.0,
];

impl Metrics {
    /// Creates the instruments of a service with this meter.
    #[must_use]
    pub fn new(meter: &Meter, service: &GeoService) -> Self {
        let name = KeyValue::new("tower_geo.service", Arc::<str>::from(service.name()));
        let regions: Box<[_]> = service
            .regions()
            .iter()
            .map(|(_, region)| RegionAttributes::of(region))
            .collect();
        let metrics = Self {
            inner: Arc::new(Inner {
                instruments: Instruments::new(meter),
                service: service.clone(),
                name,
                regions,
            }),
        };
        metrics.observe(meter);
        metrics
    }

    /// The layer that records operations: outside of all others.
    #[must_use]
    pub fn operations(&self) -> OperationMetricsLayer {
        OperationMetricsLayer::new(self.clone())
    }

    /// The layer that records sends: next to the client.
    #[must_use]
    pub fn sends(&self) -> SendMetricsLayer {
        SendMetricsLayer::new(self.clone())
    }

    pub(super) fn instruments(&self) -> &Instruments {
        &self.inner.instruments
    }

    pub(super) fn state(&self) -> &State {
        self.inner.service.state_ref()
    }

    pub(super) fn service(&self) -> KeyValue {
        self.inner.name.clone()
    }

    pub(super) fn region(&self, region: RegionId) -> Option<Cow<'_, RegionAttributes>> {
        let state = self.state();
        if state.extra().has_account() {
            let known = Known::now(state);
            let found = known.regions(state).get(region);
            return found.map(|region| Cow::Owned(RegionAttributes::of(region)));
        }
        self.inner.regions.get(region.index()).map(Cow::Borrowed)
    }

    /// Registers what is looked up only when it is collected: states, and what happens where none of
    /// our layers stands.
    fn observe(&self, meter: &Meter) {
        let observed = || Observed {
            service: self.inner.service.downgrade(),
            name: self.inner.name.clone(),
            regions: self.inner.regions.clone(),
        };
        let service = observed();
        meter
            .u64_observable_gauge("tower_geo.circuit.state")
            .with_description("1 for the state in which a circuit is, 0 for the others")
            .with_callback(move |gauge| service.circuits(gauge))
            .build();
        let service = observed();
        meter
            .f64_observable_gauge("tower_geo.circuit.share")
            .with_unit("1")
            .with_description("The share of requests that a circuit lets pass")
            .with_callback(move |gauge| service.shares(gauge))
            .build();
        let service = observed();
        meter
            .u64_observable_gauge("tower_geo.gate.state")
            .with_description("1 for the state in which the read-only gate is, 0 for the others")
            .with_callback(move |gauge| service.gate(gauge))
            .build();
        let service = observed();
        meter
            .u64_observable_gauge("tower_geo.budget.level")
            .with_unit("{token}")
            .with_description("Tokens that are left for further sends to a region")
            .with_callback(move |gauge| service.budgets(gauge, |(level, _)| level))
            .build();
        let service = observed();
        meter
            .u64_observable_gauge("tower_geo.budget.limit")
            .with_unit("{token}")
            .with_description("Tokens for further sends to a region when none is spent")
            .with_callback(move |gauge| service.budgets(gauge, |(_, limit)| limit))
            .build();
        let service = observed();
        meter
            .f64_observable_gauge("tower_geo.replication.lag")
            .with_unit("s")
            .with_description("How far the copy is behind at most, once it is known")
            .with_callback(move |gauge| service.lag(gauge))
            .build();
        let service = observed();
        meter
            .u64_observable_counter("tower_geo.resumes")
            .with_unit("{resume}")
            .with_description("What became of the rest of bodies that broke off")
            .with_callback(move |counter| service.resumes(counter))
            .build();
        let service = observed();
        meter
            .u64_observable_counter("tower_geo.server.writes.refused")
            .with_unit("{write}")
            .with_description(
                "Writes that a server has answered with 503 since the service is read-only",
            )
            .with_callback(move |counter| service.refused_on_server(counter))
            .build();
    }
}

impl RegionAttributes {
    fn of(region: &Region) -> Self {
        let (host, port) = host_and_port(region.endpoint());
        Self {
            name: KeyValue::new("tower_geo.region", Arc::<str>::from(region.name())),
            address: KeyValue::new("server.address", Arc::<str>::from(host)),
            port: KeyValue::new("server.port", port),
        }
    }
}

fn host_and_port(endpoint: &Endpoint) -> (&str, i64) {
    let default = if endpoint.scheme() == "http" { 80 } else { 443 };
    let authority = endpoint.authority();
    // The colons of an IPv6 address stand in brackets.
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(default)),
        _ => (authority, default),
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("service", &self.inner.service.name())
            .finish_non_exhaustive()
    }
}

impl Instruments {
    fn new(meter: &Meter) -> Self {
        Self {
            request_duration: meter
                .f64_histogram("http.client.request.duration")
                .with_unit("s")
                .with_description("Duration of HTTP client requests.")
                .with_boundaries(SECONDS.to_vec())
                .build(),
            operation_duration: meter
                .f64_histogram("tower_geo.operation.duration")
                .with_unit("s")
                .with_description("Duration of operations, all their sends and waits included")
                .with_boundaries(LONG_SECONDS.to_vec())
                .build(),
            operation_sends: meter
                .u64_histogram("tower_geo.operation.sends")
                .with_unit("{send}")
                .with_description("How often an operation was sent")
                .with_boundaries(SENDS.to_vec())
                .build(),
            resends: meter
                .u64_counter("tower_geo.resends")
                .with_unit("{send}")
                .with_description("Sends of operations beyond their first")
                .build(),
            hedges: meter
                .u64_counter("tower_geo.hedges")
                .with_unit("{hedge}")
                .with_description("Second sends beside one that had not answered")
                .build(),
            refused: meter
                .u64_counter("tower_geo.writes.refused")
                .with_unit("{write}")
                .with_description("Writes that were refused because the service is read-only")
                .build(),
            copy_answers: meter
                .u64_counter("tower_geo.copy.answers")
                .with_unit("{answer}")
                .with_description("Answers of copies that were handed over")
                .build(),
            copy_staleness: meter
                .f64_histogram("tower_geo.copy.staleness")
                .with_unit("s")
                .with_description("How far the copy was behind at most when it answered")
                .with_boundaries(STALENESS.to_vec())
                .build(),
        }
    }
}

/// What the gauges look at. A meter keeps its callbacks for good, so they hold nothing alive.
struct Observed {
    service: Weak<ServiceRoot<Runtime>>,
    name: KeyValue,
    regions: Box<[RegionAttributes]>,
}

const PHASES: [CircuitPhase; 3] = [
    CircuitPhase::Closed,
    CircuitPhase::Open,
    CircuitPhase::HalfOpen,
];
const STATUSES: [GateStatus; 3] = [
    GateStatus::ReadWrite,
    GateStatus::ReadOnly,
    GateStatus::Trial,
];

impl Observed {
    fn state(&self) -> Option<State> {
        Some(self.service.upgrade()?.handle())
    }

    /// The names of the regions of the moment, each with its number.
    fn regions(&self, state: &State) -> Vec<(RegionId, KeyValue)> {
        if !state.extra().has_account() {
            let ids = state.regions().iter().map(|(id, _)| id);
            let names = self.regions.iter().map(|region| region.name.clone());
            return ids.zip(names).collect();
        }
        let known = Known::now(state);
        let regions = known.regions(state).iter();
        regions
            .map(|(id, region)| (id, RegionAttributes::of(region).name))
            .collect()
    }

    fn circuits(&self, gauge: &dyn AsyncInstrument<u64>) {
        let Some(state) = self.state() else {
            return;
        };
        let now = state.tick(runtime::now());
        for (id, region) in self.regions(&state) {
            for circuit in Circuit::BOTH {
                let Some(found) = state.circuit(id, circuit, now) else {
                    continue;
                };
                for phase in PHASES {
                    gauge.observe(
                        u64::from(found.phase == phase),
                        &[
                            self.name.clone(),
                            region.clone(),
                            KeyValue::new("tower_geo.circuit", circuit.as_str()),
                            KeyValue::new("tower_geo.circuit.state", phase.as_str()),
                        ],
                    );
                }
            }
        }
    }

    fn shares(&self, gauge: &dyn AsyncInstrument<f64>) {
        let Some(state) = self.state() else {
            return;
        };
        let now = state.tick(runtime::now());
        for (id, region) in self.regions(&state) {
            for circuit in Circuit::BOTH {
                let Some(found) = state.circuit(id, circuit, now) else {
                    continue;
                };
                let share = match found.phase {
                    CircuitPhase::Closed => found.ramp.map_or(1.0, f64::from),
                    _ => 0.0,
                };
                let word = KeyValue::new("tower_geo.circuit", circuit.as_str());
                gauge.observe(share, &[self.name.clone(), region.clone(), word]);
            }
        }
    }

    fn gate(&self, gauge: &dyn AsyncInstrument<u64>) {
        let Some(state) = self.state() else {
            return;
        };
        let found = state.gate(state.tick(runtime::now())).status;
        for status in STATUSES {
            let word = KeyValue::new("tower_geo.gate.state", status.as_str());
            gauge.observe(u64::from(found == status), &[self.name.clone(), word]);
        }
    }

    fn budgets(&self, gauge: &dyn AsyncInstrument<u64>, pick: fn((u32, u32)) -> u32) {
        let Some(state) = self.state() else {
            return;
        };
        for (id, region) in self.regions(&state) {
            let Some(bucket) = state.extra().budgets.get(id.index()) else {
                continue;
            };
            let picked = pick((bucket.level(), bucket.capacity()));
            gauge.observe(u64::from(picked), &[self.name.clone(), region]);
        }
    }

    fn lag(&self, gauge: &dyn AsyncInstrument<f64>) {
        let Some(state) = self.state() else {
            return;
        };
        let last = state.extra().copies.last_sync.get();
        if let Some(behind) = last.behind(runtime::now()) {
            gauge.observe(behind.as_secs_f64(), std::slice::from_ref(&self.name));
        }
    }

    fn resumes(&self, counter: &dyn AsyncInstrument<u64>) {
        let Some(state) = self.state() else {
            return;
        };
        for (end, count) in state.extra().tally.rests() {
            let outcome = KeyValue::new("tower_geo.resume.outcome", end.as_str());
            counter.observe(count, &[self.name.clone(), outcome]);
        }
    }

    fn refused_on_server(&self, counter: &dyn AsyncInstrument<u64>) {
        let Some(state) = self.state() else {
            return;
        };
        for (why, count) in state.extra().tally.refusals_on_server() {
            let status = i64::from(StatusCode::SERVICE_UNAVAILABLE.as_u16());
            let status = KeyValue::new("http.response.status_code", status);
            let why = KeyValue::new("tower_geo.gate.reason", why.as_str());
            counter.observe(count, &[self.name.clone(), status, why]);
        }
    }
}
