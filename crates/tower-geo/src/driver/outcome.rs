//! What a driver makes of the end of a send, and of an operation.

use http::{Request, Response};
use tower_geo_policy::fault::Fault;
use tower_geo_policy::operation::{Answer, Failure, Fate, Finish};
use tower_geo_policy::read_floor::Key;
use tower_geo_policy::region::RegionId;
use tower_geo_policy::retry_after;
use tower_geo_policy::tick::Tick;
use tower_geo_policy::trail::Trail;

use super::sending::Driver;
use super::signature_limit;
use super::start::request_id;
use crate::error::{BoxError, Error, RequestLine};
use crate::last_sync::service_clock;
use crate::runtime::{self, State};
use crate::served::{Served, ServedAge};

impl<S, P, RB, PB> Driver<S, P, Response<RB>, PB> {
    /// A retry without a redirect below: the send went where the request said. Returns whether
    /// that was so.
    pub(super) fn check_carried_out(&mut self) -> bool {
        let stayed = self
            .handoff
            .take()
            .is_some_and(|handoff| handoff.has_stayed());
        if stayed {
            self.operation.stay_home();
        }
        stayed
    }

    /// Whether an answer can be handed over without a word: the healthy path. Otherwise nothing has
    /// changed, and [`answered`](Self::answered) takes it.
    #[inline]
    pub(super) fn hands_over(&mut self, response: &Response<RB>) -> bool {
        let Some(operation) = self.operation.plain() else {
            return false;
        };
        if self.handoff.is_some() || operation.is_hedging() || operation.written_key().is_some() {
            return false;
        }
        let state = &self.state;
        let (status, headers) = (response.status(), response.headers());
        let verdict = state
            .provider()
            .verdict(operation.intent(), status, headers);
        operation.delivers_in_silence(&runtime::context(state), verdict)
    }

    /// Takes an answer; `Some` is the one to hand over.
    #[inline]
    pub(super) fn answered(&mut self, response: Response<RB>) -> Option<Response<RB>> {
        let Some(operation) = self.operation.plain() else {
            #[cfg(feature = "cosmos")]
            return self.account_answered(response);
            #[cfg(not(feature = "cosmos"))]
            return Some(response);
        };
        let state = &self.state;
        let provider = state.provider();
        let (status, headers) = (response.status(), response.headers());
        let verdict = provider.verdict(operation.intent(), status, headers);
        if let Some(key) = operation.written_key() {
            note_write(state, key, &response);
        }
        if operation.delivers_in_silence(&runtime::context(state), verdict) {
            return Some(response);
        }
        let runtime = state.extra();
        let answer = Answer::new(
            status,
            verdict,
            provider.judge_copy(status, headers),
            retry_after::told_wait(headers, || (runtime.wall_clock)()),
        );
        let (now, draw) = (state.tick(runtime::now()), (runtime.random)());
        let region = operation.region();
        let met_a_stale_copy = operation.met_a_stale_copy();
        let fate = operation.answered(&runtime::context(state), &answer, now, draw);
        let meets_one_now = operation.met_a_stale_copy() != met_a_stale_copy;
        self.tell_end(status.as_str(), verdict);
        if meets_one_now {
            self.tell_stale();
        }
        self.limit_signature(now);
        self.take(fate, region, response, now)
    }

