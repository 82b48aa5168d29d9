//! The goals of an outage, as numbers: what a single client, and a fleet, may cost and lose.

use std::time::Duration;

use serde::Serialize;
use tower_geo::BoxError;

use crate::figures::Figures;
use crate::fleet::Fleet;
use crate::outage::Outage;

/// How long a circuit of the product stays open the first time.
pub(crate) const OPEN_FOR: Duration = Duration::from_secs(30);
/// The longest that it stays open.
pub(crate) const MAX_OPEN_FOR: Duration = Duration::from_secs(300);
/// What a return of all at once would show.
const PEAK: &str = "peak of the primary, in multiples of the usual load";
/// Timers here ring on whole milliseconds, and a time-out takes two of them.
const CLOCK: f64 = 0.002;

/// One number and its limit.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Goal {
    pub(crate) case: String,
    pub(crate) what: &'static str,
    pub(crate) at_most: f64,
    /// `None`: it did not happen at all.
    pub(crate) got: Option<f64>,
    pub(crate) holds: bool,
}

/// Plays every case and measures it against its goals.
///
/// # Errors
///
/// See [`Fleet::play`].
pub(crate) fn all(seed: u64) -> Result<Vec<Goal>, BoxError> {
    let mut goals = hard_down(seed)?;
    for rate in [0.1, 0.5, 2.0, 10.0, 100.0] {
        goals.push(black_hole(seed, rate)?);
    }
    goals.extend(recovery(seed)?);
    goals.push(throttled(seed)?);
    Ok(goals)
}

/// A primary that refuses connections for five minutes, one client that reads ten times a second,
/// one at a time.
pub(crate) fn hard_down(seed: u64) -> Result<Vec<Goal>, BoxError> {
    let mut fleet = one_reader(seed, Outage::HardDown, 10.0);
    fleet.one_at_a_time = true;
    fleet.length = Duration::from_secs(300);
    let figures = Figures::of(&fleet)?;
    let case = "hard-down, one reader";
    let failed_sends = figures.failed_sends_before.map(|sends| sends as f64);
    Ok(vec![
        goal(case, "failed reads", 0.0, Some(figures.failed_reads as f64)),
        goal(case, "failed sends before the trip", 10.0, failed_sends),
        goal(
            case,
            "sends to the primary per operation after it",
            0.02,
            figures.primary_sends_after,
        ),
        goal(
            case,
            "sends per operation after it",
            1.1,
            figures.sends_after,
        ),
        goal(
            case,
            "sends per operation",
            1.1,
            Some(figures.amplification),
        ),
    ])
}

/// A primary that answers nothing, and callers that leave after two seconds.
pub(crate) fn black_hole(seed: u64, rate: f64) -> Result<Goal, BoxError> {
    let mut fleet = one_reader(seed, Outage::BlackHole, rate);
    fleet.patience = Some(Duration::from_secs(2));
    // Long enough for ten calls, however seldom they are.
    fleet.length = fleet.length.max(Duration::from_secs_f64(15.0 / rate));
    let figures = Figures::of(&fleet)?;
    Ok(goal(
        format!("black-hole, {rate} reads per second"),
        "seconds from the tenth suspect to the trip",
        1.0 + CLOCK,
        figures.opened_after_suspects_s,
    ))
}

/// A fleet whose primary is away for less than `open_for`, so that the wait has not grown; and one
/// that comes back to a primary that can do little more than usual.
pub(crate) fn recovery(seed: u64) -> Result<Vec<Goal>, BoxError> {
    let mut short = Fleet::new(Outage::HardDown);
    short.seed = seed;
    short.length = Duration::from_secs(12);
    let mut crowd = Fleet::of_gallery(Outage::RecoveryStampede);
    crowd.seed = seed;
    crowd.rate = 5.0;
    let mut goals = Vec::new();
    for (case, fleet, wait) in [
        ("12 s away, 20 clients", short, OPEN_FOR),
        // By then the wait may have been doubled twice (B4).
        ("92 s away, 80 clients", crowd, OPEN_FOR * 4),
    ] {
        let figures = Figures::of(&fleet)?;
        goals.extend([
            goal(
                case,
                "seconds from the end to the first probe of the last client",
                wait.as_secs_f64(),
                figures.last_probe_s,
            ),
            goal(
                case,
                "seconds from 5 % to all reads, of each client",
                10.0,
                figures.return_s,
            ),
            goal(case, PEAK, 1.2, Some(figures.primary_peak)),
        ]);
    }
    Ok(goals)
}

/// A primary that asks everybody to come back in five seconds, for 92 s: writes have nowhere else to
/// go and wait for it, until it lets them all in again.
pub(crate) fn throttled(seed: u64) -> Result<Goal, BoxError> {
    let mut fleet = Fleet::of_gallery(Outage::Throttled);
    fleet.seed = seed;
    let figures = Figures::of(&fleet)?;
    Ok(goal(
        "throttled, 20 clients",
        PEAK,
        1.2,
        Some(figures.primary_peak),
    ))
}

fn one_reader(seed: u64, outage: Outage, rate: f64) -> Fleet {
    let mut fleet = Fleet::new(outage);
    fleet.seed = seed;
    fleet.clients = 1;
    fleet.rate = rate;
    fleet.writes = 0.0;
    // One reader is not what a region is built for.
    let spare = 200.0 / fleet.load();
    fleet.primary_capacity *= spare;
    fleet.secondary_capacity *= spare;
    fleet
}

fn goal(case: impl Into<String>, what: &'static str, at_most: f64, got: Option<f64>) -> Goal {
    Goal {
        case: case.into(),
        what,
        at_most,
        got,
        holds: got.is_some_and(|got| got <= at_most),
    }
}

#[cfg(test)]
mod tests;
