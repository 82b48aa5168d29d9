use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::{Request, Response};
use tower_service::Service;

use super::future::ResponseFuture;
use super::layer::MakeClient;
use super::newest::{Newest, Numbered};
use super::probe::Probe;
use crate::runtime;

/// Sends probes through a client of their own. See the [module](super).
pub struct FreshConnections<S, F> {
    inner: S,
    /// Which client `inner` is a clone of, and when that was made.
    number: u64,
    made: Instant,
    newest: Arc<Newest<S, F>>,
}

impl<S: Clone, F> Clone for FreshConnections<S, F> {
    /// A clone begins with the newest client. Its original may be one that is only ever cloned.
    #[inline]
    fn clone(&self) -> Self {
        let newest = Arc::clone(&self.newest);
        match newest.instead_of(self.number) {
            None => Self {
                inner: self.inner.clone(),
                number: self.number,
                made: self.made,
                newest,
            },
            Some(instead) => Self {
                inner: instead.client,
                number: instead.number,
                made: instead.made,
                newest,
            },
        }
    }
}

impl<S, F> fmt::Debug for FreshConnections<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreshConnections")
            .field("clients_before", &self.number)
            .finish_non_exhaustive()
    }
}

impl<S: Clone, F> FreshConnections<S, F> {
    pub(super) fn new(inner: S, make: F, max_age: Option<Duration>) -> Self {
        let newest = Newest::new(inner.clone(), make, max_age);
        let Numbered { number, made, .. } = newest.get();
        Self {
            inner,
            number,
            made,
            newest: Arc::new(newest),
        }
    }

    /// The client in use by this handle.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The client in use by this handle.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The client in use by this handle.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// Takes the newest client, and sees to it that it is not too old.
    #[inline]
    fn keep_up(&mut self)
    where
        F: MakeClient<S>,
    {
        if let Some(instead) = self.newest.instead_of(self.number) {
            self.take(instead);
        }
        let Some(max_age) = self.newest.max_age() else {
            return;
        };
        if runtime::now().saturating_duration_since(self.made) >= max_age {
            let make = self.newest.make();
            self.newest.replace_if(self.number, || make.make_client());
            self.take(self.newest.get());
        }
    }

    fn take(&mut self, newest: Numbered<S>) {
        self.inner = newest.client;
        self.number = newest.number;
        self.made = newest.made;
    }
}

impl<S, F, B, RB> Service<Request<B>> for FreshConnections<S, F>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    F: MakeClient<S>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S, F, Request<B>>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.keep_up();
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        if let Some(&probe) = Probe::of(request.extensions()) {
            // A call uses readiness up: a permit of the client that is not asked is given back.
            self.inner = self.inner.clone();
            let client = self.newest.make().make_client();
            return ResponseFuture::fresh(client, request, probe, Arc::clone(&self.newest));
        }
        ResponseFuture::kept(self.inner.call(request))
    }
}
