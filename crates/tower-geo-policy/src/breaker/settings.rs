//! When a circuit opens, for how long, and how it closes again: what a user can set.

use std::time::Duration;

use crate::config_error::ConfigError;

/// The longest ramp: more steps than this are refused.
pub const MAX_RAMP_STEPS: usize = 7;
/// The most probes that may be out at once.
pub const MAX_PROBES: u32 = 31;
/// The most good probes that closing can ask for.
pub const MAX_CLOSE_AFTER: u32 = 15;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Waits longer than this are typing errors.
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A rule that opens a circuit by a rate: so much of so many calls in so much time (B2).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RateRule {
    /// The share of calls, above 0 and up to 1, that opens the circuit when it is reached.
    pub threshold: f64,
    /// The length of the sliding window, from 10 ms to a day.
    pub window: Duration,
    /// So many calls must be in the window before a rate means anything; at least 1.
    pub minimum: u32,
}

impl RateRule {
    /// A rule; [`BreakerSettings::validate`] says whether it makes sense.
    #[must_use]
    pub const fn new(threshold: f64, window: Duration, minimum: u32) -> Self {
        Self {
            threshold,
            window,
            minimum,
        }
    }
}

impl Default for RateRule {
    /// 90 % of at least 20 calls in 2 minutes.
    fn default() -> Self {
        Self::new(0.9, Duration::from_secs(120), 20)
    }
}

/// A rule that opens a circuit by the rate of calls that took `after` or longer (B2).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SlowRule {
    /// A call that takes this long, or longer, is slow. More than zero.
    pub after: Duration,
    /// How many slow calls are too many.
    pub rate: RateRule,
}

impl SlowRule {
    /// A rule; [`BreakerSettings::validate`] says whether it makes sense.
    #[must_use]
    pub const fn new(after: Duration, rate: RateRule) -> Self {
        Self { after, rate }
    }
}

/// How chance shortens the wait of an open circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenJitter {
    /// Not at all.
    None,
    /// The wait is somewhere between its half and the whole of it, so that many processes that
    /// were hit at the same moment do not come back at the same moment.
    Equal,
}

/// When a circuit opens, for how long, and how it closes again.
///
/// Both circuits of every region of a service use the same settings.
///
/// | option | unit, range | default |
/// |---|---|---|
/// | `streak` | failures in a row, at least 1, or off | 10 |
/// | `rate` | see [`RateRule`], or off | 90 % of at least 20 calls in 2 min |
/// | `slow` | see [`SlowRule`], or off | off |
/// | `open_for` | 1 ms to a week | 30 s |
/// | `max_open_for` | at least `open_for`, up to a week | 5 min |
/// | `open_for_calls` | operations, at least 1, or off | off |
/// | `suspect_after` | 10 ms to an hour | 1 s |
/// | `jitter` | [`OpenJitter`] | equal |
/// | `probes` | 1 to 31 at once | 1 |
/// | `probe_deadline` | more than zero | 10 s |
/// | `close_after` | 1 to 15 good probes | 1 |
/// | `ramp` | shares in (0, 1], not falling, at most 7 | 5 %, 25 % |
/// | `ramp_step` | more than zero, up to a week | 3 s |
///
/// ```
/// use std::time::Duration;
/// use tower_geo_policy::breaker::{BreakerSettings, RateRule};
///
/// let settings = BreakerSettings::new()
///     .streak(5)
///     .rate(RateRule::new(0.5, Duration::from_secs(60), 20))
///     .open_for(Duration::from_secs(10));
/// assert!(settings.validate().is_ok());
///
/// let error = settings.probes(0).validate().unwrap_err();
/// assert_eq!(error.to_string(), "`probes`: must be 1 to 31 (got 0)");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerSettings {
    pub(crate) streak: Option<u32>,
    pub(crate) rate: Option<RateRule>,
    pub(crate) slow: Option<SlowRule>,
    pub(crate) open_for: Duration,
    pub(crate) max_open_for: Duration,
    pub(crate) open_for_calls: Option<u32>,
    pub(crate) suspect_after: Duration,
    pub(crate) jitter: OpenJitter,
    pub(crate) probes: u32,
    pub(crate) probe_deadline: Duration,
    pub(crate) close_after: u32,
    pub(crate) ramp: Vec<f64>,
    pub(crate) ramp_step: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            streak: Some(10),
            rate: Some(RateRule::default()),
            slow: None,
            open_for: Duration::from_secs(30),
            max_open_for: Duration::from_secs(300),
            open_for_calls: None,
            suspect_after: SECOND,
            jitter: OpenJitter::Equal,
            probes: 1,
            probe_deadline: Duration::from_secs(10),
            close_after: 1,
            ramp: vec![0.05, 0.25],
            ramp_step: Duration::from_secs(3),
        }
    }
}

