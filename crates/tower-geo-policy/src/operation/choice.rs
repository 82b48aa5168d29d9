//! Where the next send may go, and when (R2 to R7, R10, T1 to T5).

use crate::breaker::Standing;
use crate::budget;
use crate::region::{LocationMode, RegionId, Regions};
use crate::tick::Tick;
use crate::trail::SendKind;
use crate::verdict::Verdict;

use super::{Advised, Context, Operation, Planned, Reach, bit};

/// A region that admits the next send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) region: RegionId,
    /// From when on.
    pub(crate) ready: Tick,
    /// How many admissible regions have not been tried, this one included (T3).
    pub(crate) shares: u32,
}

/// The earlier of two times, where `None` is never.
pub(crate) fn earlier(a: Option<Tick>, b: Option<Tick>) -> Option<Tick> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// How a candidate stands at this moment.
enum Candidate {
    Admissible {
        ready: Tick,
        untried: bool,
    },
    /// Only if nothing else is (a read on the ramp, B5).
    LastResort {
        ready: Tick,
        untried: bool,
    },
    Out {
        until: Option<Tick>,
    },
}

impl Operation {
    /// The region that this operation must not leave: the caller's pin, or a copy that the
    /// request itself names (R10).
    pub(super) fn pinned_to(&self, regions: &Regions) -> Option<RegionId> {
        let named = (self.home != regions.writer()).then_some(self.home);
        self.pin.or(named)
    }

    /// The regions that may be asked at all, in the order of the mode.
    pub(super) fn candidates(&self, regions: &Regions) -> Candidates {
        let mut found = Candidates::default();
        if let Some(pinned) = self.pinned_to(regions) {
            found.push(pinned);
        } else if self.reach == Reach::Home {
            found.push(self.home);
        } else if self.intent.is_for_copy() {
            regions.copies().for_each(|copy| found.push(copy));
        } else if !self.intent.is_redirectable() {
            found.push(regions.writer());
        } else {
            match self.mode {
                LocationMode::PrimaryOnly => found.push(regions.writer()),
                LocationMode::PrimaryThenSecondary => {
                    found.push(regions.writer());
                    regions.copies().for_each(|copy| found.push(copy));
                }
                LocationMode::SecondaryOnly => {
                    regions.copies().for_each(|copy| found.push(copy));
                }
                LocationMode::SecondaryThenPrimary => {
                    regions.copies().for_each(|copy| found.push(copy));
                    found.push(regions.writer());
                }
            }
        }
        found
    }

    pub(super) fn tried(&self, region: RegionId) -> bool {
        self.trail().is_some_and(|trail| trail.has_tried(region))
    }

    /// The tokens that a further send to this region takes (T4).
    pub(super) fn price(&self, region: RegionId) -> u32 {
        let last: Option<Verdict> = self
            .past
            .as_ref()
            .and_then(|past| past.trail.to_region(region).last())
            .map(|send| send.verdict);
        last.map_or(budget::FIRST_VISIT, budget::price_of_return)
    }

    /// The admissible region whose wait ends first; ties go in the order of the mode, and one
    /// that is neither tried nor resting goes before all others (R3).
    pub(super) fn choose<X>(
        &self,
        context: &Context<'_, X>,
        now: Tick,
        unavailable: u16,
        earliest: &mut Option<Tick>,
        draw: &mut dyn FnMut() -> f64,
    ) -> Option<Choice> {
        let candidates = self.candidates(context.state.regions());
        let mut best: Option<(bool, Tick, RegionId)> = None;
        let mut last_resort: Option<(bool, Tick, RegionId)> = None;
        let mut untried_regions = 0;
        for &region in candidates.as_slice() {
            if unavailable & bit(region) != 0 {
                continue;
            }
            let alone = candidates.as_slice().len() == 1;
            let (place, ready, untried) = match self.candidate(context, region, alone, now, draw) {
                Candidate::Admissible { ready, untried } => (&mut best, ready, untried),
                Candidate::LastResort { ready, untried } => (&mut last_resort, ready, untried),
                Candidate::Out { until } => {
                    *earliest = earlier(*earliest, until);
                    continue;
                }
            };
            untried_regions += u32::from(untried);
            let waits = !untried || ready > now;
            if place
                .is_none_or(|(best_waits, best_ready, _)| (waits, ready) < (best_waits, best_ready))
            {
                *place = Some((waits, ready, region));
            }
        }
        let (_, ready, region) = best.or(last_resort)?;
        let shares = untried_regions + u32::from(self.tried(region));
        Some(Choice {
            region,
            ready,
            shares,
        })
    }

