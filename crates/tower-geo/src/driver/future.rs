use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderValue, Method, Request, Response};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_geo_policy::fault::Fault;
use tower_geo_policy::operation::{
    Again, Answer, Failure, Fate, Finish, Operation, Plan, Reach, Step,
};
use tower_geo_policy::read_floor::Key;
use tower_geo_policy::region::RegionId;
use tower_geo_policy::retry_after;
use tower_geo_policy::tick::Tick;
use tower_geo_policy::trail::Trail;
use tower_geo_policy::verdict::Verdict;
use tower_service::Service;

use super::answer::Kept;
use super::hedge::{Ended, Hedge};
use super::start::{keep_for_later, request_id};
use super::{copy_request, signature_limit};
use crate::body::{BodyPolicy, Upload};
use crate::error::{BoxError, Error, RequestLine};
use crate::handoff::Handoff;
use crate::last_sync::service_clock;
use crate::redirect::redirect;
use crate::runtime::{self, State, service_id};
use crate::scope::{self, Rank};
use crate::served::{Served, ServedAge};

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
        Readying { plan: Option<Plan> },
        // A send is under way; beside it perhaps a hedge.
        Sending { #[pin] future: F },
        // The first send has failed, the hedge is still under way (H2).
        HedgeOnly,
        // Nothing may be sent before the timer ends.
        Waiting,
        // The end was handed over.
        Done,
    }
}

/// All but the futures.
struct Driver<S, P, R, PB> {
    service: S,
    /// Whether the service is ready for a call.
    is_ready: bool,
    /// Whether the timer is set for the send under way.
    is_armed: bool,
    /// When the first send is given up, while a hedge is under way beside it.
    first_limit: Option<Tick>,
    /// Whether a send has been paid for and has not left.
    is_paid: bool,
    policy: P,
    state: State,
    rank: Rank,
    method: Method,
    home: RegionId,
    operation: Operation,
    /// What is sent next; once it is sent, the copy that was kept.
    request: Option<Request<PB>>,
    /// The id of the request, once it was sent without a copy (T8).
    sent_id: Option<HeaderValue>,
    /// What was handed to a redirect below with the send under way.
    handoff: Option<Handoff>,
    kept: Option<Box<Kept<R>>>,
}