impl BreakerSettings {
    /// The defaults of the table above.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many failures in a row open a circuit; `None` turns the rule off.
    #[must_use]
    pub fn streak(mut self, failures: impl Into<Option<u32>>) -> Self {
        self.streak = failures.into();
        self
    }

    /// The failure rate that opens a circuit; `None` turns the rule off.
    #[must_use]
    pub fn rate(mut self, rule: impl Into<Option<RateRule>>) -> Self {
        self.rate = rule.into();
        self
    }

    /// The rate of slow calls that opens a circuit; `None` turns the rule off.
    #[must_use]
    pub fn slow(mut self, rule: impl Into<Option<SlowRule>>) -> Self {
        self.slow = rule.into();
        self
    }

    /// How long a circuit stays open the first time. Each further opening in a row lasts twice as
    /// long, up to [`max_open_for`](Self::max_open_for).
    #[must_use]
    pub fn open_for(mut self, wait: Duration) -> Self {
        self.open_for = wait;
        self
    }

    /// The longest that a circuit stays open before it is tried again.
    #[must_use]
    pub fn max_open_for(mut self, wait: Duration) -> Self {
        self.max_open_for = wait;
        self
    }

    /// After so many operations that would have used an open circuit, the next one tries it, even
    /// if the time is not up. `None` leaves it to time.
    #[must_use]
    pub fn open_for_calls(mut self, operations: impl Into<Option<u32>>) -> Self {
        self.open_for_calls = operations.into();
        self
    }

    /// A call that its caller gave up after this time, while the region said nothing at all, is a
    /// failure; given up earlier it is nothing (B8). Times are kept to a tenth of it.
    #[must_use]
    pub fn suspect_after(mut self, time: Duration) -> Self {
        self.suspect_after = time;
        self
    }

    /// How chance shortens the wait of an open circuit.
    #[must_use]
    pub fn jitter(mut self, jitter: OpenJitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// How many sends may try a half-open circuit at once.
    #[must_use]
    pub fn probes(mut self, at_once: u32) -> Self {
        self.probes = at_once;
        self
    }

    /// A probe that has not answered by then is given up by the layers, and has failed.
    #[must_use]
    pub fn probe_deadline(mut self, time: Duration) -> Self {
        self.probe_deadline = time;
        self
    }

    /// How many good probes close a circuit.
    #[must_use]
    pub fn close_after(mut self, probes: u32) -> Self {
        self.close_after = probes;
        self
    }

    /// The shares of reads, one step after the other, that return to a region whose circuit has
    /// just closed; after the last step all do. Empty: all at once.
    #[must_use]
    pub fn ramp(mut self, shares: impl Into<Vec<f64>>) -> Self {
        self.ramp = shares.into();
        self
    }

    /// How long each step of the ramp lasts.
    #[must_use]
    pub fn ramp_step(mut self, time: Duration) -> Self {
        self.ramp_step = time;
        self
    }

    /// How long a probe may take; see [`probe_deadline`](Self::probe_deadline).
    #[must_use]
    pub const fn probe_deadline_value(&self) -> Duration {
        self.probe_deadline
    }

    /// Says which setting cannot work, and why.
    ///
    /// # Errors
    ///
    /// For the first setting outside of its range in the table above.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.streak == Some(0) {
            return Err(ConfigError::new("streak", "must be at least 1 (got 0)"));
        }
        if let Some(rate) = &self.rate {
            check_rate("rate", rate)?;
        }
        if let Some(slow) = &self.slow {
            check_rate("slow", &slow.rate)?;
            within("slow.after", slow.after, Duration::from_nanos(1), WEEK)?;
        }
        within("open_for", self.open_for, Duration::from_millis(1), WEEK)?;
        if self.max_open_for < self.open_for {
            return Err(ConfigError::new(
                "max_open_for",
                format!(
                    "must be at least `open_for` (got {:?}, which is less than {:?})",
                    self.max_open_for, self.open_for
                ),
            ));
        }
        within("max_open_for", self.max_open_for, Duration::ZERO, WEEK)?;
        if self.open_for_calls == Some(0) {
            return Err(ConfigError::new(
                "open_for_calls",
                "must be at least 1 (got 0)",
            ));
        }
        within(
            "suspect_after",
            self.suspect_after,
            Duration::from_millis(10),
            SECOND * 3600,
        )?;
        count("probes", self.probes, MAX_PROBES)?;
        within(
            "probe_deadline",
            self.probe_deadline,
            Duration::from_nanos(1),
            WEEK,
        )?;
        count("close_after", self.close_after, MAX_CLOSE_AFTER)?;
        self.check_ramp()
    }

    fn check_ramp(&self) -> Result<(), ConfigError> {
        if self.ramp.len() > MAX_RAMP_STEPS {
            return Err(ConfigError::new(
                "ramp",
                format!(
                    "must have at most {MAX_RAMP_STEPS} steps (got {})",
                    self.ramp.len()
                ),
            ));
        }
        let mut last = 0.0;
        for &share in &self.ramp {
            if !is_share(share) {
                return Err(ConfigError::new(
                    "ramp",
                    format!("each share must be more than 0 and at most 1 (got {share})"),
                ));
            }
            if share < last {
                return Err(ConfigError::new(
                    "ramp",
                    format!("shares must not fall (got {share} after {last})"),
                ));
            }
            last = share;
        }
        if self.ramp.is_empty() {
            return Ok(());
        }
        within("ramp_step", self.ramp_step, Duration::from_nanos(1), WEEK)
    }
}

