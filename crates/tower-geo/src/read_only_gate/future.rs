use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::body::GateBody;
use super::refusal;
use super::service::ask;
use crate::error::{BoxError, Error};
use crate::runtime::{self, State, service_id};
use crate::scope::{self, Rank};

pin_project! {
    /// Response future of a [`ReadOnlyGate`](super::ReadOnlyGate) on a client.
    pub struct ResponseFuture<S, R>
    where
        S: Service<R>,
    {
        #[pin]
        kind: Kind<S, R>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<S, R>
    where
        S: Service<R>,
    {
        Passing { #[pin] future: S::Future },
        // Waits for the service below, which was not asked in `poll_ready`.
        Readying { inner: S, request: Option<R>, service: usize },
        // Lets other writes go first, once (B4).
        Aside { aside: Option<Box<Aside<S, R>>> },
        Refused { error: Option<Error> },
    }
}

/// A write that stepped aside. Seldom, so what it needs must not make the others larger.
struct Aside<S, R> {
    inner: S,
    request: R,
    state: State,
    others_went: bool,
}

impl<S, R> ResponseFuture<S, R>
where
    S: Service<R>,
{
    #[inline]
    pub(super) const fn passing(future: S::Future) -> Self {
        Self {
            kind: Kind::Passing { future },
        }
    }

    pub(super) const fn readying(inner: S, request: R, service: usize) -> Self {
        Self {
            kind: Kind::Readying {
                inner,
                request: Some(request),
                service,
            },
        }
    }

    pub(super) fn aside(inner: S, request: R, state: State) -> Self {
        let aside = Aside {
            inner,
            request,
            state,
            others_went: false,
        };
        Self {
            kind: Kind::Aside {
                aside: Some(Box::new(aside)),
            },
        }
    }

    pub(super) const fn refused(error: Error) -> Self {
        Self {
            kind: Kind::Refused { error: Some(error) },
        }
    }
}

impl<S, R> fmt::Debug for ResponseFuture<S, R>
where
    S: Service<R>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Passing { .. } => "ResponseFuture(passing)",
            Kind::Readying { .. } => "ResponseFuture(waiting for the service to be ready)",
            Kind::Aside { .. } => "ResponseFuture(letting others go first)",
            Kind::Refused { .. } => "ResponseFuture(refused)",
        })
    }
}

impl<S, B, RB> Future for ResponseFuture<S, Request<B>>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
{
    type Output = Result<Response<RB>, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let KindProj::Passing { future } = self.as_mut().project().kind.project() {
            return match future.poll(cx) {
                Poll::Ready(Ok(response)) => Poll::Ready(Ok(response)),
                Poll::Ready(Err(error)) => Poll::Ready(Err(Error::from_inner(error.into()))),
                Poll::Pending => Poll::Pending,
            };
        }
        self.poll_unusual(cx)
    }
}

impl<S, B, RB> ResponseFuture<S, Request<B>>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
{
    #[inline(never)]
    fn poll_unusual(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<RB>, Error>> {
        let mut kind = self.project().kind;
        loop {
            match kind.as_mut().project() {
                KindProj::Passing { future } => {
                    return future
                        .poll(cx)
                        .map_err(|error| Error::from_inner(error.into()));
                }
                KindProj::Readying {
                    inner,
                    request,
                    service,
                } => {
                    let _scope = scope::enter(*service, Rank::Gate);
                    let is_ready = ready!(inner.poll_ready(cx));
                    is_ready.map_err(|error| Error::from_inner(error.into()))?;
                    let Some(request) = request.take() else {
                        return Poll::Pending;
                    };
                    let future = inner.call(request);
                    kind.set(Kind::Passing { future });
                }
                KindProj::Aside { aside } => {
                    if let Some(aside) = aside.as_mut().filter(|aside| !aside.others_went) {
                        aside.others_went = true;
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    let Some(aside) = aside.take() else {
                        return Poll::Pending;
                    };
                    let Aside {
                        inner,
                        mut request,
                        state,
                        ..
                    } = *aside;
                    let now = state.tick(runtime::now());
                    kind.set(match ask(&state, &mut request, now) {
                        Ok(()) => Kind::Readying {
                            inner,
                            request: Some(request),
                            service: service_id(&state),
                        },
                        Err(refused) => Kind::Refused {
                            error: Some(refusal::error(&state, &refused, now)),
                        },
                    });
                }
                KindProj::Refused { error } => {
                    return match error.take() {
                        Some(error) => Poll::Ready(Err(error)),
                        None => Poll::Pending,
                    };
                }
            }
        }
    }
}

pin_project! {
    /// Response future of a [`ReadOnlyGate`](super::ReadOnlyGate) on a server.
    pub struct ServerFuture<S, R>
    where
        S: Service<R>,
    {
        #[pin]
        kind: ServerKind<S, R>,
    }
}

pin_project! {
    #[project = ServerKindProj]
    enum ServerKind<S, R>
    where
        S: Service<R>,
    {
        Passing { #[pin] future: S::Future },
        Readying { inner: S, request: Option<R> },
        Refused { answer: Option<Response<String>> },
    }
}

impl<S, R> ServerFuture<S, R>
where
    S: Service<R>,
{
    pub(super) const fn passing(future: S::Future) -> Self {
        Self {
            kind: ServerKind::Passing { future },
        }
    }

    pub(super) const fn readying(inner: S, request: R) -> Self {
        Self {
            kind: ServerKind::Readying {
                inner,
                request: Some(request),
            },
        }
    }

    pub(super) const fn refused(answer: Response<String>) -> Self {
        Self {
            kind: ServerKind::Refused {
                answer: Some(answer),
            },
        }
    }
}

impl<S, R> fmt::Debug for ServerFuture<S, R>
where
    S: Service<R>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ServerKind::Passing { .. } => "ServerFuture(passing)",
            ServerKind::Readying { .. } => "ServerFuture(waiting for the service to be ready)",
            ServerKind::Refused { .. } => "ServerFuture(refused)",
        })
    }
}

impl<S, R, RB> Future for ServerFuture<S, R>
where
    S: Service<R, Response = Response<RB>, Error = Infallible>,
{
    type Output = Result<Response<GateBody<RB>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.kind.as_mut().project() {
                ServerKindProj::Passing { future } => {
                    let response = ready!(future.poll(cx))?;
                    return Poll::Ready(Ok(response.map(GateBody::passed)));
                }
                ServerKindProj::Readying { inner, request } => {
                    ready!(inner.poll_ready(cx))?;
                    let Some(request) = request.take() else {
                        return Poll::Pending;
                    };
                    let future = inner.call(request);
                    this.kind.set(ServerKind::Passing { future });
                }
                ServerKindProj::Refused { answer } => {
                    return match answer.take() {
                        Some(answer) => Poll::Ready(Ok(answer.map(GateBody::problem))),
                        None => Poll::Pending,
                    };
                }
            }
        }
    }
}
