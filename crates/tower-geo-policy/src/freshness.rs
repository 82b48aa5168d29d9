//! How old an answer from a copy may be (F1 to F3), and what is known about the age of copies.
//!
//! A copy follows the region that takes writes at some distance. The *Last Sync Time* says how
//! far: all that was written before it is in the copy, what was written later may or may not be,
//! in any order. It is asked for in the background; a [`LastSyncCell`] keeps what was heard last.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use tower_geo_policy::freshness::Freshness;
//!
//! let last_sync = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
//! let entity = last_sync - Duration::from_secs(1);
//! assert_eq!(Freshness::judge(Some(entity), Some(last_sync)), Freshness::Consistent);
//! // One second resolution: the same second may be before or after.
//! assert_eq!(
//!     Freshness::judge(Some(last_sync), Some(last_sync)),
//!     Freshness::PossiblyInconsistent
//! );
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::read_floor::ReadFloor;
use crate::sync::{Mutex, lock};

/// What is known about the age of an answer from a copy. It never says "newest".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Freshness {
    /// The object is older than the last synchronisation: all that was written before it is there.
    Consistent,
    /// The object is as new as the last synchronisation, or newer: what belongs to it may be missing.
    PossiblyInconsistent,
    /// The time of the object or of the last synchronisation is not known.
    Unknown,
}

impl Freshness {
    /// Compares the object's own time with the time of the last synchronisation (F2).
    ///
    /// Both have a resolution of a second, so equal times are *possibly inconsistent*.
    #[must_use]
    pub fn judge(object: Option<SystemTime>, last_sync: Option<SystemTime>) -> Self {
        match (object, last_sync) {
            (Some(object), Some(last_sync)) if object < last_sync => Self::Consistent,
            (Some(_), Some(_)) => Self::PossiblyInconsistent,
            _ => Self::Unknown,
        }
    }

    /// The same for a list: as fresh as the least certain of its objects. An empty list is
    /// *unknown*: what is missing from it has no time.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use tower_geo_policy::freshness::Freshness;
    ///
    /// let at = |second| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(second));
    /// assert_eq!(Freshness::judge_all([at(1), at(2)], at(9)), Freshness::Consistent);
    /// assert_eq!(Freshness::judge_all([at(1), at(9)], at(9)), Freshness::PossiblyInconsistent);
    /// assert_eq!(Freshness::judge_all([at(1), None], at(9)), Freshness::Unknown);
    /// ```
    #[must_use]
    pub fn judge_all(
        objects: impl IntoIterator<Item = Option<SystemTime>>,
        last_sync: Option<SystemTime>,
    ) -> Self {
        objects
            .into_iter()
            .map(|object| Self::judge(object, last_sync))
            .reduce(|a, b| match (a, b) {
                (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
                (Self::PossiblyInconsistent, _) | (_, Self::PossiblyInconsistent) => {
                    Self::PossiblyInconsistent
                }
                (Self::Consistent, Self::Consistent) => Self::Consistent,
            })
            .unwrap_or(Self::Unknown)
    }

    /// The word for it in drills.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::PossiblyInconsistent => "possibly-inconsistent",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How replication to a copy is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplicationStatus {
    /// It is running; the time of the last synchronisation holds.
    Live,
    /// The copy is being filled for the first time.
    Bootstrap,
    /// The copy cannot be reached.
    Unavailable,
}

impl ReplicationStatus {
    /// The word of the service for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Bootstrap => "bootstrap",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for ReplicationStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a copy says about its replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationStats {
    status: ReplicationStatus,
    last_sync: Option<SystemTime>,
}

impl ReplicationStats {
    /// A status and a time. The time counts only while the status is *live* (F1).
    #[must_use]
    pub fn new(status: ReplicationStatus, last_sync: Option<SystemTime>) -> Self {
        Self {
            status,
            last_sync: last_sync.filter(|_| status == ReplicationStatus::Live),
        }
    }

    /// How replication is going.
    #[must_use]
    pub const fn status(&self) -> ReplicationStatus {
        self.status
    }

