//! Is there a state that outlives its cause? Fleets of many kinds meet an outage, and each has to
//! do what it did before when the outage is over.
//!
//! What could keep it from that: retries, hedges and falling over make load, load makes queues,
//! queues make time-outs, and time-outs make retries. So at each point the regions have little to
//! spare, queues are longer than the shortest time-out, and the work of callers that have left is
//! done all the same.

use std::time::Duration;

use serde::Serialize;
use tower_geo::BoxError;

use crate::figures::Figures;
use crate::fleet::{Fleet, Retrying};
use crate::goals::MAX_OPEN_FOR;
use crate::outage::Outage;
use crate::parallel;

/// Goodput has to be as usual so long after the outage.
pub(crate) const LIMIT: Duration = MAX_OPEN_FOR.saturating_add(Duration::from_secs(30));
/// How long a run goes on after that, to see that it stays so.
const BEYOND: Duration = Duration::from_secs(20);
/// How long an outage lasts, unless asked for something else.
pub(crate) const OUTAGE: Duration = Duration::from_secs(60);

/// Operations per second of each client.
const RATES: [f64; 2] = [2.0, 8.0];
/// How long a send may take, in seconds; callers wait twice as long.
const TIME_OUTS: [u64; 3] = [1, 3, 10];
const RETRIES: [u32; 2] = [1, 5];
/// After how many milliseconds a second region is asked.
const HEDGES: [Option<u64>; 2] = [None, Some(100)];
/// In multiples of the load.
const SECONDARIES: [f64; 3] = [0.6, 1.0, 1.5];
const FLEETS: [u32; 3] = [5, 20, 50];
/// In multiples of the load.
const PRIMARY: f64 = 1.25;

/// What goes wrong, unless asked for something else: a region that is gone, and one whose queue
/// fills.
pub(crate) const USUAL_OUTAGES: [Outage; 2] = [Outage::HardDown, Outage::Slow];

/// What all points have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    pub(crate) seed: u64,
    pub(crate) length: Duration,
    /// See [`Fleet::bare`].
    pub(crate) bare: bool,
}

/// One fleet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    pub(crate) outage: Outage,
    pub(crate) clients: u32,
    pub(crate) rate: f64,
    pub(crate) time_out_s: u64,
    pub(crate) retries: u32,
    pub(crate) hedge_ms: Option<u64>,
    pub(crate) secondary: f64,
}

impl Point {
    fn fleet(&self, common: Common) -> Fleet {
        let mut fleet = Fleet::new(self.outage);
        let time_out = Duration::from_secs(self.time_out_s);
        fleet.seed = common.seed;
        fleet.bare = common.bare;
        fleet.clients = self.clients;
        fleet.rate = self.rate;
        fleet.patience = Some(time_out * 2);
        fleet.retry = Retrying {
            attempt_timeout: Some(time_out),
            max_retries: Some(self.retries),
            hedge: self.hedge_ms.map(Duration::from_millis),
        };
        fleet.primary_capacity = PRIMARY;
        fleet.secondary_capacity = self.secondary;
        fleet.length = common.length;
        fleet.after = LIMIT + BEYOND;
        fleet
    }

    /// Plays it.
    ///
    /// # Errors
    ///
    /// See [`Fleet::play`].
    pub(crate) fn judge(&self, common: Common) -> Result<Judged, BoxError> {
        let figures = Figures::of(&self.fleet(common))?;
        let limit = LIMIT.as_secs_f64();
        Ok(Judged {
            point: *self,
            holds: figures.back_s.is_some_and(|back| back <= limit),
            back_s: figures.back_s,
            goodput_before: figures.goodput_before,
            goodput_during: figures.goodput_during,
            amplification: figures.amplification,
            primary_peak: figures.primary_peak,
        })
    }

    /// How much there is to play.
    fn cost(&self) -> f64 {
        f64::from(self.clients) * self.rate
    }
}

/// A point, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Judged {
    #[serde(flatten)]
    pub(crate) point: Point,
    pub(crate) holds: bool,
    /// From the end of the outage until goodput was as usual for good; none if it was not.
    pub(crate) back_s: Option<f64>,
    pub(crate) goodput_before: f64,
    pub(crate) goodput_during: f64,
    pub(crate) amplification: f64,
    pub(crate) primary_peak: f64,
}

impl Judged {
    /// More is worse.
    fn badness(&self) -> (f64, f64) {
        let back = self.back_s.unwrap_or(f64::INFINITY);
        (back, 1.0 - self.goodput_during)
    }
}

/// Every point, the largest first, so that no thread is left with a large one at the end.
pub(crate) fn points(outages: &[Outage]) -> Vec<Point> {
    let mut points = Vec::new();
    for &outage in outages {
        for clients in FLEETS {
            for rate in RATES {
                for time_out_s in TIME_OUTS {
                    for retries in RETRIES {
                        for hedge_ms in HEDGES {
                            for secondary in SECONDARIES {
                                points.push(Point {
                                    outage,
                                    clients,
                                    rate,
                                    time_out_s,
                                    retries,
                                    hedge_ms,
                                    secondary,
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    points.sort_by(|a, b| b.cost().total_cmp(&a.cost()));
    points
}

/// Plays all points on so many threads, and returns them with the worst first. `done` is told of
/// each.
///
/// # Errors
///
/// The first that a point has.
pub(crate) fn judge_all(
    points: &[Point],
    common: Common,
    threads: usize,
    done: &(dyn Fn(&Judged) + Sync),
) -> Result<Vec<Judged>, BoxError> {
    let mut all = parallel::map(points, threads, |point| {
        let judged = point.judge(common)?;
        done(&judged);
        Ok(judged)
    })?;
    all.sort_by(|a, b| {
        let (a, b) = (a.badness(), b.badness());
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    Ok(all)
}

#[cfg(test)]
mod tests;
