//! How a write asks the gate.

use super::ServiceState;
use crate::breaker::{Circuit, Circuits, Look, Refusal, end};
use crate::gate::{GateCheck, GateMode, GateStatus, ReadOnly};
use crate::tick::Tick;

impl<X> ServiceState<X> {
    /// Asks for leave to write, before anything else is done for the write.
    ///
    /// While a trial is due the write gets the slots of all circuits that are waiting for one, and
    /// hands them inward. Of several writes at once a harmless one (V1) should go first: see
    /// [`trial_is_due`](Self::trial_is_due).
    #[inline]
    pub fn check_gate(&self, now: Tick) -> GateCheck {
        let core = &*self.0.lane.core;
        // First what most have to be told in an outage.
        let until = core.gate_until();
        if now.as_nanos() < until {
            return GateCheck::Refused(self.read_only(end(until)));
        }
        if core.is_calm() {
            return GateCheck::Pass;
        }
        self.look_through_gate(now)
    }

    fn read_only(&self, until: Option<Tick>) -> ReadOnly {
        let core = &*self.0.lane.core;
        ReadOnly::new(core.gate_record().1, core.gate_since(), until)
    }

    #[inline(never)]
    fn look_through_gate(&self, now: Tick) -> GateCheck {
        let core = &*self.0.lane.core;
        if core.gate_record().0 == GateStatus::ReadWrite {
            return GateCheck::Pass;
        }
        // Without the lock as long as there is no slot to be had.
        if let Look::Shut(until) = self.look_at_writers(now) {
            return GateCheck::Refused(self.read_only(end(until)));
        }
        let tried = self.update(now, |change| {
            let mut refusal = Refusal { until: None };
            for region in core.writers() {
                let both = Circuits::BOTH;
                match change.acquire(core, self.member(), region, both, Circuits::NONE) {
                    Ok((word, slots)) => {
                        // The gate may have been shut only by somebody else's wait.
                        change.look_again();
                        return Ok((region, word, slots));
                    }
                    Err(other) => refusal = other,
                }
            }
            Err(refusal)
        });
        match tried {
            Ok((_, _, slots)) if slots.is_empty() => GateCheck::Pass,
            Ok((region, word, slots)) => GateCheck::Trial(self.slot(region, word, slots)),
            Err(refusal) => GateCheck::Refused(self.read_only(refusal.until)),
        }
    }

    /// The best that a write finds among the regions that take writes: clear, due, or shut.
    pub(super) fn look_at_writers(&self, now: Tick) -> Look {
        let core = &*self.0.lane.core;
        let probes = core.breaker.as_ref().map_or(1, |s| s.probes);
        let mut best = Look::Shut(u64::MAX);
        for region in core.writers() {
            let Some(cell) = core.cell(region) else {
                continue;
            };
            let mut found = Look::Clear;
            for circuit in Circuit::BOTH {
                found = match (found, cell.look(circuit, probes, now.as_nanos())) {
                    (Look::Shut(a), Look::Shut(b)) => Look::Shut(a.max(b)),
                    (Look::Shut(a), _) | (_, Look::Shut(a)) => Look::Shut(a),
                    (Look::Full, _) | (_, Look::Full) => Look::Shut(u64::MAX),
                    (Look::Due, _) | (_, Look::Due) => Look::Due,
                    (Look::Clear, Look::Clear) => Look::Clear,
                };
            }
            best = match (best, found) {
                (Look::Shut(a), Look::Shut(b)) => Look::Shut(a.min(b)),
                (Look::Clear, _) | (_, Look::Clear) => Look::Clear,
                _ => Look::Due,
            };
        }
        best
    }

    /// Whether the next write would be a trial. A write that is not harmless should step aside
    /// once when it is, so that a harmless one that came at the same moment goes first (B4).
    #[must_use]
    pub fn trial_is_due(&self, now: Tick) -> bool {
        let core = &*self.0.lane.core;
        !core.is_calm()
            && core.gate_mode == GateMode::WhileOpen
            && now.as_nanos() >= core.gate_until()
            && core.gate_record().0 != GateStatus::ReadWrite
            && self.look_at_writers(now) == Look::Due
    }
}
