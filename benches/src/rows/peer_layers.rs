//! The layers that one would use instead.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use recloser::{AsyncRecloser, Recloser};
use tower::ServiceBuilder;
use tower::retry::budget::{Budget, TpsBudget};
use tower::retry::{Policy, RetryLayer};
use tower::timeout::TimeoutLayer;
use tower_layer::Layer;
use tower_resilience_circuitbreaker::CircuitBreakerLayer;
use tower_resilience_retry as resilience;
use tower_service::Service;

use super::subject::{Answer, Client, Sent, block, calls, calls_with, trivial, with_headers};
use crate::row::{Call, PerThread, Row};

const FAILSAFE: &str = "failsafe";
const RECLOSER: &str = "recloser";
const TOWER: &str = "tower";
const TOWER_BUDGET: &str = "tower+budget";
const TOWER_RESILIENCE: &str = "tower-resilience";

const TEN_SECONDS: Duration = Duration::from_secs(10);

pub(super) const ROWS: &[Row] = &[
    Row::calls(
        "layer/breaker",
        TOWER_RESILIENCE,
        "its CircuitBreakerLayer over bare/trivial",
        || calls(breaker().layer(Client), trivial),
    ),
    Row::calls(
        "layer/breaker",
        RECLOSER,
        "an AsyncRecloser around the call of bare/trivial",
        || calls(Around(AsyncRecloser::from(Recloser::default())), trivial),
    ),
    Row::calls(
        "layer/breaker",
        FAILSAFE,
        "its breaker of futures around the call of bare/trivial",
        || {
            let breaker = Arc::new(failsafe::Config::new().build());
            calls(Failsafe(breaker), trivial)
        },
    ),
    Row::calls(
        "layer/breaker-open",
        TOWER_RESILIENCE,
        "its CircuitBreakerLayer refuses",
        || {
            #[expect(
                clippy::expect_used,
                reason = "a benchmark with bad settings cannot go on"
            )]
            let (layer, handle) = CircuitBreakerLayer::builder()
                .build_with_handle()
                .expect("the settings are good");
            block(handle.force_open());
            calls_with(layer.layer(Client), trivial, Result::is_err)
        },
    ),
    Row::calls(
        "layer/timeout",
        TOWER,
        "TimeoutLayer over bare/trivial: for scale, ours are part of the retry",
        || calls(TimeoutLayer::new(TEN_SECONDS).layer(Client), trivial),
    ),
    Row::calls(
        "retry/first-succeeds",
        TOWER,
        "RetryLayer over bare/trivial, a policy that clones every request",
        || calls(RetryLayer::new(Thrice).layer(Client), trivial),
    ),
    Row::calls(
        "retry/first-succeeds",
        TOWER_BUDGET,
        "the same with a TpsBudget",
        || {
            let policy = Budgeted(Arc::new(TpsBudget::default()));
            calls(RetryLayer::new(policy).layer(Client), trivial)
        },
    ),
    Row::calls(
        "retry/first-succeeds",
        TOWER_RESILIENCE,
        "its RetryLayer over bare/trivial",
        || calls(retry().layer(Client), trivial),
    ),
    Row::calls(
        "retry/request",
        TOWER,
        "RetryLayer over bare/request, a policy that clones every request",
        || calls(RetryLayer::new(Thrice).layer(Client), with_headers()),
    ),
    Row::calls(
        "retry/request",
        TOWER_RESILIENCE,
        "its RetryLayer over bare/request",
        || calls(retry().layer(Client), with_headers()),
    ),
    Row::calls(
        "stack/trivial",
        TOWER,
        "RetryLayer and TimeoutLayer, two layers, over bare/trivial",
        || tower_stack(Box::new(trivial)),
    ),
    Row::calls(
        "stack/trivial",
        TOWER_RESILIENCE,
        "its retry and its breaker, two layers, over bare/trivial",
        || resilience_stack(Box::new(trivial)),
    ),
    Row::calls(
        "stack/request",
        TOWER,
        "RetryLayer and TimeoutLayer, two layers, over bare/request",
        || tower_stack(Box::new(with_headers())),
    ),
    Row::calls(
        "stack/request",
        TOWER_RESILIENCE,
        "its retry and its breaker, two layers, over bare/request",
        || resilience_stack(Box::new(with_headers())),
    ),
    Row::threads(
        "stack/two-threads",
        TOWER,
        "stack/trivial of tower by two threads on clones of one service",
        || Box::new(|| tower_stack(Box::new(trivial))) as PerThread,
    ),
    Row::threads(
        "stack/two-threads",
        TOWER_RESILIENCE,
        "stack/trivial of tower-resilience by two threads on clones of one service",
        || {
            let stack = ServiceBuilder::new()
                .layer(retry_of_breaker())
                .service(breaker().layer(Client));
            Box::new(move || calls(stack.clone(), trivial)) as PerThread
        },
    ),
];

