//! Settings as the circuits use them: checked, and in whole numbers.

use super::settings::{BreakerSettings, OpenJitter, RateRule};
use crate::config_error::ConfigError;
use crate::tick::nanos;

/// Time cut into pieces of the same length: `at(t)` is `t / length` without a division.
///
/// The reciprocal is rounded, so that an epoch is longer or shorter than `length` by less than
/// one part in 2^64 / length: nothing that a tenth would notice, and every thread sees the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epochs {
    reciprocal: u64,
    length: u64,
}

impl Epochs {
    /// Time stands still.
    pub(crate) const NEVER: Self = Self {
        reciprocal: 0,
        length: u64::MAX,
    };

    pub(crate) const fn of_length(nanos: u64) -> Self {
        // A length of one nanosecond would need 2^64 itself; two is as good and fits.
        let length = if nanos < 2 { 2 } else { nanos };
        Self {
            reciprocal: u64::MAX / length + 1,
            length,
        }
    }

    #[inline]
    pub(crate) fn at(self, tick: u64) -> u64 {
        ((u128::from(tick) * u128::from(self.reciprocal)) >> 64) as u64
    }

    /// The first tick after an epoch.
    pub(crate) fn end(self, epoch: u64) -> u64 {
        let mut end = epoch.saturating_add(1).saturating_mul(self.length);
        // The reciprocal was rounded up, so the end is here or a little earlier; after very many
        // epochs, further. A search instead of a formula, to agree with `at` by construction.
        let mut step = 1;
        while self.at(end) > epoch && end > 0 {
            end = end.saturating_sub(step);
            step *= 2;
        }
        let (mut low, mut high) = (end, end.saturating_add(step.max(self.length)));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.at(middle) > epoch {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

/// A [`RateRule`] in whole numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompiledRate {
    /// Millionths: whole numbers, so that 90 % of 20 is 18 and not 18.000000000000004.
    threshold: u64,
    minimum: u64,
    pub(crate) epochs: Epochs,
}

impl CompiledRate {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the threshold was checked to be in (0, 1]"
    )]
    fn new(rule: &RateRule) -> Self {
        Self {
            threshold: ((rule.threshold * 1e6).round() as u64).max(1),
            minimum: u64::from(rule.minimum),
            epochs: Epochs::of_length(nanos(rule.window) / 10),
        }
    }

    pub(crate) fn is_reached(self, total: u64, bad: u64) -> bool {
        total >= self.minimum
            && u128::from(bad) * 1_000_000 >= u128::from(total) * u128::from(self.threshold)
    }
}

/// Settings as the circuits use them: checked, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    /// `u32::MAX` when off: no streak gets there.
    pub(crate) streak: u32,
    pub(crate) rate: Option<CompiledRate>,
    pub(crate) slow: Option<CompiledRate>,
    /// `u64::MAX` when off.
    pub(crate) slow_after: u64,
    pub(crate) open_for: u64,
    pub(crate) max_open_for: u64,
    /// 0 when off.
    pub(crate) open_for_calls: u32,
    pub(crate) suspect_after: u64,
    pub(crate) suspect: Epochs,
    pub(crate) jitter: OpenJitter,
    pub(crate) probes: u32,
    pub(crate) close_after: u32,
    pub(crate) ramp: Box<[f32]>,
    pub(crate) ramp_step: u64,
    pub(crate) settings: BreakerSettings,
}

impl Compiled {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a share needs no more than an f32 holds"
    )]
    pub(crate) fn new(settings: BreakerSettings) -> Result<Self, ConfigError> {
        settings.validate()?;
        let suspect_after = nanos(settings.suspect_after);
        Ok(Self {
            streak: settings.streak.unwrap_or(u32::MAX),
            rate: settings.rate.as_ref().map(CompiledRate::new),
            slow: settings.slow.as_ref().map(|s| CompiledRate::new(&s.rate)),
            slow_after: settings.slow.map_or(u64::MAX, |s| nanos(s.after)),
            open_for: nanos(settings.open_for),
            max_open_for: nanos(settings.max_open_for),
            open_for_calls: settings.open_for_calls.unwrap_or(0),
            suspect_after,
            suspect: Epochs::of_length(suspect_after / 10),
            jitter: settings.jitter,
            probes: settings.probes,
            close_after: settings.close_after,
            ramp: settings.ramp.iter().map(|&s| s as f32).collect(),
            ramp_step: nanos(settings.ramp_step),
            settings,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// B2: "90 % of at least 20 calls" is 18 of 20, without rounding surprises.
    #[test]
    fn thresholds_are_met_exactly() {
        for percent in 1..=100_u32 {
            let rule = CompiledRate::new(&RateRule::new(
                f64::from(percent) / 100.0,
                Duration::from_secs(60),
                1,
            ));
            let percent = u64::from(percent);
            assert!(rule.is_reached(100, percent));
            assert!(!rule.is_reached(100, percent - 1));
        }
    }

    #[test]
    fn epochs_follow_the_clock() {
        let epochs = Epochs::of_length(100_000_000);
        for t in [0_u64, 1, 99_999_998, 100_000_001, 12_345_678_901, 1 << 60] {
            let exact = t / 100_000_000;
            assert!(epochs.at(t).abs_diff(exact) <= 1, "at {t}");
        }
        assert_eq!(epochs.at(99_999_998), 0);
        assert_eq!(epochs.at(100_000_001), 1);
    }

    #[test]
    fn an_epoch_ends_where_the_next_begins() {
        for length in [1, 2, 3, 1_000_000, 100_000_000, 12_000_000_000, 1 << 46] {
            let epochs = Epochs::of_length(length);
            for epoch in [0, 1, 2, 7, 1000, 123_456, 10_000_000] {
                let Some(about) = length.checked_mul(epoch) else {
                    continue;
                };
                let end = epochs.end(epoch);
                assert_eq!(epochs.at(end), epoch + 1, "{length} {epoch}");
                assert_eq!(epochs.at(end - 1), epoch, "{length} {epoch}");
                assert!(end.abs_diff(about + length.max(2)) <= epoch + length / 1000 + 2);
            }
        }
    }
}
