//! What carries an operation out, but for the futures: what is sent, and when something is due.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderValue, Method, Request, Response};
use tokio::time::Sleep;
use tower_geo_policy::operation::Again;
use tower_geo_policy::region::RegionId;
use tower_geo_policy::tick::Tick;
use tower_service::Service;

use super::answer::Kept;
use super::decider::{Decider, Next, Outgoing};
use super::hedge::{Ended, Hedge, Progress};
use super::start::request_id;
use crate::body::{BodyPolicy, Upload};
use crate::error::{BoxError, Error};
use crate::handoff::Handoff;
use crate::redirect::redirect;
use crate::runtime::{self, State, service_id};
use crate::scope::{self, Rank};

/// All but the futures.
pub(super) struct Driver<S, P, R, PB> {
    pub(super) service: S,
    /// Whether the service is ready for a call.
    pub(super) is_ready: bool,
    /// Whether the timer is set for the send under way.
    pub(super) is_armed: bool,
    /// When the first send is given up, while a hedge is under way beside it.
    pub(super) first_limit: Option<Tick>,
    /// Whether a send has been paid for and has not left.
    pub(super) is_paid: bool,
    /// Whether a hedge was made, or could not be (H1).
    pub(super) has_hedge: bool,
    pub(super) policy: P,
    pub(super) state: State,
    pub(super) rank: Rank,
    pub(super) home: RegionId,
    pub(super) operation: Decider,
    /// What is sent next; once it is sent, the copy that was kept.
    pub(super) request: Option<Request<PB>>,
    /// What is known of the request once it was sent without a copy.
    pub(super) sent: Option<Sent>,
    /// What was handed to a redirect below with the send under way.
    pub(super) handoff: Option<Handoff>,
    pub(super) kept: Option<Box<Kept<R>>>,
    /// The account read that is waited for (C3, C5, C8).
    #[cfg(feature = "cosmos")]
    pub(super) next_end: Option<super::account::NextEnd>,
}

/// What has to be known of a request that cannot be sent again.
pub(super) struct Sent {
    pub(super) method: Method,
    /// By which a repeat of it is known (T8).
    pub(super) id: Option<HeaderValue>,
}

impl Sent {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        Self {
            method: request.method().clone(),
            id: request_id(request).cloned(),
        }
    }
}

impl<S, P, R, PB> Driver<S, P, R, PB> {
    /// Before the first send: nothing is known of the request.
    pub(super) fn new(
        service: S,
        policy: P,
        state: &State,
        rank: Rank,
        operation: Decider,
    ) -> Self {
        Self {
            service,
            is_ready: false,
            is_armed: false,
            first_limit: None,
            is_paid: false,
            has_hedge: false,
            policy,
            state: state.clone(),
            rank,
            home: operation.region(),
            operation,
            request: None,
            sent: None,
            handoff: None,
            kept: None,
            #[cfg(feature = "cosmos")]
            next_end: None,
        }
    }
}

/// What it is time for.
pub(super) enum Due {
    /// The send under way has used up its time.
    Limit,
    /// It has not answered for so long that another region is asked, too.
    Hedge,
}

/// Sets the timer, keeping the one that is there.
pub(super) fn arm(mut timer: Pin<&mut Option<Sleep>>, until: tokio::time::Instant) {
    match timer.as_mut().as_pin_mut() {
        Some(timer) => timer.reset(until),
        None => timer.set(Some(tokio::time::sleep_until(until))),
    }
}

impl<S, P, R, PB> Drop for Driver<S, P, R, PB> {
    fn drop(&mut self) {
        // Dropped while it waited for the service below to be ready: what was not sent costs
        // nothing (T4).
        if self.is_paid {
            self.operation.not_sent(&self.state);
        }
    }
}

impl<S: Clone, P, R, PB> Driver<S, P, R, PB> {
    /// A permit of the service below is for those who send now, not for one who waits. A clone
    /// has none.
    pub(super) fn forget_readiness(&mut self) {
        if std::mem::take(&mut self.is_ready) {
            self.service = self.service.clone();
        }
    }
}

impl<S, P, RB, PB> Driver<S, P, Response<RB>, PB> {
    pub(super) fn now(&self) -> Tick {
        self.state.tick(runtime::now())
    }

    pub(super) fn draw(&self) -> f64 {
        (self.state.extra().random)()
    }

