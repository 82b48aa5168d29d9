//! Do the layers keep the contract of `tower::Service`? Each alone, and all together (E4).

use std::error::Error as StdError;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use tokio::sync::Semaphore;
use tower::buffer::Buffer;
use tower::limit::ConcurrencyLimit;
use tower::util::{BoxCloneSyncService, MapErr, MapResponse};
use tower::{Service, ServiceExt};
use tower_geo::read_only_gate::ReadOnlyGate;
use tower_geo::retry::Retry;
use tower_geo::{
    BoxError, CircuitBreakerLayer, Error, GeoLayer, GeoRedirectLayer, GeoService, GeoStack,
    ReadOnlyGateLayer, RetryLayer, Served, body,
};
use tower_geo_testkit::strict::{PanicsUnready, PendingTimes, Reply, Script, ScriptBody};

use crate::support::*;

/// The primary fails twice, then works; the secondary is not replicated yet.
fn bumpy() -> Script {
    Script::new()
        .any_method(
            P,
            [Reply::status(503), Reply::reset(), Reply::ok("primary")],
        )
        .any_method(
            S,
            [
                Reply::status(404),
                Reply::status(503),
                Reply::ok("secondary"),
            ],
        )
}

/// T7, DESIGN 7: readiness is taken before each call, also before further sends, and a clone
/// never relies on that of its original.
#[tokio::test(start_paused = true)]
async fn a_service_is_never_called_unready() {
    let script = bumpy();
    each_layer!(
        service(),
        PanicsUnready::new(script.service()),
        |name, stack| {
            for request in [get(), put(), append(), get()] {
                let answer = stack.until_ready().await.unwrap().call(request).await;
                assert!(answer.is_ok() || name != "all", "{name}: {answer:?}");
            }
            let clone = stack.clone();
            let _ = clone.oneshot(get()).await;
        }
    );
}

/// T7: readiness that takes a while is waited for, before the first send and before further ones.
#[tokio::test(start_paused = true)]
async fn readiness_that_takes_a_while_is_waited_for() {
    let script = bumpy();
    let client = || PanicsUnready::new(PendingTimes::new(script.service(), 3));
    each_layer!(service(), client(), |name, stack| {
        for request in [get(), put(), get()] {
            let _ = stack.until_ready().await.unwrap().call(request).await;
        }
        assert!(!script.sends().is_empty(), "{name}");
        script.clear_sends();
    });
}

/// G2, T7: the same while writes are refused, when a read takes readiness inside its call.
#[tokio::test(start_paused = true)]
async fn a_read_in_read_only_is_called_ready() {
    let script = healthy();
    let client = || PanicsUnready::new(PendingTimes::new(script.service(), 3));
    each_layer!(service(), client(), |name, stack| {
        let service = service();
        service.operator().read_only();
        let mut under_gate = tower::Layer::layer(&ReadOnlyGateLayer::new(service), stack.clone());
        let answer = under_gate.until_ready().await.unwrap().call(get()).await;
        assert_eq!(answer.unwrap().status(), 200, "{name}");
        let refused = under_gate.until_ready().await.unwrap().call(put()).await;
        assert!(refused.is_err_and(|error| error.is_read_only()), "{name}");
        let _ = stack.until_ready().await;
    });
}

/// T7: each send takes a permit, and gives it back before the next.
#[tokio::test(start_paused = true)]
async fn one_permit_is_enough_for_an_operation_with_many_sends() {
    let script = bumpy();
    let client = || ConcurrencyLimit::new(script.service(), 1);
    each_layer!(service(), client(), |name, stack| {
        let (one, other) = (stack.clone(), stack.clone());
        let both = async { tokio::join!(one.oneshot(get()), other.oneshot(get())) };
        let both = tokio::time::timeout(secs(30), both).await;
        assert!(both.is_ok(), "{name}: stuck");
        let again = stack.until_ready().await.unwrap().call(get());
        assert!(
            tokio::time::timeout(secs(30), again).await.is_ok(),
            "{name}: stuck"
        );
    });
}

/// E4: over a buffer, whose readiness and errors are its own.
#[tokio::test(start_paused = true)]
async fn a_buffer_below_is_a_client_like_any_other() {
    let script = bumpy();
    each_layer!(
        service(),
        Buffer::new(script.service(), 4),
        |name, stack| {
            let mut answers = Vec::new();
            for _ in 0..3 {
                answers.push(stack.until_ready().await.unwrap().call(get()).await);
            }
            assert!(answers.iter().any(Result::is_ok), "{name}: {answers:?}");
        }
    );
}

