//! What comes next in one operation on a Cosmos DB account: the counterpart of
//! [`crate::operation`], whose rules R2 to R6, T1, T2 and verdict table do not apply here (C15).
//!
//! An [`Operation`] is told what became of each send and says what to do next: send to a region,
//! wait, wait for a read of the account, hand an answer over, fail (C4 to C9). It does no I/O and
//! reads no clock.
//!
//! | after | comes | at most |
//! |---|---|---|
//! | 403/3, 403/1008 | the account read, then the new choice (C5) | 4 times: 0, 1, 2 and 4 s after the first |
//! | 404/1002 of a read | the writer; on a multi-write account the other regions (C6) | each once |
//! | 500, 502, 503, 504, 408, 410/1022, silence | another region, if the request may move (C7) | each once |
//! | no connection | the same region over a new one, then another; a write with one place to go follows the new writer (C8) | each twice |
//! | 429 | the same region after the told wait (C9) | 9 times, 30 s |
//! | 449 | the same region after 10 ms, doubled up to 1 s (C9) | 30 s |

mod choice;
mod outcome;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::breaker::{Admission, Circuit, Circuits, ProbeSlot};
use crate::budget;
use crate::gate::{GateStatus, ReadOnlyWhy};
use crate::intent::Intent;
use crate::operation::{self, Again, Plan, Reach, RegionRef, RequestOptions};
use crate::region::{Destination, ReadProof, RegionId};
use crate::retry_settings::RetrySettings;
use crate::tick::Tick;
use crate::trail::{SendKind, Trail};
use crate::verdict::{Evidence, Verdict};

use super::account_reads::{Cause, ReadEnd, Wish};
use super::intents::RequestKind;
use super::names::RegionName;
use super::routing::{Route, bit};
use super::state::AccountState;
use super::topology::Topology;

pub use self::outcome::Answer;

/// What an operation needs to know of its service and its account.
#[derive(Debug)]
pub struct Context<'a, X> {
    /// The service: circuits, gate, budgets, deadline, advice. Its own regions are not looked at.
    pub service: operation::Context<'a, X>,
    /// The account.
    pub account: &'a AccountState,
}

impl<'a, X> Context<'a, X> {
    /// A service and its account.
    #[must_use]
    pub const fn new(service: operation::Context<'a, X>, account: &'a AccountState) -> Self {
        Self { service, account }
    }
}

/// What to do next.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// Send the request.
    Send(Directed),
    /// Come back at this time and ask again.
    Wait(Tick),
    /// Come back when an account read has ended and ask again. Reads are begun by the task that
    /// looks at [`AccountState::read_step`], which has been woken.
    AwaitAccount(AwaitAccount),
    /// Nothing more is sent.
    Finish(Finish),
}

/// One send that is due.
#[derive(Debug)]
#[non_exhaustive]
pub struct Directed {
    /// Where it goes, and why. The destination belongs to [`Operation::topology`].
    pub plan: Plan,
    /// Whether it has to carry [`ALLOW_TENTATIVE_WRITES`](super::ALLOW_TENTATIVE_WRITES) (C12).
    pub tentative: bool,
    /// Whether the send before this one found no connection, so that this one should make one of
    /// its own (C8).
    pub new_connection: bool,
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwaitAccount {
    /// Come back when [`AccountState::reads_finished`] is more than this.
    pub finished: u64,
    /// Or at this time: the deadline.
    pub until: Option<Tick>,
}

/// How an operation ends when nothing more is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// With the answer that was to be held ([`operation::Fate::Hold`]).
    Answer,
    /// With an error.
    Failure(operation::Failure),
    /// With an error of configuration.
    Misfit(Misfit),
}

/// What a request asks for that its service is not configured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misfit {
    /// Every region that it may use is excluded (C11).
    AllExcluded,
    /// It is a write and pinned to a region that takes none (R10).
    WriteToReader,
    /// It is pinned to a region that the account does not have (R10).
    UnknownRegion,
    /// The account refused to be read, so nothing is known of it (C3).
    AccountRefused(StatusCode),
}

