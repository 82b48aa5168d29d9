//! Whether the answer of a copy is too old to be handed over (F3), and which copies are not asked
//! because they may lack what was written (F5).

use std::num::NonZeroU64;
use std::time::Duration;

use super::{Context, Operation};
use crate::region::RegionId;
use crate::tick::{Tick, nanos};
use crate::verdict::Verdict;

/// How far a copy may be behind, as a caller says it. One word, because every operation has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Limit {
    /// As the service has it.
    #[default]
    Unsaid,
    /// So many nanoseconds, and one; the most is any age.
    Said(NonZeroU64),
}

impl Limit {
    pub(super) fn of(limit: Option<Duration>) -> Self {
        let nanos = limit.map_or(u64::MAX, |limit| nanos(limit).saturating_add(1));
        Self::Said(NonZeroU64::new(nanos).unwrap_or(NonZeroU64::MIN))
    }

    pub(super) const fn get(self) -> Option<Option<Duration>> {
        match self {
            Self::Unsaid => None,
            Self::Said(nanos) if nanos.get() == u64::MAX => Some(None),
            Self::Said(nanos) => Some(Some(Duration::from_nanos(nanos.get() - 1))),
        }
    }
}

impl Operation {
    /// F3: the copy answered, and is further behind than the caller takes, or nobody knows how
    /// far. What it says of the request itself (it may not be asked, say) is not a matter of age.
    pub(super) fn is_too_old<X>(
        &self,
        context: &Context<'_, X>,
        verdict: Verdict,
        now: Tick,
    ) -> bool {
        let Some(copies) = context.copies else {
            return false;
        };
        let limit = self.max_staleness.get().unwrap_or(copies.max_staleness);
        let Some(limit) = limit else {
            return false;
        };
        self.intent.is_redirectable()
            && verdict == Verdict::Answered
            && !copies
                .last_sync
                .get()
                .is_within(limit, context.state.instant(now))
    }

    /// F5: the region is a copy, and may lack what was written to what this request reads.
    pub(super) fn is_below_floor<X>(&self, context: &Context<'_, X>, region: RegionId) -> bool {
        let (Some(key), Some(copies)) = (self.key, context.copies) else {
            return false;
        };
        if !self.intent.is_redirectable() || region == context.state.regions().writer() {
            return false;
        }
        let floor = copies.floor.as_ref().and_then(|floor| floor.of(key));
        floor.is_some_and(|written| !copies.last_sync.get().includes(written))
    }

    /// Whether a copy could be asked if it had what was written (F5).
    pub(super) fn is_kept_from_copies<X>(&self, context: &Context<'_, X>) -> bool {
        self.candidates(context.state.regions())
            .as_slice()
            .iter()
            .any(|&region| self.is_below_floor(context, region))
    }
}
