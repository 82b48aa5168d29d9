use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::answer::What;
use super::{FaultBody, FaultSwitch, ResponseFuture};
use crate::error::BoxError;

/// Makes faults. See the [module](super).
#[derive(Clone, Debug)]
pub struct FaultService<S> {
    inner: S,
    switch: FaultSwitch,
}

impl<S> FaultService<S> {
    pub(super) const fn new(inner: S, switch: FaultSwitch) -> Self {
        Self { inner, switch }
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

impl<S, B, RB> Service<Request<B>> for FaultService<S>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    B: Body,
    B::Error: Into<BoxError>,
    RB: Body,
    RB::Data: From<Bytes>,
    RB::Error: Into<BoxError>,
{
    type Response = Response<FaultBody<RB>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, B, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(answer) = self.switch.meet(&request) else {
            return ResponseFuture::passing(self.inner.call(request));
        };
        if matches!(answer.what, What::Real(_) | What::Lost) {
            return ResponseFuture::sending(self.inner.call(request), answer);
        }
        // Nothing is sent, so the readiness of the service below is not used up; a clone has none,
        // and keeps no permit from others.
        self.inner = self.inner.clone();
        ResponseFuture::met(request.into_body(), answer)
    }
}
