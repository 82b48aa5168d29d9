//! Where the next send may go, and when (C1, C2, C5 to C8, C11, R7, R10, T3 to T5).

use crate::breaker::Standing;
pub(super) use crate::operation::choice::{Choice, earlier};
use crate::operation::{Advised, Planned, Reach};
use crate::region::RegionId;
use crate::retry_settings::Replay;
use crate::tick::Tick;
use crate::trail::SendKind;

use super::super::intents::RequestKind;
use super::super::routing::{AllExcluded, Order, bit};
use super::super::topology::Topology;
use super::{Context, Due, Operation, Pin};

/// How a candidate stands at this moment.
enum Candidate {
    Admissible {
        ready: Tick,
    },
    /// Only if nothing else is (a read on the ramp, B5).
    LastResort {
        ready: Tick,
    },
    Out {
        until: Option<Tick>,
    },
}

impl Operation {
    /// The region that this operation must not leave (R10). None if it is not pinned, or pinned to
    /// a region that the account does not have.
    pub(super) fn pinned_to<X>(
        &self,
        context: &Context<'_, X>,
        topology: &Topology,
        now: Tick,
    ) -> Option<RegionId> {
        match self.pin.as_ref()? {
            Pin::Host => Some(self.home),
            Pin::Named(named) => topology.region(named, context.account.marks(), now),
        }
    }

    /// A bit for each region that is excluded: the request's list, where it has one, counts
    /// instead of the service's (C11).
    pub(super) fn excludes(&self, topology: &Topology) -> u16 {
        match &self.excluded {
            Some(names) => topology.mask(names),
            None => topology.excluded(),
        }
    }

    /// The regions that may be asked at all, best first.
    pub(super) fn all_candidates<X>(
        &self,
        context: &Context<'_, X>,
        topology: &Topology,
        now: Tick,
    ) -> Result<Order, AllExcluded> {
        let excluded = self.excludes(topology);
        if self.pin.is_some() {
            let pinned = self.pinned_to(context, topology, now);
            let allowed = pinned
                .filter(|&region| excluded & bit(region) == 0 || self.follows_the_writer(topology));
            return allowed
                .map(|region| Order::from_iter([region]))
                .ok_or(AllExcluded);
        }
        if self.reach == Reach::Home {
            return Ok(Order::from_iter([self.home]));
        }
        let route = self.request.route();
        topology.order(route, context.account.marks(), excluded, now)
    }

    /// Those of them that what is due leaves, best first.
    pub(super) fn candidates<X>(
        &self,
        context: &Context<'_, X>,
        topology: &Topology,
        now: Tick,
    ) -> Order {
        let all = self
            .all_candidates(context, topology, now)
            .unwrap_or_default();
        let Some(past) = &self.past else {
            return all;
        };
        let all: Order = all
            .iter()
            .filter(|&region| past.done & bit(region) == 0)
            .filter(|&region| self.reach != Reach::OnceEach || !self.tried(region))
            .collect();
        let is_new = |region: &RegionId| !self.tried(*region);
        match self.due {
            Due::First => all,
            Due::Over => Order::default(),
            Due::Back { region, .. } => all.iter().filter(|&it| it == region).collect(),
            Due::Move { lag: true, .. } if !topology.is_multi_write() && self.pin.is_none() => {
                // Only the writer surely has it (C6). Once it has failed, any region may.
                match topology.writer(context.account.marks(), now) {
                    Some(writer) if is_new(&writer) => {
                        let excluded = self.excludes(topology) & bit(writer) != 0;
                        let writer = (!excluded && self.reach != Reach::Home).then_some(writer);
                        Order::from_iter(writer)
                    }
                    _ => all.iter().filter(is_new).collect(),
                }
            }
            Due::Move { .. } => all.iter().filter(is_new).collect(),
            Due::Refused { .. } | Due::Follow | Due::Choose => {
                let has_refused = |region: &RegionId| past.refused & bit(*region) != 0;
                let others = all.iter().filter(|region| !has_refused(region));
                others.chain(all.iter().filter(has_refused)).collect()
            }
        }
    }

