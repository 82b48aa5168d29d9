//! What leaves for the wire: one record for each send, by OpenTelemetry's HTTP conventions.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use http::{Method, Request, Response};
use opentelemetry::KeyValue;
use pin_project_lite::pin_project;
use tower_geo_policy::fault::Fault;
use tower_layer::Layer;
use tower_service::Service;

use super::Metrics;
use crate::error::{BoxError, Error};
use crate::known::Known;
use crate::runtime::{self, service_id};
use crate::scope;

/// Records every send to a service. See the [module](super).
///
/// **Order**: next to the client, below all of our layers, so that it sees each send and the host
/// that it really goes to. Requests to other hosts pass unrecorded.
///
/// **Cancellation**: a send that is dropped is recorded as `timeout` if its time was over, else as
/// `cancelled`.
#[derive(Clone, Debug)]
pub struct SendMetricsLayer {
    metrics: Metrics,
}

impl SendMetricsLayer {
    pub(super) const fn new(metrics: Metrics) -> Self {
        Self { metrics }
    }
}

impl<S> Layer<S> for SendMetricsLayer {
    type Service = SendMetrics<S>;

    fn layer(&self, inner: S) -> Self::Service {
        SendMetrics {
            inner,
            metrics: self.metrics.clone(),
        }
    }
}

/// Records every send to a service. See [`SendMetricsLayer`].
#[derive(Clone, Debug)]
pub struct SendMetrics<S> {
    inner: S,
    metrics: Metrics,
}

impl<S> SendMetrics<S> {
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

impl<S, B, RB> Service<Request<B>> for SendMetrics<S>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<RB>;
    type Error = Error;
    type Future = SendFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(cx)
            .map_err(|error| Error::from_inner(error.into()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let record = Record::begin(&self.metrics, &request);
        SendFuture {
            inner: self.inner.call(request),
            record,
        }
    }
}

pin_project! {
    /// Response future of [`SendMetrics`].
    pub struct SendFuture<F> {
        #[pin]
        inner: F,
        record: Option<Record>,
    }
}

impl<F> fmt::Debug for SendFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendFuture")
    }
}

impl<F, RB, E> Future for SendFuture<F>
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

/// A send that has not ended. Dropped, it is recorded as given up.
struct Record {
    metrics: Metrics,
    started: Instant,
    attributes: Vec<KeyValue>,
}

impl Record {
    fn begin<B>(metrics: &Metrics, request: &Request<B>) -> Option<Self> {
        let state = metrics.state();
        let region = Known::now(state).regions(state).region_of(request.uri())?;
        let region = metrics.region(region)?.into_owned();
        // Room for the status and the type of error, too.
        let mut attributes = Vec::with_capacity(7);
        attributes.extend([
            metrics.service(),
            region.name,
            region.address,
            region.port,
            KeyValue::new("http.request.method", method_name(request.method())),
        ]);
        Some(Self {
            metrics: metrics.clone(),
            started: runtime::now(),
            attributes,
        })
    }

    fn end<RB>(mut self, result: &Result<Response<RB>, Error>) {
        match result {
            Ok(response) => {
                let status = response.status();
                let code = i64::from(status.as_u16());
                self.attributes
                    .push(KeyValue::new("http.response.status_code", code));
                if code >= 400 {
                    self.attributes
                        .push(KeyValue::new("error.type", status.as_str().to_owned()));
                }
            }
            Err(error) => {
                let faults = &self.metrics.state().extra().faults;
                let word = error
                    .fault(&**faults)
                    .map_or_else(|| error.kind().as_str(), Fault::as_str);
                self.attributes.push(KeyValue::new("error.type", word));
            }
        }
        self.record();
    }

    /// Leaves nothing for the drop to record.
    fn record(&mut self) {
        let attributes = std::mem::take(&mut self.attributes);
        let seconds = runtime::now()
            .saturating_duration_since(self.started)
            .as_secs_f64();
        self.metrics
            .instruments()
            .request_duration
            .record(seconds, &attributes);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.attributes.is_empty() {
            return;
        }
        let word = if scope::is_time_out(service_id(self.metrics.state())) {
            Fault::TimedOut.as_str()
        } else {
            super::CANCELLED
        };
        self.attributes.push(KeyValue::new("error.type", word));
        self.record();
    }
}

/// The methods of HTTP by name; any other could be anything, and be of any number.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        Method::TRACE => "TRACE",
        Method::CONNECT => "CONNECT",
        _ => "_OTHER",
    }
}
