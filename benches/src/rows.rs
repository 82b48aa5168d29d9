//! The things that are measured: each is a closure that does one call.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_geo::policy::breaker::{Admission, Circuit, Outcome, Sent};
use tower_geo::policy::region::{Endpoint, Region, RegionId, Regions};
use tower_geo::policy::service_state::{ServiceConfig, ServiceRoot, ServiceState};
use tower_geo::policy::static_service::StaticService;
use tower_geo::policy::tick::Tick;
use tower_geo::policy::verdict::Evidence;
use tower_geo::{
    BreakerSettings, CircuitBreakerLayer, GeoRedirectLayer, GeoService, LocationMode,
    ReadOnlyGateLayer, RetryLayer,
};
use tower_layer::Layer;
use tower_service::Service;

type Trivial = Full<Bytes>;

/// One row: its name, what it is about, and one call of it.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) start: fn() -> Box<dyn FnMut() + Send>,
}

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "breaker/closed",
        about: "admit and settle a success, default settings, `now` given",
        start: breaker_closed,
    },
    Row {
        name: "breaker/open",
        about: "the check alone",
        start: breaker_open,
    },
    Row {
        name: "bare/trivial",
        about: "a client that answers at once, a request without headers",
        start: || calls(Client, trivial),
    },
    Row {
        name: "layer/breaker",
        about: "CircuitBreakerLayer over bare/trivial",
        start: || calls(CircuitBreakerLayer::new(service()).layer(Client), trivial),
    },
    Row {
        name: "layer/redirect",
        about: "GeoRedirectLayer over bare/trivial",
        start: || {
            let service = service();
            // What only follows wants a retry of its service to exist.
            let _retry = RetryLayer::new(service.clone());
            let layer = GeoRedirectLayer::new(service).below_retry();
            calls(layer.layer(Client), trivial)
        },
    },
    Row {
        name: "retry/first-succeeds",
        about: "RetryLayer over bare/trivial",
        start: || {
            calls(
                RetryLayer::new(service()).clone_bodies().layer(Client),
                trivial,
            )
        },
    },
    Row {
        name: "layer/gate",
        about: "ReadOnlyGateLayer over bare/trivial",
        start: || calls(ReadOnlyGateLayer::new(service()).layer(Client), trivial),
    },
    Row {
        name: "stack/trivial",
        about: "all four layers over bare/trivial",
        start: || calls(service().layer().clone_bodies().layer(Client), trivial),
    },
    Row {
        name: "bare/request",
        about: "a client that answers at once, a request with 8 headers",
        start: || calls(Client, with_headers()),
    },
    Row {
        name: "bare/request-cloned",
        about: "the same, and one clone of the request",
        start: || calls(Cloning(Client), with_headers()),
    },
    Row {
        name: "stack/request",
        about: "all four layers over bare/request",
        start: || {
            calls(
                service().layer().clone_bodies().layer(Client),
                with_headers(),
            )
        },
    },
    Row {
        name: "bare/pending-once",
        about: "bare/request-cloned over a client that is Pending once",
        start: || calls(Cloning(PendingOnce), with_headers()),
    },
    Row {
        name: "stack/pending-once",
        about: "all four layers over a client that is Pending once, default time-outs armed",
        start: || {
            calls(
                service().layer().clone_bodies().layer(PendingOnce),
                with_headers(),
            )
        },
    },
    Row {
        name: "gate/refused",
        about: "a write that the gate refuses",
        start: gate_refused,
    },
];

fn service() -> GeoService {
    #[expect(
        clippy::expect_used,
        reason = "a benchmark with bad settings cannot go on"
    )]
    GeoService::azure_storage("https://contoso.blob.core.windows.net")
        .location_mode(LocationMode::PrimaryThenSecondary)
        .build()
        .expect("the settings are good")
}

fn state(settings: BreakerSettings) -> (ServiceRoot, ServiceState) {
    #[expect(
        clippy::expect_used,
        reason = "a benchmark with bad settings cannot go on"
    )]
    let root = {
        let endpoint = Endpoint::parse("https://a.example").expect("a good URL");
        let region = Region::new("a", endpoint).writable(true);
        let regions = Regions::new(vec![region]).expect("good regions");
        let base = tokio::time::Instant::now().into_std();
        let provider = std::sync::Arc::new(StaticService::new());
        let config = ServiceConfig::new("a", provider, regions, base, ()).breaker(settings);
        ServiceRoot::build(config).expect("good settings")
    };
    let handle = root.handle();
    (root, handle)
}

fn breaker_closed() -> Box<dyn FnMut() + Send> {
    let (root, state) = state(BreakerSettings::new());
    let mut now = Tick::ZERO;
    Box::new(move || {
        let _alive = &root;
        now = now + Duration::from_micros(50);
        admit_and_settle(&state, black_box(now));
    })
}

