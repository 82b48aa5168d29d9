//! What a caller holds: an admission, a probe slot, a send that is under way.

use std::fmt;
use std::sync::Arc;

use super::word::Word;
use super::{Circuit, Circuits};
use crate::region::RegionId;
use crate::service_state::Core;
use crate::tick::Tick;
use crate::verdict::Evidence;

/// The end of a wait; none when it lasts until further notice.
pub(crate) fn end(until: u64) -> Option<Tick> {
    (until != u64::MAX).then(|| Tick::from_nanos(until))
}

/// Whether a region may be asked, without asking for it.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Standing {
    /// It may.
    Closed,
    /// It may, and this share of the reads that could go elsewhere should, while the region comes
    /// back (B5).
    Ramp(f32),
    /// The next send would be a probe.
    Probe,
    /// It may not.
    Open {
        /// When to come back; none if an operator, a monitor or a probe that is out decides.
        until: Option<Tick>,
    },
}

/// Why an admission was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// When to come back; none if an operator, a monitor or a probe that is out decides.
    pub until: Option<Tick>,
}

/// Leave to send.
#[derive(Debug)]
#[must_use = "a probe slot that is dropped is given back"]
#[non_exhaustive]
pub enum Admission {
    /// The circuit is closed.
    Plain,
    /// The circuit is half open, and this send is a probe.
    Probe(ProbeSlot),
}

/// One of the few places for a probe of a half-open circuit (B4).
///
/// Dropped, it is given back undecided, exactly once, without a clock and without a lock (B7).
/// When the probe leaves, hand it to
/// [`ServiceState::probe_started`](crate::service_state::ServiceState::probe_started): from then
/// on the [`Sent`] answers for it.
///
/// A write can hold a slot of each circuit.
pub struct ProbeSlot {
    core: Arc<Core>,
    region: RegionId,
    word: Word,
    slots: Circuits,
}

impl ProbeSlot {
    pub(crate) fn new(core: Arc<Core>, region: RegionId, word: Word, slots: Circuits) -> Self {
        Self {
            core,
            region,
            word,
            slots,
        }
    }

    /// The region that is probed.
    #[must_use]
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// The circuits that this probe decides about.
    #[must_use]
    pub fn circuits(&self) -> Circuits {
        self.slots
    }

    pub(crate) fn belongs_to(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.core, core)
    }

    /// Takes the slot out of the guard: giving it back is now somebody else's duty.
    pub(crate) fn take(mut self) -> (Word, Circuits) {
        let slots = std::mem::take(&mut self.slots);
        (self.word, slots)
    }
}

impl Drop for ProbeSlot {
    fn drop(&mut self) {
        if self.slots.is_empty() {
            return;
        }
        if let Some(cell) = self.core.cell(self.region) {
            cell.release(self.word, self.slots);
        }
    }
}

impl fmt::Debug for ProbeSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeSlot")
            .field("region", &self.region)
            .field("circuits", &self.slots)
            .finish_non_exhaustive()
    }
}

/// A send that is under way, as the circuits know it.
///
/// It must be settled exactly once, with
/// [`ServiceState::send_settled`](crate::service_state::ServiceState::send_settled); a send that
/// is dropped is settled as [`Outcome::Dropped`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a send must be settled"]
pub struct Sent {
    pub(crate) word: Word,
    pub(crate) at: u64,
    /// The slot that it was counted in.
    pub(crate) slot: u32,
    pub(crate) region: RegionId,
    pub(crate) stripe: u8,
    pub(crate) circuit: Circuit,
    pub(crate) flags: Flags,
}

/// What there is to know about a send, in a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    /// It is not in the list of sends under way (B8).
    pub(crate) const UNTRACKED: Self = Self(0b1_0000);
    /// The word was not plain when it left.
    pub(crate) const CLOSER: Self = Self(0b10_0000);
    const PROBES: u8 = 0b11;
    const GIVEN_SHIFT: u32 = 2;

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    const fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) const fn is_tracked(self) -> bool {
        self.0 & Self::UNTRACKED.0 == 0
    }

    #[inline]
    pub(crate) const fn is_probe(self) -> bool {
        self.0 & Self::PROBES != 0
    }

    pub(crate) const fn probes(self) -> Circuits {
        Circuits::from_bits(self.0 & Self::PROBES)
    }

    pub(crate) const fn of_probes(slots: Circuits) -> Self {
        Self(slots.bits())
    }

    pub(crate) const fn given(self) -> Circuits {
        Circuits::from_bits(self.0 >> Self::GIVEN_SHIFT)
    }

    pub(crate) const fn of_given(circuits: Circuits) -> Self {
        Self(circuits.bits() << Self::GIVEN_SHIFT)
    }
}

impl Sent {
    /// Whether it was sent by this stripe, and there is nothing else to consider.
    #[inline]
    pub(crate) const fn is_plainly_of(&self, stripe: u8) -> bool {
        self.flags.is_none() && self.stripe == stripe
    }

    /// The region that it was sent to.
    #[must_use]
    pub const fn region(&self) -> RegionId {
        self.region
    }

    /// The circuit that it goes through.
    #[must_use]
    pub const fn circuit(&self) -> Circuit {
        self.circuit
    }

    /// When it was sent.
    #[must_use]
    pub const fn at(&self) -> Tick {
        Tick::from_nanos(self.at)
    }

    /// Whether it is a probe.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        self.flags.is_probe()
    }

    /// The operation has already given these circuits of this region its one failure (B2): what
    /// becomes of this send adds none.
    ///
    /// Prefer [`ServiceState::send_restarted`](crate::service_state::ServiceState::send_restarted)
    /// when it is known before the send: then the send does not count while it is under way
    /// either.
    pub fn failure_given(mut self, circuits: Circuits) -> Self {
        self.flags = self.flags.with(Flags::of_given(circuits));
        self
    }
}

/// What became of a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// There is a verdict: at the end of the body, at a body error, or when the body was dropped
    /// after the head (V4).
    #[non_exhaustive]
    Judged {
        /// What it says about the region.
        evidence: Evidence,
        /// Whether the region said anything at all, be it a failure: any status line counts.
        answered: bool,
    },
    /// The caller gave it up before there was an answer (B8).
    Dropped,
    /// A hedge to another region won (H4): a failure if the region has said nothing since this was
    /// sent, however short that was, else a slow call.
    Outrun,
}

impl Outcome {
    /// The region answered, and this is what the answer says.
    #[must_use]
    pub const fn answer(evidence: Evidence) -> Self {
        Self::Judged {
            evidence,
            answered: true,
        }
    }

    /// There was no answer: no connection, a reset, a time-out.
    #[must_use]
    pub const fn fault(evidence: Evidence) -> Self {
        Self::Judged {
            evidence,
            answered: false,
        }
    }
}
