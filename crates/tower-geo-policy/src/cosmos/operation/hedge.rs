//! A second region for a read that has no answer yet (H1 to H3, C11, C15).
//!
//! As in [`crate::operation`], an operation that hedges speaks of one of its two sends at a time.

use crate::breaker::{Admission, Standing};
use crate::operation::hedge::{advised, has_tokens, pay};
use crate::operation::under_way::Current;
use crate::operation::{Plan, Reach};
use crate::region::RegionId;
use crate::retry_settings::RetrySettings;
use crate::tick::Tick;
use crate::trail::{Ending, SendKind};
use crate::verdict::Verdict;

use super::{Context, Directed, Operation};

impl Operation {
    /// When the send under way is to be hedged, if it is one that may be: the first of a read
    /// (H1), unless the account forbids it (C15). Whether a region is there for it is seen then.
    #[must_use]
    pub fn hedge_at(&self, settings: &RetrySettings) -> Option<Tick> {
        let is_forbidden = self
            .topology
            .as_ref()
            .is_none_or(|topology| topology.is_hedging_disabled());
        let may_be = self.sends == 1
            && !self.has_hedged
            && self.reach == Reach::Everywhere
            && self.intent.is_redirectable()
            && !is_forbidden;
        if !may_be {
            return None;
        }
        Some(self.current.at? + settings.get_hedge()?)
    }

    /// Begins a hedge, which becomes the current send. `None`: no region may take one (H3, C11), or
    /// the user says no (T9), and it is not asked again.
    pub fn hedge<X>(&mut self, context: &Context<'_, X>, now: Tick) -> Option<Directed> {
        self.has_hedged = true;
        let state = context.service.state;
        let topology = self.topology.as_ref()?;
        if self.is_too_late(context, now) {
            return None;
        }
        let writer = topology.writer(context.account.marks(), now);
        let candidates = self.all_candidates(context, topology, now).ok()?;
        let may_take = |region: RegionId| {
            region != self.current.region
                && state.standing(region, self.circuit(), now) == Standing::Closed
                && !(state.in_maintenance() && writer == Some(region))
                && has_tokens(context.service.budgets, region)
        };
        let region = candidates.iter().find(|&region| may_take(region))?;
        let wanted = advised(context.service.advice, self.trail(), region)?;
        let region = candidates
            .iter()
            .find(|&region| region == wanted && may_take(region))
            .unwrap_or(region);
        let destination = self.destination(region)?;
        let Ok(Admission::Plain) = state.admit(region, self.circuit(), now) else {
            return None;
        };
        let paid = pay(context.service.budgets, region)?;
        self.sends += 1;
        let hedge = Current::hedge(region, paid, now);
        self.other = Some(std::mem::replace(&mut self.current, hedge));
        Some(Directed {
            plan: Plan {
                destination,
                kind: SendKind::Hedge,
                directed: region != self.home,
                slot: None,
                failure_given: self.failure_given(region),
            },
            // Only reads are hedged.
            tentative: false,
            new_connection: false,
        })
    }

    /// Whether two sends are under way.
    #[must_use]
    pub const fn is_hedging(&self) -> bool {
        self.other.is_some()
    }

    /// Speaks of the hedge from now on, or of the send that it was made for.
    pub fn speak_of_hedge(&mut self, hedge: bool) {
        let is_hedge = matches!(self.current.kind, SendKind::Hedge);
        if is_hedge != hedge {
            if let Some(other) = &mut self.other {
                std::mem::swap(&mut self.current, other);
            }
        }
    }

    /// The current send has failed: the other one is waited for, alone (H2).
    pub fn wait_for_other(&mut self) {
        if let Some(other) = self.other.take() {
            self.current = other;
        }
    }

    /// The current send has won: the other one is given up (H2). What it took from the budget is
    /// spent.
    pub fn give_other_up(&mut self, now: Tick) {
        if let Some(other) = self.other.take() {
            let dropped = other.ended(self.started, Ending::Dropped, Verdict::Dropped, now);
            self.past.get_or_insert_default().trail.push(dropped);
        }
    }
}
