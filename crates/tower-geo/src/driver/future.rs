use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Method, Request, Response};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_geo_policy::operation::Reach;
use tower_service::Service;

#[cfg(feature = "cosmos")]
use super::account::Awaited;
use super::decider::{Decider, Next, Outgoing};
use super::hedge::Hedge;
use super::sending::{Driver, Due, arm};
use super::start::{keep_for_later, request_id};
use crate::body::BodyPolicy;
use crate::error::{BoxError, Error};
use crate::runtime::{State, service_id};
use crate::scope::{self, Rank};

pin_project! {
    /// An operation under way: the inside of the response futures of Retry and GeoRedirect.
    pub(crate) struct Drive<S, P, B>
    where
        S: Service<Request<P::Body>>,
        P: BodyPolicy<B>,
    {
        #[pin]
        phase: Phase<S::Future>,
        #[pin]
        timer: Option<Sleep>,
        hedge: Option<Pin<Box<Hedge<S, P::Body>>>>,
        driver: Driver<S, P, S::Response, P::Body>,
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
        // The end was handed over.
        Done,
    }
}

/// What a layer gives its driver.
pub(crate) struct Setting<S, P> {
    /// Ready for one call.
    pub(crate) service: S,
    pub(crate) policy: P,
    pub(crate) state: State,
    pub(crate) rank: Rank,
    pub(crate) reach: Reach,
}

impl<S, P, B> Drive<S, P, B>
where
    S: Service<Request<P::Body>>,
    P: BodyPolicy<B>,
{
    /// The healthy path: the request is sent as it is, now.
    #[inline]
    pub(crate) fn home(
        mut setting: Setting<S, P>,
        operation: Decider,
        request: Request<P::Body>,
    ) -> Self {
        let copy = keep_for_later(
            &setting.state,
            setting.reach,
            &setting.policy,
            &operation,
            &request,
        );
        let sent_id = match copy {
            Some(_) => None,
            None => request_id(&request).cloned(),
        };
        let method = request.method().clone();
        let future = {
            let _scope = scope::enter_own(service_id(&setting.state), setting.rank);
            setting.service.call(request)
        };
        let mut drive = Self::new(
            setting,
            operation,
            method,
            copy,
            Phase::Sending { future },
            false,
        );
        drive.driver.sent_id = sent_id;
        drive
    }

    /// Something is unusual: the operation decides before the first send.
    #[inline]
    pub(crate) fn decide(
        setting: Setting<S, P>,
        operation: Decider,
        request: Request<P::Body>,
    ) -> Self {
        let method = request.method().clone();
        Self::new(
            setting,
            operation,
            method,
            Some(request),
            Phase::Deciding,
            true,
        )
    }

    #[inline]
    fn new(
        setting: Setting<S, P>,
        operation: Decider,
        method: Method,
        request: Option<Request<P::Body>>,
        phase: Phase<S::Future>,
        is_ready: bool,
    ) -> Self {
        let home = operation.region();
        Self {
            phase,
            timer: None,
            hedge: None,
            driver: Driver {
                service: setting.service,
                is_ready,
                is_armed: false,
                first_limit: None,
                is_paid: false,
                has_hedge: false,
                policy: setting.policy,
                state: setting.state,
                rank: setting.rank,
                method,
                home,
                operation,
                request,
                sent_id: None,
                handoff: None,
                kept: None,
                #[cfg(feature = "cosmos")]
                next_end: None,
            },
            body: PhantomData,
        }
    }
}

impl<S, P, B> fmt::Debug for Drive<S, P, B>
where
    S: Service<Request<P::Body>>,
    P: BodyPolicy<B>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.phase {
            Phase::Deciding => "deciding",
            Phase::Readying { .. } => "waiting for the service to be ready",
            Phase::Sending { .. } => "sending",
            Phase::HedgeOnly => "waiting for a hedge",
            Phase::Waiting => "waiting for the next send",
            Phase::Done => "done",
        })
    }
}

impl<S, P, B, RB> Future for Drive<S, P, B>
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
        let PhaseProj::Sending { future } = this.phase.as_mut().project() else {
            return self.carry_on(None, cx);
        };
        if this.driver.kept.is_some() {
            return self.carry_on(None, cx);
        }
        let scope = scope::enter_own(service_id(&this.driver.state), this.driver.rank);
        let polled = future.poll(cx);
        drop(scope);
        let is_end = match &polled {
            Poll::Ready(Ok(response)) => this.driver.hands_over(response),
            _ => false,
        };
        if is_end {
            *this.hedge = None;
            this.phase.set(Phase::Done);
        }
        match polled {
            Poll::Ready(Ok(response)) if is_end => Poll::Ready(Ok(response)),
            Poll::Ready(end) => self.carry_on(Some(Poll::Ready(end)), cx),
            Poll::Pending => self.carry_on(Some(Poll::Pending), cx),
        }
    }
}

impl<S, P, B, RB> Drive<S, P, B>
where
    S: Service<Request<P::Body>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    P: BodyPolicy<B>,
{
    /// Goes on with what the send under way has just said, if it was asked already.
    #[inline(never)]
    fn carry_on(
        self: Pin<&mut Self>,
        mut polled: Option<Poll<Result<Response<RB>, S::Error>>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<RB>, Error>> {
        let mut this = self.project();
        let driver = this.driver;
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
                PhaseProj::Done => return Poll::Pending,
            }
        }
    }
}
