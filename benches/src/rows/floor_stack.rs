//! Four layers written by hand for one service: the least that does what our stack does for a good
//! answer, without anything that another answer, another service or another order would need.
//!
//! What is decided is decided by the policy's own functions, once: region, intent, admission,
//! verdict, settlement. As in the stack, every layer has a future and an error of its own, the
//! request is kept until the answer is there, the service below is cloned with its handle, and the
//! outcome belongs to the body where that is not over.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_geo::BreakerSettings;
use tower_geo::policy::azure_storage::{AzureStorage, StorageService};
use tower_geo::policy::breaker::{Outcome, Sent as Admitted};
use tower_geo::policy::intent::Intent;
use tower_geo::policy::operation::circuit_of;
use tower_geo::policy::provider::Provider;
use tower_geo::policy::region::{Endpoint, Region, Regions};
use tower_geo::policy::service_state::{ServiceConfig, ServiceRoot, ServiceState};
use tower_geo::policy::verdict::Verdict;
use tower_service::Service;

use super::subject::{Answer, Sent, calls};
use crate::row::Call;

/// The four over a client, called with requests to `contoso`.
pub(super) fn over<S>(client: S, request: impl FnMut() -> Sent + Send + 'static) -> Call
where
    S: Service<Sent, Response = Answer> + Clone + Send + 'static,
    S::Error: Into<BoxError> + 'static,
{
    let (root, service) = layered(
        client,
        "https://contoso.blob.core.windows.net",
        "https://contoso-secondary.blob.core.windows.net",
    );
    let mut call = calls(service, request);
    Box::new(move || {
        let _alive = &root;
        call();
    })
}

/// The four over a client of an account with these endpoints, and what they share.
pub(crate) fn layered<S>(client: S, primary: &str, secondary: &str) -> (ServiceRoot, Floor<S>) {
    let root = root(primary, secondary);
    let breaking = Breaking {
        inner: client,
        state: root.handle(),
    };
    let gate = Gate {
        inner: Keeping(Following(breaking)),
        state: root.handle(),
    };
    (root, gate)
}

/// A client under the four.
pub(crate) type Floor<S> = Gate<Keeping<Following<Breaking<S>>>>;

type BoxError = Box<dyn Error + Send + Sync>;

const AZURE: AzureStorage = AzureStorage::new(StorageService::Blob);
const TIME_OUT: Duration = Duration::from_secs(10);

#[expect(
    clippy::expect_used,
    reason = "a benchmark with bad settings cannot go on"
)]
fn root(primary: &str, secondary: &str) -> ServiceRoot {
    let regions = [("primary", primary), ("secondary", secondary)]
        .into_iter()
        .map(|(name, url)| {
            let endpoint = Endpoint::parse(url).expect("a good URL");
            Region::new(name, endpoint).writable(name == "primary")
        })
        .collect();
    let regions = Regions::new(regions).expect("good regions");
    let base = tokio::time::Instant::now().into_std();
    let config = ServiceConfig::new("a", Arc::new(AZURE), regions, base, ())
        .breaker(BreakerSettings::new())
        .stripes(2);
    ServiceRoot::build(config).expect("good settings")
}

/// What a layer makes of an error of the one below.
#[derive(Debug)]
pub(crate) struct Failed(#[expect(dead_code, reason = "kept, as ours keeps its cause")] BoxError);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl Error for Failed {}

/// Lets everything through while all is well.
#[derive(Clone)]
pub(crate) struct Gate<S> {
    inner: S,
    state: ServiceState,
}

impl<S, B> Service<Sent> for Gate<S>
where
    S: Service<Sent, Response = Response<B>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<B>;
    type Error = Failed;
    type Future = Passing<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.inner.poll_ready(cx).map_err(|e| Failed(e.into()))
    }

    fn call(&mut self, request: Sent) -> Self::Future {
        assert!(self.state.is_calm(), "nothing has failed");
        let inner = self.inner.call(request);
        Passing { inner }
    }
}

/// Would direct the request elsewhere if its extensions said so.
#[derive(Clone)]
pub(crate) struct Following<S>(S);

impl<S, B> Service<Sent> for Following<S>
where
    S: Service<Sent, Response = Response<B>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<B>;
    type Error = Failed;
    type Future = Passing<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.0.poll_ready(cx).map_err(|e| Failed(e.into()))
    }

    fn call(&mut self, request: Sent) -> Self::Future {
        assert!(request.extensions().is_empty(), "nothing is handed on");
        let inner = self.0.call(request);
        Passing { inner }
    }
}

pin_project! {
    pub(crate) struct Passing<F> {
        #[pin]
        inner: F,
    }
}

