use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_geo_policy::breaker::Sent;
use tower_geo_policy::fault::Fault;
use tower_geo_policy::intent::Intent;
use tower_geo_policy::operation::circuit_of;
use tower_geo_policy::tick::Tick;
use tower_geo_policy::verdict::Verdict;

use super::pending::Pending;
use crate::body::{SettleBody, Settling};
use crate::error::{BoxError, Error};
use crate::runtime;

/// What the outcome of a send is held against.
pub(super) struct Watch {
    pub(super) pending: Pending,
    pub(super) intent: Intent,
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
        Sending {
            #[pin]
            future: F,
            // None: not ours to count.
            watch: Option<Watch>,
            // Whether the answer was not there at the first poll, so that the time has to be read anew.
            pended: bool,
            // Armed for a probe that has been found pending (B7): rare, so it may be a box.
            probe_limit: Option<Pin<Box<Sleep>>>,
        },
        // A probe that hung was dropped. Its slot is free, its error handed over.
        Done,
    }
}

impl<F> ResponseFuture<F> {
    #[inline]
    pub(super) const fn sending(future: F, watch: Option<Watch>) -> Self {
        Self {
            state: State::Sending {
                future,
                watch,
                pended: false,
                probe_limit: None,
            },
        }
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
            State::Sending { watch: None, .. } => "ResponseFuture(passing)",
            State::Sending { .. } => "ResponseFuture(sending)",
            State::Done => "ResponseFuture(done)",
        })
    }
}

impl<F, RB, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
    RB: Body,
{
    type Output = Result<Response<SettleBody<RB>>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let (future, watch, pended, probe_limit) = match this.state.as_mut().project() {
            StateProj::Sending {
                future,
                watch,
                pended,
                probe_limit,
            } => (future, watch, pended, probe_limit),
            StateProj::Refused { error } => {
                return match error.take() {
                    Some(error) => Poll::Ready(Err(error)),
                    None => Poll::Pending,
                };
            }
            StateProj::Done => return Poll::Pending,
        };
        match future.poll(cx) {
            Poll::Ready(Ok(response)) => {
                let ends_with_its_body = match watch {
                    Some(watch) => watch.answered(&response, *pended),
                    None => false,
                };
                let settling = if ends_with_its_body {
                    watch.take().map(|watch| Settling(watch.pending))
                } else {
                    None
                };
                Poll::Ready(Ok(response.map(|body| SettleBody::new(body, settling))))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(match watch {
                Some(watch) => watch.failed(error.into(), *pended),
                None => Error::from_inner(error.into()),
            })),
            Poll::Pending => {
                *pended = true;
                let Some(watch) = watch.as_mut().filter(|watch| watch.is_probe()) else {
                    return Poll::Pending;
                };
                let Some(error) = ready!(watch.poll_probe(probe_limit, cx)) else {
                    return Poll::Pending;
                };
                // Dropping the send now lets a read fall over at this moment (B7).
                this.state.set(State::Done);
                Poll::Ready(Err(error))
            }
        }
    }
}

impl Watch {
    fn is_probe(&self) -> bool {
        self.pending.sent().is_some_and(Sent::is_probe)
    }

    /// One reading of the clock is enough for an answer that was there at once.
    #[inline]
    fn now(&self, pended: bool) -> Tick {
        match self.pending.sent() {
            Some(sent) if !pended => sent.at(),
            _ => self.pending.state().tick(runtime::now()),
        }
    }

    /// The head of an answer is there. Returns whether the outcome is that of its body (V4).
    #[inline]
    fn answered<RB: Body>(&mut self, response: &Response<RB>, pended: bool) -> bool {
        let now = self.now(pended);
        let state = self.pending.state();
        let (status, headers) = (response.status(), response.headers());
        let verdict = state.provider().verdict(self.intent, status, headers);
        let ends_with_its_body =
            verdict == Verdict::Answered && status.is_success() && !response.body().is_end_stream();
        if ends_with_its_body {
            self.note_head(now);
        } else {
            self.pending.settle_at(verdict, now);
        }
        ends_with_its_body
    }

    #[inline]
    fn note_head(&mut self, now: Tick) {
        let state = self.pending.state();
        match self.pending.sent() {
            Some(sent) if sent.is_probe() => self.let_others_in(now),
            Some(sent) => state.note_answer(sent.region(), now),
            None => {}
        }
    }

    /// The head is proof enough to let others in; what the body does counts in what comes after.
    #[cold]
    fn let_others_in(&mut self, now: Tick) {
        let region = self.pending.sent().map(Sent::region);
        self.pending.settle_at(Verdict::Answered, now);
        let state = self.pending.state();
        let sent =
            region.and_then(|region| state.send_started(region, circuit_of(self.intent), now));
        self.pending = Pending::new(state.clone(), sent);
    }

    #[cold]
    fn failed(&mut self, error: BoxError, pended: bool) -> Error {
        let now = self.now(pended);
        let error = Error::of_client(self.pending.state(), error);
        let runtime = self.pending.state().extra();
        let fault = error.fault(&*runtime.faults);
        match fault {
            Some(fault) => self.pending.settle_at(fault.verdict(), now),
            // A layer of ours further in refused it: nothing has left.
            None => self.pending.not_sent(now),
        }
        error
    }

    /// The error of a probe that has hung for too long (B7).
    #[cold]
    fn poll_probe(
        &mut self,
        limit: &mut Option<Pin<Box<Sleep>>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Error>> {
        let state = self.pending.state();
        let (Some(sent), Some(settings)) = (self.pending.sent(), state.breaker_settings()) else {
            return Poll::Ready(None);
        };
        let limit = limit.get_or_insert_with(|| {
            let at = state.instant(sent.at() + settings.probe_deadline_value());
            Box::pin(tokio::time::sleep_until(at.into()))
        });
        ready!(limit.as_mut().poll(cx));
        self.pending.settle(Fault::TimedOut.verdict());
        let error = self
            .pending
            .timed_out("a probe did not answer within `probe_deadline`");
        Poll::Ready(Some(error))
    }
}
