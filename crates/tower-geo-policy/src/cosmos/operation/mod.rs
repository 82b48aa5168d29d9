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

#[cfg(test)]
pub(super) mod bench;
mod choice;
mod decide;
mod hedge;
mod outcome;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::breaker::{Circuit, ProbeSlot};
use crate::events::Resend;
use crate::intent::Intent;
use crate::operation::under_way::Current;
use crate::operation::{self, Failure, Finish, Misfit, Plan, Reach, RegionRef, RequestOptions};
use crate::region::RegionId;
use crate::retry_settings::RetrySettings;
use crate::tick::Tick;
use crate::trail::{SendKind, Trail};

use super::intents::RequestKind;
use super::names::RegionName;
use super::routing::bit;
use super::state::AccountState;
use super::topology::Topology;

pub use self::outcome::Answer;

/// What an operation needs to know of its service and its account.
#[derive(Debug)]
#[non_exhaustive]
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
    /// Nothing more is sent. No answer of a copy is ever kept ([`Finish::Kept`]).
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
    has_looked: bool,
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
    /// The other send under way, while a hedge is out (H1).
    other: Option<Current>,
    has_hedged: bool,
    past: Option<Box<Past>>,
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
            has_looked: false,
            sends: 0,
            started: None,
            signature_limit: None,
            slot: None,
            topology: None,
            due: Due::First,
            reading: None,
            current: Current::first(home, 1),
            other: None,
            has_hedged: false,
            past: None,
        }
    }

    /// Takes what the caller says of this request. Location modes mean nothing here.
    pub fn set_options(&mut self, options: &RequestOptions) {
        if let Some(pin) = options.get_pin() {
            self.pin = Some(Pin::Named(pin.clone()));
        }
        self.replayable |= options.is_replayable();
        if let Some(excluded) = options.get_excluded() {
            self.set_excluded(excluded);
        }
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

    /// Which send of the operation the one under way is, counted from 1; beside a hedge, the one
    /// that is spoken of.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.current.attempt(self.sends)
    }

    /// Why the send under way was made.
    #[must_use]
    pub const fn kind(&self) -> SendKind {
        self.current.kind
    }

    /// How long the operation had waited for the send under way.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.current.waited
    }

    /// The send under way as a listener is told of it (T9); `None` for the first of the operation.
    #[must_use]
    pub fn resend(&self) -> Option<Resend> {
        self.current.resend(self.sends, self.trail())
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

    /// Tells that nobody reads the account, so that waiting for it is in vain. The operation ends so.
    #[must_use]
    pub fn give_account_up(&self) -> Finish {
        if self.topology.is_none() {
            return Finish::Failure(Failure::Config(Misfit::AccountUnread));
        }
        self.finish(None)
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
        if self.slot.is_some() || self.repeats_a_failure || matches!(self.pin, Some(Pin::Named(_)))
        {
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
        let as_it_is =
            is_only_place && takes_it && !topology.is_tentative(self.request.route(), self.home);
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
}
