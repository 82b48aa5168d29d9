//! When a send is repeated: the settings of one service (T1 to T6, V1, R9).

use std::time::Duration;

use crate::backoff::{Backoff, BackoffMode, Jitter};
use crate::config_error::ConfigError;

/// Which writes may be sent again when an earlier send may have been applied (V1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Replay {
    /// Those that give the same result when they arrive twice, and those that the caller marked.
    #[default]
    Harmless,
    /// All. For services that recognise a repeated request by themselves.
    All,
}

/// How an operation repeats its sends.
///
/// | setting | unit | default | why |
/// |---|---|---|---|
/// | `max_retries` | sends beyond the first, redirects included | 5 | Azure Storage's own clients |
/// | `delay` | time | 800 ms | first wait before a *return* to a region; falling over waits for nothing |
/// | `max_delay` | time | 60 s | no wait is longer; a longer one told by the server ends the returns |
/// | `mode` | | exponential | |
/// | `jitter` | | equal | half of the wait is chance, so that clients do not return together; up to half comes on top of a wait that the server asks for |
/// | `attempt_timeout` | time, or none | 10 s | one send, up to the head of the answer |
/// | `deadline` | time, or none | 60 s | the whole operation, up to the head of the answer |
/// | `budget` | tokens per region, or none | 500 | 14 a return: about 35 useless ones in a row |
/// | `replay` | | harmless | a write that may have arrived is not sent twice |
/// | `body_idle` | time, or none | 30 s | a response body that gives nothing for so long has failed |
/// | `hedge` | time, or none | none | a read that has no answer by then asks a second region as well (H1) |
///
/// ```
/// use std::time::Duration;
/// use tower_geo_policy::retry_settings::RetrySettings;
///
/// let settings = RetrySettings::new()
///     .max_retries(3)
///     .attempt_timeout(Duration::from_secs(2));
/// settings.validate()?;
/// assert!(RetrySettings::new().delay(Duration::ZERO).validate().is_err());
/// # Ok::<(), tower_geo_policy::config_error::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct RetrySettings {
    max_retries: u32,
    pub(crate) backoff: Backoff,
    attempt_timeout: Option<Duration>,
    deadline: Option<Duration>,
    budget: Option<u32>,
    replay: Replay,
    body_idle: Option<Duration>,
    hedge: Option<Duration>,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self::new()
    }
}

/// How old signed bytes may be to be sent again (T5). The service takes 15 minutes; a third of that
/// leaves room for clocks that differ.
pub const SIGNATURE_AGE: Duration = Duration::from_secs(5 * 60);