    /// `Ready` when it is time to do something about the send under way.
    // Every call that waits comes by here.
    #[inline(always)]
    pub(super) fn poll_time<B>(
        &mut self,
        mut timer: Pin<&mut Option<Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<Due>
    where
        P: BodyPolicy<B, Body = PB>,
    {
        loop {
            if self.is_armed {
                match timer.as_mut().as_pin_mut() {
                    Some(timer) => ready!(timer.poll(cx)),
                    None => return Poll::Pending,
                }
            }
            let now = self.now();
            self.operation.set_sent_at(now);
            let upload = match &self.request {
                Some(kept) => self.policy.upload(kept.body()),
                None => Upload::Unwatched,
            };
            let settings = &self.state.extra().retry;
            let body_taken = match upload {
                Upload::Unwatched => None,
                // The time-out has not begun (T10). Looked at again when it would have ended.
                Upload::UnderWay => Some(now),
                Upload::TakenAt(at) => Some(self.state.tick(at)),
            };
            let limit = if self.operation.is_hedging() {
                self.first_limit
            } else {
                self.operation.send_limit(settings, body_taken)
            };
            if limit.is_some_and(|limit| limit <= now) {
                return Poll::Ready(Due::Limit);
            }
            let hedge_at = if self.has_hedge {
                None
            } else {
                self.operation.hedge_at(settings)
            };
            if hedge_at.is_some_and(|at| at <= now) {
                self.is_armed = false;
                self.first_limit = limit;
                return Poll::Ready(Due::Hedge);
            }
            let next = match (limit, hedge_at) {
                (Some(limit), Some(hedge_at)) => limit.min(hedge_at),
                (Some(at), None) | (None, Some(at)) => at,
                (None, None) => return Poll::Pending,
            };
            arm(timer.as_mut(), self.state.instant(next).into());
            self.is_armed = true;
        }
    }

    pub(super) fn decide<B>(&mut self) -> Next
    where
        P: BodyPolicy<B, Body = PB>,
    {
        let again = match &self.request {
            Some(request) if self.is_ready || self.policy.is_whole(request.body()) => {
                Again::Possible
            }
            _ => Again::BodyGone,
        };
        let now = self.now();
        let random = &self.state.extra().random;
        self.operation
            .next(&self.state, again, now, &mut || random())
    }

    /// Carries out a planned send. `None`: there is nothing to send any more.
    pub(super) fn send<B>(&mut self, outgoing: Outgoing) -> Option<Result<S::Future, Error>>
    where
        S: Service<Request<PB>, Response = Response<RB>>,
        P: BodyPolicy<B, Body = PB>,
    {
        let mut request = self.request.take()?;
        self.request = self.policy.keep_request(&request);
        if self.request.is_none() {
            self.sent = Some(Sent::of(&request));
        }
        let plan = &outgoing.plan;
        let known = self.operation.known();
        let directed = plan.directed.then_some(plan.destination);
        if let (Rank::Redirect, Some(destination)) = (self.rank, directed) {
            if let Err(error) = redirect(&self.state, &known, destination, &mut request) {
                return Some(Err(error));
            }
        }
        #[cfg(feature = "cosmos")]
        super::account::prepare(&mut request, outgoing.tentative, outgoing.new_connection);
        let handoff = Handoff::for_plan(&self.state, known, outgoing.plan);
        if let Some(handoff) = &handoff {
            request.extensions_mut().insert(handoff.clone());
        }
        self.handoff = handoff.filter(|_| self.rank == Rank::Retry && directed.is_some());
        self.is_ready = false;
        self.is_armed = false;
        self.is_paid = false;
        self.tell_send();
        let _scope = scope::enter_own(service_id(&self.state), self.rank);
        let service = &mut self.service;
        Some(Ok(match &self.kept {
            None => service.call(request),
            Some(kept) => kept.in_span(|| service.call(request)),
        }))
    }

    /// Gets a hedge ready to leave, if the request can be sent twice (H1).
    pub(super) fn prepare_hedge<B>(&mut self) -> Option<Pin<Box<Hedge<S, PB>>>>
    where
        S: Service<Request<PB>, Response = Response<RB>> + Clone,
        S::Error: Into<BoxError>,
        P: BodyPolicy<B, Body = PB>,
    {
        self.has_hedge = true;
        let kept = self
            .request
            .as_ref()
            .filter(|kept| self.policy.is_whole(kept.body()))?;
        let request = self.policy.keep_request(kept)?;
        let hedge = Hedge::new(self.service.clone(), request, self.state.clone());
        Some(Box::pin(hedge))
    }

    /// Drives a hedge, if there is one. When it is over, `Some` ends the operation.
    pub(super) fn poll_hedge<B>(
        &mut self,
        hedge: &mut Option<Pin<Box<Hedge<S, PB>>>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Response<RB>, Error>>>
    where
        S: Service<Request<PB>, Response = Response<RB>> + Clone,
        S::Error: Into<BoxError>,
        P: BodyPolicy<B, Body = PB>,
    {
        while let Some(mut sending) = hedge.as_mut().map(Pin::as_mut) {
            match ready!(sending.as_mut().poll_progress(cx)) {
                Progress::IsReady => {
                    let now = self.now();
                    let Some(outgoing) = self.operation.hedge(&self.state, now) else {
                        // No region may take it (H3).
                        *hedge = None;
                        return Poll::Ready(None);
                    };
                    let settings = &self.state.extra().retry;
                    let limit = self.operation.send_limit(settings, None);
                    let limit = limit.map(|limit| self.state.instant(limit).into());
                    self.tell_resend();
                    let known = self.operation.known();
                    let handoff = Handoff::for_plan(&self.state, known, outgoing.plan);
                    sending.send(handoff, limit);
                }
                Progress::NotSent => {
                    *hedge = None;
                    return Poll::Ready(None);
                }
                Progress::Ended(ended) => {
                    let handoff = sending.take_handoff();
                    *hedge = None;
                    return Poll::Ready(self.hedge_ended(ended, handoff));
                }
            }
        }
        Poll::Pending
    }

    /// Takes the end of a hedge; `Some` ends the operation.
    pub(super) fn hedge_ended(
        &mut self,
        ended: Ended<Response<RB>>,
        handoff: Option<Handoff>,
    ) -> Option<Result<Response<RB>, Error>> {
        self.operation.speak_of_hedge(true);
        if handoff.is_some_and(|handoff| handoff.has_stayed()) {
            self.operation.stay_home();
        }
        let end = match ended {
            Ended::Answered(response) => self.answered(response).map(Ok),
            Ended::Failed(error) => self.failed(error, false),
            Ended::TimedOut => {
                self.timed_out();
                None
            }
        };
        if end.is_none() {
            self.operation.wait_for_other();
        }
        end
    }

    /// What comes next is about the send for which a hedge may be under way. Returns whether it
    /// went elsewhere than it was directed to.
    pub(super) fn speak_of_first(&mut self) -> bool {
        if self.operation.is_hedging() {
            self.operation.speak_of_hedge(false);
        }
        self.check_carried_out()
    }
}