/// Not for zero, nor for a number that is none.
fn is_share(share: f64) -> bool {
    share > 0.0 && share <= 1.0
}

fn check_rate(setting: &'static str, rule: &RateRule) -> Result<(), ConfigError> {
    if !is_share(rule.threshold) {
        return Err(ConfigError::new(
            setting,
            format!(
                "the threshold must be more than 0 and at most 1 (got {})",
                rule.threshold
            ),
        ));
    }
    if rule.minimum == 0 {
        return Err(ConfigError::new(
            setting,
            "the minimum must be at least 1 call (got 0)",
        ));
    }
    within(setting, rule.window, Duration::from_millis(10), DAY)
}

fn within(
    setting: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), ConfigError> {
    if value < least || value > most {
        return Err(ConfigError::new(
            setting,
            format!("must be {least:?} to {most:?} (got {value:?})"),
        ));
    }
    Ok(())
}

fn count(setting: &'static str, value: u32, most: u32) -> Result<(), ConfigError> {
    if value == 0 || value > most {
        return Err(ConfigError::new(
            setting,
            format!("must be 1 to {most} (got {value})"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(settings: &BreakerSettings) -> String {
        settings.validate().unwrap_err().setting().to_owned()
    }

    #[test]
    fn defaults_are_valid() {
        assert_eq!(BreakerSettings::new().validate(), Ok(()));
    }

    #[test]
    fn every_senseless_value_is_named() {
        let good = BreakerSettings::new;
        let minute = Duration::from_secs(60);
        let cases = [
            ("streak", good().streak(0)),
            ("rate", good().rate(RateRule::new(0.0, minute, 20))),
            ("rate", good().rate(RateRule::new(1.01, minute, 20))),
            ("rate", good().rate(RateRule::new(f64::NAN, minute, 20))),
            ("rate", good().rate(RateRule::new(-0.5, minute, 20))),
            ("rate", good().rate(RateRule::new(0.5, minute, 0))),
            ("rate", good().rate(RateRule::new(0.5, Duration::ZERO, 1))),
            ("rate", good().rate(RateRule::new(0.5, Duration::MAX, 1))),
            (
                "slow.after",
                good().slow(SlowRule::new(Duration::ZERO, RateRule::default())),
            ),
            (
                "slow",
                good().slow(SlowRule::new(minute, RateRule::new(2.0, minute, 1))),
            ),
            ("open_for", good().open_for(Duration::ZERO)),
            ("max_open_for", good().max_open_for(Duration::from_secs(29))),
            ("max_open_for", good().max_open_for(Duration::MAX)),
            ("open_for_calls", good().open_for_calls(0)),
            ("suspect_after", good().suspect_after(Duration::ZERO)),
            ("suspect_after", good().suspect_after(Duration::MAX)),
            ("probes", good().probes(0)),
            ("probes", good().probes(32)),
            ("probe_deadline", good().probe_deadline(Duration::ZERO)),
            ("close_after", good().close_after(0)),
            ("close_after", good().close_after(16)),
            ("ramp", good().ramp([0.0])),
            ("ramp", good().ramp([f64::NAN])),
            ("ramp", good().ramp([0.5, 0.25])),
            ("ramp", good().ramp([0.1; 8])),
            ("ramp_step", good().ramp_step(Duration::ZERO)),
        ];
        for (setting, settings) in cases {
            assert_eq!(refused(&settings), setting, "{settings:?}");
        }
    }

    #[test]
    fn each_rule_can_be_turned_off() {
        let settings = BreakerSettings::new().streak(None).rate(None).slow(None);
        assert_eq!(settings.validate(), Ok(()));
    }
}