type Requests = Box<dyn FnMut() -> Sent + Send>;

fn tower_stack(requests: Requests) -> Call {
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(Thrice))
        .layer(TimeoutLayer::new(TEN_SECONDS))
        .service(Client);
    calls(stack, requests)
}

fn resilience_stack(requests: Requests) -> Call {
    let stack = ServiceBuilder::new()
        .layer(retry_of_breaker())
        .service(breaker().layer(Client));
    calls(stack, requests)
}

#[expect(
    clippy::expect_used,
    reason = "a benchmark with bad settings cannot go on"
)]
fn breaker() -> CircuitBreakerLayer {
    CircuitBreakerLayer::builder()
        .build()
        .expect("the settings are good")
}

fn retry() -> resilience::RetryLayer<Sent, Answer, Infallible> {
    resilience::RetryLayer::builder().build()
}

type Refused = tower_resilience_circuitbreaker::CircuitBreakerError<Infallible>;

fn retry_of_breaker() -> resilience::RetryLayer<Sent, Answer, Refused> {
    resilience::RetryLayer::builder().build()
}

/// The policy that a user writes first: three sends, whatever the request is.
#[derive(Clone)]
struct Thrice;

impl<E> Policy<Sent, Answer, E> for Thrice {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Sent, result: &mut Result<Answer, E>) -> Option<Ready<()>> {
        result.is_err().then(|| ready(()))
    }

    fn clone_request(&mut self, request: &Sent) -> Option<Sent> {
        Some(request.clone())
    }
}

#[derive(Clone)]
struct Budgeted(Arc<TpsBudget>);

impl<E> Policy<Sent, Answer, E> for Budgeted {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Sent, result: &mut Result<Answer, E>) -> Option<Ready<()>> {
        if result.is_ok() {
            self.0.deposit();
            return None;
        }
        self.0.withdraw().then(|| ready(()))
    }

    fn clone_request(&mut self, request: &Sent) -> Option<Sent> {
        Some(request.clone())
    }
}

/// What a user of recloser writes to have a service.
struct Around(AsyncRecloser);

impl Service<Sent> for Around {
    type Response = Answer;
    type Error = recloser::Error<Infallible>;
    type Future = recloser::RecloserFuture<Ready<Result<Answer, Infallible>>, recloser::AnyError>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Sent) -> Self::Future {
        self.0.call(Client.call(request))
    }
}

/// The same for failsafe.
struct Failsafe<B>(Arc<B>);

impl<B: failsafe::futures::CircuitBreaker> Service<Sent> for Failsafe<B> {
    type Response = Answer;
    type Error = failsafe::Error<Infallible>;
    type Future = failsafe::futures::ResponseFuture<
        Ready<Result<Answer, Infallible>>,
        B::FailurePolicy,
        B::Instrument,
        fn(&Infallible) -> bool,
    >;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Sent) -> Self::Future {
        self.0.call_with(|_| true, Client.call(request))
    }
}