/// What is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// The first send.
    First,
    /// A region that was not tried yet (C6, C7, C8).
    Move {
        /// After 404/1002: on a single-write account the writer (C6).
        lag: bool,
        /// If there is none: the account read, and the new writer (C8).
        follow: bool,
    },
    /// The same region once more, at this time (C8, C9).
    Back { region: RegionId, at: Tick },
    /// At this time, the account read and the new choice (C5).
    Refused { at: Tick },
    /// The account read and the new writer (C8).
    Follow,
    /// The choice, now that the account was read (C5, C8).
    Choose,
    /// Nothing.
    Over,
}

/// The one place that a request may go to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pin {
    /// As the caller named it.
    Named(RegionRef),
    /// As the request names it by its host (R10).
    Host,
}

/// The decisions of one call on a Cosmos DB account.
#[derive(Debug)]
pub struct Operation {
    request: RequestKind,
    intent: Intent,
    reach: Reach,
    home: RegionId,
    pin: Option<Pin>,
    excluded: Option<Box<[RegionName]>>,
    replayable: bool,
    is_delete: bool,
    repeats_a_failure: bool,
    sends: u32,
    started: Option<Tick>,
    signature_limit: Option<Tick>,
    slot: Option<ProbeSlot>,
    /// What holds for this operation until it has waited for an account read.
    topology: Option<Arc<Topology>>,
    due: Due,
    /// The time since which an account read counts, while one is waited for.
    reading: Option<Tick>,
    current: Current,
    past: Option<Box<Past>>,
}

/// The send under way.
#[derive(Debug)]
struct Current {
    region: RegionId,
    kind: SendKind,
    probe: bool,
    /// How many admissible regions had not been tried, this one included (T3).
    shares: u32,
    paid: u32,
    waited: Duration,
    at: Option<Tick>,
    cut_by_deadline: bool,
}

/// What is only needed once a send has failed. Sets of regions have a bit for each.
#[derive(Debug, Default)]
struct Past {
    trail: Trail,
    /// Not asked again in this operation.
    done: u16,
    /// Have refused (C5).
    refused: u16,
    /// Could not be reached once (C8).
    unreachable: u16,
    first_refusal: Option<Tick>,
    refusals: usize,
    first_throttled: Option<Tick>,
    throttled: u32,
    first_retry_with: Option<Tick>,
    retries_with: u32,
    holds_answer: bool,
    /// The advice on the send after so many sends (T9).
    advised: Option<(u32, choice::Choice)>,
}

impl Operation {
    /// An operation for a request of that kind which names the region `home`: the given host, or
    /// a region's own, to which it is then pinned (R10).
    #[must_use]
    pub fn new(request: RequestKind, home: RegionId, reach: Reach) -> Self {
        Self {
            request,
            intent: request.intent(),
            reach,
            home,
            pin: (home != RegionId::FIRST).then_some(Pin::Host),
            excluded: None,
            replayable: false,
            is_delete: false,
            repeats_a_failure: false,
            sends: 0,
            started: None,
            signature_limit: None,
            slot: None,
            topology: None,
            due: Due::First,
            reading: None,
            current: Current {
                region: home,
                kind: SendKind::First,
                probe: false,
                shares: 1,
                paid: 0,
                waited: Duration::ZERO,
                at: None,
                cut_by_deadline: false,
            },
            past: None,
        }
    }

    /// Takes what the caller says of this request. Location modes mean nothing here.
    pub fn set_options(&mut self, options: &RequestOptions) {
        if let Some(pin) = options.get_pin() {
            self.pin = Some(Pin::Named(pin.clone()));
        }
        self.replayable |= options.is_replayable();
    }

