//! What is told of a service: tracing events, and metrics.
//!
//! Nothing that is told holds a query string, a signature, a token or the value of a header: of a
//! request there are the method, the host and the region, of an answer the status.
//!
//! # Tracing events
//!
//! Always on; their targets begin with `tower_geo`, so `tower_geo=debug` shows all but the waits.
//! A healthy operation tells nothing.
//!
//! | event | level | when | fields |
//! |---|---|---|---|
//! | span `send` | debug | around a send that is not simply the first, to where the request says | `service`, `region`, `attempt`, `kind`, `wait` |
//! | a further send leaves | debug | a fall-over, a retry or a hedge | `service`, `region`, `attempt`, `kind`, `after` (the verdict of the send before), `wait` |
//! | a send has ended | debug | unless the first answer is simply handed over | `service`, `region`, `attempt`, `kind`, `ending`, `verdict`, `wait` |
//! | waiting for the next send | trace | before a return to a region | `service`, `attempt`, `wait` |
//! | the copy is too far behind for this read | debug | an answer of a copy is not handed over | `service`, `region`, `attempt`, `behind` |
//! | an answer is handed over | debug | unless it is simply the first | `service`, `region`, `attempts`, `freshness` (of a copy) |
//! | an operation has ended without an answer | debug | it ends with an error of the stack | `service`, `error`, `attempts`, `retry_after` |
//! | a body broke off, its rest will be fetched | debug | by [`ResumeLayer`](crate::ResumeLayer) | `service`, `region`, `resume`, `from`, `end`, `wait`, `stalled` |
//! | the rest of a body was given up | debug | by [`ResumeLayer`](crate::ResumeLayer), as its body ends with an error | `service`, `region`, `resumes`, `left` (bytes), `why` |
//! | a write was refused: read-only | debug | the gate is closed | `service`, `why`, `retry_after` |
//! | a send was refused: the circuit is open | debug | the breaker alone, or below foreign layers | `service`, `region`, `circuit`, `retry_after` |
//! | a circuit has changed its state | warn, info | with [`LogEvents`]; warn when it opens | `service`, `region`, `circuit`, `from`, `to`, `why`; as it opens: `wait` (which grows with each opening in a row), `suspects` (calls in silence among the failures) |
//! | all reads are let back: the ramp is over | info | with [`LogEvents`] | `service`, `region`, `circuit` |
//! | the read-only gate has changed its state | warn, info | with [`LogEvents`]; warn when it closes | `service`, `to`, `why` |
//! | a copy is used differently | warn, info | with [`LogEvents`]; warn when it is set aside | `service`, `region`, `to` |
//! | a client above this stack repeats … | warn | once per service | `service`, `price` |
//! | reads have a limit of staleness, but … | warn | once per service | `service` |
//! | with `max_retries` 0 a read that fails … | warn | when a service is built whose mode falls over | `service`, `location_mode` |
//! | the secondary did not tell its Last Sync Time | debug | a poll fails | `service`, `answer` (the status) |
//! | the monitor has asked the primary | trace | each ping | `service`, `verdict` |
//! | the client of the monitor panicked | warn | then | `service` |
//!
//! A [`Listener`](crate::Listener) of your own is called for the transitions, with
//! [`EventKind::Resend`](crate::EventKind::Resend) for every further send, and needs no tracing.
//!
//! # Metrics
//!
//! With the feature `metrics`, through the API of OpenTelemetry. `Metrics` creates the instruments
//! of one service and has two layers: `Metrics::operations` goes outside of all others and sees
//! what callers see, `Metrics::sends` goes next to the client and sees what leaves for the wire.
//! Each works without the other; what is recorded *when collected* needs neither.
//!
//! Every metric has the attribute `tower_geo.service`, the name of the service.
//!
//! | metric | kind, unit | further attributes | recorded |
//! |---|---|---|---|
//! | `http.client.request.duration` | histogram, `s` | `http.request.method`, `server.address`, `server.port`, `http.response.status_code`, `error.type`, `tower_geo.region` | by `sends`, at the head of each answer or at its fault |
//! | `tower_geo.operation.duration` | histogram, `s` | `tower_geo.intent`, `tower_geo.region`, `http.response.status_code`, `error.type` | by `operations`, at the head of the answer or the error |
//! | `tower_geo.operation.sends` | histogram, `{send}` | `tower_geo.intent` | by `operations`; sum over count is the amplification, and refused operations count as 0 |
//! | `tower_geo.resends` | counter, `{send}` | `tower_geo.region`, `tower_geo.send.kind` | by `operations`: `fall-over`, `retry`, `hedge` |
//! | `tower_geo.hedges` | counter, `{hedge}` | `tower_geo.hedge.outcome` | by `operations`: `won`, `lost`, `failed` |
//! | `tower_geo.writes.refused` | counter, `{write}` | `tower_geo.gate.reason` | by `operations`, a write that the gate refuses |
//! | `tower_geo.copy.answers` | counter, `{answer}` | `tower_geo.region`, `tower_geo.freshness` | by `operations`, an answer of a copy that is handed over |
//! | `tower_geo.copy.staleness` | histogram, `s` | `tower_geo.region` | by `operations`, how far the copy was behind then, where that is known |
//! | `tower_geo.circuit.state` | gauge, 1 or 0 | `tower_geo.region`, `tower_geo.circuit`, `tower_geo.circuit.state` | when collected: 1 for the state that holds |
//! | `tower_geo.circuit.share` | gauge, `1` | `tower_geo.region`, `tower_geo.circuit` | when collected: the share of requests that the circuit lets pass: 1 closed, less on the ramp, 0 open or half open |
//! | `tower_geo.gate.state` | gauge, 1 or 0 | `tower_geo.gate.state` | when collected: 1 for the state that holds |
//! | `tower_geo.budget.level` | gauge, `{token}` | `tower_geo.region` | when collected |
//! | `tower_geo.budget.limit` | gauge, `{token}` | `tower_geo.region` | when collected |
//! | `tower_geo.replication.lag` | gauge, `s` | | when collected, once it is known |
//! | `tower_geo.resumes` | counter, `{resume}` | `tower_geo.resume.outcome` | when collected: since the service was built, how often the rest of a body was fetched (`resumed`), was of another version (`version-changed`) or did not come (`given-up`), by [`ResumeLayer`](crate::ResumeLayer) |
//! | `tower_geo.server.writes.refused` | counter, `{write}` | `tower_geo.gate.reason`, `http.response.status_code` | when collected: since the service was built, by a gate [on a server](crate::ReadOnlyGateLayer::on_server) |
//!
//! `error.type` is the status from 400 on, else the fault of a send (`connect`, `timeout`, `reset`,
//! …) or the [`ErrorKind`](crate::ErrorKind) of an operation (`read-only`, `breaker-open`, …);
//! `cancelled` if the caller left, or if another send had won. Methods that are not of HTTP are
//! `_OTHER`, as the conventions say.
#![cfg_attr(
    feature = "metrics",
    doc = r#"
```
use opentelemetry::metrics::Meter;
use tower::ServiceBuilder;
use tower_geo::GeoService;
use tower_geo::telemetry::Metrics;

# fn client() {}
# fn stack(meter: &Meter) -> Result<(), tower_geo::ConfigError> {
let blob = GeoService::azure_storage("https://contoso.blob.core.windows.net").build()?;
let metrics = Metrics::new(meter, &blob);
let stack = ServiceBuilder::new()
    .layer(metrics.operations())
    .layer(blob.layer().clone_bodies())
    .layer(metrics.sends())
    .service(client());
# Ok(())
# }
```
"#
)]

mod log_events;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "metrics")]
mod operations;
#[cfg(feature = "metrics")]
mod sends;

pub use log_events::LogEvents;
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
#[cfg(feature = "metrics")]
pub use operations::{OperationFuture, OperationMetrics, OperationMetricsLayer};
#[cfg(feature = "metrics")]
pub use sends::{SendFuture, SendMetrics, SendMetricsLayer};

/// The type of error of whatever was given up by its caller, or because another send had won.
#[cfg(feature = "metrics")]
const CANCELLED: &str = "cancelled";
