//! Who decides: the operation of a service whose regions stay, or of a Cosmos DB account.

#[cfg(feature = "cosmos")]
use std::ops::{Deref, DerefMut};
#[cfg(feature = "cosmos")]
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
#[cfg(feature = "cosmos")]
use tower_geo_policy::cosmos::operation as account;
use tower_geo_policy::events::Resend;
use tower_geo_policy::fault::Fault;
use tower_geo_policy::intent::Intent;
use tower_geo_policy::operation::{Again, Finish, Operation, Plan, Reach, Step};
use tower_geo_policy::region::RegionId;
use tower_geo_policy::retry_settings::RetrySettings;
use tower_geo_policy::tick::Tick;
use tower_geo_policy::trail::{SendKind, Trail};

#[cfg(feature = "cosmos")]
use crate::cosmos::Shared;
use crate::known::Known;
use crate::runtime::{self, State};

/// The one decision maker of a call.
#[derive(Debug)]
pub(crate) enum Decider {
    /// Of a service whose regions never change.
    Plain(Operation),
    /// Of an account whose regions come, go and change roles.
    #[cfg(feature = "cosmos")]
    Account(Box<OfAccount>),
}

/// An operation and its account.
#[cfg(feature = "cosmos")]
#[derive(Debug)]
pub(crate) struct OfAccount {
    operation: account::Operation,
    shared: Arc<Shared>,
}

#[cfg(feature = "cosmos")]
impl Deref for OfAccount {
    type Target = account::Operation;

    fn deref(&self) -> &Self::Target {
        &self.operation
    }
}

#[cfg(feature = "cosmos")]
impl DerefMut for OfAccount {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.operation
    }
}

#[cfg(feature = "cosmos")]
impl OfAccount {
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The operation, and what it needs to know.
    pub(super) fn with<R>(
        &mut self,
        state: &State,
        decide: impl FnOnce(&mut account::Operation, &account::Context<'_, runtime::Runtime>) -> R,
    ) -> R {
        let context = account::Context::new(runtime::context(state), &self.shared.account);
        decide(&mut self.operation, &context)
    }
}

/// What to do next.
pub(super) enum Next {
    /// Send the request.
    Send(Outgoing),
    /// Come back at this time.
    Wait(Tick),
    /// Come back when the account was read.
    #[cfg(feature = "cosmos")]
    AwaitAccount(account::AwaitAccount),
    /// Nothing more is sent.
    Finish(Finish),
}

/// One send that is due.
pub(super) struct Outgoing {
    pub(super) plan: Plan,
    /// C12.
    #[cfg(feature = "cosmos")]
    pub(super) tentative: bool,
    /// C8.
    #[cfg(feature = "cosmos")]
    pub(super) new_connection: bool,
}

impl From<Plan> for Outgoing {
    fn from(plan: Plan) -> Self {
        Self {
            plan,
            #[cfg(feature = "cosmos")]
            tentative: false,
            #[cfg(feature = "cosmos")]
            new_connection: false,
        }
    }
}

#[cfg(feature = "cosmos")]
impl From<account::Directed> for Outgoing {
    fn from(directed: account::Directed) -> Self {
        Self {
            tentative: directed.tentative,
            new_connection: directed.new_connection,
            plan: directed.plan,
        }
    }
}

/// Whether a further send may follow the first of a service whose regions stay.
#[inline]
pub(super) fn may_follow(state: &State, intent: Intent, reach: Reach) -> bool {
    match reach {
        Reach::OnceEach => intent.is_redirectable() && state.regions().len() > 1,
        _ => state.extra().retry.get_max_retries() > 0,
    }
}

/// What both answer in the same way.
macro_rules! either {
    ($decider:expr, $operation:ident => $answer:expr) => {
        match $decider {
            Decider::Plain($operation) => $answer,
            #[cfg(feature = "cosmos")]
            Decider::Account($operation) => $answer,
        }
    };
}

impl Decider {
    #[cfg(feature = "cosmos")]
    pub(crate) fn of_account(operation: account::Operation, shared: &Arc<Shared>) -> Self {
        let shared = Arc::clone(shared);
        Self::Account(Box::new(OfAccount { operation, shared }))
    }

