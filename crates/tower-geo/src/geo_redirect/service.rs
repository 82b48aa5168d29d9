use std::task::{Context, Poll};

use http::{Request, Response};
use tower_geo_policy::operation::Reach;
use tower_service::Service;

use super::ResponseFuture;
use super::follow::carry_out;
use crate::body::BodyPolicy;
use crate::driver::{Start, start};
use crate::error::{BoxError, Error};
use crate::handoff::Handoff;
use crate::runtime::{State, service_id};
use crate::scope::{self, Rank};

/// Directs sends to regions. See the [module](super).
#[derive(Clone, Debug)]
pub struct GeoRedirect<S, P> {
    inner: S,
    state: State,
    policy: P,
}

impl<S, P> GeoRedirect<S, P> {
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

    /// Whether a layer above drives this operation, and what it wants of this send.
    fn follow<B>(&self, request: &mut Request<B>) -> Option<Result<(), Error>> {
        let handoff = if request.extensions().is_empty() {
            None
        } else {
            Handoff::of(request.extensions(), &self.state)
        };
        let Some(handoff) = handoff else {
            return scope::is_driven(service_id(&self.state)).then_some(Ok(()));
        };
        if !handoff.is_from_driver() {
            return None;
        }
        Some(carry_out(&self.state, request))
    }
}

impl<S, P, B, RB> Service<Request<B>> for GeoRedirect<S, P>
where
    S: Service<Request<P::Body>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    P: BodyPolicy<B>,
{
    type Response = Response<RB>;
    type Error = Error;
    type Future = ResponseFuture<S, P, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(cx)
            .map_err(|error| Error::from_inner(error.into()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let started = match scope::mistake(&self.state, Rank::Redirect, request.uri()) {
            Some(mistake) => Start::Refuse(mistake),
            None => match self.follow(&mut request) {
                Some(Ok(())) => Start::Pass,
                Some(Err(error)) => Start::Refuse(error),
                None => start(&self.state, Rank::Redirect, Reach::OnceEach, &mut request),
            },
        };
        let (inner, driver) = (&mut self.inner, (Rank::Redirect, Reach::OnceEach));
        ResponseFuture::begin(inner, &self.policy, &self.state, driver, started, request)
    }
}