/// E4: under type erasure, and over it.
#[tokio::test(start_paused = true)]
async fn stacks_can_be_boxed_and_take_boxed_clients() {
    let script = primary_down();
    let service = service();
    let client: BoxCloneSyncService<Request<Body>, Response<ScriptBody>, BoxError> =
        BoxCloneSyncService::new(MapErr::new(script.service(), BoxError::from));
    let stack = tower::Layer::layer(&service.layer().clone_bodies(), client);
    let mut boxed: BoxCloneSyncService<_, _, Error> = BoxCloneSyncService::new(stack);
    let answer = boxed
        .until_ready()
        .await
        .unwrap()
        .call(get())
        .await
        .unwrap();
    assert_eq!(
        Served::of(answer.extensions()).unwrap().region_name(),
        "secondary"
    );
    let clone = boxed.clone();
    assert_eq!(clone.oneshot(get()).await.unwrap().status(), 200);
}

/// DESIGN 7: a clone starts un-ready, and holds nothing of what its original holds.
#[tokio::test(start_paused = true)]
async fn a_clone_is_not_ready_and_holds_no_permit() {
    let script = healthy();
    let permits = Arc::new(Semaphore::new(1));
    let client = || ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    each_layer!(service(), client(), |name, stack| {
        let _ = stack.until_ready().await.unwrap();
        assert_eq!(permits.available_permits(), 0, "{name}");
        let mut clone = stack.clone();
        let mut cx = Context::from_waker(Waker::noop());
        let readiness = Service::<Request<Body>>::poll_ready(&mut clone, &mut cx);
        assert!(readiness.is_pending(), "{name}");
        drop(stack);
        assert_eq!(
            clone
                .until_ready()
                .await
                .unwrap()
                .call(get())
                .await
                .unwrap()
                .status(),
            200
        );
        drop(clone);
        assert_eq!(permits.available_permits(), 1, "{name}");
    });
}

/// DESIGN 7: who waits for readiness is woken when there is some.
#[tokio::test(start_paused = true)]
async fn pending_readiness_registers_a_waker() {
    let script = healthy();
    let permits = Arc::new(Semaphore::new(1));
    let client = || ConcurrencyLimit::with_semaphore(script.service(), Arc::clone(&permits));
    each_layer!(service(), client(), |name, stack| {
        let taken = permits.acquire().await.unwrap();
        let waiting = tokio::spawn(async move {
            let answer = stack.until_ready().await.unwrap().call(get()).await;
            answer.is_ok()
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "{name}");
        drop(taken);
        let answer = tokio::time::timeout(secs(1), waiting).await;
        assert!(answer.expect("nobody was woken").unwrap(), "{name}");
    });
}

/// DESIGN 5: whatever a layer says, the client's own error is at the end of the source chain.
#[tokio::test(start_paused = true)]
async fn the_clients_error_ends_the_source_chain() {
    let script = Script::new()
        .any_method(P, [Reply::reset()])
        .any_method(S, [Reply::reset()]);
    each_layer!(service(), script.service(), |name, stack| {
        for request in [get(), put(), append()] {
            let error = stack
                .until_ready()
                .await
                .unwrap()
                .call(request)
                .await
                .unwrap_err();
            assert_eq!(
                io_kind(&error),
                Some(std::io::ErrorKind::ConnectionReset),
                "{name}: {error:?}"
            );
        }
    });
}

/// An error of a client that knows nothing of us.
#[derive(Debug, PartialEq)]
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken")
    }
}

impl StdError for Broken {}

/// Ready so many times, for all clones together; then broken, or pending for ever.
#[derive(Clone)]
struct ReadyTimes<S> {
    inner: S,
    left: Arc<AtomicUsize>,
    breaks: bool,
}

impl<S> ReadyTimes<S> {
    fn new(inner: S, times: usize, breaks: bool) -> Self {
        let left = Arc::new(AtomicUsize::new(times));
        Self {
            inner,
            left,
            breaks,
        }
    }
}

impl<S, R> Service<R> for ReadyTimes<S>
where
    S: Service<R>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    S::Response: 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.left.load(Ordering::Relaxed) > 0 {
            self.left.fetch_sub(1, Ordering::Relaxed);
            Poll::Ready(Ok(()))
        } else if self.breaks {
            Poll::Ready(Err(Box::new(Broken)))
        } else {
            Poll::Pending
        }
    }

    fn call(&mut self, request: R) -> Self::Future {
        let answer = self.inner.call(request);
        Box::pin(async move { answer.await.map_err(Into::into) })
    }
}