    fn candidate<X>(
        &self,
        context: &Context<'_, X>,
        region: RegionId,
        alone: bool,
        now: Tick,
        draw: &mut dyn FnMut() -> f64,
    ) -> Candidate {
        let out = Candidate::Out { until: None };
        let state = context.state;
        let tried = self.tried(region);
        if let Some(past) = &self.past {
            let forbidden = past
                .returns
                .iter()
                .any(|back| back.region == region && back.never);
            if past.out & bit(region) != 0 || forbidden || (tried && self.reach == Reach::OnceEach)
            {
                return out;
            }
        }
        if self.is_below_floor(context, region) {
            return out;
        }
        if state.is_calm() && self.past.is_none() {
            return Candidate::Admissible {
                ready: now,
                untried: true,
            };
        }
        if self.intent.is_read() {
            if state.in_maintenance() && region == state.regions().writer() {
                return out;
            }
            if !alone && state.is_set_aside(region, now) {
                return out;
            }
        }
        let held_slot = self.slot.is_some() && self.sends == 0;
        let standing = if held_slot {
            Standing::Closed
        } else {
            state.standing(region, self.circuit(), now)
        };
        let on_ramp = match standing {
            Standing::Open { until } => return Candidate::Out { until },
            Standing::Ramp(share) => !alone && self.sends == 0 && draw() >= f64::from(share),
            _ => false,
        };
        let ready = match self.ready(context, region, now) {
            Ok(ready) => ready,
            Err(until) => return Candidate::Out { until },
        };
        let affordable = context
            .budgets
            .get(region.index())
            .is_none_or(|bucket| self.sends == 0 || bucket.level() >= self.price(region));
        if !affordable {
            return out;
        }
        let untried = !tried;
        if on_ramp {
            Candidate::LastResort { ready, untried }
        } else {
            Candidate::Admissible { ready, untried }
        }
    }

    /// When this region can be sent to, or that this operation must not wait for it (T1, T3, T5).
    fn ready<X>(
        &self,
        context: &Context<'_, X>,
        region: RegionId,
        now: Tick,
    ) -> Result<Tick, Option<Tick>> {
        let own = self
            .past
            .as_ref()
            .and_then(|past| past.returns.iter().find(|back| back.region == region))
            .map(|back| back.ready);
        let rest = context.state.resting(region, now);
        if let Some(until) = rest {
            let too_long = until.since(now) > context.settings.backoff.max_delay;
            if too_long || self.reach == Reach::OnceEach {
                return Err(rest);
            }
        }
        let ready = now.max(own.unwrap_or(now)).max(rest.unwrap_or(now));
        let past_deadline = self
            .deadline(context.settings)
            .is_some_and(|deadline| ready >= deadline);
        let past_signature =
            self.sends > 0 && self.signature_limit.is_some_and(|limit| ready > limit);
        if past_deadline || past_signature {
            return Err(rest);
        }
        Ok(ready)
    }

    /// Asks the user once about the next send (T9). `None` means stop.
    pub(super) fn take_advice<X>(
        &mut self,
        context: &Context<'_, X>,
        choice: Choice,
        now: Tick,
        unavailable: u16,
        draw: &mut dyn FnMut() -> f64,
    ) -> Option<Choice> {
        let Some(advice) = context.advice else {
            return Some(choice);
        };
        let sends = self.sends;
        let past = self.past.as_ref()?;
        if let Some((asked_after, advised)) = past.advised {
            if asked_after == sends {
                // What was advised before a wait holds only if the region still admits the send.
                let others = !bit(advised.region);
                let mut ignored = None;
                let still = self.choose(context, now, unavailable | others, &mut ignored, draw);
                return Some(still.map_or(choice, |still| Choice {
                    ready: advised.ready,
                    ..still
                }));
            }
        }
        let planned = Planned {
            region: choice.region,
            kind: if self.tried(choice.region) {
                SendKind::Retry
            } else {
                SendKind::FallOver
            },
            after: choice.ready.since(now),
        };
        let advised = match advice.advise(&past.trail, &planned) {
            Advised::Proceed => choice,
            Advised::Stop => return None,
            Advised::After(wait) => {
                let ready = now + wait;
                let in_time = self
                    .deadline(context.settings)
                    .is_none_or(|deadline| ready < deadline);
                if !in_time {
                    return None;
                }
                Choice { ready, ..choice }
            }
            Advised::To(region) => {
                let others = !bit(region);
                let mut ignored = None;
                let there = self.choose(context, now, unavailable | others, &mut ignored, draw);
                there.unwrap_or(choice)
            }
        };
        if let Some(past) = &mut self.past {
            past.advised = Some((sends, advised));
        }
        Some(advised)
    }
}

/// At most 16 regions, in order.
#[derive(Debug)]
pub(super) struct Candidates {
    regions: [RegionId; Regions::MAX],
    len: usize,
}

impl Default for Candidates {
    fn default() -> Self {
        Self {
            regions: [RegionId::FIRST; Regions::MAX],
            len: 0,
        }
    }
}

impl Candidates {
    fn push(&mut self, region: RegionId) {
        if let Some(place) = self.regions.get_mut(self.len) {
            *place = region;
            self.len += 1;
        }
    }

    pub(super) fn as_slice(&self) -> &[RegionId] {
        self.regions.get(..self.len).unwrap_or_default()
    }
}