impl RetrySettings {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            max_retries: 5,
            backoff: Backoff {
                mode: BackoffMode::Exponential,
                delay: Duration::from_millis(800),
                max_delay: Duration::from_secs(60),
                jitter: Jitter::Equal,
            },
            attempt_timeout: Some(Duration::from_secs(10)),
            deadline: Some(Duration::from_secs(60)),
            budget: Some(500),
            replay: Replay::Harmless,
            body_idle: Some(Duration::from_secs(30)),
            hedge: None,
        }
    }

    /// Sends beyond the first, redirects included (T2). 0 to 100.
    pub const fn max_retries(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    /// How the waits before returns grow (T1).
    pub const fn mode(mut self, mode: BackoffMode) -> Self {
        self.backoff.mode = mode;
        self
    }

    /// The first wait before a return (T1). Longer than zero.
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.backoff.delay = delay;
        self
    }

    /// The longest wait (T1). At least `delay`.
    pub const fn max_delay(mut self, max_delay: Duration) -> Self {
        self.backoff.max_delay = max_delay;
        self
    }

    /// How chance changes the waits (T1).
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.backoff.jitter = jitter;
        self
    }

    /// How long one send may take up to the head of its answer, or `None` (T10).
    pub fn attempt_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.attempt_timeout = timeout.into();
        self
    }

    /// How long an operation may take up to the head of its answer, or `None` (T3).
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// The tokens of each region's bucket, or `None` for no budget (T4). At least 1, the price of
    /// another region; a hedge, or a return after throttling, costs 5, and any other return 14. A
    /// bucket that holds less never pays for it.
    pub fn budget(mut self, capacity: impl Into<Option<u32>>) -> Self {
        self.budget = capacity.into();
        self
    }

    /// Which writes may be sent again after they may have been applied (V1).
    pub const fn replay(mut self, replay: Replay) -> Self {
        self.replay = replay;
        self
    }

    /// How long a response body may give nothing, or `None` (R9).
    pub fn body_idle(mut self, idle: impl Into<Option<Duration>>) -> Self {
        self.body_idle = idle.into();
        self
    }

    /// After how long without an answer a read asks the next region as well, or `None` (H1). A
    /// little more than what 95 of 100 reads take is a good value: each hedge costs 5 tokens.
    /// Shorter than `attempt_timeout` and `deadline`, and for location modes with two regions.
    pub fn hedge(mut self, after: impl Into<Option<Duration>>) -> Self {
        self.hedge = after.into();
        self
    }

    /// See [`Self::hedge`].
    #[must_use]
    pub const fn get_hedge(&self) -> Option<Duration> {
        self.hedge
    }

    /// See [`Self::max_retries`].
    #[must_use]
    pub const fn get_max_retries(&self) -> u32 {
        self.max_retries
    }

    /// See [`Self::attempt_timeout`].
    #[must_use]
    pub const fn get_attempt_timeout(&self) -> Option<Duration> {
        self.attempt_timeout
    }

    /// See [`Self::deadline`].
    #[must_use]
    pub const fn get_deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// See [`Self::budget`].
    #[must_use]
    pub const fn get_budget(&self) -> Option<u32> {
        self.budget
    }

    /// See [`Self::replay`].
    #[must_use]
    pub const fn get_replay(&self) -> Replay {
        self.replay
    }

    /// See [`Self::body_idle`].
    #[must_use]
    pub const fn get_body_idle(&self) -> Option<Duration> {
        self.body_idle
    }

    /// The wait before the `nth` return to a region (1 = the first), counted from its last answer or
    /// fault (T1). `draw` is a number from `0.0..1.0`, for the jitter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_geo_policy::backoff::Jitter;
    /// use tower_geo_policy::retry_settings::RetrySettings;
    ///
    /// let settings = RetrySettings::new().jitter(Jitter::None);
    /// assert_eq!(settings.wait_before_return(2, 0.5), Duration::from_millis(1_600));
    /// ```
    #[must_use]
    pub fn wait_before_return(&self, nth: u32, draw: f64) -> Duration {
        self.backoff.wait(nth, None, draw)
    }

    /// Refuses settings that make no sense.
    ///
    /// # Errors
    ///
    /// Names the setting and says what it may be.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let refuse = |setting, message: String| Err(ConfigError::new(setting, message));
        let Backoff {
            delay, max_delay, ..
        } = self.backoff;
        if self.max_retries > 100 {
            return refuse(
                "max_retries",
                format!("must be at most 100 (got {})", self.max_retries),
            );
        }
        if delay.is_zero() {
            return refuse("delay", "must be longer than zero".to_owned());
        }
        if max_delay < delay {
            return refuse(
                "max_delay",
                format!("must be at least `delay` ({max_delay:?} is less than {delay:?})"),
            );
        }
        if self
            .attempt_timeout
            .is_some_and(|timeout| timeout.is_zero())
        {
            return refuse(
                "attempt_timeout",
                "must be longer than zero, or none".to_owned(),
            );
        }
        if self.deadline.is_some_and(|deadline| deadline.is_zero()) {
            return refuse("deadline", "must be longer than zero, or none".to_owned());
        }
        if self.budget == Some(0) {
            return refuse(
                "budget",
                "must be at least 1 token, or none: with 0 no read could fall over".to_owned(),
            );
        }
        if self.hedge.is_some_and(|after| after.is_zero()) {
            return refuse(
                "hedge",
                "must be longer than zero, or none: with 0 every read would be sent twice"
                    .to_owned(),
            );
        }
        let limits = [
            ("attempt_timeout", self.attempt_timeout),
            ("deadline", self.deadline),
        ];
        for (name, limit) in limits {
            if let (Some(after), Some(limit)) = (self.hedge, limit) {
                if after >= limit {
                    return refuse(
                        "hedge",
                        format!(
                            "must be shorter than `{name}` ({after:?} is not less than {limit:?})"
                        ),
                    );
                }
            }
        }
        if self.body_idle.is_some_and(|idle| idle.is_zero()) {
            return refuse("body_idle", "must be longer than zero, or none".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every senseless value is an error that names it.
    #[test]
    fn senseless_values_are_named() {
        let good = RetrySettings::new;
        let bad = [
            ("max_retries", good().max_retries(101)),
            ("delay", good().delay(Duration::ZERO)),
            ("max_delay", good().max_delay(Duration::from_millis(799))),
            ("attempt_timeout", good().attempt_timeout(Duration::ZERO)),
            ("deadline", good().deadline(Duration::ZERO)),
            ("budget", good().budget(0)),
            ("body_idle", good().body_idle(Duration::ZERO)),
            ("hedge", good().hedge(Duration::ZERO)),
            ("hedge", good().hedge(Duration::from_secs(10))),
            (
                "hedge",
                good().attempt_timeout(None).hedge(Duration::from_secs(60)),
            ),
        ];
        for (setting, settings) in bad {
            assert_eq!(settings.validate().unwrap_err().setting(), setting);
        }
        assert!(good().validate().is_ok());
        assert!(
            good()
                .hedge(Duration::from_millis(9_999))
                .validate()
                .is_ok()
        );
        assert!(
            good()
                .attempt_timeout(None)
                .deadline(None)
                .validate()
                .is_ok()
        );
    }
}
