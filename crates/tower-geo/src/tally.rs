//! What is counted where no layer of metrics could see it: it is looked up when it is collected.

use std::sync::atomic::{AtomicU64, Ordering};

use tower_geo_policy::gate::ReadOnlyWhy;

/// What became of the rest of a body that broke off (R9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestEnd {
    /// It goes on where it broke off.
    Resumed,
    /// The version that was begun is no longer there.
    VersionChanged,
    /// It could not be fetched, or not any more.
    GivenUp,
}

impl RestEnd {
    const ALL: [Self; 3] = [Self::Resumed, Self::VersionChanged, Self::GivenUp];

    /// The name in metrics and events.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Resumed => "resumed",
            Self::VersionChanged => "version-changed",
            Self::GivenUp => "given-up",
        }
    }
}

const REASONS: [ReadOnlyWhy; 4] = [
    ReadOnlyWhy::Operator,
    ReadOnlyWhy::Breaker,
    ReadOnlyWhy::Group,
    ReadOnlyWhy::Maintenance,
];

/// The counts of one service, from its start. All of it happens in an outage only, so that threads may
/// share a counter.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    rests: [AtomicU64; RestEnd::ALL.len()],
    refused_on_server: [AtomicU64; REASONS.len()],
}

impl Tally {
    pub(crate) fn rest_ended(&self, end: RestEnd) {
        add_one(&self.rests, &RestEnd::ALL, end);
    }

    /// A server has answered a write with 503 (G2).
    pub(crate) fn refused_on_server(&self, why: ReadOnlyWhy) {
        add_one(&self.refused_on_server, &REASONS, why);
    }
}

#[cfg(feature = "metrics")]
impl Tally {
    /// Of each end that there was, how often.
    pub(crate) fn rests(&self) -> impl Iterator<Item = (RestEnd, u64)> {
        counts(&self.rests, &RestEnd::ALL)
    }

    /// For each reason that there was, how many writes a server has refused.
    pub(crate) fn refusals_on_server(&self) -> impl Iterator<Item = (ReadOnlyWhy, u64)> {
        counts(&self.refused_on_server, &REASONS)
    }
}

fn add_one<T: PartialEq>(counters: &[AtomicU64], all: &[T], one: T) {
    let mut pairs = counters.iter().zip(all);
    if let Some((counter, _)) = pairs.find(|(_, of)| **of == one) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(feature = "metrics")]
fn counts<'a, T: Copy>(counters: &'a [AtomicU64], all: &'a [T]) -> impl Iterator<Item = (T, u64)> {
    let read = |(counter, of): (&AtomicU64, &T)| (*of, counter.load(Ordering::Relaxed));
    let pairs = counters.iter().zip(all).map(read);
    pairs.filter(|&(_, count)| count > 0)
}
