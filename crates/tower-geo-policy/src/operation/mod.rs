//! What comes next in one operation: the one decision maker of a call.
//!
//! An [`Operation`] is told what became of each send and says what to do next: send to a region,
//! wait, hand an answer over, fail. It does no I/O and reads no clock, so the layers that carry
//! its decisions out, the drills and the tests all meet the same rules (R2 to R7, R10, T1 to T6,
//! T9, V1, V2).
//!
//! The first send of a healthy operation is decided by [`Operation::go_home`], which looks at one
//! shared word; nothing is allocated before a send has failed.

mod age;
pub(crate) mod choice;
pub(crate) mod hedge;
mod outcome;
mod request_options;
#[cfg(test)]
mod tests;
mod tried;
pub(crate) mod under_way;

use std::time::Duration;

use http::StatusCode;

use crate::breaker::{Admission, Circuit, Circuits, ProbeSlot};
use crate::budget::{self, Budget};
use crate::freshness::CopyRules;
use crate::gate::GateStatus;
use crate::intent::Intent;
use crate::read_floor::Key;
use crate::region::{Destination, LocationMode, ReadProof, RegionId, Regions};
use crate::retry_settings::RetrySettings;
use crate::service_state::ServiceState;
use crate::tick::Tick;
use crate::trail::{SendKind, Trail};

use age::Limit;
pub use outcome::{Answer, Fate};
pub use request_options::{RegionRef, RequestOptions};
use under_way::Current;

/// How far an operation may go: which layer drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// Retry above a redirect: any admissible region, with waits.
    Everywhere,
    /// A redirect alone: each region at most once, without waits.
    OnceEach,
    /// Retry alone: the region that the request names, with waits.
    Home,
}

/// What an operation needs to know of its service.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "whoever drives an operation builds it; a new field is a change they have to see"
)]
pub struct Context<'a, X> {
    /// The shared state of the service.
    pub state: &'a ServiceState<X>,
    /// How sends are repeated.
    pub settings: &'a RetrySettings,
    /// A bucket for each region; empty without a budget.
    pub budgets: &'a [Budget],
    /// Whom to ask before a further send (T9).
    pub advice: Option<&'a dyn Advice>,
    /// What answers of copies are held against (F2, F3, F5); none: nothing is.
    pub copies: Option<&'a CopyRules>,
}

/// What to do next.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// Send the request.
    Send(Plan),
    /// Come back at this time and ask again.
    Wait(Tick),
    /// Nothing more is sent.
    Finish(Finish),
}

/// One send that is due.
#[derive(Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Where it goes.
    pub destination: Destination,
    /// Why it is made.
    pub kind: SendKind,
    /// Whether it goes elsewhere than the request says.
    pub directed: bool,
    /// The probe slot that it holds.
    pub slot: Option<ProbeSlot>,
    /// The circuits of this region to which the operation has given its one failure (B2).
    pub failure_given: Circuits,
}

/// How an operation ends when nothing more is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// With the answer that was to be held ([`Fate::Hold`]).
    Answer,
    /// With the answer of a copy that was kept in case that the writer cannot be asked ([`Fate::Keep`]).
    Kept,
    /// With an error.
    Failure(Failure),
}

/// Why an operation ends without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// No region admits the request and nothing was sent (R5, R7).
    BreakerOpen {
        /// The earliest time at which one may.
        until: Option<Tick>,
    },
    /// The deadline cut the only send (T3).
    Deadline,
    /// The last send failed without an answer.
    Transport,
    /// A write was sent and its fate cannot be known (V1).
    UnknownOutcome,
    /// A send was due and the body was gone (T6).
    NotReplayable,
    /// The copy is older than the caller takes, or lacks what was written (F3, F5), and the
    /// region that takes writes gave no answer.
    Stale {
        /// When that region may be asked again, if its circuit is the reason.
        until: Option<Tick>,
    },
    /// The request asks for what the service is not configured for.
    Config(Misfit),
}

/// What a request asks for that its service is not configured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misfit {
    /// It must or may go to a copy, and there is none (I5, I6, R2).
    NoCopy,
    /// It is a write and goes to a region that takes none (R10).
    WriteToCopy,
    /// It is pinned to a region that the service does not have (R10).
    UnknownRegion,
    /// Every region that it may use is excluded (C11).
    AllExcluded,
    /// The account refused to be read, so nothing is known of its regions (C3).
    AccountRefused(StatusCode),
    /// Nothing is known of the account's regions, and nobody reads the account (C3).
    AccountUnread,
}

/// Whether the request can be sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Again {
    /// Its body is there.
    Possible,
    /// Its body is gone (T6).
    BodyGone,
}

