use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::background::BackgroundSend;
use crate::error::{BoxError, Error};
use crate::handoff::Handoff;
use crate::known::Known;
use crate::redirect::redirect;
use crate::runtime::{State, service_id};
use crate::scope::{self, Rank};
use crate::service_handle::GeoService;

/// Applies [`FollowRedirect`] to a client: see
/// [`GeoRedirectLayer::below_retry`](super::GeoRedirectLayer::below_retry).
#[derive(Clone, Debug)]
pub struct FollowRedirectLayer {
    service: GeoService,
}

impl FollowRedirectLayer {
    pub(super) const fn new(service: GeoService) -> Self {
        Self { service }
    }
}

impl<S> Layer<S> for FollowRedirectLayer {
    type Service = FollowRedirect<S>;

    #[inline]
    fn layer(&self, inner: S) -> Self::Service {
        FollowRedirect {
            inner,
            state: self.service.state(),
        }
    }
}

/// Carries out where a [`Retry`](crate::retry::Retry) above directs each send, and decides nothing.
///
/// It works for any type of body, and costs a look at the request's extensions.
///
/// Without a retry of the same [`GeoService`] the first call ends with
/// [`ErrorKind::Config`](crate::ErrorKind::Config). Whether one that was made is really above is
/// not told: a foreign layer in between may run this one on another task, where nothing shows.
#[derive(Clone, Debug)]
pub struct FollowRedirect<S> {
    inner: S,
    state: State,
}

impl<S> FollowRedirect<S> {
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

    #[inline]
    fn follow<B>(&self, request: &mut Request<B>) -> Result<(), Error> {
        if let Some(mistake) = scope::mistake(&self.state, Rank::Redirect, request.uri()) {
            return Err(mistake);
        }
        if !self.state.extra().has_retry() {
            self.is_left_alone(request)?;
        }
        if request.extensions().is_empty() {
            return Ok(());
        }
        carry_out(&self.state, request)
    }

    /// Nobody can ever direct a send here: there is no retry of this service.
    #[cold]
    fn is_left_alone<B>(&self, request: &Request<B>) -> Result<(), Error> {
        let state = &self.state;
        let known = Known::now(state);
        let is_ours = known.regions(state).region_of(request.uri()).is_some();
        let intent = state
            .provider()
            .intent(request.method(), request.uri(), request.headers())
            .intent;
        if !is_ours || intent.is_neutral() || BackgroundSend::is_of(request.extensions(), state) {
            return Ok(());
        }
        Err(Error::config(state, LEFT_ALONE))
    }
}

const LEFT_ALONE: &str = "GeoRedirectLayer::below_retry only carries out what a RetryLayer above \
    decides, and none was made from this GeoService; add one from the same GeoService, or leave \
    out below_retry";

/// Directs a request to where the driver above wants it, if that is elsewhere.
pub(super) fn carry_out<B>(state: &State, request: &mut Request<B>) -> Result<(), Error> {
    let Some(handoff) = Handoff::of(request.extensions(), state) else {
        return Ok(());
    };
    let Some(destination) = handoff.destination() else {
        return Ok(());
    };
    handoff.set_carried_out();
    redirect(state, &handoff.known(), destination, request)
}

impl<S, B, RB> Service<Request<B>> for FollowRedirect<S>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<RB>;
    type Error = Error;
    type Future = FollowFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(cx)
            .map_err(|error| Error::from_inner(error.into()))
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !request.extensions().is_empty() {
            return self.call_unusual(request);
        }
        let Some(above) = scope::step_in(service_id(&self.state), Rank::Redirect) else {
            return self.call_unusual(request);
        };
        let future = self.inner.call(request);
        scope::step_out(above);
        FollowFuture {
            kind: Kind::Sent { future },
        }
    }
}

impl<S> FollowRedirect<S> {
    /// The send may be directed elsewhere, or there is no retry right here.
    #[inline(never)]
    fn call_unusual<B>(&mut self, mut request: Request<B>) -> FollowFuture<S::Future>
    where
        S: Service<Request<B>>,
    {
        let kind = match self.follow(&mut request) {
            Ok(()) => {
                let _scope = scope::enter(service_id(&self.state), Rank::Redirect);
                let future = self.inner.call(request);
                Kind::Sent { future }
            }
            Err(error) => Kind::Refused { error: Some(error) },
        };
        FollowFuture { kind }
    }
}

pin_project! {
    /// Response future of [`FollowRedirect`].
    pub struct FollowFuture<F> {
        #[pin]
        kind: Kind<F>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<F> {
        Sent { #[pin] future: F },
        // Nothing was sent: the error is handed over at the first poll.
        Refused { error: Option<Error> },
    }
}

impl<F> fmt::Debug for FollowFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Sent { .. } => "FollowFuture(sent)",
            Kind::Refused { .. } => "FollowFuture(refused)",
        })
    }
}

impl<F, R, E> Future for FollowFuture<F>
where
    F: Future<Output = Result<R, E>>,
    E: Into<BoxError>,
{
    type Output = Result<R, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            // As it is: an answer is too large to be taken apart and put together in every layer.
            KindProj::Sent { future } => match future.poll(cx) {
                Poll::Ready(Ok(response)) => Poll::Ready(Ok(response)),
                Poll::Ready(Err(error)) => Poll::Ready(Err(Error::from_inner(error.into()))),
                Poll::Pending => Poll::Pending,
            },
            KindProj::Refused { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
        }
    }
}