    /// The best region that admits the next send.
    pub(super) fn choose<X>(
        &self,
        context: &Context<'_, X>,
        now: Tick,
        unavailable: u16,
        earliest: &mut Option<Tick>,
        draw: &mut dyn FnMut() -> f64,
    ) -> Option<Choice> {
        let topology = self.topology.as_ref()?;
        let candidates = self.candidates(context, topology, now);
        let alone = candidates.len() == 1;
        let mut best = None;
        let mut last_resort = None;
        let mut shares = 0;
        for region in candidates.iter().filter(|&it| unavailable & bit(it) == 0) {
            let (place, ready) = match self.candidate(context, topology, region, alone, now, draw) {
                Candidate::Admissible { ready } => (&mut best, ready),
                Candidate::LastResort { ready } => (&mut last_resort, ready),
                Candidate::Out { until } => {
                    *earliest = earlier(*earliest, until);
                    continue;
                }
            };
            shares += u32::from(!self.tried(region));
            place.get_or_insert((region, ready));
        }
        let (region, ready) = best.or(last_resort)?;
        Some(Choice {
            region,
            ready,
            shares: if self.moves_when_silent(context, topology) {
                shares + u32::from(self.tried(region))
            } else {
                1
            },
        })
    }

    /// Whether another region would be asked if this one stayed silent: no share of the deadline
    /// is kept for regions that are not going to be asked (T3, C7).
    fn moves_when_silent<X>(&self, context: &Context<'_, X>, topology: &Topology) -> bool {
        self.intent.is_read() || self.may_move_unmarked(context, topology)
    }

    /// Whether this is a write of documents on a multi-write account that the caller marked as
    /// replayable (C7).
    pub(super) fn may_move_unmarked<X>(
        &self,
        context: &Context<'_, X>,
        topology: &Topology,
    ) -> bool {
        let replayable = self.replayable || context.service.settings.get_replay() == Replay::All;
        replayable && topology.is_multi_write() && self.request == RequestKind::DocumentWrite
    }

    fn candidate<X>(
        &self,
        context: &Context<'_, X>,
        topology: &Topology,
        region: RegionId,
        alone: bool,
        now: Tick,
        draw: &mut dyn FnMut() -> f64,
    ) -> Candidate {
        let state = context.service.state;
        if self.is_too_late(context, now) {
            return Candidate::Out { until: None };
        }
        if state.is_calm() && self.past.is_none() {
            return Candidate::Admissible { ready: now };
        }
        let out = Candidate::Out { until: None };
        // G4: nothing of ours asks the writer in maintenance.
        let writer = || topology.writer(context.account.marks(), now);
        if self.intent.is_read() && state.in_maintenance() && writer() == Some(region) {
            return out;
        }
        let holds_slot = self
            .slot
            .as_ref()
            .is_some_and(|slot| slot.region() == region);
        let standing = if holds_slot && self.sends == 0 {
            Standing::Closed
        } else {
            state.standing(region, self.circuit(), now)
        };
        let on_ramp = match standing {
            Standing::Open { until } => return Candidate::Out { until },
            Standing::Ramp(share) => {
                !alone && self.intent.is_read() && self.sends == 0 && draw() >= f64::from(share)
            }
            _ => false,
        };
        let ready = match self.due {
            Due::Back { at, .. } => at.max(now),
            _ => now,
        };
        if self.is_too_late(context, ready) || (ready > now && self.reach == Reach::OnceEach) {
            return out;
        }
        let bucket = context.service.budgets.get(region.index());
        let affordable = bucket.is_none_or(|bucket| self.sends == 0 || bucket.level() > 0);
        if !affordable {
            return out;
        }
        if on_ramp {
            Candidate::LastResort { ready }
        } else {
            Candidate::Admissible { ready }
        }
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
        let Some(advice) = context.service.advice else {
            return Some(choice);
        };
        let sends = self.sends;
        let past = self.past.as_ref()?;
        if let Some((asked_after, advised)) = past.advised {
            if asked_after == sends {
                let still = unavailable & bit(advised.region) == 0;
                return Some(if still { advised } else { choice });
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
                if self.is_too_late(context, ready) {
                    return None;
                }
                Choice { ready, ..choice }
            }
            Advised::To(region) => {
                let unavailable = unavailable | !bit(region);
                let mut ignored = None;
                let due = std::mem::replace(&mut self.due, Due::Choose);
                let there = self.choose(context, now, unavailable, &mut ignored, draw);
                self.due = due;
                there.unwrap_or(choice)
            }
        };
        if let Some(past) = &mut self.past {
            past.advised = Some((sends, advised));
        }
        Some(advised)
    }
}