    /// The time before which all writes are in the copy; `None` when that is not known.
    #[must_use]
    pub const fn last_sync(&self) -> Option<SystemTime> {
        self.last_sync
    }
}

/// What was heard last about a copy, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastSync {
    heard: Option<Heard>,
    failed_polls: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heard {
    stats: ReplicationStats,
    /// The clock of the copy when it said so, and our own.
    clock: SystemTime,
    at: Instant,
}

impl LastSync {
    /// The time before which all writes are in the copy; `None` when that is not known.
    #[must_use]
    pub fn time(&self) -> Option<SystemTime> {
        self.heard.and_then(|heard| heard.stats.last_sync)
    }

    /// What the copy says of its replication; `None` before the first answer.
    #[must_use]
    pub fn status(&self) -> Option<ReplicationStatus> {
        self.heard.map(|heard| heard.stats.status)
    }

    /// How long ago that was said.
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        let heard = self.heard?;
        Some(now.saturating_duration_since(heard.at))
    }

    /// How far the copy is behind at most, by its own clock (F3); `None` when that is not known.
    #[must_use]
    pub fn behind(&self, now: Instant) -> Option<Duration> {
        let heard = self.heard?;
        let last_sync = heard.stats.last_sync?;
        // A copy that claims to be ahead of its own clock is not behind at all.
        let then = heard.clock.duration_since(last_sync).unwrap_or_default();
        Some(then.saturating_add(now.saturating_duration_since(heard.at)))
    }

    /// How many polls in a row have failed since the last good one.
    #[must_use]
    pub const fn failed_polls(&self) -> u32 {
        self.failed_polls
    }

    /// Whether the copy is surely not older than `limit` (F3).
    #[must_use]
    pub fn is_within(&self, limit: Duration, now: Instant) -> bool {
        self.behind(now).is_some_and(|behind| behind <= limit)
    }

    /// Whether the copy surely has what was written at `written` (F5).
    #[must_use]
    pub fn includes(&self, written: SystemTime) -> bool {
        self.time().is_some_and(|last_sync| last_sync > written)
    }
}

/// Keeps what was heard last. Written by a poll, read by whoever has an answer of a copy.
#[derive(Debug, Default)]
pub struct LastSyncCell(Mutex<LastSync>);

impl LastSyncCell {
    /// Nothing heard yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What was heard last.
    #[must_use]
    pub fn get(&self) -> LastSync {
        *lock(&self.0)
    }

    /// The copy said this at `now`, when its own clock showed `clock`.
    pub fn heard(&self, stats: ReplicationStats, clock: SystemTime, now: Instant) {
        *lock(&self.0) = LastSync {
            heard: Some(Heard {
                stats,
                clock,
                at: now,
            }),
            failed_polls: 0,
        };
    }

    /// A poll had no usable answer: the last one keeps its value and its age (F1).
    pub fn failed(&self) {
        let mut last = lock(&self.0);
        last.failed_polls = last.failed_polls.saturating_add(1);
    }
}

