//! When the story holds.

#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::load::{Application, End, Journal, Op, Stored, WriteEnd};
use crate::report::{Check, Counts, Moments};
use crate::world::Arrived;

/// Of the last reads, so many must have come from the primary.
const LAST_READS: usize = 5;

/// How long reading back may wait for a primary that does not answer, and how long between tries.
const AUDIT: Duration = Duration::from_secs(15);
const AUDIT_PAUSE: Duration = Duration::from_millis(100);

/// What the primary holds at the end, against what the callers were told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Books {
    /// Writes that were acknowledged and are there, with their content.
    pub(crate) kept: u64,
    /// Writes that were acknowledged and are not, or with other content.
    pub(crate) lost: u64,
    /// Writes of which nothing was sent, the caller was told, and which are there all the same.
    pub(crate) ghosts: u64,
    /// Writes of unknown fate that turn out to be stored.
    pub(crate) unknown_stored: u64,
    /// Writes of unknown fate that turn out not to be.
    pub(crate) unknown_absent: u64,
    /// Writes of unknown fate that are there with other content.
    pub(crate) unknown_wrong: u64,
    /// Writes that could not be read back.
    pub(crate) unread: u64,
}

/// Reads every write back.
pub(crate) async fn audit(application: &Application, journal: &Journal) -> Books {
    let writes: Vec<_> = journal
        .ops()
        .iter()
        .filter_map(|op| match &op.end {
            End::Write { number, end } => Some((*number, end.clone())),
            _ => None,
        })
        .collect();
    let give_up = Instant::now() + AUDIT;
    let mut books = Books::default();
    for (number, end) in writes {
        let Some(stored) = read_back(application, number, give_up).await else {
            books.unread += 1;
            continue;
        };
        let count = match (end, stored) {
            (WriteEnd::Stored, Stored::Right) => &mut books.kept,
            (WriteEnd::Stored, _) => &mut books.lost,
            (WriteEnd::Refused | WriteEnd::NotSent, Stored::Absent) => continue,
            (WriteEnd::Refused | WriteEnd::NotSent, _) => &mut books.ghosts,
            // Whatever it was, the caller was not told a lie; it is a fault of its own below.
            (WriteEnd::Unexpected { .. }, _) => continue,
            (WriteEnd::Unknown, Stored::Right) => &mut books.unknown_stored,
            (WriteEnd::Unknown, Stored::Absent) => &mut books.unknown_absent,
            (WriteEnd::Unknown, Stored::Wrong) => &mut books.unknown_wrong,
        };
        *count += 1;
    }
    books
}

/// What the primary holds of a write. It is back; if it is not trusted yet, it is waited for.
async fn read_back(application: &Application, number: u64, give_up: Instant) -> Option<Stored> {
    loop {
        if let Ok(stored) = application.stored(number).await {
            return Some(stored);
        }
        if Instant::now() > give_up {
            return None;
        }
        sleep(AUDIT_PAUSE).await;
    }
}

/// How everything stands at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// Operations that were begun.
    pub(crate) begun: u64,
    pub(crate) arrived: Arrived,
    pub(crate) books: Books,
    /// Both circuits of the primary are closed, and all reads are let back.
    pub(crate) all_closed: bool,
    /// The gate is open.
    pub(crate) takes_writes: bool,
}

/// What is claimed, and whether it is so.
pub(crate) fn checks(ops: &[Op], moments: &Moments, standing: &Standing) -> Vec<Check> {
    let all = Counts::of(ops);
    let Standing {
        begun,
        arrived,
        books,
        ..
    } = *standing;
    let after_switch = |op: &&Op| moments.reads_switched.is_some_and(|at| op.at > at);
    let failed_after = Counts::of(ops.iter().filter(after_switch)).reads_failed;
    vec![
        Check::new(
            "nothing was suspected while all was well",
            !moments.opened_before,
            if moments.opened_before {
                "a circuit opened: the rate is too much for this machine"
            } else {
                "no circuit opened"
            }
            .to_owned(),
        ),
        Check::new(
            "every read was answered, with the right content",
            all.reads_failed == 0 && all.reads() > 0,
            format!(
                "{} of {} failed, {failed_after} after the switch",
                all.reads_failed,
                all.reads()
            ),
        ),
        Check::new(
            "reads moved to the secondary while the primary was away",
            moments.reads_switched.is_some() && all.reads_secondary > 0,
            format!("{} came from the secondary", all.reads_secondary),
        ),
        Check::new(
            "writes were refused at once while the primary was away",
            moments.read_only.is_some() && all.refused > 0,
            format!("{} were", all.refused),
        ),
        Check::new(
            "no write reached the secondary",
            arrived.writes_at_secondary == 0,
            format!(
                "{} did, as the secondary counts",
                arrived.writes_at_secondary
            ),
        ),
        Check::new(
            "every write was stored, or its caller was told that it was not, or may not be",
            all.unexpected == 0,
            format!("{} of {} ended otherwise", all.unexpected, all.writes()),
        ),
        Check::new(
            "every write could be read back, or looked for",
            books.unread == 0,
            format!("{} of {} could not", books.unread, all.writes()),
        ),
        Check::new(
            "every acknowledged write is there, with its content",
            books.lost == 0 && books.kept == all.stored && all.stored > 0,
            format!("{} of {} are", books.kept, all.stored),
        ),
        Check::new(
            "no write is there of which the caller was told that nothing was sent",
            books.ghosts == 0,
            format!("{} of {} are", books.ghosts, all.refused + all.not_sent),
        ),
        Check::new(
            "writes of unknown fate are there as written, or not at all",
            books.unknown_wrong == 0,
            format!(
                "{} are, {} are not, {} are there with other content",
                books.unknown_stored, books.unknown_absent, books.unknown_wrong
            ),
        ),
        Check::new(
            "every operation came to an end",
            begun == all.operations(),
            format!("{} of {begun} did", all.operations()),
        ),
        Check::new(
            "all is back: circuits closed, gate open, the last reads and the last write at the primary",
            standing.all_closed && standing.takes_writes && last_are_back(ops),
            format!(
                "circuits {}, gate {}, last operations {}",
                if standing.all_closed {
                    "closed"
                } else {
                    "not closed"
                },
                if standing.takes_writes {
                    "open"
                } else {
                    "not open"
                },
                if last_are_back(ops) {
                    "as before"
                } else {
                    "not as before"
                },
            ),
        ),
    ]
}

/// By their beginnings, since a slow one may end late.
fn last_are_back(ops: &[Op]) -> bool {
    let mut by_start: Vec<_> = ops.iter().collect();
    by_start.sort_by_key(|op| std::cmp::Reverse(op.at));
    let mut reads = by_start
        .iter()
        .filter(|op| !matches!(op.end, End::Write { .. }))
        .take(LAST_READS)
        .map(|op| {
            let End::Read { from_secondary } = op.end else {
                return false;
            };
            !from_secondary
        });
    let last_write = by_start.iter().find_map(|op| match &op.end {
        End::Write { end, .. } => Some(end),
        _ => None,
    });
    reads.all(|back| back) && last_write == Some(&WriteEnd::Stored)
}
