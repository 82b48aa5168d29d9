//! What all tests here use: an account with two regions, requests, and a clock that is paused.

use std::error::Error as StdError;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use tower::{Service, ServiceExt};
use tower_geo::{
    BreakerSettings, Circuit, CircuitPhase, Error, Event, EventKind, GeoService, GeoServiceBuilder,
    Jitter, LocationMode, OpenJitter, RegionRef, RetrySettings,
};
use tower_geo_testkit::strict::{Reply, Script};

pub(crate) const P: &str = "contoso.blob.core.windows.net";
pub(crate) const S: &str = "contoso-secondary.blob.core.windows.net";

pub(crate) const PRIMARY: RegionRef = RegionRef::Primary;
pub(crate) const SECONDARY: RegionRef = RegionRef::Secondary;

pub(crate) type Body = Full<Bytes>;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// No chance anywhere, waits of 1, 2, 4, … s.
pub(crate) fn retry() -> RetrySettings {
    RetrySettings::new().delay(secs(1)).jitter(Jitter::None)
}

/// No chance, no ramp, opens after 3 failures.
pub(crate) fn breaker() -> BreakerSettings {
    BreakerSettings::new()
        .streak(3)
        .jitter(OpenJitter::None)
        .ramp(Vec::new())
}

/// The blobs of an account with two regions, read from the primary first.
pub(crate) fn builder() -> GeoServiceBuilder {
    GeoService::azure_storage(format!("https://{P}"))
        .location_mode(LocationMode::PrimaryThenSecondary)
        .retry(retry())
        .breaker(breaker())
        .random(|| 0.5)
        .wall_clock(noon)
        .threads(1)
}

pub(crate) fn service() -> GeoService {
    builder().build().unwrap()
}

/// 1 June 2025, 12:00:00 GMT.
pub(crate) fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + secs(1_748_779_200)
}

pub(crate) fn request(method: Method, host: &str, target: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(format!("https://{host}{target}"))
        .body(Body::default())
        .unwrap()
}

/// A read that any region may answer.
pub(crate) fn get() -> Request<Body> {
    request(Method::GET, P, "/photos/cat")
}

/// A write that gives the same result twice: put blob.
pub(crate) fn put() -> Request<Body> {
    let mut put = request(Method::PUT, P, "/photos/cat");
    put.headers_mut()
        .insert("x-ms-blob-type", "BlockBlob".parse().unwrap());
    *put.body_mut() = Body::from("meow");
    put
}

/// A write that must not arrive twice: append block.
pub(crate) fn append() -> Request<Body> {
    let mut append = request(Method::PUT, P, "/photos/log?comp=appendblock");
    *append.body_mut() = Body::from("more");
    append
}

/// Both regions answer everything.
pub(crate) fn healthy() -> Script {
    Script::new()
        .any_method(P, [Reply::ok("primary")])
        .any_method(S, [Reply::ok("secondary")])
}

/// The primary answers 503, the secondary works.
pub(crate) fn primary_down() -> Script {
    Script::new()
        .any_method(P, [Reply::status(503)])
        .any_method(S, [Reply::ok("secondary")])
}

/// The I/O error at the end of a chain of sources.
pub(crate) fn io_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    std::iter::successors(Some(error), |&cause| cause.source())
        .find_map(|cause| cause.downcast_ref::<io::Error>())
        .map(io::Error::kind)
}

/// How a circuit stands.
pub(crate) fn phase(service: &GeoService, region: &RegionRef, circuit: Circuit) -> CircuitPhase {
    service.circuit(region, circuit).unwrap().phase
}

/// The word for the kind of an error, or the status.
pub(crate) fn word<B>(result: &Result<http::Response<B>, Error>) -> String {
    match result {
        Ok(response) => response.status().as_u16().to_string(),
        Err(error) => error.kind().as_str().to_owned(),
    }
}

/// Notes events as short words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl tower_geo::Listener for Events {
    fn on_event(&self, event: &Event) {
        let word = match event.kind {
            EventKind::Breaker {
                circuit, to, why, ..
            } => format!("{circuit:?} {to:?} {why}"),
            EventKind::Gate { to, why, .. } => format!("gate {to} {why}"),
            // Of sends, not of the service: see `telemetry.rs`.
            EventKind::Resend(_) => return,
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(word);
    }
}

/// Runs a block with each of the four layers alone, and with all of them, over a client.
///
/// Service and client are made anew for each.
macro_rules! each_layer {
    ($service:expr, $client:expr, |$name:ident, $stack:ident| $body:block) => {{
        use tower::Layer as _;
        use tower_geo::{CircuitBreakerLayer, GeoRedirectLayer, ReadOnlyGateLayer, RetryLayer};
        {
            let ($name, service) = ("gate", $service);
            let mut $stack = ReadOnlyGateLayer::new(service).layer($client);
            $body
        }
        {
            let ($name, service) = ("retry", $service);
            let mut $stack = RetryLayer::new(service).clone_bodies().layer($client);
            $body
        }
        {
            let ($name, service) = ("redirect", $service);
            let mut $stack = GeoRedirectLayer::new(service).clone_bodies().layer($client);
            $body
        }
        {
            let ($name, service) = ("breaker", $service);
            let mut $stack = CircuitBreakerLayer::new(service).layer($client);
            $body
        }
        {
            let ($name, service) = ("all", $service);
            let mut $stack = service.layer().clone_bodies().layer($client);
            $body
        }
    }};
}
pub(crate) use each_layer;

/// `ServiceExt::ready` for the one type of request of these tests.
pub(crate) trait Calls: Service<Request<Body>> + Sized {
    async fn until_ready(&mut self) -> Result<&mut Self, Self::Error> {
        ServiceExt::<Request<Body>>::ready(self).await
    }
}

impl<C: Service<Request<Body>>> Calls for C {}