impl<F, R, E> Future for Passing<F>
where
    F: Future<Output = Result<R, E>>,
    E: Into<BoxError>,
{
    type Output = Result<R, Failed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().inner.poll(cx) {
            Poll::Ready(Ok(answer)) => Poll::Ready(Ok(answer)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(Failed(error.into()))),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Keeps the request and the service below until the answer is there, and arms a time-out if it
/// is not there at once.
#[derive(Clone)]
pub(crate) struct Keeping<S>(S);

pin_project! {
    pub(crate) struct KeepingFuture<F, S> {
        #[pin]
        inner: F,
        copy: Sent,
        service: S,
        #[pin]
        timer: Option<Sleep>,
    }
}

impl<S, B> Service<Sent> for Keeping<S>
where
    S: Service<Sent, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = Response<B>;
    type Error = Failed;
    type Future = KeepingFuture<S::Future, S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.0.poll_ready(cx).map_err(|e| Failed(e.into()))
    }

    fn call(&mut self, request: Sent) -> Self::Future {
        let copy = request.clone();
        let clone = self.0.clone();
        let mut service = std::mem::replace(&mut self.0, clone);
        KeepingFuture {
            inner: service.call(request),
            copy,
            service,
            timer: None,
        }
    }
}

impl<F, S, R, E> Future for KeepingFuture<F, S>
where
    F: Future<Output = Result<R, E>>,
    E: Into<BoxError>,
{
    type Output = Result<R, Failed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        match this.inner.poll(cx) {
            Poll::Ready(Ok(answer)) => Poll::Ready(Ok(answer)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(Failed(error.into()))),
            Poll::Pending => {
                if this.timer.is_none() {
                    this.timer.set(Some(tokio::time::sleep(TIME_OUT)));
                }
                if let Some(timer) = this.timer.as_pin_mut() {
                    assert!(timer.poll(cx).is_pending(), "a call takes no seconds");
                }
                Poll::Pending
            }
        }
    }
}

/// Admits the send to its region and settles what becomes of it.
#[derive(Clone)]
pub(crate) struct Breaking<S> {
    inner: S,
    state: ServiceState,
}

/// An outcome that is not known yet.
pub(crate) struct Watch {
    state: ServiceState,
    admitted: Option<Admitted>,
    intent: Intent,
}

impl Watch {
    fn settle(&mut self, verdict: Verdict, pended: bool) {
        if let Some(admitted) = self.admitted.take() {
            let at = if pended {
                self.state.tick(now())
            } else {
                admitted.at()
            };
            let outcome = Outcome::answer(verdict.evidence());
            _ = self.state.send_settled(admitted, outcome, at, || 1.0);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.admitted.is_some() {
            self.settle(Verdict::Answered, true);
        }
    }
}

fn now() -> std::time::Instant {
    tokio::time::Instant::now().into_std()
}

pin_project! {
    /// A body whose end is the outcome of its send.
    pub(crate) struct Settling<B> {
        #[pin]
        inner: B,
        watch: Option<Watch>,
    }
}

impl<B: Body> Body for Settling<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let polled = this.inner.as_mut().poll_frame(cx);
        let is_over = match &polled {
            Poll::Ready(Some(_)) => this.inner.is_end_stream(),
            Poll::Ready(None) => true,
            Poll::Pending => false,
        };
        if is_over && let Some(mut watch) = this.watch.take() {
            watch.settle(Verdict::Answered, true);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

pin_project! {
    pub(crate) struct BreakingFuture<F> {
        #[pin]
        inner: F,
        watch: Option<Watch>,
        pended: bool,
    }
}

impl<S, B> Service<Sent> for Breaking<S>
where
    S: Service<Sent, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = Response<Settling<B>>;
    type Error = Failed;
    type Future = BreakingFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.inner.poll_ready(cx).map_err(|e| Failed(e.into()))
    }

    #[expect(
        clippy::expect_used,
        reason = "a benchmark with a bad request cannot go on"
    )]
    fn call(&mut self, request: Sent) -> Self::Future {
        let state = &self.state;
        let region = state.regions().region_of(request.uri());
        let region = region.expect("a request to the service");
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let intent = AZURE.intent(method, uri, headers).intent;
        let (circuit, at) = (circuit_of(intent), state.tick(now()));
        let admitted = match state.send_if_calm(region, circuit, at) {
            Some(admitted) => Some(admitted),
            // Once in a while there is more to do.
            None => state.send_started(region, circuit, at),
        };
        let watch = Watch {
            state: state.clone(),
            admitted,
            intent,
        };
        BreakingFuture {
            inner: self.inner.call(request),
            watch: Some(watch),
            pended: false,
        }
    }
}

impl<F, B, E> Future for BreakingFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    B: Body,
{
    type Output = Result<Response<Settling<B>>, Failed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.inner.poll(cx) {
            Poll::Ready(Ok(answer)) => {
                if let Some(watch) = this.watch {
                    let verdict = AZURE.verdict(watch.intent, answer.status(), answer.headers());
                    if answer.body().is_end_stream() {
                        watch.settle(verdict, *this.pended);
                    }
                }
                let ends_with_body = !answer.body().is_end_stream();
                let watch = if ends_with_body {
                    this.watch.take()
                } else {
                    None
                };
                Poll::Ready(Ok(answer.map(|inner| Settling { inner, watch })))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(Failed(error.into()))),
            Poll::Pending => {
                *this.pended = true;
                Poll::Pending
            }
        }
    }
}
