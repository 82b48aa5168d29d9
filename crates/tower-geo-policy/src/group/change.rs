//! How circuits change: outcomes, probes, operators. All of it under the lock of the group.

use std::sync::Arc;

use super::at::At;
use super::{Change, Member, Note};
use crate::breaker::{
    Auto, Circuit, Circuits, Half, Look, Manual, Refusal, Sent, Timing, Word, end,
};
use crate::events::{EventKind, Usage, Why};
use crate::region::RegionId;
use crate::service_state::Core;
use crate::sync::{AcqRel, Acquire, Relaxed, Release};
use crate::tick::Tick;
use crate::verdict::Evidence;

/// What an outcome says about one circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// A good call of this circuit.
    Call,
    /// A good write, for the circuit of reads: it proves the region, but is no read (B1).
    Proof,
    /// Something alive answered; only a probe cares.
    Alive,
    /// Nothing; a probe gets its slot back.
    Undecided,
    /// Fails a probe, and nothing else.
    Bad,
    /// A failure.
    Failure,
}

/// What evidence says about each circuit (B1, B4, B5).
pub(crate) const fn effects(evidence: Evidence, via: Circuit) -> [Effect; 2] {
    let (own, reads_of_write) = match evidence {
        Evidence::Success => (Effect::Call, Effect::Proof),
        Evidence::Alive => (Effect::Alive, Effect::Alive),
        Evidence::Nothing => (Effect::Undecided, Effect::Undecided),
        // B4: a slot of reads that a write held is failed only by *unreachable*.
        Evidence::FailsProbe => (Effect::Bad, Effect::Undecided),
        Evidence::Failure => (Effect::Failure, Effect::Undecided),
        Evidence::FailureOfBoth => return [Effect::Failure, Effect::Failure],
    };
    match via {
        Circuit::Reads => [own, Effect::Undecided],
        Circuit::Writes => [reads_of_write, own],
    }
}

/// A send that is being settled.
pub(crate) struct Settling<'a> {
    pub(crate) core: &'a Core,
    pub(crate) member: usize,
    pub(crate) sent: Sent,
    /// It was counted as a failure while it was under way (B8).
    pub(crate) counted: bool,
    /// It took so long that it counts as a slow call.
    pub(crate) slow: bool,
    /// A call for the rate of slow calls although it is none for the rate of failures (H4).
    pub(crate) outrun: bool,
    /// It was given up, and the region had said nothing since it was sent (B8).
    pub(crate) silent: bool,
}

impl Settling<'_> {
    fn is_own(&self, circuit: Circuit) -> bool {
        self.sent.circuit == circuit
    }
}

