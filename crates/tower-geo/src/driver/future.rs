use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_geo_policy::operation::{Operation, Reach};
use tower_service::Service;

#[cfg(feature = "cosmos")]
use super::account::Awaited;
use super::decider::{Decider, Next, Outgoing, may_follow};
use super::hedge::Hedge;
use super::sending::{Driver, Due, Sent, arm};
use super::start::{Opening, Start, keep_for_later};
use crate::body::BodyPolicy;
use crate::error::{BoxError, Error};
use crate::runtime::{State, service_id};
use crate::scope::{self, Rank};

pin_project! {
    /// Response future of [`Retry`](crate::retry::Retry) and
    /// [`GeoRedirect`](crate::geo_redirect::GeoRedirect).
    ///
    /// Dropped, it gives back all that it holds; nothing runs on.
    // It is large, because nothing of a healthy operation is boxed (E2), and what is put together
    // from parts is copied once for each of them: so the healthy path makes it in one piece.
    pub struct ResponseFuture<S, P, B>
    where
        S: Service<Request<P::Body>>,
        P: BodyPolicy<B>,
    {
        #[pin]
        phase: Phase<S::Future>,
        #[pin]
        timer: Option<Sleep>,
        hedge: Option<Pin<Box<Hedge<S, P::Body>>>>,
        // None: another layer decides, or nobody does. Then the future below is all there is.
        driver: Option<Driver<S, P, S::Response, P::Body>>,
        body: PhantomData<fn(B)>,
    }
}

pin_project! {
    #[project = PhaseProj]
    enum Phase<F> {
        // Asks the operation what comes next.
        Deciding,
        // A send is planned; the service has to be ready for it (T7).
        Readying { plan: Option<Outgoing> },
        // A send is under way; beside it perhaps a hedge.
        Sending { #[pin] future: F },
        // The first send has failed, the hedge is still under way (H2).
        HedgeOnly,
        // Nothing may be sent before the timer ends, or before the account was read.
        Waiting,
        // Nothing was sent: the error is handed over at the first poll.
        Refused { error: Option<Error> },
        // The end was handed over.
        Done,
    }
}

impl<S, P, B> ResponseFuture<S, P, B>
where
    S: Service<Request<P::Body>> + Clone,
    P: BodyPolicy<B>,
{
    /// The healthy path: the request is sent as it is, now.
    #[inline]
    pub(crate) fn begin_at_home(
        inner: &mut S,
        policy: &P,
        state: &State,
        (rank, reach): (Rank, Reach),
        opening: Opening,
        request: Request<B>,
    ) -> Self {
        let Opening { intent, home, mode } = opening;
        let request = policy.prepare_request(request);
        let may_follow = may_follow(state, intent, reach);
        let copy = keep_for_later(reach, policy, may_follow, &request);
        let sent = match copy {
            Some(_) => None,
            None => Some(Sent::of(&request)),
        };
        let (mut service, policy, state) = (take_ready(inner), policy.clone(), state.clone());
        let regions = state.regions().len();
        let scope = scope::enter_own(service_id(&state), rank);
        let future = service.call(request);
        drop(scope);
        // Nothing that could panic from here on, or all of this would have to lie in memory, to be
        // dropped.
        Self {
            phase: Phase::Sending { future },
            timer: None,
            hedge: None,
            driver: Some(Driver {
                service,
                policy,
                state,
                rank,
                home,
                operation: Decider::Plain(Operation::sent_home(intent, home, reach, mode, regions)),
                request: copy,
                sent,
                is_ready: false,
                is_armed: false,
                first_limit: None,
                is_paid: false,
                has_hedge: false,
                handoff: None,
                kept: None,
                #[cfg(feature = "cosmos")]
                next_end: None,
            }),
            body: PhantomData,
        }
    }

    /// Begins what was decided at the start of a call of a service over `inner`, which is ready.
    #[inline(never)]
    pub(crate) fn begin(
        inner: &mut S,
        policy: &P,
        state: &State,
        (rank, reach): (Rank, Reach),
        started: Start,
        request: Request<B>,
    ) -> Self {
        let request = policy.prepare_request(request);
        let (operation, goes_home) = match started {
            Start::Drive { operation, home } => (operation, home),
            Start::Pass => {
                let _scope = scope::enter(service_id(state), rank);
                let future = inner.call(request);
                return Self::new(Phase::Sending { future }, None);
            }
            Start::Refuse(error) => {
                // A call uses readiness up, and a clone is not ready: a service that is kept must
                // not keep a permit from others.
                *inner = inner.clone();
                return Self::new(Phase::Refused { error: Some(error) }, None);
            }
        };
        let service = take_ready(inner);
        let mut driver = Driver::new(service, policy.clone(), state, rank, operation);
        let phase = if goes_home {
            let may_follow = driver.operation.may_follow(state, reach);
            driver.request = keep_for_later(reach, policy, may_follow, &request);
            if driver.request.is_none() {
                driver.sent = Some(Sent::of(&request));
            }
            let _scope = scope::enter_own(service_id(state), rank);
            let future = driver.service.call(request);
            Phase::Sending { future }
        } else {
            // Something is unusual: the operation decides before the first send.
            driver.request = Some(request);
            driver.is_ready = true;
            Phase::Deciding
        };
        Self::new(phase, Some(driver))
    }

    const fn new(
        phase: Phase<S::Future>,
        driver: Option<Driver<S, P, S::Response, P::Body>>,
    ) -> Self {
        Self {
            phase,
            timer: None,
            hedge: None,
            driver,
            body: PhantomData,
        }
    }
}

/// The readied service is moved into the call and a clone is left, which is not ready.
#[inline]
fn take_ready<S: Clone>(inner: &mut S) -> S {
    let clone = inner.clone();
    std::mem::replace(inner, clone)
}

impl<S, P, B> fmt::Debug for ResponseFuture<S, P, B>
where
    S: Service<Request<P::Body>>,
    P: BodyPolicy<B>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.phase {
            Phase::Sending { .. } if self.driver.is_none() => "ResponseFuture(passing)",
            Phase::Deciding => "ResponseFuture(deciding)",
            Phase::Readying { .. } => "ResponseFuture(waiting for the service to be ready)",
            Phase::Sending { .. } => "ResponseFuture(sending)",
            Phase::HedgeOnly => "ResponseFuture(waiting for a hedge)",
            Phase::Waiting => "ResponseFuture(waiting for the next send)",
            Phase::Refused { .. } => "ResponseFuture(refused)",
            Phase::Done => "ResponseFuture(done)",
        })
    }
}