/// What it is time for.
enum Due {
    /// The send under way has used up its time.
    Limit,
    /// It has not answered for so long that another region is asked, too.
    Hedge,
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
        operation: Operation,
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
            let _scope = scope::enter(service_id(&setting.state), setting.rank);
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
        operation: Operation,
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
        operation: Operation,
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

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let driver = this.driver;
        loop {
            match this.phase.as_mut().project() {
                PhaseProj::Sending { future } => {
                    let polled = {
                        let _scope = scope::enter(service_id(&driver.state), driver.rank);
                        future.poll(cx)
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
                            if let Some(hedge) = this.hedge {
                                if let Poll::Ready(ended) = hedge.as_mut().poll_end(cx) {
                                    *this.hedge = None;
                                    if let Some(end) = driver.hedge_ended(ended) {
                                        let _scope = scope::enter_outrun(&driver.state);
                                        this.phase.set(Phase::Done);
                                        return Poll::Ready(end);
                                    }
                                    // The pending send is waited for, alone (H2).
                                    continue;
                                }
                            }
                            match ready!(driver.poll_time::<B>(this.timer.as_mut(), cx)) {
                                Due::Hedge => {
                                    *this.hedge = driver.hedge::<B>();
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
                    if this.hedge.is_some() {
                        driver.operation.wait_for_other();
                        this.phase.set(Phase::HedgeOnly);
                    } else {
                        this.phase.set(Phase::Deciding);
                    }
                }
                PhaseProj::HedgeOnly => {
                    if let Some(hedge) = this.hedge {
                        let ended = ready!(hedge.as_mut().poll_end(cx));
                        *this.hedge = None;
                        if let Some(end) = driver.hedge_ended(ended) {
                            this.phase.set(Phase::Done);
                            return Poll::Ready(end);
                        }
                    }
                    this.phase.set(Phase::Deciding);
                }
                PhaseProj::Deciding => match driver.decide::<B>() {
                    Step::Send(plan) => {
                        driver.is_paid = true;
                        this.phase.set(Phase::Readying { plan: Some(plan) });
                    }
                    Step::Wait(until) => {
                        driver.forget_readiness();
                        let until = driver.state.instant(until).into();
                        arm(this.timer.as_mut(), until);
                        this.phase.set(Phase::Waiting);
                    }
                    Step::Finish(finish) => {
                        this.phase.set(Phase::Done);
                        return Poll::Ready(driver.finish(finish));
                    }
                    // A step that this version does not know ends the operation with what it has.
                    _ => {
                        this.phase.set(Phase::Done);
                        return Poll::Ready(driver.finish(Finish::Failure(Failure::Transport)));
                    }
                },
                PhaseProj::Waiting => {
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

/// F5: an acknowledged write is not read from a copy that may lack it. The service's own clock
/// says when that was.
fn note_write<B>(state: &State, key: Key, response: &Response<B>) {
    let runtime = state.extra();
    if let Some(floor) = runtime
        .copies
        .floor
        .as_ref()
        .filter(|_| response.status().is_success())
    {
        floor.raise(key, service_clock(state, response.headers()));
    }
}

/// Sets the timer, keeping the one that is there.
fn arm(mut timer: Pin<&mut Option<Sleep>>, until: tokio::time::Instant) {
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
            self.operation.not_sent(&runtime::context(&self.state));
        }
    }
}

impl<S: Clone, P, R, PB> Driver<S, P, R, PB> {
    /// A permit of the service below is for those who send now, not for one who waits. A clone
    /// has none.
    fn forget_readiness(&mut self) {
        if std::mem::take(&mut self.is_ready) {
            self.service = self.service.clone();
        }
    }
}

impl<S, P, RB, PB> Driver<S, P, Response<RB>, PB> {
    fn now(&self) -> Tick {
        self.state.tick(runtime::now())
    }

    fn draw(&self) -> f64 {
        (self.state.extra().random)()
    }

    /// `Ready` when it is time to do something about the send under way.
    fn poll_time<B>(
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
            let hedge_at = self.operation.hedge_at(settings);
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

    fn decide<B>(&mut self) -> Step
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
            .next(&runtime::context(&self.state), again, now, &mut || random())
    }

    /// Carries out a planned send. `None`: there is nothing to send any more.
    fn send<B>(&mut self, plan: Plan) -> Option<Result<S::Future, Error>>
    where
        S: Service<Request<PB>, Response = Response<RB>>,
        P: BodyPolicy<B, Body = PB>,
    {
        let mut request = self.request.take()?;
        self.request = copy_request(&self.policy, &request);
        if self.request.is_none() {
            self.sent_id = request_id(&request).cloned();
        }
        let directed = plan.directed.then_some(plan.destination);
        if let (Rank::Redirect, Some(destination)) = (self.rank, directed) {
            if let Err(error) = redirect(&self.state, destination, &mut request) {
                return Some(Err(error));
            }
        }
        let handoff = Handoff::for_plan(&self.state, plan);
        if let Some(handoff) = &handoff {
            request.extensions_mut().insert(handoff.clone());
        }
        self.handoff = handoff.filter(|_| self.rank == Rank::Retry && directed.is_some());
        self.is_ready = false;
        self.is_armed = false;
        self.is_paid = false;
        let _scope = scope::enter(service_id(&self.state), self.rank);
        Some(Ok(self.service.call(request)))
    }

    /// Begins a hedge, if a region is there for it and the request can be sent twice (H1, H3).
    fn hedge<B>(&mut self) -> Option<Pin<Box<Hedge<S, PB>>>>
    where
        S: Service<Request<PB>, Response = Response<RB>> + Clone,
        S::Error: Into<BoxError>,
        P: BodyPolicy<B, Body = PB>,
    {
        let now = self.now();
        let kept = self
            .request
            .as_ref()
            .filter(|kept| self.policy.is_whole(kept.body()));
        let copy = kept.and_then(|kept| copy_request(&self.policy, kept));
        let plan = self
            .operation
            .hedge(&runtime::context(&self.state), now)
            .filter(|_| copy.is_some())?;
        let mut request = copy?;
        if let Some(handoff) = Handoff::for_plan(&self.state, plan) {
            request.extensions_mut().insert(handoff);
        }
        let settings = &self.state.extra().retry;
        let limit = self.operation.send_limit(settings, None);
        let limit = limit.map(|limit| self.state.instant(limit).into());
        let hedge = Hedge::new(self.service.clone(), request, limit, self.state.clone());
        Some(Box::pin(hedge))
    }

    /// Takes the end of a hedge; `Some` ends the operation.
    fn hedge_ended(&mut self, ended: Ended<Response<RB>>) -> Option<Result<Response<RB>, Error>> {
        self.operation.speak_of_hedge(true);
        let end = match ended {
            Ended::Answered(response) => self.answered(response).map(Ok),
            Ended::Failed(error) => self.failed(error, false),
            Ended::TimedOut => {
                self.timed_out();
                None
            }
            Ended::NotSent => {
                self.operation.not_sent(&runtime::context(&self.state));
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
    fn speak_of_first(&mut self) -> bool {
        if self.operation.is_hedging() {
            self.operation.speak_of_hedge(false);
        }
        self.check_carried_out()
    }

    /// A retry without a redirect below: the send went where the request said. Returns whether
    /// that was so.
    fn check_carried_out(&mut self) -> bool {
        let stayed = self
            .handoff
            .take()
            .is_some_and(|handoff| !handoff.was_carried_out());
        if stayed {
            self.operation.stay_home();
        }
        stayed
    }

    /// Takes an answer; `Some` is the one to hand over.
    fn answered(&mut self, response: Response<RB>) -> Option<Response<RB>> {
        let state = &self.state;
        let provider = state.provider();
        let (status, headers) = (response.status(), response.headers());
        let verdict = provider.verdict(self.operation.intent(), status, headers);
        if let Some(key) = self.operation.written_key() {
            note_write(state, key, &response);
        }
        if self
            .operation
            .delivers_in_silence(&runtime::context(state), verdict)
        {
            return Some(response);
        }
        let wall_clock = &state.extra().wall_clock;
        let answer = Answer::new(
            status,
            verdict,
            provider.judge_copy(status, headers),
            retry_after::told_wait(headers, || wall_clock()),
        );
        let (now, draw) = (self.now(), self.draw());
        let region = self.operation.region();
        let fate = self
            .operation
            .answered(&runtime::context(&self.state), &answer, now, draw);
        self.tell(region, status.as_str(), verdict);
        self.limit_signature(now);
        match fate {
            Fate::Deliver { told: false } => return Some(response),
            Fate::Deliver { .. } => {
                self.operation.give_other_up(now);
                return Some(self.with_served(region, response));
            }
            Fate::Hold => self.kept.get_or_insert_default().held = Some((region, response)),
            Fate::Keep => self.kept.get_or_insert_default().of_copy = Some((region, response)),
            _ => {}
        }
        None
    }

    /// Takes an error; `Some` is the end of the operation. `stayed` says that the send went where
    /// the request said, although it was directed elsewhere.
    fn failed(&mut self, error: BoxError, stayed: bool) -> Option<Result<Response<RB>, Error>> {
        let error = Error::from_inner(error);
        if error.kind() == crate::ErrorKind::Config {
            return Some(Err(error));
        }
        let Some(fault) = error.fault(&*self.state.extra().faults) else {
            let context = runtime::context(&self.state);
            self.operation.not_sent(&context);
            if !stayed {
                return None;
            }
            // Refused where it went, and what is directed elsewhere goes there all the same:
            // every further send would end like this one.
            if self.operation.sends() == 0 {
                return Some(Err(error));
            }
            let finish = self.operation.finish_unready(&context);
            return Some(self.finish(finish));
        };
        self.note_fault(fault);
        self.kept.get_or_insert_default().error = Some(error.into_cause());
        None
    }

    fn timed_out(&mut self) {
        self.note_fault(Fault::TimedOut);
    }

    fn note_fault(&mut self, fault: Fault) {
        let (now, draw) = (self.now(), self.draw());
        let region = self.operation.region();
        self.operation
            .faulted(&runtime::context(&self.state), fault, now, draw);
        self.tell(region, fault.as_str(), fault.verdict());
        self.limit_signature(now);
    }

    /// E3: what became of a send that was not simply handed over.
    fn tell(&self, region: RegionId, ending: &str, verdict: Verdict) {
        tracing::debug!(
            service = self.state.name(),
            region = crate::served::region_name(&self.state, region),
            attempt = self.operation.sends(),
            ending,
            ?verdict,
            "a send has ended"
        );
    }

    fn limit_signature(&mut self, now: Tick) {
        if self.operation.has_signature_limit() {
            return;
        }
        if let Some(request) = &self.request {
            let sent_at = self.operation.started().unwrap_or(now);
            let limit = signature_limit(&self.state, request, sent_at, now);
            self.operation.set_signature_limit(limit);
        }
    }

    /// The end of an operation that found the service below not ready in time: the answer that
    /// it holds, if there is one (T7).
    fn never_ready(&mut self, error: Option<BoxError>) -> Result<Response<RB>, Error> {
        let context = runtime::context(&self.state);
        self.is_paid = false;
        self.operation.not_sent(&context);
        let finish = self.operation.finish_unready(&context);
        if let Some(error) = error {
            let cause = Error::from_inner(error).into_cause();
            self.kept.get_or_insert_default().error = Some(cause);
        }
        self.finish(finish)
    }

    fn finish(&mut self, finish: Finish) -> Result<Response<RB>, Error> {
        self.remember_failure();
        let kept = self.kept.take().map(|kept| *kept).unwrap_or_default();
        let failure = match finish {
            Finish::Answer | Finish::Kept => {
                let answer = if finish == Finish::Answer {
                    kept.held
                } else {
                    kept.of_copy
                };
                if let Some((region, response)) = answer {
                    return Ok(self.with_served(region, response));
                }
                Failure::Transport
            }
            Finish::Failure(failure) => failure,
            _ => Failure::Transport,
        };
        let host = self
            .state
            .regions()
            .get(self.home)
            .map(|region| region.endpoint().authority().to_string());
        Err(Error::of_operation(
            &self.state,
            failure,
            RequestLine::new(&self.method, host),
            self.operation.take_trail(),
            kept.error,
            self.now(),
        ))
    }

    /// T8: so that a client above which repeats this operation can be told from others.
    fn remember_failure(&self) {
        let kept_id = self.request.as_ref().and_then(request_id);
        let id = kept_id.or(self.sent_id.as_ref());
        if let Some(id) = id {
            let failed_ids = &self.state.extra().failed_ids;
            failed_ids.remember(id.as_bytes(), self.now());
        }
    }

    fn with_served(&mut self, region: RegionId, mut response: Response<RB>) -> Response<RB> {
        let after_ambiguous = self.operation.is_after_ambiguous(response.status());
        let trail: Trail = self.operation.take_trail();
        let age = ServedAge::of(&self.state, region, &response);
        let served = Served::new(self.state.clone(), region, trail, after_ambiguous, age);
        response.extensions_mut().insert(served);
        response
    }
}
