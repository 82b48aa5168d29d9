//! What callers see: one record for each operation, with all that its trail says.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use http::{Request, Response};
use opentelemetry::KeyValue;
use pin_project_lite::pin_project;
use tower_geo_policy::region::RegionId;
use tower_geo_policy::trail::{Send, SendKind, Trail};
use tower_geo_policy::verdict::Verdict;
use tower_layer::Layer;
use tower_service::Service;

use super::Metrics;
use crate::error::{BoxError, Error};
use crate::known::Known;
use crate::runtime;
use crate::served::Served;

/// Records every operation on a service. See the [module](super).
///
/// **Order**: outside of all of our layers. Requests to other hosts, and those that are neither
/// reads nor writes, pass unrecorded.
///
/// **Cancellation**: an operation that is dropped is recorded as `cancelled`, without the number
/// of its sends, which nobody knows any more.
#[derive(Clone, Debug)]
pub struct OperationMetricsLayer {
    metrics: Metrics,
}

impl OperationMetricsLayer {
    pub(super) const fn new(metrics: Metrics) -> Self {
        Self { metrics }
    }
}

impl<S> Layer<S> for OperationMetricsLayer {
    type Service = OperationMetrics<S>;

    fn layer(&self, inner: S) -> Self::Service {
        OperationMetrics {
            inner,
            metrics: self.metrics.clone(),
        }
    }
}

/// Records every operation on a service. See [`OperationMetricsLayer`].
#[derive(Clone, Debug)]
pub struct OperationMetrics<S> {
    inner: S,
    metrics: Metrics,
}

impl<S> OperationMetrics<S> {
    /// The service below.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service below.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The service below.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B, RB> Service<Request<B>> for OperationMetrics<S>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<RB>;
    type Error = Error;
    type Future = OperationFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(cx)
            .map_err(|error| Error::from_inner(error.into()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let record = Record::begin(&self.metrics, &request);
        OperationFuture {
            inner: self.inner.call(request),
            record,
        }
    }
}

pin_project! {
    /// Response future of [`OperationMetrics`].
    pub struct OperationFuture<F> {
        #[pin]
        inner: F,
        record: Option<Record>,
    }
}

impl<F> fmt::Debug for OperationFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperationFuture")
    }
}

impl<F, RB, E> Future for OperationFuture<F>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<RB>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx)).map_err(|error| Error::from_inner(error.into()));
        if let Some(record) = this.record.take() {
            record.end(&result);
        }
        Poll::Ready(result)
    }
}

/// An operation that has not ended. Dropped, it is recorded as given up.
struct Record {
    metrics: Metrics,
    started: Instant,
    /// The region that the request names.
    home: RegionId,
    /// None once it is recorded.
    intent: Option<KeyValue>,
}

impl Record {
    fn begin<B>(metrics: &Metrics, request: &Request<B>) -> Option<Self> {
        let state = metrics.state();
        let home = Known::now(state).regions(state).region_of(request.uri())?;
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let intent = state.provider().intent(method, uri, headers).intent;
        if intent.is_neutral() {
            return None;
        }
        let word = if intent.is_write() { "write" } else { "read" };
        Some(Self {
            metrics: metrics.clone(),
            started: runtime::now(),
            home,
            intent: Some(KeyValue::new("tower_geo.intent", word)),
        })
    }

    fn end<RB>(mut self, result: &Result<Response<RB>, Error>) {
        match result {
            Ok(response) => self.answered(response),
            Err(error) => self.failed(error),
        }
    }

    fn answered<RB>(&mut self, response: &Response<RB>) {
        let state = self.metrics.state();
        // A stack of another service further in has an account of its own.
        let served = Served::of(response.extensions()).filter(|served| served.is_of(state));
        let region = served.map_or(self.home, Served::region);
        if let Some(served) = served {
            self.trail(served.trail());
            if served.is_from_copy() {
                self.copy_answered(served);
            }
        }
        self.sends(served.map(Served::trail));
        let status = response.status();
        let mut attributes = Vec::with_capacity(5);
        attributes.extend(
            self.metrics
                .region(region)
                .map(|region| region.name.clone()),
        );
        attributes.push(KeyValue::new(
            "http.response.status_code",
            i64::from(status.as_u16()),
        ));
        if status.as_u16() >= 400 {
            attributes.push(KeyValue::new("error.type", status.as_str().to_owned()));
        }
        self.duration(attributes);
    }

    fn failed(&mut self, error: &Error) {
        if let Some(why) = error.read_only_why() {
            let why = KeyValue::new("tower_geo.gate.reason", why.as_str());
            let refused = &self.metrics.instruments().refused;
            refused.add(1, &[self.metrics.service(), why]);
        }
        self.trail(error.trail());
        let is_told = error.was_never_sent() || !error.trail().sends().is_empty();
        self.sends(is_told.then(|| error.trail()));
        self.duration(vec![KeyValue::new("error.type", error.kind().as_str())]);
    }

    /// How often it was sent. Without a trail it was sent once.
    fn sends(&self, trail: Option<&Trail>) {
        let count = trail.map_or(1, |trail| trail.sends().len());
        let mut attributes = vec![self.metrics.service()];
        attributes.extend(self.intent.clone());
        self.metrics
            .instruments()
            .operation_sends
            .record(u64::try_from(count).unwrap_or(u64::MAX), &attributes);
    }

    fn trail(&self, trail: &Trail) {
        let instruments = self.metrics.instruments();
        for send in trail.sends() {
            if send.kind == SendKind::First {
                continue;
            }
            let kind = KeyValue::new("tower_geo.send.kind", send.kind.as_str());
            let mut attributes = vec![self.metrics.service(), kind];
            let region = self.metrics.region(send.region);
            attributes.extend(region.map(|region| region.name.clone()));
            instruments.resends.add(1, &attributes);
            if send.kind == SendKind::Hedge {
                let outcome = KeyValue::new("tower_geo.hedge.outcome", outcome_of_hedge(send));
                instruments
                    .hedges
                    .add(1, &[self.metrics.service(), outcome]);
            }
        }
    }

    fn copy_answered(&self, served: &Served) {
        let instruments = self.metrics.instruments();
        let region = self.metrics.region(served.region());
        let mut attributes = vec![self.metrics.service()];
        attributes.extend(region.map(|region| region.name.clone()));
        let last = self.metrics.state().extra().copies.last_sync.get();
        if let Some(behind) = last.behind(runtime::now()) {
            instruments
                .copy_staleness
                .record(behind.as_secs_f64(), &attributes);
        }
        if let Some(freshness) = served.freshness() {
            attributes.push(KeyValue::new("tower_geo.freshness", freshness.as_str()));
        }
        instruments.copy_answers.add(1, &attributes);
    }

    /// The last record of an operation.
    fn duration(&mut self, mut attributes: Vec<KeyValue>) {
        attributes.push(self.metrics.service());
        attributes.extend(self.intent.take());
        let seconds = runtime::now()
            .saturating_duration_since(self.started)
            .as_secs_f64();
        self.metrics
            .instruments()
            .operation_duration
            .record(seconds, &attributes);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.intent.is_some() {
            self.duration(vec![KeyValue::new("error.type", super::CANCELLED)]);
        }
    }
}

/// What became of a hedge (H2).
const fn outcome_of_hedge(hedge: &Send) -> &'static str {
    match hedge.verdict {
        Verdict::Dropped => "lost",
        verdict if verdict.is_final() => "won",
        _ => "failed",
    }
}
