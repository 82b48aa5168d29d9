//! What to do next: the steps from one send to another (C3, C5, C8, G4, T3 to T9).

use std::time::Duration;

use crate::breaker::{Admission, Circuits};
use crate::budget;
use crate::gate::{GateStatus, ReadOnlyWhy};
use crate::operation::{Again, Failure, Finish, Misfit, Plan, Reach};
use crate::region::{Destination, ReadProof, RegionId};
use crate::retry_settings::RetrySettings;
use crate::tick::Tick;
use crate::trail::SendKind;
use crate::verdict::Verdict;

use super::super::account_reads::{Cause, ReadEnd, Wish};
use super::super::routing::{Route, bit};
use super::super::topology::Topology;
use super::{AwaitAccount, Context, Current, Directed, Due, Operation, Step, choice};

impl Operation {
    pub(super) fn deadline(&self, settings: &RetrySettings) -> Option<Tick> {
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
                return Step::Finish(Finish::Failure(Failure::Config(misfit)));
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
            self.note_looked(context, found.map(|choice| choice.region), now);
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

    /// Tells the circuits that this operation would have used and found open, once (B4).
    fn note_looked<X>(&mut self, context: &Context<'_, X>, chosen: Option<RegionId>, now: Tick) {
        if self.sends > 0 || std::mem::replace(&mut self.has_looked, true) {
            return;
        }
        let Some(topology) = &self.topology else {
            return;
        };
        let candidates = self.candidates(context, topology, now);
        let passed_over = candidates
            .iter()
            .take_while(|&region| Some(region) != chosen);
        for region in passed_over {
            let state = context.service.state;
            state.note_operation(region, self.circuit(), now);
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
            ReadEnd::Refused(status) => Err(Step::Finish(Finish::Failure(Failure::Config(
                Misfit::AccountRefused(status),
            )))),
            ReadEnd::Failed => Err(Step::Finish(Finish::Failure(Failure::Transport))),
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
    pub(super) fn is_too_late<X>(&self, context: &Context<'_, X>, at: Tick) -> bool {
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
                return Err(Misfit::WriteToCopy);
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
        let kind = SendKind::after(self.sends, tried);
        let trail = self.trail();
        let waited = trail.map_or(Duration::ZERO, |trail| trail.waited(self.started, now));
        let new_connection = tried
            && self
                .past
                .as_ref()
                .is_some_and(|p| p.unreachable & bit(region) != 0);
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
    pub(super) fn destination(&self, region: RegionId) -> Option<Destination> {
        let regions = self.topology.as_ref()?.regions();
        match ReadProof::of(self.intent) {
            Some(proof) => regions.read_target(proof, region),
            None => regions.write_target(region),
        }
    }

    pub(super) fn failure_given(&self, region: RegionId) -> Circuits {
        self.trail().map_or(Circuits::NONE, |trail| {
            trail.failure_given(region, self.circuit())
        })
    }

    pub(super) fn tried(&self, region: RegionId) -> bool {
        self.trail().is_some_and(|trail| trail.has_tried(region))
    }

    fn last_was_unreachable(&self) -> bool {
        let last = self.trail().and_then(|trail| trail.sends().last());
        last.is_some_and(|send| send.verdict == Verdict::Unreachable)
    }

    /// Whether a write waits for the account read and follows the new writer (C8).
    pub(super) fn may_follow<X>(&self, context: &Context<'_, X>) -> bool {
        context.account.settings().get_discovery()
            && self.pin.is_none()
            && self.reach != Reach::Home
            && self
                .topology
                .as_ref()
                .is_some_and(|topology| self.follows_the_writer(topology))
    }

    /// Whether the request has one place to go at a time: its writes follow the writer (C8).
    pub(super) fn follows_the_writer(&self, topology: &Topology) -> bool {
        match self.request.route() {
            Route::Read => false,
            Route::Hub => true,
            Route::Write => !topology.is_multi_write(),
        }
    }
}
