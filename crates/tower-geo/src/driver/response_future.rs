use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::Drive;
use crate::body::BodyPolicy;
use crate::error::{BoxError, Error};

pin_project! {
    /// Response future of [`Retry`](crate::retry::Retry) and
    /// [`GeoRedirect`](crate::geo_redirect::GeoRedirect).
    ///
    /// Dropped, it gives back all that it holds; nothing runs on.
    pub struct ResponseFuture<S, P, B>
    where
        S: Service<Request<P::Body>>,
        P: BodyPolicy<B>,
    {
        #[pin]
        kind: Kind<S, P, B>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<S, P, B>
    where
        S: Service<Request<P::Body>>,
        P: BodyPolicy<B>,
    {
        // Another layer decides, or nobody does: the inner future as it is.
        Passing { #[pin] future: S::Future },
        Driving { #[pin] drive: Drive<S, P, B> },
        // Nothing was sent: the error is handed over at the first poll.
        Refused { error: Option<Error> },
    }
}

impl<S, P, B> ResponseFuture<S, P, B>
where
    S: Service<Request<P::Body>>,
    P: BodyPolicy<B>,
{
    #[inline]
    pub(crate) const fn passing(future: S::Future) -> Self {
        Self {
            kind: Kind::Passing { future },
        }
    }

    #[inline]
    pub(crate) const fn driving(drive: Drive<S, P, B>) -> Self {
        Self {
            kind: Kind::Driving { drive },
        }
    }

    #[inline]
    pub(crate) const fn refused(error: Error) -> Self {
        Self {
            kind: Kind::Refused { error: Some(error) },
        }
    }
}

impl<S, P, B> fmt::Debug for ResponseFuture<S, P, B>
where
    S: Service<Request<P::Body>>,
    P: BodyPolicy<B>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Passing { .. } => f.write_str("ResponseFuture(passing)"),
            Kind::Driving { drive } => write!(f, "ResponseFuture({drive:?})"),
            Kind::Refused { .. } => f.write_str("ResponseFuture(refused)"),
        }
    }
}

impl<S, P, B, RB> Future for ResponseFuture<S, P, B>
where
    S: Service<Request<P::Body>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    P: BodyPolicy<B>,
{
    type Output = Result<Response<RB>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            KindProj::Driving { drive } => drive.poll(cx),
            KindProj::Passing { future } => Poll::Ready(
                ready!(future.poll(cx)).map_err(|error| Error::from_inner(error.into())),
            ),
            KindProj::Refused { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
        }
    }
}
