use std::task::{Context, Poll};

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Request, Response};
use http_body::Body;
use tower_service::Service;

use super::ResponseFuture;
use super::future::Begun;
use crate::body::BodyPolicy;
use crate::error::{BoxError, Error};
use crate::runtime::{State, service_id};
use crate::scope::{self, Rank};

/// Resumes downloads that break off. See the [module](super).
#[derive(Clone, Debug)]
pub struct Resume<S, P> {
    inner: S,
    state: State,
    policy: P,
    /// The layer above that belongs below, or is this one again, as `poll_ready` has found (E4).
    misplaced: Option<Rank>,
}

impl<S, P> Resume<S, P> {
    pub(super) const fn new(inner: S, state: State, policy: P) -> Self {
        Self {
            inner,
            state,
            policy,
            misplaced: None,
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

impl<S, P, B, RB> Service<Request<B>> for Resume<S, P>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    P: BodyPolicy<B, Body = B>,
    RB: Body,
    RB::Error: Into<BoxError>,
{
    type Response = Response<super::ResumeBody<S, P, B, RB>>;
    type Error = Error;
    type Future = ResponseFuture<S, P, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.misplaced = scope::misplaced_above(service_id(&self.state), Rank::Resume);
        self.inner
            .poll_ready(cx)
            .map_err(|error| Error::from_inner(error.into()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let above = || scope::misplaced_above(service_id(&self.state), Rank::Resume);
        if let Some(above) = self.misplaced.or_else(above) {
            // A call uses readiness up, and a clone is not ready: a service that is kept must not
            // keep a permit from others.
            self.inner = self.inner.clone();
            return ResponseFuture::refused(scope::misplaced(&self.state, Rank::Resume, above));
        }
        let begun = self.begin(&request);
        let _scope = scope::enter(service_id(&self.state), Rank::Resume);
        ResponseFuture::sending(self.inner.call(request), begun)
    }
}

impl<S: Clone, P> Resume<S, P> {
    /// What is kept of a request whose answer can be resumed.
    fn begin<B>(&self, request: &Request<B>) -> Option<Box<Begun<S, P, B>>>
    where
        P: BodyPolicy<B, Body = B>,
    {
        if request.method() != Method::GET
            || is_signed(request.headers())
            || self.state.extra().retry.get_max_retries() == 0
            // An account gives no part of a document.
            || self.state.extra().has_account()
        {
            return None;
        }
        // Foreign hosts pass (I8), and there are GETs that take a message off a queue (I2).
        let home = self.state.regions().region_of(request.uri())?;
        let provider = self.state.provider();
        let intent = provider
            .intent(request.method(), request.uri(), request.headers())
            .intent;
        if !intent.is_read() {
            return None;
        }
        Some(Box::new(Begun {
            request: self.policy.keep_request(request)?,
            // It has no permit of the service below.
            service: self.inner.clone(),
            policy: self.policy.clone(),
            state: self.state.clone(),
            home,
        }))
    }
}

/// Whether headers cannot be changed without a new signature. What is signed in the URL, as a shared
/// access signature is, covers no header that is changed here.
fn is_signed(headers: &HeaderMap) -> bool {
    headers.get_all(AUTHORIZATION).iter().any(|value| {
        let scheme = value.as_bytes().split(|&byte| byte == b' ').next();
        !scheme.is_some_and(|scheme| {
            scheme.eq_ignore_ascii_case(b"bearer") || scheme.eq_ignore_ascii_case(b"basic")
        })
    })
}