    /// Takes the regions that the caller excludes for this request, instead of those that the
    /// service excludes (C11).
    pub fn set_excluded<I>(&mut self, regions: I)
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let names = regions.into_iter();
        self.excluded = Some(names.map(|name| RegionName::new(name.as_ref())).collect());
    }

    /// Hands in a probe slot that was taken further out (G2, B4).
    pub fn set_slot(&mut self, slot: ProbeSlot) {
        self.slot = Some(slot);
    }

    /// Says that this is a DELETE, for which 404 may be its own doing (V2).
    pub const fn set_is_delete(&mut self) {
        self.is_delete = true;
    }

    /// Says that a client above repeats an operation that has failed lately: it pays (T8).
    pub const fn set_repeats_a_failure(&mut self) {
        self.repeats_a_failure = true;
    }

    /// The time after which the signed bytes must not be sent again (T5).
    pub const fn set_signature_limit(&mut self, limit: Tick) {
        self.signature_limit = Some(limit);
    }

    /// Whether [`set_signature_limit`](Self::set_signature_limit) was called.
    #[must_use]
    pub const fn has_signature_limit(&self) -> bool {
        self.signature_limit.is_some()
    }

    /// What the request does.
    #[must_use]
    pub const fn intent(&self) -> Intent {
        self.intent
    }

    /// The circuit that its sends use.
    #[must_use]
    pub const fn circuit(&self) -> Circuit {
        operation::circuit_of(self.intent)
    }

    /// What was tried so far.
    #[must_use]
    pub fn trail(&self) -> Option<&Trail> {
        self.past.as_ref().map(|past| &past.trail)
    }

    /// Takes what was tried out of a finished operation. Empty if its only send went well.
    #[must_use]
    pub fn take_trail(&mut self) -> Trail {
        self.past
            .as_mut()
            .map_or_else(Trail::default, |past| std::mem::take(&mut past.trail))
    }

    /// How many sends have left, the one under way included.
    #[must_use]
    pub const fn sends(&self) -> u32 {
        self.sends
    }

    /// When the operation began, as far as anybody has asked.
    #[must_use]
    pub const fn started(&self) -> Option<Tick> {
        self.started
    }

    /// The region of the send under way.
    #[must_use]
    pub const fn region(&self) -> RegionId {
        self.current.region
    }

    /// The topology that holds for the send under way; none before the first.
    #[must_use]
    pub const fn topology(&self) -> Option<&Arc<Topology>> {
        self.topology.as_ref()
    }

    /// Tells that the send under way went where the request says although it was directed
    /// elsewhere: there is no redirect below. From now on the operation stays home.
    pub const fn stay_home(&mut self) {
        self.reach = Reach::Home;
        self.current.region = self.home;
    }

    /// Tells the time of the send under way, as soon as somebody knows it.
    pub fn set_sent_at(&mut self, now: Tick) {
        self.started.get_or_insert(now);
        self.current.at.get_or_insert(now);
    }

    /// Tries the healthy path of a request that is not directed anywhere: with discovery off, or
    /// naming a region's own host, and nothing unusual. Returns whether the request is to be sent
    /// as it is. Otherwise [`next`](Self::next) decides; for most requests of an account with
    /// several regions it does.
    #[must_use]
    pub fn go_home<X>(&mut self, context: &Context<'_, X>) -> bool {
        if self.slot.is_some() || self.repeats_a_failure || matches!(self.pin, Some(Pin::Named(_))) {
            return false;
        }
        if !context.service.state.is_calm() {
            return false;
        }
        let topology = context.account.topology();
        let is_only_place = match self.pin {
            Some(_) => topology.lists(self.home) && self.excludes(&topology) & bit(self.home) == 0,
            None => topology.is_known() && !context.account.settings().get_discovery(),
        };
        let takes_it = self.intent.is_read() || topology.writable().contains(self.home);
        let as_it_is = is_only_place
            && takes_it
            && !topology.is_tentative(self.request.route(), self.home);
        if as_it_is {
            self.sends = 1;
            self.topology = Some(topology);
        }
        as_it_is
    }

    /// The time at which the send under way is given up, and what gives it up: its own time-out
    /// and its share of the deadline (T3, T10), or the deadline.
    ///
    /// `body_taken` is when the last byte of the request's body was taken, where that is known.
    #[must_use]
    pub fn send_limit(&self, settings: &RetrySettings, body_taken: Option<Tick>) -> Option<Tick> {
        if self.reach == Reach::OnceEach {
            return None;
        }
        let at = self.current.at?;
        let attempt = settings
            .get_attempt_timeout()
            .map(|timeout| body_taken.unwrap_or(at).max(at) + timeout);
        let share = self
            .deadline(settings)
            .map(|deadline| at + deadline.since(at) / self.current.shares.max(1));
        match (attempt, share) {
            (Some(attempt), Some(share)) => Some(attempt.min(share)),
            (attempt, share) => attempt.or(share),
        }
    }

    fn deadline(&self, settings: &RetrySettings) -> Option<Tick> {
        if self.reach == Reach::OnceEach {
            return None;
        }
        Some(self.started? + settings.get_deadline()?)
    }

    /// What to do next. Called for the first send (unless [`go_home`](Self::go_home) said yes),
    /// after a wait of either kind, and after each outcome that was not delivered.
    ///
    /// `draw` gives a random number from `0.0..1.0`.
    pub fn next<X>(
        &mut self,
        context: &Context<'_, X>,
        again: Again,
        now: Tick,
        draw: &mut dyn FnMut() -> f64,
    ) -> Step {
        self.started.get_or_insert(now);
        if let Err(step) = self.know_the_account(context, now) {
            return step;
        }
        if self.sends == 0 {
            if let Err(misfit) = self.check_fit(context, now) {
                return Step::Finish(Finish::Misfit(misfit));
            }
        } else if self.due == Due::Over || self.is_stopped(context, now) {
            return Step::Finish(self.finish(None));
        }
        let mut unavailable = 0;
        let mut earliest = None;
        loop {
            if let Err(step) = self.read_the_account(context, again, now) {
                return step;
            }
            let found = self.choose(context, now, unavailable, &mut earliest, draw);
            let Some(mut choice) = found else {
                if self.has_another_way(context) {
                    continue;
                }
                return Step::Finish(self.finish(earliest));
            };
            if self.sends > 0 {
                if again == Again::BodyGone {
                    return Step::Finish(Finish::Failure(self.body_is_gone()));
                }
                match self.take_advice(context, choice, now, unavailable, draw) {
                    Some(advised) => choice = advised,
                    None => return Step::Finish(self.finish(None)),
                }
            }
            if choice.ready > now {
                return Step::Wait(choice.ready);
            }
            match self.admit(context, &choice, now) {
                Ok(directed) => return Step::Send(directed),
                Err(until) => {
                    unavailable |= bit(choice.region);
                    earliest = choice::earlier(earliest, until);
                }
            }
        }
    }

    /// C8: what comes when what is due cannot be done: after a second connection that may not be
    /// tried another region, after the last region the new writer.
    fn has_another_way<X>(&mut self, context: &Context<'_, X>) -> bool {
        match self.due {
            Due::Back { region, .. } if self.last_was_unreachable() => {
                let follow = self.may_follow(context);
                if let Some(past) = &mut self.past {
                    past.done |= bit(region);
                }
                self.due = Due::Move { lag: false, follow };
                true
            }
            Due::Move { follow: true, .. } => {
                self.due = Due::Follow;
                true
            }
            _ => false,
        }
    }

    /// C3: waits for the first topology; who has one keeps it.
    fn know_the_account<X>(&mut self, context: &Context<'_, X>, now: Tick) -> Result<(), Step> {
        if self.topology.is_some() {
            return Ok(());
        }
        let account = context.account;
        let finished = account.reads_finished();
        let topology = account.topology();
        if topology.is_known() {
            self.reading = None;
            self.topology = Some(topology);
            return Ok(());
        }
        let since = *self.reading.get_or_insert_with(|| account.join(now));
        let end = match account.wish(Cause::Refusal, since, now) {
            Wish::Granted(last) => last.end,
            Wish::Pending(_) => return Err(self.await_account(context, finished, now)),
        };
        match end {
            ReadEnd::Taken => {
                self.reading = None;
                self.topology = Some(account.topology());
                Ok(())
            }
            ReadEnd::Refused(status) => {
                Err(Step::Finish(Finish::Misfit(Misfit::AccountRefused(status))))
            }
            ReadEnd::Failed => Err(Step::Finish(Finish::Failure(operation::Failure::Transport))),
        }
    }

    /// C5, C8: where an account read is due before the next choice, waits for it.
    fn read_the_account<X>(
        &mut self,
        context: &Context<'_, X>,
        again: Again,
        now: Tick,
    ) -> Result<(), Step> {
        let (at, cause) = match self.due {
            Due::Refused { at } => (at.max(now), Cause::Refusal),
            Due::Follow => (now, Cause::Unreachable),
            _ => return Ok(()),
        };
        if again == Again::BodyGone {
            return Err(Step::Finish(Finish::Failure(self.body_is_gone())));
        }
        if self.is_too_late(context, at) || (at > now && self.reach == Reach::OnceEach) {
            return Err(Step::Finish(self.finish(None)));
        }
        if at > now {
            return Err(Step::Wait(at));
        }
        let since = *self.reading.get_or_insert(now);
        let finished = context.account.reads_finished();
        if let Wish::Pending(begins) = context.account.wish(cause, since, now) {
            if self.is_too_late(context, begins) {
                return Err(Step::Finish(self.finish(None)));
            }
            return Err(self.await_account(context, finished, now));
        }
        self.reading = None;
        self.topology = Some(context.account.topology());
        self.due = Due::Choose;
        Ok(())
    }

    fn await_account<X>(&self, context: &Context<'_, X>, finished: u64, now: Tick) -> Step {
        let until = self.deadline(context.service.settings);
        if until.is_some_and(|until| until <= now) {
            return Step::Finish(self.finish(None));
        }
        Step::AwaitAccount(AwaitAccount { finished, until })
    }

    /// Whether nothing may be sent any more at that time (T3, T5).
    fn is_too_late<X>(&self, context: &Context<'_, X>, at: Tick) -> bool {
        let past_deadline = self
            .deadline(context.service.settings)
            .is_some_and(|deadline| at >= deadline);
        let past_signature = self.sends > 0 && self.signature_limit.is_some_and(|limit| at > limit);
        past_deadline || past_signature
    }

    /// A write that waits for its next send ends with what it has when an operator closes the
    /// gate (G4). What a breaker closes is one region, which is then not admissible; a write may
    /// still follow the new writer.
    fn is_stopped<X>(&self, context: &Context<'_, X>, now: Tick) -> bool {
        let state = context.service.state;
        if !self.intent.is_write() || state.is_calm() {
            return false;
        }
        let gate = state.gate(now);
        gate.status != GateStatus::ReadWrite
            && matches!(
                gate.why,
                Some(ReadOnlyWhy::Operator | ReadOnlyWhy::Maintenance)
            )
    }

    fn check_fit<X>(&self, context: &Context<'_, X>, now: Tick) -> Result<(), Misfit> {
        let Some(topology) = &self.topology else {
            return Ok(());
        };
        if self.pin.is_some() {
            let pinned = self.pinned_to(context, topology, now);
            let pinned = pinned.ok_or(Misfit::UnknownRegion)?;
            if self.intent.is_write() && topology.regions().write_target(pinned).is_none() {
                return Err(Misfit::WriteToReader);
            }
        }
        self.all_candidates(context, topology, now)
            .map(drop)
            .map_err(|_| Misfit::AllExcluded)
    }

    /// Takes the slot and the tokens that a send needs, and begins it.
    fn admit<X>(
        &mut self,
        context: &Context<'_, X>,
        choice: &choice::Choice,
        now: Tick,
    ) -> Result<Directed, Option<Tick>> {
        let region = choice.region;
        let destination = self.destination(region).ok_or(None)?;
        // A slot of another region is given back.
        let slot = match self.slot.take().filter(|slot| slot.region() == region) {
            Some(slot) => Some(slot),
            None => match context.service.state.admit(region, self.circuit(), now) {
                Ok(Admission::Probe(slot)) => Some(slot),
                Ok(_) => None,
                Err(refusal) => return Err(refusal.until),
            },
        };
        let paid = self.pay(context, region).ok_or(None)?;
        let tried = self.tried(region);
        let kind = match (self.sends, tried) {
            (0, _) => SendKind::First,
            (_, false) => SendKind::FallOver,
            (_, true) => SendKind::Retry,
        };
        let last = self.past.as_ref().and_then(|past| past.trail.sends().last());
        let waited = last
            .zip(self.started)
            .map_or(Duration::ZERO, |(last, started)| {
                now.since(started + last.at + last.took)
            });
        let new_connection = tried && self.past.as_ref().is_some_and(|p| p.unreachable & bit(region) != 0);
        let tentative = self
            .topology
            .as_ref()
            .is_some_and(|topology| topology.is_tentative(self.request.route(), region));
        self.sends += 1;
        self.current = Current {
            region,
            kind,
            probe: slot.is_some(),
            shares: choice.shares,
            paid,
            waited,
            at: Some(now),
            cut_by_deadline: false,
        };
        let plan = Plan {
            destination,
            kind,
            directed: region != self.home,
            slot,
            failure_given: self.failure_given(region),
        };
        Ok(Directed {
            plan,
            tentative,
            new_connection,
        })
    }

    /// Every further send costs a token, wherever it goes (C9, C15). The first costs nothing,
    /// unless a client above repeats what has just failed (T8).
    fn pay<X>(&self, context: &Context<'_, X>, region: RegionId) -> Option<u32> {
        let Some(bucket) = context.service.budgets.get(region.index()) else {
            return Some(0);
        };
        if self.sends == 0 {
            if self.repeats_a_failure {
                bucket.pay_what_is_there(budget::RETURN);
            }
            return Some(0);
        }
        bucket
            .try_pay(budget::FIRST_VISIT)
            .then_some(budget::FIRST_VISIT)
    }

    /// The only two ways to a destination: the proof that the request is a read, or a region
    /// that the account lists as a writer (R1).
    fn destination(&self, region: RegionId) -> Option<Destination> {
        let regions = self.topology.as_ref()?.regions();
        match ReadProof::of(self.intent) {
            Some(proof) => regions.read_target(proof, region),
            None => regions.write_target(region),
        }
    }

    fn failure_given(&self, region: RegionId) -> Circuits {
        let mut given = Circuits::NONE;
        let Some(past) = &self.past else {
            return given;
        };
        for send in past.trail.to_region(region) {
            match send.verdict.evidence() {
                Evidence::FailureOfBoth => given = Circuits::BOTH,
                Evidence::Failure => given = given | self.circuit().into(),
                _ => {}
            }
        }
        given
    }

    fn tried(&self, region: RegionId) -> bool {
        self.past
            .as_ref()
            .is_some_and(|past| past.trail.to_region(region).next().is_some())
    }

    fn last_was_unreachable(&self) -> bool {
        let last = self.past.as_ref().and_then(|past| past.trail.sends().last());
        last.is_some_and(|send| send.verdict == Verdict::Unreachable)
    }

    /// Whether a write waits for the account read and follows the new writer (C8).
    fn may_follow<X>(&self, context: &Context<'_, X>) -> bool {
        context.account.settings().get_discovery()
            && self.pin.is_none()
            && self.reach != Reach::Home
            && self
                .topology
                .as_ref()
                .is_some_and(|topology| self.follows_the_writer(topology))
    }

    /// Whether the request has one place to go at a time: its writes follow the writer (C8).
    fn follows_the_writer(&self, topology: &Topology) -> bool {
        match self.request.route() {
            Route::Read => false,
            Route::Hub => true,
            Route::Write => !topology.is_multi_write(),
        }
    }
}