    /// Hands an answer over, or keeps it.
    pub(super) fn take(
        &mut self,
        fate: Fate,
        region: RegionId,
        response: Response<RB>,
        now: Tick,
    ) -> Option<Response<RB>> {
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
    pub(super) fn failed(
        &mut self,
        error: BoxError,
        stayed: bool,
    ) -> Option<Result<Response<RB>, Error>> {
        let error = Error::of_client(&self.state, error);
        if error.kind() == crate::ErrorKind::Config {
            return self.cannot_be_sent(error);
        }
        let fault = error.fault(&*self.state.extra().faults);
        // That the caller's body failed is no fault of the region, but it has left.
        let fault = fault.or_else(|| error.is_of_request_body().then_some(Fault::Reset));
        let Some(fault) = fault else {
            self.operation.not_sent(&self.state);
            if !stayed {
                return None;
            }
            // Refused where it went, and what is directed elsewhere goes there all the same:
            // every further send would end like this one.
            if self.operation.sends() == 0 {
                return Some(Err(error));
            }
            let finish = self.operation.finish_unready(&self.state);
            return Some(self.finish(finish));
        };
        self.note_fault(fault);
        self.kept.get_or_insert_default().error = Some(error.into_cause());
        None
    }

    /// The program is to blame: no further send would go better, nor is any region.
    fn cannot_be_sent(&mut self, error: Error) -> Option<Result<Response<RB>, Error>> {
        let is_hedging = self.operation.is_hedging();
        if !is_hedging && self.operation.sends() <= 1 {
            return Some(Err(error.in_operation(self.request_line())));
        }
        self.operation.not_sent(&self.state);
        if is_hedging {
            // The other send has left, and may answer.
            return None;
        }
        // What became of an earlier send is what the caller has to know.
        let finish = self.operation.finish_unready(&self.state);
        Some(self.finish(finish))
    }

    fn request_line(&self) -> Option<RequestLine> {
        let known = self.operation.known();
        let host = known
            .regions(&self.state)
            .get(self.home)
            .map(|region| region.endpoint().authority().to_string());
        let sent = || self.sent.as_ref().map(|sent| &sent.method);
        let method = self.request.as_ref().map(Request::method).or_else(sent);
        method.map(|method| RequestLine::new(method, host))
    }

    pub(super) fn timed_out(&mut self) {
        self.note_fault(Fault::TimedOut);
    }

    pub(super) fn note_fault(&mut self, fault: Fault) {
        let (now, draw) = (self.now(), self.draw());
        self.operation.faulted(&self.state, fault, now, draw);
        self.tell_end(fault.as_str(), fault.verdict());
        self.limit_signature(now);
    }

    pub(super) fn limit_signature(&mut self, now: Tick) {
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
    pub(super) fn never_ready(&mut self, error: Option<BoxError>) -> Result<Response<RB>, Error> {
        self.is_paid = false;
        self.operation.not_sent(&self.state);
        let finish = self.operation.finish_unready(&self.state);
        if let Some(error) = error {
            let cause = Error::from_inner(error).into_cause();
            self.kept.get_or_insert_default().error = Some(cause);
        }
        self.finish(finish)
    }

    pub(super) fn finish(&mut self, finish: Finish) -> Result<Response<RB>, Error> {
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
        let error = Error::of_operation(
            &self.state,
            self.operation.known(),
            failure,
            self.request_line(),
            self.operation.take_trail(),
            kept.error,
            self.now(),
        );
        #[cfg(feature = "cosmos")]
        let error = match self.operation.in_vain() {
            Some(shared) => error.without_account(shared.unread()),
            None => error,
        };
        self.tell_failure(&error);
        Err(error)
    }

    /// T8: so that a client above which repeats this operation can be told from others.
    pub(super) fn remember_failure(&self) {
        let kept_id = self.request.as_ref().and_then(request_id);
        let sent_id = || self.sent.as_ref().and_then(|sent| sent.id.as_ref());
        let id = kept_id.or_else(sent_id);
        if let Some(id) = id {
            let failed_ids = &self.state.extra().failed_ids;
            failed_ids.remember(id.as_bytes(), self.now());
        }
    }

    pub(super) fn with_served(
        &mut self,
        region: RegionId,
        mut response: Response<RB>,
    ) -> Response<RB> {
        let after_ambiguous = self.operation.is_after_ambiguous(response.status());
        let trail: Trail = self.operation.take_trail();
        let known = self.operation.known();
        let age = ServedAge::of(&self.state, &known, region, &response);
        self.tell_served(region, age.map(|age| age.freshness()));
        let served = Served::new(
            self.state.clone(),
            known,
            region,
            trail,
            after_ambiguous,
            age,
        );
        response.extensions_mut().insert(served);
        response
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
