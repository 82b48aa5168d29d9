//! Our layers, alone and in order, over clients that answer without a network.

use http::Method;
use tower_geo::{
    CircuitBreakerLayer, GeoRedirectLayer, GeoService, LocationMode, ReadOnlyGateLayer, RegionRef,
    RetryLayer,
};
use tower_layer::Layer;

use super::subject::{Client, Cloning, PendingOnce, calls, calls_with, trivial, with_headers};
use crate::row::{Call, OURS, PerThread, Row};

pub(super) const ROWS: &[Row] = &[
    Row::calls(
        "bare/trivial",
        OURS,
        "no layer: a client that answers at once, a request without headers",
        || calls(Client, trivial),
    ),
    Row::calls(
        "layer/breaker",
        OURS,
        "CircuitBreakerLayer over bare/trivial",
        || calls(CircuitBreakerLayer::new(service()).layer(Client), trivial),
    ),
    Row::calls(
        "layer/breaker-open",
        OURS,
        "CircuitBreakerLayer refuses: its circuit is open",
        breaker_refused,
    ),
    Row::calls(
        "layer/redirect",
        OURS,
        "GeoRedirectLayer below a retry, over bare/trivial",
        || {
            let service = service();
            // What only follows wants a retry of its service to exist.
            let _retry = RetryLayer::new(service.clone());
            let layer = GeoRedirectLayer::new(service).below_retry();
            calls(layer.layer(Client), trivial)
        },
    ),
    Row::calls(
        "retry/first-succeeds",
        OURS,
        "RetryLayer over bare/trivial, the first send succeeds",
        || {
            let layer = RetryLayer::new(service()).clone_bodies();
            calls(layer.layer(Client), trivial)
        },
    ),
    Row::calls(
        "retry/request",
        OURS,
        "RetryLayer over bare/request, the first send succeeds",
        || {
            let layer = RetryLayer::new(service()).clone_bodies();
            calls(layer.layer(Client), with_headers())
        },
    ),
    Row::calls(
        "layer/gate",
        OURS,
        "ReadOnlyGateLayer over bare/trivial",
        || calls(ReadOnlyGateLayer::new(service()).layer(Client), trivial),
    ),
    Row::calls(
        "gate/refused",
        OURS,
        "a write that ReadOnlyGateLayer refuses, with its typed error",
        gate_refused,
    ),
    Row::calls(
        "stack/trivial",
        OURS,
        "all four layers over bare/trivial",
        || calls(service().layer().clone_bodies().layer(Client), trivial),
    ),
    Row::calls(
        "bare/request",
        OURS,
        "no layer, a request with 8 headers",
        || calls(Client, with_headers()),
    ),
    Row::calls(
        "bare/request-cloned",
        OURS,
        "the same, and one clone of the request",
        || calls(Cloning(Client), with_headers()),
    ),
    Row::calls(
        "stack/request",
        OURS,
        "all four layers over bare/request",
        || {
            let stack = service().layer().clone_bodies().layer(Client);
            calls(stack, with_headers())
        },
    ),
    Row::calls(
        "bare/pending-once",
        OURS,
        "bare/request-cloned over a client that is Pending once",
        || calls(Cloning(PendingOnce), with_headers()),
    ),
    Row::calls(
        "stack/pending-once",
        OURS,
        "all four layers over a client that is Pending once, default time-outs armed",
        || {
            let stack = service().layer().clone_bodies().layer(PendingOnce);
            calls(stack, with_headers())
        },
    ),
    Row::threads(
        "stack/two-threads",
        OURS,
        "stack/trivial by two threads on one service",
        || {
            let service = service();
            Box::new(move || calls(service.layer().clone_bodies().layer(Client), trivial))
                as PerThread
        },
    ),
];

/// An account's blob service with default settings.
#[expect(
    clippy::expect_used,
    reason = "a benchmark with bad settings cannot go on"
)]
pub(super) fn service() -> GeoService {
    GeoService::azure_storage("https://contoso.blob.core.windows.net")
        .location_mode(LocationMode::PrimaryThenSecondary)
        // The default is that of the machine, which is not to show in what is counted.
        .threads(2)
        .build()
        .expect("the settings are good")
}

fn gate_refused() -> Call {
    let service = service();
    service.operator().read_only();
    calls_with(
        ReadOnlyGateLayer::new(service).layer(Client),
        || {
            let mut request = trivial();
            *request.method_mut() = Method::PUT;
            request
        },
        Result::is_err,
    )
}

#[expect(
    clippy::expect_used,
    reason = "a benchmark with bad settings cannot go on"
)]
fn breaker_refused() -> Call {
    let service = service();
    let primary = RegionRef::Primary;
    service.operator().force_open(&primary).expect("a region");
    calls_with(
        CircuitBreakerLayer::new(service).layer(Client),
        trivial,
        Result::is_err,
    )
}
