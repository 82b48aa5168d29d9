//! What happened to a service, for people and for dashboards (B10).
//!
//! Every transition is told exactly once and in order: the circuit of reads, the circuit of
//! writes, then the gate that follows them. Listeners are called in the order in which they were
//! given, after the state has changed and without any lock held, so a listener may ask the state
//! whatever it likes, and even change it: what follows from that is told next. When two threads
//! cause events at once, one of them delivers both. Without a listener nothing is built or stored.
//!
//! A listener that panics harms nobody but itself: the panic ends there, the other listeners are
//! told, and the call that caused the event goes on. It is called again for the next event.
//! [`ServiceState::listener_panics`](crate::service_state::ServiceState::listener_panics) counts
//! how often that happened.
//!
//! Beside the transitions a listener sees every further send of an operation (T9). That is told at
//! once, on the thread that makes the send, and not in order with the transitions.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::breaker::{Circuit, CircuitPhase};
use crate::gate::{GateStatus, ReadOnlyWhy};
use crate::region::RegionId;
use crate::tick::Tick;
use crate::trail::SendKind;
use crate::verdict::Verdict;

/// Somebody who wants to know.
///
/// Called on the thread that caused the event, so it should be quick. A panic of it is caught and
/// [counted](crate::service_state::ServiceState::listener_panics).
pub trait Listener: Send + Sync + 'static {
    /// Something happened.
    fn on_event(&self, event: &Event);
}

impl<F> Listener for F
where
    F: Fn(&Event) + Send + Sync + 'static,
{
    fn on_event(&self, event: &Event) {
        self(event);
    }
}

/// Something happened to a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The name of the service.
    pub service: Arc<str>,
    /// When, in the service's own time: enough to order events and to take differences. See
    /// [`instant`](Self::instant).
    pub at: Tick,
    /// What.
    pub kind: EventKind,
    /// When the service's time began.
    pub(crate) base: Instant,
    /// The names of the service's regions, in order.
    pub(crate) region_names: Arc<[Box<str>]>,
}

impl Event {
    /// When, on the clock that the service counts by.
    #[must_use]
    pub fn instant(&self) -> Instant {
        self.at.after(self.base)
    }

    /// The name of a region of this service; `unknown` for a region that it does not have.
    #[must_use]
    pub fn region_name(&self, region: RegionId) -> &str {
        self.region_names
            .get(region.index())
            .map_or("unknown", |name| name)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A circuit changed its state.
    #[non_exhaustive]
    Breaker {
        /// Of which region.
        region: RegionId,
        /// Which of its two circuits.
        circuit: Circuit,
        /// The state that it left.
        from: CircuitPhase,
        /// The state that it is in now.
        to: CircuitPhase,
        /// Why.
        why: Why,
        /// As it opens: when it may be tried (B4); none if that depends on a monitor or an operator.
        /// The wait grows with each opening in a row.
        until: Option<Tick>,
        /// As it opens: how many of the failures in a row were of calls that got no answer at all,
        /// and were not waited for to their end (B8).
        suspects: u32,
    },
    /// The ramp of a circuit is over: from now on all reads go to the region that would go there had it
    /// never been away (B5). Told when the first operation finds it so; not told if the circuit opens
    /// before.
    #[non_exhaustive]
    RampOver {
        /// Of which region.
        region: RegionId,
        /// Which of its two circuits: that of reads.
        circuit: Circuit,
    },
    /// The read-only gate changed its state.
    #[non_exhaustive]
    Gate {
        /// The state that it is in now.
        to: GateStatus,
        /// Why. When the gate opens, this is the reason that has ended.
        why: ReadOnlyWhy,
    },
    /// A copy was set aside because it may not be read, or is used again (R6).
    #[non_exhaustive]
    Secondary {
        /// Which copy.
        region: RegionId,
        /// Set aside, or in use.
        to: Usage,
    },
    /// A further send of an operation leaves: a fall-over, a retry or a hedge (T9). Also the first
    /// send of an operation that fetches the rest of a body (R9).
    Resend(Resend),
}

/// One send of an operation beyond its first (T9), told as it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resend {
    /// Where it goes.
    pub region: RegionId,
    /// Why it is made.
    pub kind: SendKind,
    /// Which send of its operation it is; the first further one is 2.
    pub attempt: u32,
    /// How long the operation had waited for it.
    pub waited: Duration,
    /// What the send before it came to; `None` for a hedge, whose first send is under way.
    pub after: Option<Verdict>,
}

impl Resend {
    /// The rest of a body is asked for: the `nth` time (from 1) after it broke off in `region`, to
    /// which this is a return, although the operation may be directed elsewhere (R9).
    #[must_use]
    pub const fn resume(region: RegionId, nth: u32, waited: Duration) -> Self {
        Self {
            region,
            kind: SendKind::Resume,
            attempt: nth.saturating_add(1),
            waited,
            after: Some(Verdict::Ambiguous),
        }
    }
}

/// Why a circuit changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// So many failures in a row.
    Streak,
    /// The failure rate of the window.
    Rate,
    /// The rate of slow calls in the window.
    Slow,
    /// A probe succeeded or failed.
    Probe,
    /// The wait was over, by time or by the number of operations.
    Waited,
    /// A monitor got an answer (B11).
    Monitor,
    /// An operator said so (B9).
    Operator,
}

impl Why {
    /// The name that drills and metrics use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Streak => "streak",
            Self::Rate => "rate",
            Self::Slow => "slow",
            Self::Probe => "probe",
            Self::Waited => "waited",
            Self::Monitor => "monitor",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a copy is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Usage {
    /// It may not be read, and is left out for a while.
    SetAside,
    /// It is read again.
    InUse,
}

impl Usage {
    /// The name that drills and metrics use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SetAside => "set-aside",
            Self::InUse => "in-use",
        }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