impl Change<'_> {
    /// Settles a send, and says which circuits took it as a failure.
    pub(crate) fn settle(
        &mut self,
        send: &Settling<'_>,
        effects: [Effect; 2],
        draw: &mut dyn FnMut() -> f64,
    ) -> Circuits {
        let mut given = Circuits::NONE;
        let (Some(cell), Some(settings)) =
            (send.core.cell(send.sent.region), send.core.breaker.as_ref())
        else {
            return given;
        };
        for circuit in Circuit::BOTH {
            let at = At {
                core: send.core,
                member: send.member,
                cell,
                region: send.sent.region,
                circuit,
                settings,
            };
            if self.apply(&at, send, *circuit.of(&effects), draw) {
                given |= circuit.into();
            }
        }
        given
    }

    fn apply(
        &mut self,
        at: &At<'_>,
        send: &Settling<'_>,
        effect: Effect,
        draw: &mut dyn FnMut() -> f64,
    ) -> bool {
        let half = at.cell.half(at.circuit);
        if !half.same_generation(send.sent.word.half(at.circuit)) {
            return false;
        }
        let holds_slot = send.sent.flags.probes().contains(at.circuit);
        if holds_slot {
            return self.settle_probe(at, half, effect, true, draw);
        }
        match half.auto() {
            Auto::Closed => self.settle_closed(at, half, send, effect, draw),
            Auto::Open | Auto::HalfOpen => {
                // B9: forced closed, a circuit that would be open is tried by every send that
                // leaves after its wait.
                let tries = half.manual() == Manual::Closed
                    && send.sent.at >= at.circuit.of(&at.cell.until).load(Acquire);
                tries && self.settle_probe(at, half, effect, false, draw)
            }
        }
    }

    fn settle_probe(
        &mut self,
        at: &At<'_>,
        half: Half,
        effect: Effect,
        holds_slot: bool,
        draw: &mut dyn FnMut() -> f64,
    ) -> bool {
        let freed = u32::from(holds_slot);
        match effect {
            Effect::Call | Effect::Proof | Effect::Alive => {
                if half.good() + 1 >= at.settings.close_after {
                    self.close(at, Why::Probe);
                } else {
                    at.cell.change(at.circuit, |h| {
                        h.with_good(h.good() + 1)
                            .with_probes(h.probes().saturating_sub(freed))
                    });
                }
                false
            }
            Effect::Undecided => {
                at.cell.change(at.circuit, |h| {
                    h.with_probes(h.probes().saturating_sub(freed))
                });
                false
            }
            Effect::Bad | Effect::Failure => {
                self.open(at, Why::Probe, 0, draw);
                effect == Effect::Failure
            }
        }
    }

    fn settle_closed(
        &mut self,
        at: &At<'_>,
        half: Half,
        send: &Settling<'_>,
        effect: Effect,
        draw: &mut dyn FnMut() -> f64,
    ) -> bool {
        let given = match effect {
            Effect::Call => {
                at.cell.end_streak(at.circuit, half.generation());
                if !send.counted {
                    at.add_calls(send.sent.stripe, self.now);
                }
                false
            }
            Effect::Proof => {
                at.cell.end_streak(at.circuit, half.generation());
                return false;
            }
            Effect::Failure => {
                if send.counted && send.is_own(at.circuit) {
                    // It is a failure already, of its circuit and of its operation.
                    true
                } else if send.sent.flags.given().contains(at.circuit) {
                    false
                } else {
                    if self.fail(at, half, send, draw) {
                        // It is open; whether it was slow as well matters no more.
                        return true;
                    }
                    true
                }
            }
            Effect::Undecided if send.outrun && send.is_own(at.circuit) => false,
            Effect::Alive | Effect::Undecided | Effect::Bad => return false,
        };
        if send.is_own(at.circuit) && at.add_slow(send.sent.stripe, send.slow, self.now) {
            self.open(at, Why::Slow, 0, draw);
        }
        given
    }

    /// Records a failure and those that it makes certain (B8), and says whether the circuit
    /// opened.
    fn fail(
        &mut self,
        at: &At<'_>,
        half: Half,
        send: &Settling<'_>,
        draw: &mut dyn FnMut() -> f64,
    ) -> bool {
        let now = self.now.as_nanos();
        let Some(timing) = self.timing(at) else {
            return false;
        };
        let first = timing.first_slot;
        let goes_on = timing.fail(now);
        let marked = at.mark(first, now);
        let failures = 1 + marked;
        let added = u32::try_from(failures).unwrap_or(u32::MAX);
        let streak = at
            .cell
            .add_to_streak(at.circuit, half.generation(), added, goes_on);
        let silent = added - u32::from(!send.silent);
        let suspects = self
            .timing(at)
            .map_or(0, |timing| timing.count_suspects(silent, streak <= added));
        at.look_closer();
        at.add_bad(send.sent.stripe, failures, self.now);
        if streak >= at.settings.streak {
            self.open(at, Why::Streak, suspects, draw);
            return true;
        }
        if at.rate_is_reached(self.now) {
            self.open(at, Why::Rate, suspects, draw);
            return true;
        }
        false
    }

    fn timing(&mut self, at: &At<'_>) -> Option<&mut Timing> {
        let member = self.shared.members.get_mut(at.member)?.as_mut()?;
        let pair = member.timing.get_mut(at.region.index())?;
        Some(at.circuit.of_mut(pair))
    }

    /// Opens; `suspects` of the failures behind it were calls in silence (B8).
    fn open(&mut self, at: &At<'_>, why: Why, suspects: u32, draw: &mut dyn FnMut() -> f64) {
        let now = self.now.as_nanos();
        let nowhere_else = at.nowhere_else();
        let was_closed = at.cell.half(at.circuit).auto() == Auto::Closed;
        let Some(timing) = self.timing(at) else {
            return;
        };
        let mut until = timing.open(at.settings, now, was_closed, nowhere_else, draw);
        if at.core.waits_for_a_monitor(at.region) {
            // B11: only the monitor asks, and ends the wait.
            until = u64::MAX;
        }
        at.cell.set_until(at.circuit, until);
        at.circuit.of(&at.cell.calls).store(0, Relaxed);
        self.transition(at, Auto::Open, why, suspects);
    }

    fn close(&mut self, at: &At<'_>, why: Why) {
        let now = self.now.as_nanos();
        let first = at.settings.suspect.at(now) + 1;
        if let Some(timing) = self.timing(at) {
            timing.close(now, first);
        }
        at.forget();
        self.transition(at, Auto::Closed, why, 0);
        if at.circuit == Circuit::Reads && !at.settings.ramp.is_empty() {
            at.cell.change(at.circuit, |h| h.with_ramp(true));
        }
    }

    fn half_open(&mut self, at: &At<'_>) {
        let why = match self.timing(at) {
            Some(timing) if timing.by_monitor => Why::Monitor,
            _ => Why::Waited,
        };
        self.transition(at, Auto::HalfOpen, why, 0);
    }

    /// Changes the automatic state, and tells it if callers meet another state than before.
    fn transition(&mut self, at: &At<'_>, to: Auto, why: Why, suspects: u32) {
        let before = at.cell.change(at.circuit, |h| h.next(to));
        at.look_closer();
        if before.manual() == Manual::None {
            at.cell.set_since(at.circuit, self.now.as_nanos());
            let until = match to {
                Auto::Open => end(at.circuit.of(&at.cell.until).load(Acquire)),
                Auto::Closed | Auto::HalfOpen => None,
            };
            let told = EventKind::Breaker {
                region: at.region,
                circuit: at.circuit,
                from: before.effective().into(),
                to: to.into(),
                why,
                until,
                suspects,
            };
            self.tell_breaker(at.core, at.member, told);
        }
        self.dirty = true;
    }

    /// Tells of a circuit, if there is something to tell and somebody to tell it to.
    fn tell_breaker(&mut self, core: &Core, member: usize, told: EventKind) {
        let is_change = matches!(told, EventKind::Breaker { from, to, .. } if from != to);
        if is_change && core.has_listeners() {
            self.tell(member, told);
        }
    }

    fn tell(&mut self, member: usize, kind: EventKind) {
        let Some(Some(Member { core, .. })) = self.shared.members.get(member) else {
            return;
        };
        if core.has_listeners() {
            self.shared.notes.push_back(Note {
                core: Arc::clone(core),
                event: Some(core.event(self.now, kind)),
            });
        }
    }
}