/// A further send that is planned, for the user's advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Planned {
    /// Where it would go.
    pub region: RegionId,
    /// Why.
    pub kind: SendKind,
    /// How long from now.
    pub after: Duration,
}

/// What the user says to a planned send (T9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advised {
    /// Go ahead.
    Proceed,
    /// End with what there is.
    Stop,
    /// Send it so long from now instead. Past the deadline this is a stop.
    After(Duration),
    /// Send it to this region instead. Has no effect unless the region is admissible.
    To(RegionId),
}

/// A say in every further send of an operation (T9).
///
/// It cannot break R1, T2 or T3. Called on the path of a request that has failed once, or is about to
/// be hedged: it must not block. A hedge that is to wait is left out, one that is to stop as well; the
/// send that it is for goes on.
pub trait Advice: std::fmt::Debug + Send + Sync {
    /// Sees what was tried and what is planned.
    fn advise(&self, trail: &Trail, planned: &Planned) -> Advised;
}

/// The decisions of one call into the stack.
#[derive(Debug)]
pub struct Operation {
    intent: Intent,
    reach: Reach,
    home: RegionId,
    mode: LocationMode,
    pin: Option<RegionId>,
    replayable: bool,
    is_delete: bool,
    repeats_a_failure: bool,
    has_looked: bool,
    sends: u32,
    started: Option<Tick>,
    signature_limit: Option<Tick>,
    /// What the request reads or writes, where reads have to see writes (F5).
    key: Option<Key>,
    max_staleness: Limit,
    slot: Option<ProbeSlot>,
    current: Current,
    /// The other send under way, while a hedge is out (H1).
    other: Option<Box<Current>>,
    has_hedged: bool,
    past: Option<Box<Past>>,
}

/// What is only needed once a send has failed.
#[derive(Debug, Default)]
struct Past {
    trail: Trail,
    returns: Vec<Return>,
    /// Regions that are out for this operation, a bit each (R4, R6).
    out: u16,
    /// A copy answered, and was too old (F3).
    too_old: bool,
    holds_answer: bool,
    keeps_answer: bool,
    /// The advice on the send after so many sends (T9).
    advised: Option<(u32, choice::Choice)>,
}

/// What a region that was tried has to wait for.
#[derive(Debug)]
struct Return {
    region: RegionId,
    ready: Tick,
    never: bool,
    tries: u32,
}

const fn bit(region: RegionId) -> u16 {
    1 << region.index()
}

impl Operation {
    /// An operation for a request of that intent which names the region `home`, in the mode that
    /// holds as it begins (R2).
    #[inline]
    #[must_use]
    pub const fn new(intent: Intent, home: RegionId, reach: Reach, mode: LocationMode) -> Self {
        Self::with_sends(intent, home, reach, mode, 0, 1)
    }

    #[inline]
    const fn with_sends(
        intent: Intent,
        home: RegionId,
        reach: Reach,
        mode: LocationMode,
        sends: u32,
        shares: u32,
    ) -> Self {
        Self {
            intent,
            reach,
            home,
            mode,
            pin: None,
            replayable: false,
            is_delete: false,
            repeats_a_failure: false,
            has_looked: false,
            sends,
            started: None,
            signature_limit: None,
            key: None,
            max_staleness: Limit::Unsaid,
            slot: None,
            current: Current::first(home, shares),
            other: None,
            has_hedged: false,
            past: None,
        }
    }

    /// Takes what the caller says of this request.
    ///
    /// # Errors
    ///
    /// When it is pinned to a region that the service does not have, or may go to a copy and there
    /// is none.
    pub fn set_options(
        &mut self,
        options: &RequestOptions,
        regions: &Regions,
    ) -> Result<(), Misfit> {
        if let Some(mode) = options.get_location_mode() {
            if self.intent.is_read() && mode.needs_secondary() && regions.len() < 2 {
                return Err(Misfit::NoCopy);
            }
            self.mode = mode;
        }
        if let Some(pin) = options.get_pin() {
            self.pin = Some(pin.region(regions).ok_or(Misfit::UnknownRegion)?);
        }
        self.replayable |= options.is_replayable();
        self.max_staleness = options.max_staleness;
        Ok(())
    }

    /// Hands in a probe slot that was taken further out (G2, B4).
    pub fn set_slot(&mut self, slot: ProbeSlot) {
        self.slot = Some(slot);
    }

    /// Says what the request reads or writes (F5). Needed only where a floor is kept
    /// ([`CopyRules::floor`]).
    pub const fn set_key(&mut self, key: Key) {
        self.key = Some(key);
    }