impl<S, P, B, RB> Future for ResponseFuture<S, P, B>
where
    S: Service<Request<P::Body>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    P: BodyPolicy<B>,
{
    type Output = Result<Response<RB>, Error>;

    /// The healthy path, on which an answer is moved as seldom as can be, because it is large.
    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        let (PhaseProj::Sending { future }, Some(driver)) =
            (this.phase.as_mut().project(), this.driver.as_mut())
        else {
            return self.poll_other(cx);
        };
        if driver.kept.is_some() {
            return self.carry_on(None, cx);
        }
        let scope = scope::enter_own(service_id(&driver.state), driver.rank);
        let polled = future.poll(cx);
        drop(scope);
        let is_end = match &polled {
            Poll::Ready(Ok(response)) => driver.hands_over(response),
            _ => false,
        };
        if is_end {
            *this.hedge = None;
            this.phase.set(Phase::Done);
        }
        match polled {
            Poll::Ready(Ok(response)) if is_end => Poll::Ready(Ok(response)),
            Poll::Ready(end) => self.carry_on(Some(Poll::Ready(end)), cx),
            Poll::Pending => self.wait_on(cx),
        }
    }
}

impl<S, P, B, RB> ResponseFuture<S, P, B>
where
    S: Service<Request<P::Body>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    P: BodyPolicy<B>,
{
    #[inline(never)]
    fn poll_other(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<RB>, Error>> {
        let this = self.as_mut().project();
        match this.phase.project() {
            PhaseProj::Refused { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
            PhaseProj::Sending { future } if this.driver.is_none() => future
                .poll(cx)
                .map_err(|error| Error::from_inner(error.into())),
            _ => self.carry_on(None, cx),
        }
    }

    /// The send under way has just said that it is not done.
    #[inline(never)]
    fn wait_on(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<RB>, Error>> {
        let this = self.as_mut().project();
        if let (None, Some(driver)) = (&*this.hedge, this.driver.as_mut()) {
            // All there is to do, as a rule: nothing as large as an answer is passed on for it.
            if driver.poll_time::<B>(this.timer, cx).is_pending() {
                return Poll::Pending;
            }
        }
        self.carry_on(Some(Poll::Pending), cx)
    }

    /// Goes on with what the send under way has just said, if it was asked already.
    #[inline(never)]
    fn carry_on(
        self: Pin<&mut Self>,
        mut polled: Option<Poll<Result<Response<RB>, S::Error>>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<RB>, Error>> {
        let mut this = self.project();
        let Some(driver) = this.driver.as_mut() else {
            return Poll::Pending;
        };
        loop {
            match this.phase.as_mut().project() {
                PhaseProj::Sending { future } => {
                    let polled = match polled.take() {
                        Some(polled) => polled,
                        None => {
                            let _scope = scope::enter_own(service_id(&driver.state), driver.rank);
                            match &driver.kept {
                                None => future.poll(cx),
                                Some(kept) => kept.in_span(|| future.poll(cx)),
                            }
                        }
                    };
                    let (end, failed) = match polled {
                        Poll::Ready(Ok(response)) => {
                            driver.speak_of_first();
                            (driver.answered(response).map(Ok), false)
                        }
                        Poll::Ready(Err(error)) => {
                            let stayed = driver.speak_of_first();
                            (driver.failed(error.into(), stayed), true)
                        }
                        Poll::Pending => {
                            if let Poll::Ready(end) = driver.poll_hedge::<B>(this.hedge, cx) {
                                if let Some(end) = end {
                                    let _scope = scope::enter_outrun(&driver.state);
                                    this.phase.set(Phase::Done);
                                    return Poll::Ready(end);
                                }
                                // The pending send is waited for, alone (H2).
                                continue;
                            }
                            match ready!(driver.poll_time::<B>(this.timer.as_mut(), cx)) {
                                Due::Hedge => {
                                    *this.hedge = driver.prepare_hedge::<B>();
                                    continue;
                                }
                                Due::Limit => {}
                            }
                            driver.speak_of_first();
                            let _scope = scope::enter_time_out(service_id(&driver.state));
                            this.phase.set(Phase::Deciding);
                            driver.timed_out();
                            (None, false)
                        }
                    };
                    if let Some(end) = end {
                        *this.hedge = None;
                        this.phase.set(Phase::Done);
                        return Poll::Ready(end);
                    }
                    // The send that failed is dropped. If the error came from a layer between here
                    // and the breaker, such as a time-out, the breaker has seen nothing yet and
                    // learns now that the send was cut.
                    let _scope = failed.then(|| scope::enter_time_out(service_id(&driver.state)));
                    if this.hedge.as_ref().is_some_and(|hedge| hedge.is_sent()) {
                        driver.operation.wait_for_other();
                        this.phase.set(Phase::HedgeOnly);
                    } else {
                        // One that has not left is overtaken by falling over.
                        *this.hedge = None;
                        this.phase.set(Phase::Deciding);
                    }
                }
                PhaseProj::HedgeOnly => {
                    if let Some(end) = ready!(driver.poll_hedge::<B>(this.hedge, cx)) {
                        this.phase.set(Phase::Done);
                        return Poll::Ready(end);
                    }
                    this.phase.set(Phase::Deciding);
                }
                PhaseProj::Deciding => match driver.decide::<B>() {
                    Next::Send(plan) => {
                        driver.is_paid = true;
                        this.phase.set(Phase::Readying { plan: Some(plan) });
                    }
                    Next::Wait(until) => {
                        driver.forget_readiness();
                        driver.tell_wait(until);
                        let until = driver.state.instant(until).into();
                        arm(this.timer.as_mut(), until);
                        this.phase.set(Phase::Waiting);
                    }
                    #[cfg(feature = "cosmos")]
                    Next::AwaitAccount(wait) => match driver.await_account(&wait) {
                        Awaited::News => {}
                        Awaited::InVain(finish) => {
                            this.phase.set(Phase::Done);
                            return Poll::Ready(driver.finish(finish));
                        }
                        Awaited::Waits => {
                            driver.forget_readiness();
                            match wait.until {
                                Some(until) => {
                                    let until = driver.state.instant(until).into();
                                    arm(this.timer.as_mut(), until);
                                }
                                None => this.timer.set(None),
                            }
                            this.phase.set(Phase::Waiting);
                        }
                    },
                    Next::Finish(finish) => {
                        this.phase.set(Phase::Done);
                        return Poll::Ready(driver.finish(finish));
                    }
                },
                PhaseProj::Waiting => {
                    #[cfg(feature = "cosmos")]
                    if let Some(next_end) = &mut driver.next_end {
                        let mut is_over = next_end.as_mut().poll(cx).is_ready();
                        if let Some(timer) = this.timer.as_mut().as_pin_mut() {
                            is_over |= timer.poll(cx).is_ready();
                        }
                        if !is_over {
                            return Poll::Pending;
                        }
                        driver.next_end = None;
                        this.phase.set(Phase::Deciding);
                        continue;
                    }
                    if let Some(timer) = this.timer.as_mut().as_pin_mut() {
                        ready!(timer.poll(cx));
                    }
                    this.phase.set(Phase::Deciding);
                }
                PhaseProj::Readying { plan } => {
                    if !driver.is_ready {
                        match driver.service.poll_ready(cx) {
                            Poll::Ready(Ok(())) => driver.is_ready = true,
                            Poll::Ready(Err(error)) => {
                                let end = driver.never_ready(Some(error.into()));
                                this.phase.set(Phase::Done);
                                return Poll::Ready(end);
                            }
                            Poll::Pending => {
                                ready!(driver.poll_time::<B>(this.timer.as_mut(), cx));
                                let end = driver.never_ready(None);
                                this.phase.set(Phase::Done);
                                return Poll::Ready(end);
                            }
                        }
                    }
                    let sent = plan.take().and_then(|plan| driver.send::<B>(plan));
                    match sent {
                        Some(Ok(future)) => this.phase.set(Phase::Sending { future }),
                        Some(Err(error)) => {
                            this.phase.set(Phase::Done);
                            return Poll::Ready(Err(error));
                        }
                        None => this.phase.set(Phase::Deciding),
                    }
                }
                PhaseProj::Refused { .. } | PhaseProj::Done => return Poll::Pending,
            }
        }
    }
}