    /// The operation of a service whose regions stay.
    #[inline]
    #[cfg_attr(
        not(feature = "cosmos"),
        expect(clippy::unnecessary_wraps, reason = "there is the other kind, too")
    )]
    pub(super) const fn plain(&mut self) -> Option<&mut Operation> {
        match self {
            Self::Plain(operation) => Some(operation),
            #[cfg(feature = "cosmos")]
            Self::Account(_) => None,
        }
    }

    /// The regions as the operation knows them.
    #[inline]
    pub(super) fn known(&self) -> Known {
        match self {
            Self::Plain(_) => Known::default(),
            #[cfg(feature = "cosmos")]
            Self::Account(operation) => Known::of(operation.topology().cloned()),
        }
    }

    /// Whether a further send may follow the first.
    #[inline]
    pub(super) fn may_follow(&self, state: &State, reach: Reach) -> bool {
        match self {
            Self::Plain(operation) => may_follow(state, operation.intent(), reach),
            // C15: `max_retries` does not count here.
            #[cfg(feature = "cosmos")]
            Self::Account(operation) => {
                reach != Reach::OnceEach || operation.shared().account.settings().get_discovery()
            }
        }
    }

    pub(super) fn next(
        &mut self,
        state: &State,
        again: Again,
        now: Tick,
        draw: &mut dyn FnMut() -> f64,
    ) -> Next {
        let end = |step| match step {
            Step::Send(plan) => Next::Send(plan.into()),
            Step::Wait(until) => Next::Wait(until),
            Step::Finish(finish) => Next::Finish(finish),
            // A step that this version does not know ends the operation with what it has.
            _ => Next::Finish(UNKNOWN_STEP),
        };
        match self {
            Self::Plain(operation) => {
                end(operation.next(&runtime::context(state), again, now, draw))
            }
            #[cfg(feature = "cosmos")]
            Self::Account(operation) => {
                let step = operation.with(state, |it, context| it.next(context, again, now, draw));
                match step {
                    account::Step::Send(directed) => Next::Send(directed.into()),
                    account::Step::Wait(until) => Next::Wait(until),
                    account::Step::AwaitAccount(wait) => Next::AwaitAccount(wait),
                    account::Step::Finish(finish) => Next::Finish(finish),
                    _ => Next::Finish(UNKNOWN_STEP),
                }
            }
        }
    }

    pub(super) fn faulted(&mut self, state: &State, fault: Fault, now: Tick, draw: f64) {
        match self {
            Self::Plain(operation) => {
                operation.faulted(&runtime::context(state), fault, now, draw);
            }
            #[cfg(feature = "cosmos")]
            Self::Account(operation) => {
                operation.with(state, |it, context| it.faulted(context, fault, now));
            }
        }
    }

    pub(super) fn not_sent(&mut self, state: &State) {
        match self {
            Self::Plain(operation) => operation.not_sent(&runtime::context(state)),
            #[cfg(feature = "cosmos")]
            Self::Account(operation) => operation.with(state, |it, context| it.not_sent(context)),
        }
    }

    pub(super) fn finish_unready(&self, state: &State) -> Finish {
        match self {
            Self::Plain(operation) => operation.finish_unready(&runtime::context(state)),
            #[cfg(feature = "cosmos")]
            Self::Account(operation) => operation.finish_unready(),
        }
    }

    pub(super) fn hedge(&mut self, state: &State, now: Tick) -> Option<Outgoing> {
        match self {
            Self::Plain(operation) => operation
                .hedge(&runtime::context(state), now)
                .map(Outgoing::from),
            #[cfg(feature = "cosmos")]
            Self::Account(operation) => operation
                .with(state, |it, context| it.hedge(context, now))
                .map(Outgoing::from),
        }
    }

    #[inline]
    pub(super) fn hedge_at(&self, settings: &RetrySettings) -> Option<Tick> {
        either!(self, it => it.hedge_at(settings))
    }

    #[inline]
    pub(super) fn send_limit(
        &self,
        settings: &RetrySettings,
        body_taken: Option<Tick>,
    ) -> Option<Tick> {
        either!(self, it => it.send_limit(settings, body_taken))
    }

    #[inline]
    pub(super) fn region(&self) -> RegionId {
        either!(self, it => it.region())
    }

    #[inline]
    pub(super) fn is_hedging(&self) -> bool {
        either!(self, it => it.is_hedging())
    }

    #[inline]
    pub(super) fn set_sent_at(&mut self, now: Tick) {
        either!(self, it => it.set_sent_at(now));
    }

    pub(super) fn speak_of_hedge(&mut self, hedge: bool) {
        either!(self, it => it.speak_of_hedge(hedge));
    }

    pub(super) fn wait_for_other(&mut self) {
        either!(self, it => it.wait_for_other());
    }

    pub(super) fn give_other_up(&mut self, now: Tick) {
        either!(self, it => it.give_other_up(now));
    }

    pub(super) fn stay_home(&mut self) {
        either!(self, it => it.stay_home());
    }

    pub(super) fn sends(&self) -> u32 {
        either!(self, it => it.sends())
    }

    pub(super) fn started(&self) -> Option<Tick> {
        either!(self, it => it.started())
    }

    pub(super) fn has_signature_limit(&self) -> bool {
        either!(self, it => it.has_signature_limit())
    }

    pub(super) fn set_signature_limit(&mut self, limit: Tick) {
        either!(self, it => it.set_signature_limit(limit));
    }

    pub(super) fn is_after_ambiguous(&self, status: StatusCode) -> bool {
        either!(self, it => it.is_after_ambiguous(status))
    }

    pub(super) fn take_trail(&mut self) -> Trail {
        either!(self, it => it.take_trail())
    }

    pub(super) fn attempt(&self) -> u32 {
        either!(self, it => it.attempt())
    }

    pub(super) fn kind(&self) -> SendKind {
        either!(self, it => it.kind())
    }

    pub(super) fn waited(&self) -> Duration {
        either!(self, it => it.waited())
    }

    pub(super) fn resend(&self) -> Option<Resend> {
        either!(self, it => it.resend())
    }
}

const UNKNOWN_STEP: Finish = Finish::Failure(tower_geo_policy::operation::Failure::Transport);
