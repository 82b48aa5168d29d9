//! For how long a circuit stays open, and when its failures form a streak (B2, B4).

use super::compiled::Compiled;
use super::settings::OpenJitter;

/// Two failures further apart form no streak.
const STREAK_GAP: u64 = 120 * 1_000_000_000;

/// What only changes and failures of a circuit need; it lives behind the lock of the group.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    /// How long the last opening was to last, before chance shortened it. 0: never opened.
    wait: u64,
    /// When it closed last.
    closed_at: u64,
    /// When it failed last; 0 with `failed` unset.
    failed_at: u64,
    failed: bool,
    /// Sends of slots before this one belong to an earlier generation (B6, B8).
    pub(crate) first_slot: u64,
    /// Whether the wait ended because a monitor had an answer.
    pub(crate) by_monitor: bool,
    /// How many failures of the present streak were calls in silence (B8).
    suspects: u32,
}

impl Timing {
    /// Opens, and says until when (B4).
    ///
    /// In a row means: from half open, or after being closed for a shorter time than the last
    /// opening lasted. Then the wait doubles, unless `nowhere_else`: while all regions are open,
    /// waiting longer would help nobody.
    pub(crate) fn open(
        &mut self,
        settings: &Compiled,
        now: u64,
        was_closed: bool,
        nowhere_else: bool,
        draw: &mut dyn FnMut() -> f64,
    ) -> u64 {
        let in_a_row =
            self.wait > 0 && (!was_closed || now.saturating_sub(self.closed_at) < self.wait);
        self.wait = match (in_a_row, nowhere_else) {
            (false, _) => settings.open_for,
            (true, true) => self.wait,
            (true, false) => self.wait.saturating_mul(2).min(settings.max_open_for),
        };
        self.by_monitor = false;
        let wait = match settings.jitter {
            OpenJitter::None => self.wait,
            OpenJitter::Equal => shortened(self.wait, draw()),
        };
        now.saturating_add(wait)
    }

    /// Closes; sends of slots before `first_slot` no longer say anything.
    pub(crate) fn close(&mut self, now: u64, first_slot: u64) {
        self.closed_at = now;
        self.first_slot = first_slot;
        self.failed = false;
    }

    /// Closes, and forgets that it was ever open.
    pub(crate) fn reset(&mut self, now: u64, first_slot: u64) {
        self.close(now, first_slot);
        self.wait = 0;
    }

    /// A failure is recorded: whether the failures before it belong to the same streak (B2).
    pub(crate) fn fail(&mut self, now: u64) -> bool {
        let together = self.failed && now.saturating_sub(self.failed_at) <= STREAK_GAP;
        self.failed = true;
        self.failed_at = now.max(self.failed_at);
        together
    }

    /// So many of the failures that were just recorded were calls in silence (B8); whether they are
    /// the whole streak. How many of the streak are.
    pub(crate) const fn count_suspects(&mut self, silent: u32, is_whole_streak: bool) -> u32 {
        let before = if is_whole_streak { 0 } else { self.suspects };
        self.suspects = before.saturating_add(silent);
        self.suspects
    }
}

/// Equal jitter: between the half of the wait and the whole of it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a wait is at most a week, and chance need not be exact"
)]
fn shortened(wait: u64, draw: f64) -> u64 {
    let draw = if (0.0..=1.0).contains(&draw) {
        draw
    } else {
        1.0
    };
    let half = wait / 2;
    half + ((wait - half) as f64 * draw) as u64
}

#[cfg(test)]
mod tests {
    use super::super::settings::BreakerSettings;
    use super::*;
    use std::time::Duration;

    const S: u64 = 1_000_000_000;

    fn settings(jitter: OpenJitter) -> Compiled {
        Compiled::new(
            BreakerSettings::new()
                .open_for(Duration::from_secs(10))
                .max_open_for(Duration::from_secs(40))
                .jitter(jitter),
        )
        .unwrap()
    }

    /// B4: doubled by each opening in a row, up to the cap.
    #[test]
    fn each_opening_in_a_row_lasts_twice_as_long() {
        let settings = settings(OpenJitter::None);
        let mut timing = Timing::default();
        let mut draw = || 0.0;
        assert_eq!(timing.open(&settings, S, true, false, &mut draw), 11 * S);
        assert_eq!(
            timing.open(&settings, 12 * S, false, false, &mut draw),
            32 * S
        );
        assert_eq!(
            timing.open(&settings, 33 * S, false, false, &mut draw),
            73 * S
        );
        assert_eq!(
            timing.open(&settings, 74 * S, false, false, &mut draw),
            114 * S
        );
    }

    /// B4: forgiven after as long closed as the last opening lasted.
    #[test]
    fn a_long_time_closed_is_forgiven() {
        let settings = settings(OpenJitter::None);
        let mut draw = || 0.0;
        for (closed_for, lasts) in [(20 * S - 1, 40 * S), (20 * S, 10 * S)] {
            let mut timing = Timing::default();
            timing.open(&settings, S, true, false, &mut draw);
            timing.open(&settings, 12 * S, false, false, &mut draw);
            timing.close(40 * S, 0);
            let now = 40 * S + closed_for;
            assert_eq!(
                timing.open(&settings, now, true, false, &mut draw) - now,
                lasts
            );
        }
    }

    /// B4: not grown while each region is open.
    #[test]
    fn the_wait_stays_while_there_is_nowhere_else() {
        let settings = settings(OpenJitter::None);
        let mut timing = Timing::default();
        let mut draw = || 0.0;
        timing.open(&settings, 0, true, false, &mut draw);
        assert_eq!(
            timing.open(&settings, 10 * S, false, true, &mut draw),
            20 * S
        );
    }

    /// B4: jitter only shortens the wait, to its half at most.
    #[test]
    fn jitter_only_shortens() {
        let settings = settings(OpenJitter::Equal);
        for (drawn, until) in [
            (0.0, 5 * S),
            (0.5, 7 * S + S / 2),
            (1.0, 10 * S),
            (f64::NAN, 10 * S),
        ] {
            let mut timing = Timing::default();
            assert_eq!(timing.open(&settings, 0, true, false, &mut || drawn), until);
        }
    }

    /// B2: two failures more than 2 minutes apart form no streak.
    #[test]
    fn failures_far_apart_are_no_streak() {
        let mut timing = Timing::default();
        assert!(!timing.fail(0));
        assert!(timing.fail(120 * S));
        assert!(!timing.fail(240 * S + 1));
    }
}
