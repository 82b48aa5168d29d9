use std::task::{Context, Poll};

use http::{Request, Response};
use tower_geo_policy::operation::Reach;
use tower_service::Service;

use super::ResponseFuture;
use crate::body::BodyPolicy;
use crate::driver::{Opening, start};
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
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let driver = (Rank::Retry, self.reach());
        let Some(opening) = Opening::of(&self.state, Rank::Retry, &request) else {
            return self.call_unusual(driver, request);
        };
        let (inner, policy, state) = (&mut self.inner, &self.policy, &self.state);
        ResponseFuture::begin_at_home(inner, policy, state, driver, opening, request)
    }
}

impl<S, P> Retry<S, P> {
    #[inline]
    fn reach(&self) -> Reach {
        if self.state.extra().has_redirect() {
            Reach::Everywhere
        } else {
            Reach::Home
        }
    }

    #[inline(never)]
    fn call_unusual<B>(
        &mut self,
        driver: (Rank, Reach),
        mut request: Request<B>,
    ) -> ResponseFuture<S, P, B>
    where
        S: Service<Request<P::Body>> + Clone,
        P: BodyPolicy<B>,
    {
        let (rank, reach) = driver;
        let started = start(&self.state, rank, reach, &mut request);
        let (inner, policy, state) = (&mut self.inner, &self.policy, &self.state);
        ResponseFuture::begin(inner, policy, state, driver, started, request)
    }
}
