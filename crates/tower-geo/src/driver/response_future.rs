use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_geo_policy::operation::Reach;
use tower_service::Service;

use super::{Drive, Setting, Start};
use crate::body::BodyPolicy;
use crate::error::{BoxError, Error};
use crate::runtime::{State, service_id};
use crate::scope::{self, Rank};

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
    /// Begins what was decided at the start of a call of a service over `inner`, which is ready.
    #[inline]
    pub(crate) fn begin(
        inner: &mut S,
        policy: &P,
        state: &State,
        driver: (Rank, Reach),
        started: Start,
        request: Request<B>,
    ) -> Self
    where
        S: Clone,
    {
        let (rank, reach) = driver;
        let request = policy.prepare_request(request);
        let (operation, home) = match started {
            Start::Pass => {
                let _scope = scope::enter(service_id(state), rank);
                return Self::passing(inner.call(request));
            }
            Start::Refuse(error) => {
                // A call uses readiness up, and a clone is not ready: a service that is kept must
                // not keep a permit from others.
                *inner = inner.clone();
                return Self::refused(error);
            }
            Start::Drive { operation, home } => (operation, home),
        };
        // The readied service is moved into the call and a clone is left, which is not ready.
        let clone = inner.clone();
        let setting = Setting {
            service: std::mem::replace(inner, clone),
            policy: policy.clone(),
            state: state.clone(),
            rank,
            reach,
        };
        Self::driving(if home {
            Drive::home(setting, operation, request)
        } else {
            Drive::decide(setting, operation, request)
        })
    }

    #[inline]
    const fn passing(future: S::Future) -> Self {
        Self {
            kind: Kind::Passing { future },
        }
    }

    #[inline]
    const fn driving(drive: Drive<S, P, B>) -> Self {
        Self {
            kind: Kind::Driving { drive },
        }
    }

    #[inline]
    const fn refused(error: Error) -> Self {
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
