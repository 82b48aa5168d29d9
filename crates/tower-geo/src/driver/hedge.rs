use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Request;
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use crate::error::BoxError;
use crate::runtime::{State, service_id};
use crate::scope::{self, Rank};

pin_project! {
    /// The second send of a hedged read (H1). It exists only once the first was found pending for
    /// long, so it may be a box.
    pub(super) struct Hedge<S, PB>
    where
        S: Service<Request<PB>>,
    {
        #[pin]
        phase: Phase<S::Future>,
        // Ends the send when its time is over.
        #[pin]
        limit: Option<Sleep>,
        service: S,
        request: Option<Request<PB>>,
        state: State,
    }
}

pin_project! {
    #[project = PhaseProj]
    enum Phase<F> {
        // The service has to be ready for it.
        Readying,
        Sending { #[pin] future: F },
        // Its time was over; what was sent is dropped.
        Over,
    }
}

/// How a hedge ended.
pub(super) enum Ended<R> {
    Answered(R),
    Failed(BoxError),
    TimedOut,
    /// The service was not ready for it: nothing has left.
    NotSent,
}

impl<S, PB> Hedge<S, PB>
where
    S: Service<Request<PB>>,
    S::Error: Into<BoxError>,
{
    pub(super) fn new(
        service: S,
        request: Request<PB>,
        limit: Option<tokio::time::Instant>,
        state: State,
    ) -> Self {
        Self {
            phase: Phase::Readying,
            limit: limit.map(tokio::time::sleep_until),
            service,
            request: Some(request),
            state,
        }
    }

    pub(super) fn poll_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended<S::Response>> {
        let mut this = self.project();
        loop {
            match this.phase.as_mut().project() {
                PhaseProj::Readying => match this.service.poll_ready(cx) {
                    Poll::Ready(Ok(())) => {
                        let Some(request) = this.request.take() else {
                            return Poll::Ready(Ended::NotSent);
                        };
                        let _scope = scope::enter(service_id(this.state), Rank::Retry);
                        let future = this.service.call(request);
                        this.phase.set(Phase::Sending { future });
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(Ended::NotSent),
                    Poll::Pending => {
                        if let Some(limit) = this.limit.as_pin_mut() {
                            ready!(limit.poll(cx));
                            return Poll::Ready(Ended::NotSent);
                        }
                        return Poll::Pending;
                    }
                },
                PhaseProj::Sending { future } => {
                    let polled = {
                        let _scope = scope::enter(service_id(this.state), Rank::Retry);
                        future.poll(cx)
                    };
                    return match polled {
                        Poll::Ready(Ok(response)) => Poll::Ready(Ended::Answered(response)),
                        Poll::Ready(Err(error)) => Poll::Ready(Ended::Failed(error.into())),
                        Poll::Pending => {
                            if let Some(limit) = this.limit.as_pin_mut() {
                                ready!(limit.poll(cx));
                                let _scope = scope::enter_time_out(service_id(this.state));
                                this.phase.set(Phase::Over);
                                return Poll::Ready(Ended::TimedOut);
                            }
                            Poll::Pending
                        }
                    };
                }
                PhaseProj::Over => return Poll::Pending,
            }
        }
    }
}
