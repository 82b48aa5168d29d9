use std::task::{Context, Poll};
use tower_service::Service;

/// Panics when it is called without having been ready, and when a clone relies on the readiness of
/// its original.
///
/// A clone starts unready, as `tower_service::Service` allows it to; a call uses readiness up.
#[derive(Debug)]
pub struct PanicsUnready<S> {
    inner: S,
    ready: bool,
}

impl<S> PanicsUnready<S> {
    /// Watches over `inner`.
    #[must_use]
    pub const fn new(inner: S) -> Self {
        Self {
            inner,
            ready: false,
        }
    }
}

impl<S: Clone> Clone for PanicsUnready<S> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone())
    }
}

impl<S, R> Service<R> for PanicsUnready<S>
where
    S: Service<R>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let readiness = self.inner.poll_ready(cx);
        self.ready = matches!(readiness, Poll::Ready(Ok(())));
        readiness
    }

    #[expect(clippy::panic, reason = "a broken contract must fail the test")]
    fn call(&mut self, request: R) -> S::Future {
        if !std::mem::take(&mut self.ready) {
            panic!("called without having been ready");
        }
        self.inner.call(request)
    }
}

/// Is pending some times before each readiness, and wakes its caller each time.
///
/// Once ready it stays ready until it is called. A clone starts anew.
#[derive(Debug)]
pub struct PendingTimes<S> {
    inner: S,
    times: usize,
    left: usize,
}

impl<S> PendingTimes<S> {
    /// Delays the readiness of `inner` by `times` polls.
    #[must_use]
    pub const fn new(inner: S, times: usize) -> Self {
        Self {
            inner,
            times,
            left: times,
        }
    }
}

impl<S: Clone> Clone for PendingTimes<S> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.times)
    }
}

impl<S, R> Service<R> for PendingTimes<S>
where
    S: Service<R>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if self.left > 0 {
            self.left -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.left = self.times;
        self.inner.call(request)
    }
}