#[inline(never)]
fn admit_and_settle(state: &ServiceState, now: Tick) {
    let sent = state
        .send_if_calm(RegionId::FIRST, Circuit::Reads, now)
        .or_else(|| the_long_way(state, now));
    let outcome = Outcome::answer(Evidence::Success);
    match sent {
        Some(sent) => black_box(state.send_settled(sent, outcome, now, || 1.0)),
        None => unreachable!("a service in which nothing has failed admits"),
    };
}

/// Once in a tenth of `suspect_after` there is more to do.
#[cold]
fn the_long_way(state: &ServiceState, now: Tick) -> Option<Sent> {
    match state.admit(RegionId::FIRST, Circuit::Reads, now) {
        Ok(Admission::Plain) => state.send_started(RegionId::FIRST, Circuit::Reads, now),
        _ => None,
    }
}

fn breaker_open() -> Box<dyn FnMut() + Send> {
    let (root, state) = state(BreakerSettings::new());
    state.force_open(RegionId::FIRST, Tick::ZERO);
    Box::new(move || {
        let _alive = &root;
        is_refused(&state, black_box(Tick::ZERO));
    })
}

#[inline(never)]
fn is_refused(state: &ServiceState, now: Tick) {
    black_box(state.admit(RegionId::FIRST, Circuit::Reads, now).is_err());
}

fn gate_refused() -> Box<dyn FnMut() + Send> {
    let service = service();
    service.operator().read_only();
    calls_with(
        ReadOnlyGateLayer::new(service).layer(Client),
        || {
            let mut request = trivial();
            *request.method_mut() = http::Method::PUT;
            request
        },
        Result::is_err,
    )
}

fn trivial() -> Request<Trivial> {
    let mut request = Request::new(Trivial::default());
    *request.uri_mut() = URI.with(Clone::clone);
    request
}

fn with_headers() -> impl FnMut() -> Request<Trivial> + Send {
    let mut template = trivial();
    for (name, value) in [
        ("x-ms-date", "Sun, 29 Nov 2026 20:29:23 GMT"),
        ("x-ms-version", "2024-11-04"),
        (
            "x-ms-client-request-id",
            "3f1c8c6e-4a5f-4a9c-8f51-6b1c9a3d2e4f",
        ),
        (
            "authorization",
            "SharedKey contoso:abcdefghijklmnopqrstuvwxyz0123456789",
        ),
        ("accept", "application/xml"),
        ("user-agent", "tower-geo-benches"),
        ("accept-encoding", "identity"),
        ("if-none-match", "\"0x8DB2\""),
    ] {
        let value = http::HeaderValue::from_static(value);
        template.headers_mut().insert(name, value);
    }
    *template.body_mut() = Full::new(Bytes::from_static(b"hello"));
    move || template.clone()
}

thread_local! {
    static URI: http::Uri =
        http::Uri::from_static("https://contoso.blob.core.windows.net/photos/1");
}

fn calls<S, E>(
    service: S,
    request: impl FnMut() -> Request<Trivial> + Send + 'static,
) -> Box<dyn FnMut() + Send>
where
    S: Service<Request<Trivial>, Error = E> + Send + 'static,
    E: 'static,
{
    calls_with(service, request, Result::is_ok)
}

fn calls_with<S>(
    mut service: S,
    mut request: impl FnMut() -> Request<Trivial> + Send + 'static,
    is_right: fn(&Result<S::Response, S::Error>) -> bool,
) -> Box<dyn FnMut() + Send>
where
    S: Service<Request<Trivial>> + Send + 'static,
{
    Box::new(move || {
        let mut context = Context::from_waker(Waker::noop());
        assert!(service.poll_ready(&mut context).is_ready());
        let mut call = pin!(service.call(request()));
        loop {
            if let Poll::Ready(result) = call.as_mut().poll(&mut context) {
                assert!(is_right(&result));
                black_box(&result);
                break;
            }
        }
    })
}

/// Answers at once.
#[derive(Clone)]
struct Client;

impl<B> Service<Request<B>> for Client {
    type Response = Response<Trivial>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Trivial>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        black_box(&request);
        ready(Ok(Response::new(Trivial::default())))
    }
}

/// Clones the request once: the floor of whatever may send it again.
#[derive(Clone)]
struct Cloning<S>(S);

impl<S: Service<Request<Trivial>>> Service<Request<Trivial>> for Cloning<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Trivial>) -> Self::Future {
        black_box(request.clone());
        self.0.call(request)
    }
}

/// Answers at the second poll.
#[derive(Clone)]
struct PendingOnce;

struct AnswersLater(bool);

impl Future for AnswersLater {
    type Output = Result<Response<Trivial>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if std::mem::replace(&mut self.0, true) {
            Poll::Ready(Ok(Response::new(Trivial::default())))
        } else {
            Poll::Pending
        }
    }
}

impl<B> Service<Request<B>> for PendingOnce {
    type Response = Response<Trivial>;
    type Error = Infallible;
    type Future = AnswersLater;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        black_box(&request);
        AnswersLater(false)
    }
}
