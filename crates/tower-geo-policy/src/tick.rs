//! Time inside the shared state: nanoseconds since a service began, in one word.

use std::time::{Duration, Instant};

/// Nanoseconds since the base instant of a service.
///
/// One word, so that it fits an atomic. It lasts for 584 years; before and after, it saturates.
/// [`ServiceState::tick`](crate::service_state::ServiceState::tick) makes one from an instant.
///
/// ```
/// use std::time::Duration;
/// use tower_geo_policy::tick::Tick;
///
/// let t = Tick::ZERO + Duration::from_millis(1500);
/// assert_eq!(t.since(Tick::from_nanos(500_000_000)), Duration::from_secs(1));
/// assert_eq!(Tick::ZERO.since(t), Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tick(u64);

impl Tick {
    /// The base instant.
    pub const ZERO: Self = Self(0);
    /// Later than everything; as an end it means *until further notice*.
    pub const FOREVER: Self = Self(u64::MAX);

    /// So many nanoseconds after the base.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the base.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to here, zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The instant of this tick of a service whose time began at `base`; one that is too far away
    /// to be an instant is a century away.
    pub(crate) fn after(self, base: Instant) -> Instant {
        const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        base.checked_add(Duration::from_nanos(self.0))
            .or_else(|| base.checked_add(CENTURY))
            .unwrap_or(base)
    }
}

impl std::ops::Add<Duration> for Tick {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos(by)))
    }
}

/// The length of a duration in nanoseconds, saturating.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    const SECOND: u64 = 1_000_000_000;

    // Shorter than by way of `as_nanos`, which counts in 128 bits; every time stamp comes here.
    let seconds = duration.as_secs();
    if seconds >= u64::MAX / SECOND {
        return u64::MAX;
    }
    seconds * SECOND + u64::from(duration.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_saturate() {
        assert_eq!(nanos(Duration::ZERO), 0);
        assert_eq!(nanos(Duration::new(3, 7)), 3_000_000_007);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
        assert_eq!(nanos(Duration::from_nanos(u64::MAX)), u64::MAX);
        assert_eq!(Tick::FOREVER + Duration::from_secs(1), Tick::FOREVER);
    }
}
