use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_geo_policy::fault::Fault;

use super::answer::{Answer, Change, FaultKind, Made, What};
use super::body::FaultBody;
use super::error::InjectedFault;
use crate::error::BoxError;

pin_project! {
    /// Response future of [`FaultService`](super::FaultService).
    ///
    /// Dropped, it drops the send that it has made, if any; nothing runs on.
    pub struct ResponseFuture<F, B, RB> {
        #[pin]
        state: State<F, B, RB>,
    }
}

type Outcome<RB> = Result<Response<FaultBody<RB>>, BoxError>;

pin_project! {
    #[project = StateProj]
    enum State<F, B, RB> {
        // Really sent; something may happen to the answer.
        Sending { #[pin] future: F, then: Option<Box<Answer>> },
        // Not sent. The body of the request is taken to its end, as a server would.
        Taking { #[pin] body: B, then: Option<Box<Answer>> },
        // All is known, and comes later.
        Late { sleep: Option<Pin<Box<Sleep>>>, latency: Duration, outcome: Option<Outcome<RB>> },
        // There is no answer, ever.
        Hanging,
    }
}

impl<F, B, RB> ResponseFuture<F, B, RB> {
    pub(super) const fn passing(future: F) -> Self {
        Self {
            state: State::Sending { future, then: None },
        }
    }

    pub(super) fn sending(future: F, answer: Answer) -> Self {
        Self {
            state: State::Sending {
                future,
                then: Some(Box::new(answer)),
            },
        }
    }

    /// Nothing is sent.
    pub(super) fn met(body: B, answer: Answer) -> Self {
        // No connection, so no byte of the body is taken: it can be sent again whatever it is (T6).
        let unreachable = match answer.what {
            What::Fault(FaultKind::Connect) => Some(Fault::Connect),
            What::Fault(FaultKind::Dns) => Some(Fault::Dns),
            What::Fault(FaultKind::Tls) => Some(Fault::Tls),
            _ => None,
        };
        let state = match unreachable {
            Some(fault) => State::late(answer.latency, Err(Box::new(InjectedFault::new(fault)))),
            None => State::Taking {
                body,
                then: Some(Box::new(answer)),
            },
        };
        Self { state }
    }
}

impl<F, B, RB> State<F, B, RB> {
    const fn late(latency: Duration, outcome: Outcome<RB>) -> Self {
        Self::Late {
            sleep: None,
            latency,
            outcome: Some(outcome),
        }
    }
}

impl<F, B, RB> fmt::Debug for ResponseFuture<F, B, RB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Sending { then: None, .. } => "ResponseFuture(passing)",
            State::Sending { .. } => "ResponseFuture(sending)",
            State::Taking { .. } => "ResponseFuture(taking the body of the request)",
            State::Late { .. } => "ResponseFuture(late)",
            State::Hanging => "ResponseFuture(hanging)",
        })
    }
}

impl<F, E, B, RB> Future for ResponseFuture<F, B, RB>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
    B: Body,
    B::Error: Into<BoxError>,
{
    type Output = Outcome<RB>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Sending { future, then } => {
                    let answered = ready!(future.poll(cx)).map_err(Into::into);
                    match then.take().map(|answer| *answer) {
                        None => return Poll::Ready(answered.map(|r| r.map(FaultBody::whole))),
                        Some(Answer { latency, what }) => {
                            State::late(latency, after(answered, what))
                        }
                    }
                }
                StateProj::Taking { mut body, then } => {
                    let broken = loop {
                        match ready!(body.as_mut().poll_frame(cx)) {
                            Some(Ok(_)) => {}
                            Some(Err(error)) => break Some(error.into()),
                            None => break None,
                        }
                    };
                    match (broken, then.take().map(|answer| *answer)) {
                        // A client resets the connection when the body that it sends breaks off.
                        (Some(error), _) => State::late(
                            Duration::ZERO,
                            Err(Box::new(InjectedFault::broken_upload(error))),
                        ),
                        (
                            None,
                            Some(Answer {
                                latency,
                                what: What::Made(made),
                            }),
                        ) => State::late(latency, Ok(make(made))),
                        (
                            None,
                            Some(Answer {
                                latency,
                                what: What::Fault(FaultKind::Reset),
                            }),
                        ) => State::late(latency, Err(reset())),
                        (None, _) => State::Hanging,
                    }
                }
                StateProj::Late {
                    sleep,
                    latency,
                    outcome,
                } => {
                    if !latency.is_zero() {
                        // Set at the first poll, which is on the runtime whose clock it needs.
                        let latency = *latency;
                        let sleep =
                            sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(latency)));
                        ready!(sleep.as_mut().poll(cx));
                    }
                    match outcome.take() {
                        Some(outcome) => return Poll::Ready(outcome),
                        None => return Poll::Pending,
                    }
                }
                StateProj::Hanging => return Poll::Pending,
            };
            state.set(next);
        }
    }
}

fn reset() -> BoxError {
    Box::new(InjectedFault::new(Fault::Reset))
}

/// What becomes of a real answer. An error of the client stays what it is.
fn after<RB>(answered: Result<Response<RB>, BoxError>, what: What) -> Outcome<RB> {
    let response = answered?;
    match what {
        What::Real(change) => {
            let end = change.end;
            let mut response = response.map(|body| FaultBody::real(body, end));
            change.apply(&mut response);
            Ok(response)
        }
        _ => Err(reset()),
    }
}

fn make<RB>(made: Made) -> Response<FaultBody<RB>> {
    let mut response = Response::new(FaultBody::made(made.body, made.change.end));
    made.change.apply(&mut response);
    response
}

impl Change {
    fn apply<B>(self, response: &mut Response<B>) {
        if let Some(status) = self.status {
            *response.status_mut() = status;
        }
        // What was there before is replaced; of one name several values may be given here.
        for (name, _) in &self.headers {
            response.headers_mut().remove(name);
        }
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
    }
}
