//! A client for tests of what runs in the background: it answers as a closure says.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use tower_service::Service;

use crate::background::BackgroundSend;
use crate::error::BoxError;

pub(crate) type RequestBody = Empty<Bytes>;
pub(crate) type ResponseBody = BoxBody<Bytes, BoxError>;

/// What the wire does with one send.
pub(crate) enum Act {
    Answer(Response<ResponseBody>),
    After(Duration, Response<ResponseBody>),
    Hang,
    Fail(BoxError),
    Panic,
}

/// One send: when, from the start, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) at: Duration,
    pub(crate) uri: String,
    pub(crate) purpose: &'static str,
}

type Answers = dyn Fn(usize) -> Act + Send + Sync;

#[derive(Clone)]
pub(crate) struct Wire {
    start: tokio::time::Instant,
    seen: Arc<Mutex<Vec<Seen>>>,
    under_way: Arc<Mutex<(usize, usize)>>,
    answers: Arc<Answers>,
}

impl Wire {
    /// `answers` is told how many sends came before.
    pub(crate) fn new(answers: impl Fn(usize) -> Act + Send + Sync + 'static) -> Self {
        Self {
            start: tokio::time::Instant::now(),
            seen: Arc::default(),
            under_way: Arc::default(),
            answers: Arc::new(answers),
        }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The seconds at which sends left.
    pub(crate) fn seconds(&self) -> Vec<u64> {
        self.seen().iter().map(|seen| seen.at.as_secs()).collect()
    }

    /// The most sends that were ever under way at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
    }
}

pub(crate) fn body(text: impl Into<Bytes>) -> ResponseBody {
    Full::new(text.into())
        .map_err(|never: Infallible| match never {})
        .boxed()
}

pub(crate) fn status(status: u16) -> Response<ResponseBody> {
    let mut response = Response::new(body(""));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    response
}

/// Get Service Stats, with a status of replication and a time.
#[cfg(feature = "last-sync")]
pub(crate) fn stats(replication: &str, last_sync: &str) -> Response<ResponseBody> {
    Response::new(body(format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication>\
         <Status>{replication}</Status><LastSyncTime>{last_sync}</LastSyncTime>\
         </GeoReplication></StorageServiceStats>"
    )))
}

struct UnderWay(Arc<Mutex<(usize, usize)>>);

impl UnderWay {
    fn begin(counts: &Arc<Mutex<(usize, usize)>>) -> Self {
        let mut both = counts.lock().unwrap_or_else(PoisonError::into_inner);
        both.0 += 1;
        both.1 = both.1.max(both.0);
        Self(Arc::clone(counts))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 -= 1;
    }
}

impl<B> Service<Request<B>> for Wire {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let act = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(Seen {
                at: self.start.elapsed(),
                uri: request.uri().to_string(),
                purpose: BackgroundSend::of(request.extensions())
                    .map_or("caller", BackgroundSend::purpose),
            });
            (self.answers)(seen.len() - 1)
        };
        let under_way = UnderWay::begin(&self.under_way);
        Box::pin(async move {
            let _under_way = under_way;
            match act {
                Act::Answer(response) => Ok(response),
                Act::After(wait, response) => {
                    tokio::time::sleep(wait).await;
                    Ok(response)
                }
                Act::Hang => std::future::pending().await,
                Act::Fail(error) => Err(error),
                Act::Panic => panic!("a client that panics"),
            }
        })
    }
}
