//! How long to wait before a region is asked again (T1).

use std::time::Duration;

/// How the waits before returns to a region grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BackoffMode {
    /// `delay · 2^(n-1)`, at most `max_delay`.
    #[default]
    Exponential,
    /// Always `delay`.
    Fixed,
}

/// How chance changes a wait, so that clients which failed together do not return together.
///
/// A wait that the server asks for is a floor, and chance only adds to it: a region rests longer, for
/// the whole service, by up to half of what was asked for (equal) or all of it (full), but not past
/// `max_delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Jitter {
    /// Not at all. For tests: every client comes back at the same moment.
    None,
    /// Half of the wait to all of it.
    #[default]
    Equal,
    /// Nothing to all of it.
    Full,
}

impl Jitter {
    /// A computed wait, changed by a draw from `0.0..1.0`.
    #[must_use]
    pub fn apply(self, wait: Duration, draw: f64) -> Duration {
        match self {
            Self::None => wait,
            Self::Equal => (wait / 2).saturating_add(drawn(wait / 2, draw)),
            Self::Full => drawn(wait, draw),
        }
    }
}

/// The share of a time that a draw from `0.0..1.0` gives. The draws are the user's: one that is no
/// number gives all of it, and no draw panics.
pub(crate) fn drawn(time: Duration, draw: f64) -> Duration {
    let share = time.as_secs_f64() * draw.clamp(0.0, 1.0);
    Duration::try_from_secs_f64(share).unwrap_or(time)
}

/// The waits of one service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Backoff {
    pub(crate) mode: BackoffMode,
    pub(crate) delay: Duration,
    pub(crate) max_delay: Duration,
    pub(crate) jitter: Jitter,
}

impl Backoff {
    /// The wait before the `nth` return to a region (1 = the first), counted from its last
    /// answer. `told` is what the server asked for: a floor, to which jitter only adds.
    pub(crate) fn wait(&self, nth: u32, told: Option<Duration>, draw: f64) -> Duration {
        let computed = match self.mode {
            BackoffMode::Fixed => self.delay,
            BackoffMode::Exponential => self
                .delay
                .checked_mul(1_u32.checked_shl(nth.saturating_sub(1)).unwrap_or(u32::MAX))
                .unwrap_or(Duration::MAX),
        }
        .min(self.max_delay);
        let own = self.jitter.apply(computed, draw);
        match told {
            None => own,
            Some(told) => {
                let added = match self.jitter {
                    Jitter::None => Duration::ZERO,
                    Jitter::Equal | Jitter::Full => drawn(self.delay, draw),
                };
                own.max(told.saturating_add(added))
            }
        }
    }

    /// How much longer than the server asked for its region rests, so that clients which were
    /// throttled together do not let those that have waited in at the same moment: up to half of
    /// the told wait (equal jitter), or all of it (full). Never past `max_delay`, beyond which
    /// nobody would wait.
    pub(crate) fn beyond_told(&self, told: Duration, draw: f64) -> Duration {
        let most = match self.jitter {
            Jitter::None => Duration::ZERO,
            Jitter::Equal => told / 2,
            Jitter::Full => told,
        };
        drawn(most, draw).min(self.max_delay.saturating_sub(told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T1: whatever is drawn, and of whatever time, a wait is a wait.
    #[test]
    fn no_draw_and_no_time_panics() {
        for time in [Duration::ZERO, Duration::from_millis(800), Duration::MAX] {
            for draw in [
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                -1.0,
                0.0,
                0.5,
                1.0,
                2.0,
            ] {
                for jitter in [Jitter::None, Jitter::Equal, Jitter::Full] {
                    assert!(
                        jitter.apply(time, draw) <= time,
                        "{jitter:?} {time:?} {draw}"
                    );
                }
            }
        }
        assert_eq!(drawn(Duration::from_secs(8), 0.25), Duration::from_secs(2));
    }

    const fn exact(mode: BackoffMode) -> Backoff {
        Backoff {
            mode,
            delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(2),
            jitter: Jitter::None,
        }
    }

    /// T1: `min(max_delay, delay · 2^(n-1))`.
    #[test]
    fn exponential_waits_double_up_to_the_cap() {
        let backoff = exact(BackoffMode::Exponential);
        let waits: Vec<_> = [1, 2, 3, 4, 40, u32::MAX]
            .iter()
            .map(|&n| backoff.wait(n, None, 0.7).as_millis())
            .collect();
        assert_eq!(waits, [500, 1000, 2000, 2000, 2000, 2000]);
    }

    /// T1: `delay`.
    #[test]
    fn fixed_waits_stay_the_same() {
        let backoff = exact(BackoffMode::Fixed);
        assert_eq!(backoff.wait(1, None, 0.1), backoff.wait(9, None, 0.9));
    }

    /// T1: a wait told by the server is a floor, and jitter only adds to it.
    #[test]
    fn jitter_never_shortens_what_the_server_asked_for() {
        let told = Duration::from_secs(3);
        for jitter in [Jitter::None, Jitter::Equal, Jitter::Full] {
            let backoff = Backoff {
                jitter,
                ..exact(BackoffMode::Exponential)
            };
            for draw in [0.0, 0.3, 0.999] {
                assert!(backoff.wait(1, Some(told), draw) >= told);
            }
        }
        let backoff = exact(BackoffMode::Exponential);
        let computed_is_longer = backoff.wait(3, Some(Duration::from_secs(1)), 0.0);
        assert_eq!(computed_is_longer, Duration::from_secs(2));
        let huge = backoff.wait(1, Some(Duration::MAX), 0.5);
        assert_eq!(huge, Duration::MAX);
    }

    /// T1: chance only adds to what the server asked for, in proportion to it, and never so much
    /// that nobody would wait.
    #[test]
    fn a_rest_is_longer_by_a_share_of_what_the_server_asked_for() {
        let told = Duration::from_secs(5);
        let beyond = |jitter, told, draw| {
            let backoff = Backoff {
                jitter,
                max_delay: Duration::from_secs(60),
                ..exact(BackoffMode::Exponential)
            };
            backoff.beyond_told(told, draw)
        };
        assert_eq!(beyond(Jitter::None, told, 0.9), Duration::ZERO);
        assert_eq!(beyond(Jitter::Equal, told, 0.0), Duration::ZERO);
        assert_eq!(beyond(Jitter::Equal, told, 1.0), told / 2);
        assert_eq!(beyond(Jitter::Full, told, 0.5), told / 2);
        assert_eq!(beyond(Jitter::Full, told, 7.0), told);
        let long = Duration::from_secs(50);
        assert_eq!(beyond(Jitter::Full, long, 1.0), Duration::from_secs(10));
        let too_long = Duration::from_secs(61);
        assert_eq!(beyond(Jitter::Full, too_long, 1.0), Duration::ZERO);
    }

    /// T1: full is 0 to the wait, equal is half of the wait to the wait.
    #[test]
    fn jitter_stays_in_its_range() {
        let wait = Duration::from_secs(8);
        assert_eq!(Jitter::Full.apply(wait, 0.0), Duration::ZERO);
        assert_eq!(Jitter::Full.apply(wait, 0.5), Duration::from_secs(4));
        assert_eq!(Jitter::Equal.apply(wait, 0.0), Duration::from_secs(4));
        assert_eq!(Jitter::Equal.apply(wait, 0.5), Duration::from_secs(6));
        assert_eq!(Jitter::None.apply(wait, 0.0), wait);
    }
}