/// Admissions that need more than a look.
impl Change<'_> {
    /// Takes a slot of each circuit in `needed` that is not closed, or none at all; and one of
    /// each in `wished` where there is one. Says which slots were taken, and in which word.
    pub(crate) fn acquire(
        &mut self,
        core: &Core,
        member: usize,
        region: RegionId,
        needed: Circuits,
        wished: Circuits,
    ) -> Result<(Word, Circuits), Refusal> {
        let Some(cell) = core.cell(region) else {
            return Ok((Word::default(), Circuits::NONE));
        };
        let now = self.now.as_nanos();
        let probes = core.breaker.as_ref().map_or(1, |s| s.probes);
        let mut slots = Circuits::NONE;
        for circuit in Circuit::BOTH {
            match cell.look(circuit, probes, now) {
                Look::Due if (needed | wished).contains(circuit) => slots |= circuit.into(),
                Look::Shut(until) if needed.contains(circuit) => {
                    return Err(Refusal { until: end(until) });
                }
                Look::Full if needed.contains(circuit) => return Err(Refusal { until: None }),
                _ => {}
            }
        }
        if let Some(settings) = &core.breaker {
            for circuit in Circuit::BOTH {
                if !slots.contains(circuit) {
                    continue;
                }
                let at = At {
                    core,
                    member,
                    cell,
                    region,
                    circuit,
                    settings,
                };
                if cell.half(circuit).auto() == Auto::Open {
                    self.half_open(&at);
                }
                // Slots are taken under the lock only, so there still is one.
                cell.change(circuit, |h| h.with_probes(h.probes() + 1));
            }
        }
        Ok((cell.word(), slots))
    }

    /// An operation found the circuit open; enough of them end the wait (B4).
    pub(crate) fn count_operation(&mut self, core: &Core, region: RegionId, circuit: Circuit) {
        let (Some(cell), Some(settings)) = (core.cell(region), core.breaker.as_ref()) else {
            return;
        };
        if core.waits_for_a_monitor(region) {
            return;
        }
        let calls = circuit.of(&cell.calls).load(Acquire);
        if calls >= settings.open_for_calls && cell.half(circuit).auto() == Auto::Open {
            cell.set_until(circuit, 0);
            self.dirty = true;
        }
    }

    /// B11: the monitor had an answer, so the waits of this region are over.
    pub(crate) fn end_wait(&mut self, core: &Core, member: usize, region: RegionId) {
        let (Some(cell), Some(settings)) = (core.cell(region), core.breaker.as_ref()) else {
            return;
        };
        for circuit in Circuit::BOTH {
            let at = At {
                core,
                member,
                cell,
                region,
                circuit,
                settings,
            };
            let now = self.now.as_nanos();
            let waits = circuit.of(&cell.until).load(Acquire) > now;
            if cell.half(circuit).auto() == Auto::Open && waits {
                cell.set_until(circuit, now);
                if let Some(timing) = self.timing(&at) {
                    timing.by_monitor = true;
                }
                self.dirty = true;
            }
        }
    }

    /// B11: a monitor has begun to watch, or the last one has ended. Waits that are not over are
    /// for a monitor from now on, or are over, because nobody is left to end them.
    pub(crate) fn hand_waits_over(&mut self, core: &Core) {
        let now = self.now.as_nanos();
        for region in core.writers() {
            let Some(cell) = core.cell(region) else {
                continue;
            };
            for circuit in Circuit::BOTH {
                let until = circuit.of(&cell.until).load(Acquire);
                let handed = match core.waits_for_a_monitor(region) {
                    true if until > now => u64::MAX,
                    false if until == u64::MAX => now,
                    _ => continue,
                };
                if cell.half(circuit).auto() == Auto::Open {
                    cell.set_until(circuit, handed);
                    self.dirty = true;
                }
            }
        }
    }

    /// The ramp of a circuit is over: nothing is left to consider.
    pub(crate) fn end_ramp(
        &mut self,
        core: &Core,
        member: usize,
        region: RegionId,
        circuit: Circuit,
    ) {
        let (Some(cell), Some(settings)) = (core.cell(region), core.breaker.as_ref()) else {
            return;
        };
        if cell.half(circuit).ramp() && cell.ramp(circuit, settings, self.now.as_nanos()).is_none()
        {
            cell.change(circuit, |h| h.with_ramp(false));
            self.dirty = true;
            self.tell(member, EventKind::RampOver { region, circuit });
        }
    }
}

