//! What stands below all that is compared: it answers as the request says, and counts.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use tokio::sync::Notify;
use tower_service::Service;

pub(crate) type Sent = Request<Full<Bytes>>;
pub(crate) type Answer = Response<Full<Bytes>>;

/// How a request is answered.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Ok,
    Status(StatusCode),
    /// The connection is reset after the request was sent.
    Reset,
    /// Well, but not before this is notified.
    Held(Arc<Notify>),
}

impl Reply {
    /// A request that is answered so.
    pub(crate) fn to(self, method: Method) -> Sent {
        let mut request = Request::new(Full::default());
        *request.method_mut() = method;
        *request.uri_mut() = Uri::from_static("https://eu.example/photos/1");
        request.extensions_mut().insert(self);
        request
    }
}

/// The service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire {
    arrivals: Arc<AtomicUsize>,
}

impl Wire {
    /// How many requests have come so far.
    pub(crate) fn arrivals(&self) -> usize {
        self.arrivals.load(Ordering::Relaxed)
    }
}

impl Service<Sent> for Wire {
    type Response = Answer;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Answer>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Sent) -> Self::Future {
        self.arrivals.fetch_add(1, Ordering::Relaxed);
        let reply = request.extensions_mut().remove::<Reply>();
        Box::pin(async move {
            let mut answer = Response::new(Full::default());
            match reply.unwrap_or(Reply::Ok) {
                Reply::Ok => {}
                Reply::Status(status) => *answer.status_mut() = status,
                Reply::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
                Reply::Held(until) => until.notified().await,
            }
            Ok(answer)
        })
    }
}
