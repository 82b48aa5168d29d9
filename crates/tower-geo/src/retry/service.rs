use std::task::{Context, Poll};

use http::{Request, Response};
use tower_geo_policy::operation::Reach;
use tower_service::Service;

use super::ResponseFuture;
use crate::body::BodyPolicy;
use crate::driver::{Start, start};
use crate::error::{BoxError, Error};
use crate::runtime::State;
use crate::scope::Rank;

/// Repeats sends. See the [module](super).
#[derive(Clone, Debug)]
pub struct Retry<S, P> {
    inner: S,
    state: State,
    policy: P,
}

impl<S, P> Retry<S, P> {
    pub(crate) const fn new(inner: S, state: State, policy: P) -> Self {
        Self {
            inner,
            state,
            policy,
        }
    }

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

impl<S, P, B, RB> Service<Request<B>> for Retry<S, P>
where
    S: Service<Request<P::Body>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    P: BodyPolicy<B>,
{
    type Response = Response<RB>;
    type Error = Error;
    type Future = ResponseFuture<S, P, B>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(cx)
            .map_err(|error| Error::from_inner(error.into()))
    }

    #[inline]
    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let reach = if self.state.extra().has_redirect() {
            Reach::Everywhere
        } else {
            Reach::Home
        };
        let started = start(&self.state, Rank::Retry, reach, &mut request);
        let (inner, driver) = (&mut self.inner, (Rank::Retry, reach));
        let (policy, state) = (&self.policy, &self.state);
        match started {
            Start::Home { intent, home, mode } => {
                let opening = (intent, home, mode);
                ResponseFuture::begin_at_home(inner, policy, state, driver, opening, request)
            }
            other => ResponseFuture::begin(inner, policy, state, driver, other, request),
        }
    }
}