    /// What this write has changed, once it was acknowledged; `None` where no floor is kept (F5).
    #[must_use]
    pub fn written_key(&self) -> Option<Key> {
        self.key.filter(|_| self.intent.is_write())
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

    /// What the request does.
    #[must_use]
    pub const fn intent(&self) -> Intent {
        self.intent
    }

    /// The circuit that its sends use.
    #[must_use]
    pub const fn circuit(&self) -> Circuit {
        circuit_of(self.intent)
    }

    /// What was tried so far.
    #[must_use]
    pub fn trail(&self) -> Option<&Trail> {
        self.past.as_ref().map(|past| &past.trail)
    }

    /// Takes what was tried out of a finished operation.
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

    /// When the first send left, as far as anybody has asked.
    #[must_use]
    pub const fn started(&self) -> Option<Tick> {
        self.started
    }

    /// Whether [`set_signature_limit`](Self::set_signature_limit) was called.
    #[must_use]
    pub const fn has_signature_limit(&self) -> bool {
        self.signature_limit.is_some()
    }

    /// Tells that the send under way went where the request says although it was directed
    /// elsewhere: there is no redirect below. From now on the operation stays home.
    pub const fn stay_home(&mut self) {
        self.reach = Reach::Home;
        self.current.region = self.home;
    }

    /// The region of the send under way.
    #[must_use]
    pub const fn region(&self) -> RegionId {
        self.current.region
    }

    /// Tells the time of the send under way, as soon as somebody knows it. A healthy send that is
    /// answered at once needs none.
    pub fn set_sent_at(&mut self, now: Tick) {
        self.started.get_or_insert(now);
        self.current.at.get_or_insert(now);
    }

    /// Whether a request of that intent, which names the region `home`, may be on the healthy path:
    /// nothing is unusual, and that region is where it goes first.
    ///
    /// [`sent_home`](Self::sent_home) is its operation, if nothing is to be said of it beside.
    #[inline]
    #[must_use]
    pub fn begins_at_home<X>(
        state: &ServiceState<X>,
        intent: Intent,
        home: RegionId,
        mode: LocationMode,
    ) -> bool {
        state.is_calm()
            && home == state.regions().writer()
            && (!intent.is_redirectable() || mode.starts_at_primary())
            && !intent.is_for_copy()
    }

    /// An operation whose first send leaves at once, as the request is: what [`new`](Self::new) and
    /// [`go_home`](Self::go_home) come to where [`begins_at_home`](Self::begins_at_home) holds.
    /// `regions` is how many there are.
    #[inline]
    #[must_use]
    pub fn sent_home(
        intent: Intent,
        home: RegionId,
        reach: Reach,
        mode: LocationMode,
        regions: usize,
    ) -> Self {
        let shares = match (intent.is_redirectable(), mode, reach) {
            (true, LocationMode::PrimaryThenSecondary, Reach::Everywhere) => {
                u32::try_from(regions).unwrap_or(1)
            }
            _ => 1,
        };
        Self::with_sends(intent, home, reach, mode, 1, shares)
    }

    /// Tries the healthy path: the first send goes where the request says, nothing is unusual.
    ///
    /// Returns whether that is so; then the request is to be sent as it is. Otherwise
    /// [`next`](Self::next) decides.
    #[must_use]
    pub fn go_home<X>(&mut self, context: &Context<'_, X>) -> bool {
        let as_it_is = self.slot.is_none()
            && self.pin.is_none()
            && !self.repeats_a_failure
            && Self::begins_at_home(context.state, self.intent, self.home, self.mode);
        if as_it_is {
            let regions = context.state.regions().len();
            let sent = Self::sent_home(self.intent, self.home, self.reach, self.mode, regions);
            (self.sends, self.current) = (sent.sends, sent.current);
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
        let share = self.deadline(settings).map(|deadline| {
            // In nanoseconds, since this is on the path of every call that waits.
            let left = deadline.as_nanos().saturating_sub(at.as_nanos());
            let share = left / u64::from(self.current.shares.max(1));
            Tick::from_nanos(at.as_nanos().saturating_add(share))
        });
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
    /// after a wait, and after each outcome that was not delivered.
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
        if self.sends == 0 {
            if let Err(misfit) = self.check_fit(context.state.regions()) {
                return Step::Finish(Finish::Failure(Failure::Config(misfit)));
            }
        } else if self.has_no_send_left(context, now) {
            return Step::Finish(self.finish(context, None));
        }
        let mut unavailable = 0;
        let mut earliest = None;
        loop {
            let found = self.choose(context, now, unavailable, &mut earliest, draw);
            self.note_looked(context, found.map(|choice| choice.region), now);
            let Some(mut choice) = found else {
                return Step::Finish(self.finish(context, earliest));
            };
            if self.sends > 0 {
                if again == Again::BodyGone {
                    return Step::Finish(Finish::Failure(self.body_is_gone()));
                }
                match self.take_advice(context, choice, now, unavailable, draw) {
                    Some(advised) => choice = advised,
                    None => return Step::Finish(self.finish(context, None)),
                }
            }
            if choice.ready > now {
                return Step::Wait(choice.ready);
            }
            match self.admit(context, &choice, now) {
                Ok(plan) => return Step::Send(plan),
                Err(until) => {
                    unavailable |= bit(choice.region);
                    earliest = choice::earlier(earliest, until);
                }
            }
        }
    }

    /// Tells the circuits that this operation would have used and found open, once (B4).
    fn note_looked<X>(&mut self, context: &Context<'_, X>, chosen: Option<RegionId>, now: Tick) {
        if self.sends > 0 || std::mem::replace(&mut self.has_looked, true) {
            return;
        }
        let candidates = self.candidates(context.state.regions());
        let passed_over = candidates
            .as_slice()
            .iter()
            .take_while(|&&region| Some(region) != chosen);
        for &region in passed_over {
            context.state.note_operation(region, self.circuit(), now);
        }
    }

    /// Takes the slot and the tokens that a send needs, and begins it.
    fn admit<X>(
        &mut self,
        context: &Context<'_, X>,
        choice: &choice::Choice,
        now: Tick,
    ) -> Result<Plan, Option<Tick>> {
        let region = choice.region;
        let destination = self
            .destination(context.state.regions(), region)
            .ok_or(None)?;
        let slot = match self.slot.take() {
            Some(slot) => Some(slot),
            None => match context.state.admit(region, self.circuit(), now) {
                Ok(Admission::Probe(slot)) => Some(slot),
                Ok(_) => None,
                Err(refusal) => return Err(refusal.until),
            },
        };
        let paid = self.pay(context, region).ok_or(None)?;
        let tried = self.tried(region);
        let kind = SendKind::after(self.sends, tried);
        let trail = self.trail();
        let waited = trail.map_or(Duration::ZERO, |trail| trail.waited(self.started, now));
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
        Ok(Plan {
            destination,
            kind,
            directed: region != self.home,
            slot,
            failure_given: self.failure_given(region),
        })
    }

    fn pay<X>(&self, context: &Context<'_, X>, region: RegionId) -> Option<u32> {
        let Some(bucket) = context.budgets.get(region.index()) else {
            return Some(0);
        };
        if self.sends == 0 {
            if self.repeats_a_failure {
                bucket.pay_what_is_there(budget::RETURN);
            }
            return Some(0);
        }
        let price = self.price(region);
        bucket.try_pay(price).then_some(price)
    }

    /// The only two ways to a destination: the proof that the request is a read, or a region
    /// that takes writes (R1).
    fn destination(&self, regions: &Regions, region: RegionId) -> Option<Destination> {
        match ReadProof::of(self.intent) {
            Some(proof) => regions.read_target(proof, region),
            None => regions.write_target(region),
        }
    }

    fn check_fit(&self, regions: &Regions) -> Result<(), Misfit> {
        let target = self.pinned_to(regions).unwrap_or_else(|| regions.writer());
        let takes_writes = regions
            .get(target)
            .is_some_and(crate::region::Region::is_writable);
        if self.intent.is_write() && !takes_writes {
            return Err(Misfit::WriteToCopy);
        }
        let needs_copy = self.intent.is_for_copy()
            || (self.intent.is_redirectable()
                && self.pinned_to(regions).is_none()
                && self.mode.needs_secondary());
        if needs_copy && regions.len() < 2 {
            return Err(Misfit::NoCopy);
        }
        Ok(())
    }

    fn has_no_send_left<X>(&self, context: &Context<'_, X>, now: Tick) -> bool {
        if self.reach != Reach::OnceEach && self.sends > context.settings.get_max_retries() {
            return true;
        }
        if self.is_ended_by_its_last_send(context) {
            return true;
        }
        // A write that waits for a retry ends with what it has when the gate closes (G4, B4).
        self.intent.is_write()
            && !context.state.is_calm()
            && context.state.gate(now).status != GateStatus::ReadWrite
    }

    fn failure_given(&self, region: RegionId) -> Circuits {
        self.trail().map_or(Circuits::NONE, |trail| {
            trail.failure_given(region, self.circuit())
        })
    }
}

/// The circuit that a request of this intent uses.
#[must_use]
pub const fn circuit_of(intent: Intent) -> Circuit {
    if intent.is_write() {
        Circuit::Writes
    } else {
        Circuit::Reads
    }
}
