//! What follows from circuits and flags: who is held back, what the gates say, who is calm.

use std::sync::Arc;

use super::{Change, MAX_REGIONS, Member, Note};
use crate::breaker::{Auto, Circuit, Manual};
use crate::events::EventKind;
use crate::gate::{GateMode, GateStatus, ReadOnlyWhy};
use crate::region::RegionId;
use crate::service_state::{Calm, Core};

/// What a gate says, with the time until which that is sure; 0: it has to be asked each time.
#[derive(Clone, Copy)]
struct Gate {
    status: GateStatus,
    why: ReadOnlyWhy,
    until: u64,
}

impl Gate {
    const OPEN: Self = Self {
        status: GateStatus::ReadWrite,
        why: ReadOnlyWhy::Operator,
        until: 0,
    };

    const fn shut(why: ReadOnlyWhy, until: u64) -> Self {
        Self {
            status: GateStatus::ReadOnly,
            why,
            until,
        }
    }

    /// Which of two gates, of two regions that take writes, is better for a write.
    fn rank(self) -> (u8, u64) {
        match self.status {
            GateStatus::ReadWrite => (0, 0),
            GateStatus::Trial => (1, 0),
            GateStatus::ReadOnly => (2, self.until),
        }
    }
}

impl Change<'_> {
    /// Works out everything that follows. A handful of members, regions and words; only after a
    /// change.
    pub(super) fn refresh(&mut self) {
        self.dirty = false;
        let mut calm_words = true;
        for index in 0..MAX_REGIONS {
            let Some(region) = u8::try_from(index).ok().map(RegionId::new) else {
                continue;
            };
            for circuit in Circuit::BOTH {
                let held = self
                    .shared
                    .members
                    .iter()
                    .flatten()
                    .map(|member| blocked_until(&member.core, region, circuit))
                    .max()
                    .unwrap_or(0);
                for member in self.shared.members.iter().flatten() {
                    if let Some(cell) = member.core.cell(region) {
                        cell.set_shut(circuit, held);
                    }
                }
            }
            calm_words &= self
                .shared
                .members
                .iter()
                .flatten()
                .filter_map(|member| member.core.cell(region))
                .all(|cell| cell.word().is_plain());
        }
        for member in self.shared.members.iter().flatten() {
            let gate = gate_of(member, self.now.as_nanos());
            let core = &member.core;
            let (before, why) = core.gate_record();
            let changed = before != gate.status;
            let new_why = if gate.status == GateStatus::ReadWrite {
                why
            } else {
                gate.why
            };
            core.set_gate(
                gate.status,
                new_why,
                gate.until,
                changed.then_some(self.now),
            );
            core.set_calm(calm_of(member, calm_words, gate.status));
            if changed || new_why != why {
                let event = changed && core.has_listeners();
                if event || core.is_watched() {
                    self.shared.notes.push_back(Note {
                        core: Arc::clone(core),
                        event: event.then(|| {
                            let (to, why) = (gate.status, new_why);
                            core.event(self.now, EventKind::Gate { to, why })
                        }),
                    });
                }
            }
        }
    }
}

/// Until when a circuit of one service holds back its whole group.
fn blocked_until(core: &Core, region: RegionId, circuit: Circuit) -> u64 {
    let Some(cell) = core.cell(region) else {
        return 0;
    };
    let half = cell.half(circuit);
    match (half.manual(), half.auto()) {
        (Manual::Open, _) => u64::MAX,
        (Manual::None, Auto::Open) => core.until(region, circuit).as_nanos(),
        _ => 0,
    }
}

/// G1: what the gate of a service says, circuits being entered as they are: a wait that is over
/// is still open until an operation finds it so.
fn gate_of(member: &Member, now: u64) -> Gate {
    if member.maintenance {
        return Gate::shut(ReadOnlyWhy::Maintenance, u64::MAX);
    }
    if member.operator || member.account {
        return Gate::shut(ReadOnlyWhy::Operator, u64::MAX);
    }
    let core = &member.core;
    if core.gate_mode == GateMode::Manual {
        return Gate::OPEN;
    }
    core.writers()
        .map(|region| gate_of_region(core, region, now))
        .min_by_key(|gate| gate.rank())
        .unwrap_or(Gate::OPEN)
}

fn gate_of_region(core: &Core, region: RegionId, now: u64) -> Gate {
    let Some(cell) = core.cell(region) else {
        return Gate::OPEN;
    };
    let mut gate = Gate::OPEN;
    for circuit in Circuit::BOTH {
        let half = cell.half(circuit);
        let held = cell.shut_until(circuit);
        if half.effective() == Auto::Open {
            gate = Gate::shut(ReadOnlyWhy::Breaker, gate.until.max(held));
        } else if now < held {
            let why = if gate.status == GateStatus::ReadOnly {
                gate.why
            } else {
                ReadOnlyWhy::Group
            };
            gate = Gate::shut(why, gate.until.max(held));
        } else if half.effective() == Auto::HalfOpen && gate.status == GateStatus::ReadWrite {
            gate = Gate {
                status: GateStatus::Trial,
                why: ReadOnlyWhy::Breaker,
                until: 0,
            };
        }
    }
    gate
}

fn calm_of(member: &Member, calm_words: bool, gate: GateStatus) -> Calm {
    let core = &member.core;
    Calm::CALM
        .with(Calm::CIRCUITS, !calm_words)
        .with(Calm::GATE, gate != GateStatus::ReadWrite)
        .with(Calm::MAINTENANCE, member.maintenance)
        .with(
            Calm::RESTING,
            core.regions()
                .filter_map(|region| core.cell(region))
                .any(|cell| cell.is_resting_or_aside()),
        )
}

impl Change<'_> {
    /// Sets the flags of a service that are not circuits.
    pub(crate) fn set_flags(&mut self, member: usize, set: impl FnOnce(&mut Flags)) {
        let Some(Some(member)) = self.shared.members.get_mut(member) else {
            return;
        };
        let mut flags = Flags {
            operator: member.operator,
            account: member.account,
            maintenance: member.maintenance,
        };
        set(&mut flags);
        member.operator = flags.operator;
        member.account = flags.account;
        member.maintenance = flags.maintenance;
        self.dirty = true;
    }

    /// Looks again although no circuit and no flag changed: time did.
    pub(crate) fn look_again(&mut self) {
        self.dirty = true;
    }
}

/// Why a service is read-only whatever its circuits say.
pub(crate) struct Flags {
    pub(crate) operator: bool,
    pub(crate) account: bool,
    pub(crate) maintenance: bool,
}
