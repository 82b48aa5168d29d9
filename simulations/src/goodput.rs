//! Goodput: how many operations got what they asked for, second by second, and when that was as
//! usual again.

use std::time::Duration;

use crate::fleet::Fleet;
use crate::log::{End, Log};

/// As good as usual.
const AS_USUAL: f64 = 0.95;
/// How long a stretch of time is judged at once: a single second of a small fleet says little.
const STRETCH: usize = 10;
/// So much at the start of a run is left out of what is usual.
const SETTLING: usize = 2;

/// Operations by the second in which they were asked for.
#[derive(Clone, Debug)]
pub(crate) struct Goodput {
    good: Vec<u32>,
    /// When the outage began and ended, in whole seconds.
    before: usize,
    until: usize,
}

impl Goodput {
    pub(crate) fn of(fleet: &Fleet, log: &Log) -> Self {
        let mut good = vec![0; whole_seconds(fleet.end())];
        for operation in &log.operations {
            if operation.end == End::Good
                && let Some(second) = good.get_mut(whole_seconds(operation.at))
            {
                *second += 1;
            }
        }
        Self {
            good,
            before: whole_seconds(fleet.before),
            until: whole_seconds(fleet.until()),
        }
    }

    pub(crate) fn by_second(&self) -> &[u32] {
        &self.good
    }

    /// Good answers per second before the outage.
    pub(crate) fn usual(&self) -> f64 {
        mean(self.good.get(SETTLING..self.before).unwrap_or_default())
    }

    /// Good answers between two moments, as a share of what is usual.
    pub(crate) fn share_between(&self, from: Duration, until: Duration) -> f64 {
        let between = whole_seconds(from)..whole_seconds(until);
        mean(self.good.get(between).unwrap_or_default()) / self.usual().max(f64::MIN_POSITIVE)
    }

    /// How long after the outage goodput was as usual, and stayed so to the end of the run: from
    /// then on every ten seconds had at least 95 % of it. `None` if it was not.
    pub(crate) fn back_after(&self) -> Option<Duration> {
        let enough = AS_USUAL * self.usual();
        let after = self.good.get(self.until..).unwrap_or_default();
        let stretches = after.windows(STRETCH);
        let count = stretches.len();
        let last_bad = stretches
            .enumerate()
            .rfind(|(_, stretch)| mean(stretch) < enough)
            .map(|(begin, _)| begin);
        let back = last_bad.map_or(0, |begin| begin + 1);
        (back < count).then(|| Duration::from_secs(back as u64))
    }
}

fn mean(seconds: &[u32]) -> f64 {
    let sum: u32 = seconds.iter().sum();
    f64::from(sum) / (seconds.len() as f64).max(1.0)
}

fn whole_seconds(time: Duration) -> usize {
    usize::try_from(time.as_secs()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goodput(after: &[u32]) -> Goodput {
        let mut good = vec![100; 10];
        good.extend(after);
        Goodput {
            good,
            before: 8,
            until: 10,
        }
    }

    #[test]
    fn goodput_is_back_when_nothing_later_falls_short() {
        let mut after = vec![100; 40];
        assert_eq!(goodput(&after).back_after(), Some(Duration::ZERO));
        after[..5].fill(0);
        // Half of the last bad stretch is good: from the sixth second on it is one in ten that may
        // be missing half.
        assert_eq!(goodput(&after).back_after(), Some(Duration::from_secs(5)));
        after[20] = 0;
        assert_eq!(goodput(&after).back_after(), Some(Duration::from_secs(21)));
    }

    #[test]
    fn goodput_that_stays_away_is_never_back() {
        let mut after = vec![100; 40];
        after[39] = 0;
        assert_eq!(goodput(&after).back_after(), None);
        assert_eq!(goodput(&[94; 40]).back_after(), None);
        assert_eq!(goodput(&[95; 40]).back_after(), Some(Duration::ZERO));
    }
}
