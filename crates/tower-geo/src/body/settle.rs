//! A response body whose end is the outcome of its send (V4, R9).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_geo_policy::fault::Fault;
use tower_geo_policy::verdict::Verdict;

use crate::circuit_breaker::Pending;
use crate::error::{BoxError, Error};

pin_project! {
    /// A response body, watched until it ends.
    ///
    /// The send that it belongs to succeeds when it ends or is dropped, and fails when it breaks
    /// off or gives nothing for `body_idle`. Size hints and trailers pass unchanged.
    ///
    /// # Cancellation
    ///
    /// Dropped half way, the verdict of the head counts: the region has answered (V4).
    pub struct SettleBody<B> {
        #[pin]
        inner: B,
        settling: Option<Settling>,
        #[pin]
        idle: Option<Sleep>,
    }
}

/// The outcome of a send that waits for the end of its body.
pub(crate) struct Settling(pub(crate) Pending);

impl<B: Body> SettleBody<B> {
    /// The body of a good answer, and the send whose outcome is that of the body: none where that
    /// is settled, or nobody's.
    #[inline]
    pub(crate) const fn new(inner: B, settling: Option<Settling>) -> Self {
        Self {
            inner,
            settling,
            idle: None,
        }
    }

    /// The body that is watched.
    pub const fn get_ref(&self) -> &B {
        &self.inner
    }
}

impl<B: Default> Default for SettleBody<B> {
    fn default() -> Self {
        Self {
            inner: B::default(),
            settling: None,
            idle: None,
        }
    }
}

impl<B: fmt::Debug> fmt::Debug for SettleBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettleBody")
            .field("inner", &self.inner)
            .field("settled", &self.settling.is_none())
            .finish_non_exhaustive()
    }
}

impl<B> Body for SettleBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        match this.inner.as_mut().poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                this.idle.set(None);
                if this.settling.is_some() && this.inner.is_end_stream() {
                    if let Some(mut settling) = this.settling.take() {
                        settling.settle();
                    }
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                if let Some(mut settling) = this.settling.take() {
                    settling.settle();
                }
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                let Some(mut settling) = this.settling.take() else {
                    return Poll::Ready(Some(Err(Error::body_cut(None, error.into()))));
                };
                settling.0.settle(Fault::BodyCut.verdict());
                let state = settling.0.state();
                Poll::Ready(Some(Err(Error::body_cut(Some(state), error.into()))))
            }
            Poll::Pending => {
                let Some(idle_for) = this.settling.as_ref().and_then(Settling::body_idle) else {
                    return Poll::Pending;
                };
                if this.idle.is_none() {
                    // Which knows what to do with a limit that no clock reaches.
                    this.idle.set(Some(tokio::time::sleep(idle_for)));
                }
                if let Some(idle) = this.idle.as_mut().as_pin_mut() {
                    ready!(idle.poll_sleep(cx));
                }
                let Some(mut settling) = this.settling.take() else {
                    return Poll::Pending;
                };
                let error = Error::body_stalled(settling.0.state());
                settling.0.settle(Fault::BodyStalled.verdict());
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// `Future::poll` under a name that cannot be mistaken for that of a body.
trait PollSleep {
    fn poll_sleep(self, cx: &mut Context<'_>) -> Poll<()>;
}

impl PollSleep for Pin<&mut Sleep> {
    fn poll_sleep(self, cx: &mut Context<'_>) -> Poll<()> {
        Future::poll(self, cx)
    }
}

impl Settling {
    /// The head was good; if nothing else is known of the body, so is all of it.
    fn settle(&mut self) {
        self.0.settle(Verdict::Answered);
    }

    fn body_idle(&self) -> Option<Duration> {
        self.0.state().extra().retry.get_body_idle()
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        // Dropped after the head: the head's verdict counts (V4). A settled one ignores this.
        self.settle();
    }
}
