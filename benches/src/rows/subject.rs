//! What all rows are made of: clients that answer without a network, requests, and one call.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;

use crate::row::Call;

pub(crate) type Body = Full<Bytes>;
pub(crate) type Sent = Request<Body>;
pub(crate) type Answer = Response<Body>;

/// A request without headers.
pub(crate) fn trivial() -> Sent {
    let mut request = Request::new(Body::default());
    *request.uri_mut() = URI.with(Clone::clone);
    request
}

thread_local! {
    static URI: http::Uri =
        http::Uri::from_static("https://contoso.blob.core.windows.net/photos/1");
}

/// A request as a storage client sends it: 8 headers and a small body.
pub(crate) fn with_headers() -> impl FnMut() -> Sent + Send {
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

/// A call of a service that is to succeed.
pub(crate) fn calls<S, R>(service: S, request: impl FnMut() -> R + Send + 'static) -> Call
where
    S: Service<R> + Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
{
    calls_with(service, request, Result::is_ok)
}

/// A call of a service that is to end as `is_right` says.
pub(crate) fn calls_with<S, R>(
    mut service: S,
    mut request: impl FnMut() -> R + Send + 'static,
    is_right: fn(&Result<S::Response, S::Error>) -> bool,
) -> Call
where
    S: Service<R> + Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
{
    Box::new(move || {
        let mut context = Context::from_waker(Waker::noop());
        // Nothing is ever in the way of these services; where a lock of theirs is taken by the
        // other thread, it is asked for again.
        while service.poll_ready(&mut context).is_pending() {}
        let result = block(service.call(request()));
        assert!(is_right(&result));
        black_box(&result);
    })
}

/// Polls until there is a result, as a runtime without anything else to do would.
pub(crate) fn block<F: Future>(future: F) -> F::Output {
    let mut context = Context::from_waker(Waker::noop());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
    }
}

/// Answers at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client;

impl<B> Service<Request<B>> for Client {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        black_box(&request);
        ready(Ok(Response::new(Body::default())))
    }
}

/// The least service there is: for breakers that do not look at what passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number;

impl Service<u64> for Number {
    type Response = u64;
    type Error = Infallible;
    type Future = Ready<Result<u64, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u64) -> Self::Future {
        ready(Ok(black_box(request)))
    }
}

/// Clones the request once, and keeps the copy until the answer is there: the floor of whatever
/// may send it again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cloning<S>(pub(crate) S);

impl<S: Service<Sent>> Service<Sent> for Cloning<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Sent) -> Self::Future {
        black_box(request.clone());
        self.0.call(request)
    }
}

/// Answers at the second poll.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingOnce;

#[derive(Debug)]
pub(crate) struct AnswersLater(bool);

impl Future for AnswersLater {
    type Output = Result<Answer, Infallible>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if std::mem::replace(&mut self.0, true) {
            Poll::Ready(Ok(Response::new(Body::default())))
        } else {
            Poll::Pending
        }
    }
}

impl<B> Service<Request<B>> for PendingOnce {
    type Response = Answer;
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
