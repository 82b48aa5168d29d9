use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Response;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::newest::Newest;
use super::probe::Probe;

pin_project! {
    /// Response future of [`FreshConnections`](super::FreshConnections).
    ///
    /// Dropped, it drops the call below; a probe's client and its connection go with it.
    pub struct ResponseFuture<S, F, R>
    where
        S: Service<R>,
    {
        #[pin]
        kind: Kind<S, F, R>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<S, F, R>
    where
        S: Service<R>,
    {
        // Through the client that everybody uses.
        Kept { #[pin] future: S::Future },
        // Through a client of its own. Seldom, so what it needs must not make the others larger.
        Fresh { asking: Pin<Box<Asking<S, F, R>>> },
    }
}

pin_project! {
    struct Asking<S, F, R>
    where
        S: Service<R>,
    {
        client: S,
        // `None` once it is sent.
        request: Option<R>,
        #[pin]
        future: Option<S::Future>,
        probe: Probe,
        newest: Arc<Newest<S, F>>,
    }
}

impl<S, F, R> ResponseFuture<S, F, R>
where
    S: Service<R>,
{
    #[inline]
    pub(super) const fn kept(future: S::Future) -> Self {
        Self {
            kind: Kind::Kept { future },
        }
    }

    #[cold]
    pub(super) fn fresh(client: S, request: R, probe: Probe, newest: Arc<Newest<S, F>>) -> Self {
        let asking = Box::pin(Asking {
            client,
            request: Some(request),
            future: None,
            probe,
            newest,
        });
        Self {
            kind: Kind::Fresh { asking },
        }
    }
}

impl<S, F, R> fmt::Debug for ResponseFuture<S, F, R>
where
    S: Service<R>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.kind {
            Kind::Kept { .. } => "ResponseFuture(kept client)",
            Kind::Fresh { asking } if asking.request.is_some() => {
                "ResponseFuture(waiting for a fresh client to be ready)"
            }
            Kind::Fresh { .. } => "ResponseFuture(fresh client)",
        })
    }
}

impl<S, F, R, RB> Future for ResponseFuture<S, F, R>
where
    S: Service<R, Response = Response<RB>> + Clone,
{
    type Output = Result<Response<RB>, S::Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            KindProj::Kept { future } => future.poll(cx),
            KindProj::Fresh { asking } => asking.as_mut().poll(cx),
        }
    }
}

impl<S, F, R, RB> Future for Asking<S, F, R>
where
    S: Service<R, Response = Response<RB>> + Clone,
{
    type Output = Result<Response<RB>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            if let Some(future) = this.future.as_mut().as_pin_mut() {
                let result = ready!(future.poll(cx));
                if let Ok(response) = &result {
                    if this.probe.renews(response.status()) {
                        // Before the circuit lets others in: it learns of this answer later.
                        this.newest.replace(this.client);
                    }
                }
                return Poll::Ready(result);
            }
            ready!(this.client.poll_ready(cx))?;
            let Some(request) = this.request.take() else {
                return Poll::Pending;
            };
            this.future.set(Some(this.client.call(request)));
        }
    }
}
