use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Request;
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use crate::error::BoxError;
use crate::handoff::Handoff;
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
        handoff: Option<Handoff>,
        state: State,
    }
}

pin_project! {
    #[project = PhaseProj]
    enum Phase<F> {
        // The service has to be ready for it. Until then the operation knows nothing of it, so
        // that a hedge which never leaves costs nothing and is not told.
        Readying,
        Sending { #[pin] future: F },
        // Its time was over; what was sent is dropped.
        Over,
    }
}

/// What a hedge has come to.
pub(super) enum Progress<R> {
    /// The service is ready: it is time to ask the operation for leave, and to
    /// [send](Hedge::send) it.
    IsReady,
    /// The service below will not be ready for it: nothing has left.
    NotSent,
    /// It was sent, and has ended.
    Ended(Ended<R>),
}

/// How a hedge ended.
pub(super) enum Ended<R> {
    Answered(R),
    Failed(BoxError),
    TimedOut,
}

impl<S, PB> Hedge<S, PB>
where
    S: Service<Request<PB>>,
    S::Error: Into<BoxError>,
{
    pub(super) const fn new(service: S, request: Request<PB>, state: State) -> Self {
        Self {
            phase: Phase::Readying,
            limit: None,
            service,
            request: Some(request),
            handoff: None,
            state,
        }
    }

    /// Whether it has left.
    pub(super) const fn is_sent(&self) -> bool {
        self.request.is_none()
    }

    /// What was handed on with it.
    pub(super) fn take_handoff(self: Pin<&mut Self>) -> Option<Handoff> {
        self.project().handoff.take()
    }

    /// Sends it, once the service is ready.
    pub(super) fn send(
        self: Pin<&mut Self>,
        handoff: Option<Handoff>,
        limit: Option<tokio::time::Instant>,
    ) {
        let mut this = self.project();
        let Some(mut request) = this.request.take() else {
            return;
        };
        if let Some(handoff) = &handoff {
            request.extensions_mut().insert(handoff.clone());
        }
        *this.handoff = handoff;
        this.limit.set(limit.map(tokio::time::sleep_until));
        let _scope = scope::enter_own(service_id(this.state), Rank::Retry);
        let future = this.service.call(request);
        this.phase.set(Phase::Sending { future });
    }

    pub(super) fn poll_progress(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Progress<S::Response>> {
        let mut this = self.project();
        match this.phase.as_mut().project() {
            PhaseProj::Readying => Poll::Ready(match ready!(this.service.poll_ready(cx)) {
                Ok(()) => Progress::IsReady,
                Err(_) => Progress::NotSent,
            }),
            PhaseProj::Sending { future } => {
                let polled = {
                    let _scope = scope::enter_own(service_id(this.state), Rank::Retry);
                    future.poll(cx)
                };
                Poll::Ready(Progress::Ended(match polled {
                    Poll::Ready(Ok(response)) => Ended::Answered(response),
                    Poll::Ready(Err(error)) => Ended::Failed(error.into()),
                    Poll::Pending => {
                        let Some(limit) = this.limit.as_pin_mut() else {
                            return Poll::Pending;
                        };
                        ready!(limit.poll(cx));
                        let _scope = scope::enter_time_out(service_id(this.state));
                        this.phase.set(Phase::Over);
                        Ended::TimedOut
                    }
                }))
            }
            PhaseProj::Over => Poll::Pending,
        }
    }
}
