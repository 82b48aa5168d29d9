use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_geo_policy::region::RegionId;
use tower_service::Service;

use super::ResumeBody;
use super::rest::Rest;
use crate::body::BodyPolicy;
use crate::error::{BoxError, Error};
use crate::runtime::State;

pin_project! {
    /// Response future of [`Resume`](super::Resume).
    ///
    /// Dropped, it drops the call below; nothing runs on.
    pub struct ResponseFuture<S, P, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        kind: Kind<S::Future>,
        begun: Option<Box<Begun<S, P, B>>>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<F> {
        Sending { #[pin] future: F },
        // Nothing was sent: the error is handed over at the first poll.
        Refused { error: Option<Error> },
    }
}

/// What is kept of a request until the head of its answer is there.
pub(super) struct Begun<S, P, B> {
    pub(super) request: Request<B>,
    pub(super) service: S,
    pub(super) policy: P,
    pub(super) state: State,
    /// The region that the request names.
    pub(super) home: RegionId,
}

impl<S, P, B> ResponseFuture<S, P, B>
where
    S: Service<Request<B>>,
{
    pub(super) const fn sending(future: S::Future, begun: Option<Box<Begun<S, P, B>>>) -> Self {
        Self {
            kind: Kind::Sending { future },
            begun,
        }
    }

    pub(super) const fn refused(error: Error) -> Self {
        Self {
            kind: Kind::Refused { error: Some(error) },
            begun: None,
        }
    }
}

impl<S, P, B> fmt::Debug for ResponseFuture<S, P, B>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (&self.kind, &self.begun) {
            (Kind::Sending { .. }, None) => "ResponseFuture(passing)",
            (Kind::Sending { .. }, Some(_)) => "ResponseFuture(sending)",
            (Kind::Refused { .. }, _) => "ResponseFuture(refused)",
        })
    }
}

impl<S, P, B, RB> Future for ResponseFuture<S, P, B>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    P: BodyPolicy<B, Body = B>,
    RB: Body,
    RB::Error: Into<BoxError>,
{
    type Output = Result<Response<ResumeBody<S, P, B, RB>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = match this.kind.project() {
            KindProj::Sending { future } => match ready!(future.poll(cx)) {
                Ok(response) => response,
                Err(error) => return Poll::Ready(Err(Error::from_inner(error.into()))),
            },
            KindProj::Refused { error } => {
                return match error.take() {
                    Some(error) => Poll::Ready(Err(error)),
                    None => Poll::Pending,
                };
            }
        };
        let begun = this.begun.take();
        let rest = begun.and_then(|begun| Rest::of(*begun, &response));
        Poll::Ready(Ok(response.map(|body| ResumeBody::new(body, rest))))
    }
}