/// DESIGN 5: an error of readiness is the client's own as well.
#[tokio::test(start_paused = true)]
async fn an_error_of_readiness_comes_through_unchanged() {
    let script = healthy();
    each_layer!(
        service(),
        ReadyTimes::new(script.service(), 0, true),
        |name, stack| {
            let error = Service::<Request<Body>>::poll_ready(
                &mut stack,
                &mut Context::from_waker(Waker::noop()),
            );
            let Poll::Ready(Err(error)) = error else {
                panic!("{name}: {error:?}");
            };
            let source = error.source().unwrap();
            assert_eq!(source.downcast_ref::<Broken>(), Some(&Broken), "{name}");
        }
    );
}

/// T7: when readiness fails before a further send, the answer that is held is handed over.
#[tokio::test(start_paused = true)]
async fn a_readiness_error_hands_over_the_held_answer() {
    let script = primary_down();
    for request in [get(), put()] {
        let client = ReadyTimes::new(script.service(), 1, true);
        let stack = tower::Layer::layer(&service().layer().clone_bodies(), client);
        let answer = stack.oneshot(request).await.unwrap();
        assert_eq!(answer.status(), 503);
        let served = Served::of(answer.extensions()).unwrap();
        assert_eq!(served.region_name(), "primary");
        assert_eq!(
            served.trail().sends().len(),
            1,
            "what was not sent is not in the trail"
        );
    }
    assert_eq!(script.hosts(), [P, P]);
}

/// T7: a wait past the send's time ends the operation with the answer that is held.
#[tokio::test(start_paused = true)]
async fn readiness_that_never_comes_hands_over_the_held_answer() {
    let script = primary_down();
    let client = ReadyTimes::new(script.service(), 1, false);
    let service = builder()
        .retry(retry().attempt_timeout(secs(5)))
        .build()
        .unwrap();
    let stack = tower::Layer::layer(&service.layer().clone_bodies(), client);
    let begun = tokio::time::Instant::now();
    let answer = stack.oneshot(get()).await.unwrap();
    assert_eq!(answer.status(), 503);
    assert_eq!(begun.elapsed(), secs(5));
    assert_eq!(
        service.budget(&SECONDARY),
        Some((500, 500)),
        "nothing was sent there"
    );
}

/// T7, T3: without an answer to hand over, it is an error that says so, with the client's error
/// as its source.
#[tokio::test(start_paused = true)]
async fn a_readiness_error_without_an_answer_is_its_source() {
    let script = Script::new().any_method(P, [Reply::refused()]);
    let client = ReadyTimes::new(script.service(), 1, true);
    let stack = tower::Layer::layer(&service().layer().clone_bodies(), client);
    let error = stack.oneshot(get()).await.unwrap_err();
    assert_eq!(error.kind(), tower_geo::ErrorKind::Transport);
    assert_eq!(
        error.source().unwrap().downcast_ref::<Broken>(),
        Some(&Broken)
    );
    assert!(error.was_never_sent());
}

const fn is_a_layer<T: Clone + Send + Sync + fmt::Debug + 'static>() {}
const fn is_a_service<T: Clone + Send + Sync + 'static>() {}
const fn is_a_future<T: Send + 'static>(_: Option<&T>) {}
const fn is_send_and_sync<T: Send + Sync + 'static>() {}

/// A client that is as simple as can be.
#[derive(Clone)]
struct Trivial;

impl Service<Request<Body>> for Trivial {
    type Response = Response<Body>;
    type Error = Broken;
    type Future = Ready<Result<Response<Body>, Broken>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Response::default()))
    }
}

/// E4: everything can be shared between threads. What does not hold does not compile.
const _: () = {
    is_a_layer::<GeoLayer>();
    is_a_layer::<GeoLayer<body::CloneBodies>>();
    is_a_layer::<GeoLayer<body::Buffering>>();
    is_a_layer::<ReadOnlyGateLayer>();
    is_a_layer::<RetryLayer>();
    is_a_layer::<GeoRedirectLayer>();
    is_a_layer::<CircuitBreakerLayer>();
    is_a_layer::<GeoService>();
    is_a_service::<GeoStack<Trivial, body::CloneBodies>>();
    is_a_service::<GeoStack<Trivial, body::Buffering>>();
    is_a_service::<ReadOnlyGate<Trivial>>();
    is_a_service::<Retry<Trivial, body::EmptyBodies>>();
    is_a_future::<<GeoStack<Trivial, body::CloneBodies> as Service<Request<Body>>>::Future>(None);
    is_a_future::<<ReadOnlyGate<Trivial> as Service<Request<Body>>>::Future>(None);
    is_a_future::<
        <Retry<MapResponse<Trivial, fn(Response<Body>) -> Response<Body>>, body::EmptyBodies> as Service<
            Request<Body>,
        >>::Future,
    >(None);
    is_send_and_sync::<<GeoStack<Trivial, body::CloneBodies> as Service<Request<Body>>>::Future>();
    is_send_and_sync::<Error>();
    is_send_and_sync::<Served>();
};
