use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_geo_policy::fault::Fault;
use tower_geo_policy::intent::Intent;
use tower_geo_policy::operation::circuit_of;
use tower_geo_policy::region::RegionId;
use tower_geo_policy::tick::Tick;
use tower_geo_policy::verdict::Verdict;

use super::pending::Pending;
use crate::body::{SettleBody, Settling};
use crate::error::{BoxError, Error};
use crate::runtime;

/// What the outcome of a send is held against.
pub(super) struct Watch {
    pub(super) pending: Pending,
    pub(super) region: RegionId,
    pub(super) intent: Intent,
    pub(super) is_probe: bool,
    pub(super) started: Tick,
}

pin_project! {
    /// Response future of [`CircuitBreaker`](super::CircuitBreaker).
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        // Not sent: the error is handed over at the first poll.
        Refused { error: Option<Error> },
        // Not ours to count.
        Passing { #[pin] future: F },
        Sending {
            #[pin]
            future: F,
            watch: Watch,
            // Whether the answer was not there at the first poll, so that the time has to be read anew.
            pended: bool,
            // Armed for a probe that has been found pending (B7).
            #[pin]
            probe_limit: Option<Sleep>,
        },
        // A probe that hung was dropped. Its slot is free, its error handed over.
        Done,
    }
}

impl<F> ResponseFuture<F> {
    #[inline]
    pub(super) fn sending(future: F, watch: Option<Watch>) -> Self {
        let state = match watch {
            None => State::Passing { future },
            Some(watch) => State::Sending {
                future,
                watch,
                pended: false,
                probe_limit: None,
            },
        };
        Self { state }
    }

    pub(super) const fn refused(error: Error) -> Self {
        Self {
            state: State::Refused { error: Some(error) },
        }
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Refused { .. } => "ResponseFuture(refused)",
            State::Passing { .. } => "ResponseFuture(passing)",
            State::Sending { .. } => "ResponseFuture(sending)",
            State::Done => "ResponseFuture(done)",
        })
    }
}

impl<F, RB, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
    RB: http_body::Body,
{
    type Output = Result<Response<SettleBody<RB>>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        match this.state.as_mut().project() {
            StateProj::Refused { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
            StateProj::Passing { future } => Poll::Ready(match ready!(future.poll(cx)) {
                Ok(response) => Ok(response.map(SettleBody::settled)),
                Err(error) => Err(Error::from_inner(error.into())),
            }),
            StateProj::Sending {
                future,
                watch,
                pended,
                mut probe_limit,
            } => match future.poll(cx) {
                Poll::Ready(Ok(response)) => Poll::Ready(Ok(watch.answered(response, *pended))),
                Poll::Ready(Err(error)) => {
                    let error = Error::of_client(watch.pending.state(), error.into());
                    watch.failed(&error, *pended);
                    Poll::Ready(Err(error))
                }
                Poll::Pending => {
                    *pended = true;
                    if !watch.is_probe {
                        return Poll::Pending;
                    }
                    let state = watch.pending.state();
                    let Some(settings) = state.breaker_settings() else {
                        return Poll::Pending;
                    };
                    if probe_limit.is_none() {
                        let deadline = watch.started + settings.probe_deadline_value();
                        let at = state.instant(deadline);
                        probe_limit.set(Some(tokio::time::sleep_until(at.into())));
                    }
                    if let Some(limit) = probe_limit.as_pin_mut() {
                        ready!(limit.poll(cx));
                    }
                    watch.pending.settle(Fault::TimedOut.verdict());
                    let error = watch
                        .pending
                        .timed_out("a probe did not answer within `probe_deadline`");
                    // Dropping the send now lets a read fall over at this moment (B7).
                    this.state.set(State::Done);
                    Poll::Ready(Err(error))
                }
            },
            StateProj::Done => Poll::Pending,
        }
    }
}

impl Watch {
    #[inline]
    fn now(&self, pended: bool) -> Tick {
        if pended {
            self.pending.state().tick(runtime::now())
        } else {
            self.started
        }
    }

    #[inline]
    fn answered<RB: http_body::Body>(
        &mut self,
        response: Response<RB>,
        pended: bool,
    ) -> Response<SettleBody<RB>> {
        let now = self.now(pended);
        let state = self.pending.state();
        let (status, headers) = (response.status(), response.headers());
        let verdict = state.provider().verdict(self.intent, status, headers);
        let ends_with_its_body = status.is_success() && !response.body().is_end_stream();
        if verdict != Verdict::Answered || !ends_with_its_body {
            self.pending.settle_at(verdict, now);
            return response.map(SettleBody::settled);
        }
        let body_idle = state.extra().retry.get_body_idle();
        let state = state.clone();
        if self.is_probe {
            // The head is proof enough to let others in; what the body does counts in what
            // comes after.
            self.pending.settle_at(verdict, now);
            let sent = state.send_started(self.region, circuit_of(self.intent), now);
            self.pending = Pending::new(state, sent);
        } else {
            state.note_answer(self.region, now);
        }
        let nothing = Pending::new(self.pending.state().clone(), None);
        let pending = std::mem::replace(&mut self.pending, nothing);
        response.map(|body| {
            SettleBody::new(
                body,
                Settling {
                    pending,
                    verdict,
                    body_idle,
                },
            )
        })
    }

    fn failed(&mut self, error: &Error, pended: bool) {
        let now = self.now(pended);
        let runtime = self.pending.state().extra();
        let fault = error.fault(&*runtime.faults);
        match fault {
            Some(fault) => self.pending.settle_at(fault.verdict(), now),
            // A layer of ours further in refused it: nothing has left.
            None => self.pending.not_sent(now),
        }
    }
}
