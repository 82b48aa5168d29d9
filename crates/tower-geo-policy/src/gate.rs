//! Whether a service takes writes (G1 to G6).

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Instant;

use crate::breaker::ProbeSlot;
use crate::sync::{Mutex, lock};
use crate::tick::Tick;

/// What makes a service read-only by itself (G1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum GateMode {
    /// Either circuit of the region that takes the writes being open. The default.
    #[default]
    WhileOpen,
    /// Nothing: only an operator or maintenance does.
    Manual,
}

/// Whether writes are taken (G6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum GateStatus {
    /// They are.
    ReadWrite,
    /// They are refused.
    ReadOnly,
    /// One is wanted, to see whether the region works again; the others are refused meanwhile.
    Trial,
}

impl GateStatus {
    /// The name that drills and metrics use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadWrite => "read-write",
            Self::ReadOnly => "read-only",
            Self::Trial => "trial",
        }
    }

    pub(crate) const fn to_bits(self) -> u8 {
        match self {
            Self::ReadWrite => 0,
            Self::ReadOnly => 1,
            Self::Trial => 2,
        }
    }

    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::ReadWrite,
            1 => Self::ReadOnly,
            _ => Self::Trial,
        }
    }
}

impl fmt::Display for GateStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why writes are refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ReadOnlyWhy {
    /// An operator said so, of this service or of its account.
    Operator,
    /// A circuit of the region that takes the writes is not closed.
    Breaker,
    /// The same, of another service that this one shares with (B12).
    Group,
    /// Maintenance (G4).
    Maintenance,
}

impl ReadOnlyWhy {
    /// The name that drills and metrics use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Breaker => "breaker",
            Self::Group => "group",
            Self::Maintenance => "maintenance",
        }
    }

    pub(crate) const fn to_bits(self) -> u8 {
        match self {
            Self::Operator => 0,
            Self::Breaker => 1,
            Self::Group => 2,
            Self::Maintenance => 3,
        }
    }

    pub(crate) const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Operator,
            1 => Self::Breaker,
            2 => Self::Group,
            _ => Self::Maintenance,
        }
    }
}

impl fmt::Display for ReadOnlyWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The gate, to be shown to people (G6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GateState {
    /// Whether writes are taken.
    pub status: GateStatus,
    /// Since when, in the service's own time; see
    /// [`ServiceState::instant`](crate::service_state::ServiceState::instant).
    pub since: Tick,
    /// Why they are not; none while they are.
    pub why: Option<ReadOnlyWhy>,
    /// When to try again; none if that is not known.
    pub until: Option<Tick>,
}

impl GateState {
    pub(crate) const fn new(
        status: GateStatus,
        since: Tick,
        why: Option<ReadOnlyWhy>,
        until: Option<Tick>,
    ) -> Self {
        Self {
            status,
            since,
            why,
            until,
        }
    }
}

/// A write was refused (G2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReadOnly {
    /// Why.
    pub why: ReadOnlyWhy,
    /// Since when the service takes no writes.
    pub since: Tick,
    /// When to try again; none if that is not known.
    pub until: Option<Tick>,
}

impl ReadOnly {
    pub(crate) const fn new(why: ReadOnlyWhy, since: Tick, until: Option<Tick>) -> Self {
        Self { why, since, until }
    }
}

/// What the gate says to one write.
#[derive(Debug)]
#[must_use = "a probe slot that is dropped is given back"]
#[non_exhaustive]
pub enum GateCheck {
    /// Go.
    Pass,
    /// Go, and decide whether the region works again. The slot is handed inward with the write.
    Trial(ProbeSlot),
    /// Stop.
    Refused(ReadOnly),
}

/// A flag over all services of an account (G3).
///
/// Each service still has a flag of its own; a service is read-only while either is set. Give a
/// clone of the same `Arc` to every service of the account.
pub struct AccountSwitch(Mutex<Account>);

#[derive(Default)]
struct Account {
    read_only: bool,
    services: Vec<Weak<dyn OfAccount>>,
}

/// A service that follows an [`AccountSwitch`].
pub(crate) trait OfAccount: Send + Sync {
    /// The switch may have changed. The service reads it under its own lock, so that of two
    /// changes at once the later one stays.
    fn account_changed(&self, now: Instant);
}

impl AccountSwitch {
    /// A switch that says read-write.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Account::default())))
    }

    /// Makes all services of the account read-only, or withdraws that.
    pub fn set_read_only(&self, read_only: bool, now: Instant) {
        let services: Vec<_> = {
            let mut account = lock(&self.0);
            account.read_only = read_only;
            account.services.retain(|s| s.strong_count() > 0);
            account.services.iter().filter_map(Weak::upgrade).collect()
        };
        // Without the lock: services take theirs first, and listeners may use the switch.
        for service in services {
            service.account_changed(now);
        }
    }

    /// Whether the account is read-only by this switch.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        lock(&self.0).read_only
    }

    pub(crate) fn join(&self, service: Weak<dyn OfAccount>) {
        lock(&self.0).services.push(service);
    }
}

impl fmt::Debug for AccountSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountSwitch")
            .field("read_only", &self.is_read_only())
            .finish_non_exhaustive()
    }
}
