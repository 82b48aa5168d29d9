//! Whether a region is trusted (B1 to B12).
//!
//! Every region of a service has two circuits, one of [reads](Circuit::Reads) and one of
//! [writes](Circuit::Writes), with evidence and state of their own. They are part of the
//! [`ServiceState`](crate::service_state::ServiceState), which says how they are asked; this
//! module holds the pieces.
//!
//! # When a circuit opens
//!
//! When its streak of failures is long enough, or its failure rate or its rate of slow calls over
//! a sliding window is high enough ([`BreakerSettings`]). Only what was sent while the circuit was
//! closed counts, and only in the same generation: a late answer to a question from before the
//! last change decides nothing.
//!
//! # Cold start
//!
//! A circuit starts closed and without evidence. A rate means nothing before it is taken over the
//! minimum number of calls.
//!
//! # How it closes again
//!
//! An open circuit waits. The first operation that finds the wait over makes it half open and is
//! let through as a probe; others are treated as while open, unless there are more slots. Good
//! probes close it, and reads then return in steps (the ramp); a bad one opens it again for twice
//! as long. Closing forgets the evidence from before.
//!
//! # What an operator can do
//!
//! Force it open or closed, hand it back, or reset it. What an operator says wins over all else,
//! also over a group. Underneath, the automatic state goes on as if nobody had interfered: a
//! circuit that is forced closed still counts, opens and, when its wait is over, takes every
//! outcome for that of a probe; one that is forced open still waits. So *automatic* returns to the
//! state that the circuit would have had. Events tell of the state that callers meet.

mod cell;
mod circuit;
mod compiled;
mod flight;
mod probe;
mod settings;
mod window;
mod word;

pub(crate) use cell::{Cell, Look, RegionTally, Tally};
pub(crate) use circuit::Timing;
pub(crate) use compiled::{Compiled, Epochs};
pub(crate) use flight::cut;
pub use probe::{Admission, Outcome, ProbeSlot, Refusal, Sent, Standing};
pub(crate) use probe::{Flags, end};
pub use settings::{
    BreakerSettings, MAX_CLOSE_AFTER, MAX_PROBES, MAX_RAMP_STEPS, OpenJitter, RateRule, SlowRule,
};
pub(crate) use word::{Auto, Half, Manual, Word};

use std::fmt;

/// One of the two circuits of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a request reads or writes; there is no third"
)]
pub enum Circuit {
    /// Trust for reads.
    Reads,
    /// Trust for writes.
    Writes,
}

impl Circuit {
    /// Both, in the order of events.
    pub const BOTH: [Self; 2] = [Self::Reads, Self::Writes];

    /// The name that drills and metrics use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
        }
    }

    /// Picks the part of a pair that belongs to this circuit.
    pub(crate) const fn of<T>(self, pair: &[T; 2]) -> &T {
        let [reads, writes] = pair;
        match self {
            Self::Reads => reads,
            Self::Writes => writes,
        }
    }

    pub(crate) const fn of_mut<T>(self, pair: &mut [T; 2]) -> &mut T {
        let [reads, writes] = pair;
        match self {
            Self::Reads => reads,
            Self::Writes => writes,
        }
    }
}

impl fmt::Display for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of circuits.
///
/// ```
/// use tower_geo_policy::breaker::{Circuit, Circuits};
///
/// let both = Circuits::from(Circuit::Reads) | Circuits::from(Circuit::Writes);
/// assert!(both.contains(Circuit::Writes));
/// assert!(!Circuits::NONE.contains(Circuit::Reads));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Circuits(u8);

impl Circuits {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// Both circuits.
    pub const BOTH: Self = Self(3);

    /// Whether this one is in the set.
    #[must_use]
    pub const fn contains(self, circuit: Circuit) -> bool {
        self.0 & Self::bit(circuit) != 0
    }

    /// Whether none is.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn bit(circuit: Circuit) -> u8 {
        match circuit {
            Circuit::Reads => 1,
            Circuit::Writes => 2,
        }
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits & 3)
    }
}

impl From<Circuit> for Circuits {
    fn from(circuit: Circuit) -> Self {
        Self(Self::bit(circuit))
    }
}

impl std::ops::BitOr for Circuits {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Circuits {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Circuits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(Circuit::BOTH.into_iter().filter(|&c| self.contains(c)))
            .finish()
    }
}

/// The state of a circuit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CircuitPhase {
    /// Trusted.
    Closed,
    /// Not trusted.
    Open,
    /// Being tried.
    HalfOpen,
}

impl CircuitPhase {
    /// The name that drills and metrics use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

impl fmt::Display for CircuitPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Auto> for CircuitPhase {
    fn from(auto: Auto) -> Self {
        match auto {
            Auto::Closed => Self::Closed,
            Auto::Open => Self::Open,
            Auto::HalfOpen => Self::HalfOpen,
        }
    }
}
