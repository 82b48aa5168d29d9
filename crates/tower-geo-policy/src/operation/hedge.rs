//! A second region for a read that has no answer yet (H1 to H3).
//!
//! While a hedge is out the operation knows two sends. It speaks of one at a time, the *current*
//! one: whoever reports an outcome chooses first which of them is meant.

use std::time::Duration;

use crate::breaker::{Admission, Standing};
use crate::budget::{self, Budget};
use crate::region::RegionId;
use crate::retry_settings::RetrySettings;
use crate::tick::Tick;
use crate::trail::{Ending, SendKind, Trail};
use crate::verdict::Verdict;

use super::{Advice, Advised, Context, Current, Operation, Plan, Planned, Reach};

/// Whether a region's bucket, if it has one, is full enough for a hedge: by half (H3).
pub(crate) fn has_tokens(budgets: &[Budget], region: RegionId) -> bool {
    let bucket = budgets.get(region.index());
    bucket.is_none_or(|bucket| bucket.level() >= bucket.capacity().div_ceil(2))
}

/// What a hedge to a region has cost; `None`: there was not enough (H1).
pub(crate) fn pay(budgets: &[Budget], region: RegionId) -> Option<u32> {
    match budgets.get(region.index()) {
        Some(bucket) => bucket.try_pay(budget::HEDGE).then_some(budget::HEDGE),
        None => Some(0),
    }
}

/// Where the user wants a hedge to go that would go to `region`; `None` is nowhere (T9).
pub(crate) fn advised(
    advice: Option<&dyn Advice>,
    trail: Option<&Trail>,
    region: RegionId,
) -> Option<RegionId> {
    let Some(advice) = advice else {
        return Some(region);
    };
    let planned = Planned {
        region,
        kind: SendKind::Hedge,
        after: Duration::ZERO,
    };
    let nothing_has_ended = Trail::default();
    match advice.advise(trail.unwrap_or(&nothing_has_ended), &planned) {
        Advised::Proceed => Some(region),
        Advised::To(wanted) => Some(wanted),
        // A hedge is asked for once; the send that it is for goes on all the same.
        Advised::Stop | Advised::After(_) => None,
    }
}

impl Operation {
    /// When the send under way is to be hedged, if it is one that may be: the first of a read
    /// (H1). Whether a region is there for it is seen then.
    #[must_use]
    pub fn hedge_at(&self, settings: &RetrySettings) -> Option<Tick> {
        let may_be = self.sends == 1
            && !self.has_hedged
            && self.reach == Reach::Everywhere
            && self.intent.is_redirectable();
        if !may_be {
            return None;
        }
        Some(self.current.at? + settings.get_hedge()?)
    }

    /// Begins a hedge, which becomes the current send. `None`: no region may take one (H3), or the
    /// user says no (T9), and it is not asked again.
    pub fn hedge<X>(&mut self, context: &Context<'_, X>, now: Tick) -> Option<Plan> {
        self.has_hedged = true;
        let state = context.state;
        let too_many = self.sends > context.settings.get_max_retries();
        let too_late = self
            .deadline(context.settings)
            .is_some_and(|deadline| now >= deadline);
        if too_many || too_late {
            return None;
        }
        let candidates = self.candidates(state.regions());
        let may_take = |region: RegionId| {
            region != self.current.region
                && state.standing(region, self.circuit(), now) == Standing::Closed
                && !state.is_set_aside(region, now)
                && !self.is_below_floor(context, region)
                && state.resting(region, now).is_none()
                && !(state.in_maintenance() && region == state.regions().writer())
                && has_tokens(context.budgets, region)
        };
        let mut others = candidates.as_slice().iter().copied();
        let region = others.find(|&region| may_take(region))?;
        let region = match advised(context.advice, self.trail(), region)? {
            wanted if candidates.as_slice().contains(&wanted) && may_take(wanted) => wanted,
            _ => region,
        };
        let destination = self.destination(state.regions(), region)?;
        let Ok(Admission::Plain) = state.admit(region, self.circuit(), now) else {
            return None;
        };
        let paid = pay(context.budgets, region)?;
        self.sends += 1;
        let hedge = Current::hedge(region, paid, now);
        let first = std::mem::replace(&mut self.current, hedge);
        self.other = Some(Box::new(first));
        Some(Plan {
            destination,
            kind: SendKind::Hedge,
            directed: region != self.home,
            slot: None,
            failure_given: self.failure_given(region),
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
            self.current = *other;
        }
    }

    /// The current send has won: the other one is given up (H2). What it took from the budget is
    /// spent.
    pub fn give_other_up(&mut self, now: Tick) {
        let Some(other) = self.other.take() else {
            return;
        };
        let dropped = other.ended(self.started, Ending::Dropped, Verdict::Dropped, now);
        self.past.get_or_insert_default().trail.push(dropped);
    }
}