/// What answers of copies are held against, for all operations of a service.
#[derive(Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "whoever drives an operation builds it; a new field is a change they have to see"
)]
pub struct CopyRules {
    /// What is known about the age of the copy.
    pub last_sync: Arc<LastSyncCell>,
    /// How far the copy may be behind, unless a request says otherwise (F3).
    pub max_staleness: Option<Duration>,
    /// What was written lately, if reads are to see it (F5).
    pub floor: Option<Arc<ReadFloor>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> Option<SystemTime> {
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(n))
    }

    #[expect(clippy::disallowed_methods, reason = "any instant will do as the base")]
    fn base() -> Instant {
        Instant::now()
    }

    /// F2: earlier is consistent, equal or later possibly inconsistent, a missing time unknown.
    #[test]
    fn the_time_of_the_object_is_compared_with_the_last_synchronisation() {
        let sync = second(100);
        assert_eq!(Freshness::judge(second(99), sync), Freshness::Consistent);
        assert_eq!(
            Freshness::judge(sync, sync),
            Freshness::PossiblyInconsistent
        );
        assert_eq!(
            Freshness::judge(second(101), sync),
            Freshness::PossiblyInconsistent
        );
        assert_eq!(Freshness::judge(None, sync), Freshness::Unknown);
        assert_eq!(Freshness::judge(second(1), None), Freshness::Unknown);
    }

    /// F2: what a list lacks has no time, so an empty one is unknown.
    #[test]
    fn an_empty_list_is_unknown() {
        assert_eq!(Freshness::judge_all([], second(1)), Freshness::Unknown);
    }

    /// F1: bootstrap and unavailable mean unknown, whatever time comes with them.
    #[test]
    fn a_time_counts_only_while_replication_is_live() {
        for (status, wanted) in [
            (ReplicationStatus::Live, second(5)),
            (ReplicationStatus::Bootstrap, None),
            (ReplicationStatus::Unavailable, None),
        ] {
            assert_eq!(ReplicationStats::new(status, second(5)).last_sync(), wanted);
        }
    }

    /// F1: a failed poll leaves the last value and its age.
    #[test]
    fn a_failed_poll_leaves_value_and_age() {
        let (cell, start) = (LastSyncCell::new(), base());
        assert_eq!(cell.get(), LastSync::default());
        assert_eq!(cell.get().age(start), None);
        let stats = ReplicationStats::new(ReplicationStatus::Live, second(100));
        cell.heard(stats, second(130).unwrap(), start);
        cell.failed();
        cell.failed();
        let last = cell.get();
        let later = start + Duration::from_secs(60);
        assert_eq!(last.time(), second(100));
        assert_eq!(last.age(later), Some(Duration::from_secs(60)));
        assert_eq!(last.failed_polls(), 2);
        cell.heard(stats, second(131).unwrap(), start);
        assert_eq!(cell.get().failed_polls(), 0);
    }

    /// F3: the clock of the copy at the poll, and our own since then.
    #[test]
    fn a_copy_is_behind_by_its_own_clock_and_ours_since_then() {
        let (cell, start) = (LastSyncCell::new(), base());
        let limit = Duration::from_secs(300);
        assert!(!cell.get().is_within(limit, start), "unknown is too old");
        let stats = ReplicationStats::new(ReplicationStatus::Live, second(1_000));
        cell.heard(stats, second(1_240).unwrap(), start);
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(cell.get().behind(after(30)), Some(Duration::from_secs(270)));
        assert!(cell.get().is_within(limit, after(60)));
        assert!(!cell.get().is_within(limit, after(61)));
        // A clock that goes wrong does not make it younger than the time since the poll.
        cell.heard(stats, second(1).unwrap(), start);
        assert_eq!(cell.get().behind(after(7)), Some(Duration::from_secs(7)));
    }

    /// F3: clocks that no service shows are further apart than a duration is long.
    #[test]
    fn times_that_no_service_tells_are_too_old_and_panic_nowhere() {
        let most = Duration::from_secs(i64::MAX.unsigned_abs());
        let long_ago = SystemTime::UNIX_EPOCH.checked_sub(most).unwrap();
        let far_ahead = SystemTime::UNIX_EPOCH.checked_add(most).unwrap();
        let (cell, start) = (LastSyncCell::new(), base());
        let stats = ReplicationStats::new(ReplicationStatus::Live, Some(long_ago));
        cell.heard(stats, far_ahead, start);
        let later = start + Duration::from_secs(60);
        assert_eq!(cell.get().behind(later), Some(Duration::MAX));
        assert!(!cell.get().is_within(most, later));
    }

    /// F5: a write of the same second as the last synchronisation may be missing.
    #[test]
    fn a_write_is_included_only_before_the_last_synchronisation() {
        let cell = LastSyncCell::new();
        assert!(!cell.get().includes(second(1).unwrap()));
        let stats = ReplicationStats::new(ReplicationStatus::Live, second(100));
        cell.heard(stats, second(101).unwrap(), base());
        assert!(cell.get().includes(second(99).unwrap()));
        assert!(!cell.get().includes(second(100).unwrap()));
    }
}