/// What operators do (B9).
impl Change<'_> {
    /// Forces both circuits of a region, or hands them back.
    pub(crate) fn set_manual(
        &mut self,
        core: &Core,
        member: usize,
        region: RegionId,
        manual: Manual,
    ) {
        let Some(cell) = core.cell(region) else {
            return;
        };
        for circuit in Circuit::BOTH {
            let before = cell.change(circuit, |h| h.with_manual(manual));
            for tally in core.stripes_of(region) {
                tally.look_closer();
            }
            let change = (before.effective(), before.with_manual(manual).effective());
            if change.0 != change.1 {
                cell.set_since(circuit, self.now.as_nanos());
            }
            let told = EventKind::Breaker {
                region,
                circuit,
                from: change.0.into(),
                to: change.1.into(),
                why: Why::Operator,
                until: None,
                suspects: 0,
            };
            self.tell_breaker(core, member, told);
        }
        self.dirty = true;
    }

    /// Clears evidence and closes both circuits of a region, but leaves a manual state.
    pub(crate) fn reset(&mut self, core: &Core, member: usize, region: RegionId) {
        let (Some(cell), Some(settings)) = (core.cell(region), core.breaker.as_ref()) else {
            return;
        };
        for circuit in Circuit::BOTH {
            let at = At {
                core,
                member,
                cell,
                region,
                circuit,
                settings,
            };
            let now = self.now.as_nanos();
            let first = settings.suspect.at(now) + 1;
            if let Some(timing) = self.timing(&at) {
                timing.reset(now, first);
            }
            at.forget();
            self.transition(&at, Auto::Closed, Why::Operator, 0);
        }
    }
}

/// Regions that are left out for other reasons than their circuits.
impl Change<'_> {
    /// T1: the service asked for patience; the longest of several waits counts.
    pub(crate) fn rest(&mut self, core: &Core, region: RegionId, until: Tick) {
        if let Some(cell) = core.cell(region) {
            cell.rest.fetch_max(until.as_nanos(), AcqRel);
            self.dirty = true;
        }
    }

    /// R6: the region cannot be read; said once.
    pub(crate) fn set_aside(&mut self, core: &Core, member: usize, region: RegionId, until: Tick) {
        let Some(cell) = core.cell(region) else {
            return;
        };
        let before = cell.aside.load(Acquire);
        if self.now.as_nanos() < before {
            return;
        }
        cell.aside.store(until.as_nanos(), Release);
        self.dirty = true;
        if before == 0 {
            self.tell(
                member,
                EventKind::Secondary {
                    region,
                    to: Usage::SetAside,
                },
            );
        }
    }

    /// Ends rests and settings-aside whose time is over.
    pub(crate) fn end_rests(&mut self, core: &Core, member: usize, region: RegionId) {
        let Some(cell) = core.cell(region) else {
            return;
        };
        let now = self.now.as_nanos();
        let over = |end: u64| end != 0 && end <= now;
        if over(cell.rest.load(Acquire)) {
            cell.rest.store(0, Release);
            self.dirty = true;
        }
        if over(cell.aside.load(Acquire)) {
            cell.aside.store(0, Release);
            self.dirty = true;
            self.tell(
                member,
                EventKind::Secondary {
                    region,
                    to: Usage::InUse,
                },
            );
        }
    }
}
