//! How old is the copy? What is known of it, and who is told (F1).
//!
//! With the feature `last-sync` a task asks the secondary of a storage account for it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use http::HeaderMap;
use http::header::DATE;
use tokio::sync::watch;
use tower_geo_policy::freshness::{
    CopyRules, LastSync, LastSyncCell, ReplicationStats, ReplicationStatus,
};
use tower_geo_policy::read_floor::ReadFloor;

use crate::runtime::{self, State};
use crate::service_handle::GeoService;

#[cfg(feature = "last-sync")]
mod poll;

#[cfg(feature = "last-sync")]
pub use poll::LastSyncSettings;
#[cfg(feature = "last-sync")]
pub(crate) use poll::{Poll, stats_uri};

/// Tells whoever watches that something was heard of the copy.
#[derive(Debug)]
pub(crate) struct Changes(watch::Sender<u64>);

impl Default for Changes {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Changes {
    fn tell(&self) {
        self.0
            .send_modify(|changes| *changes = changes.wrapping_add(1));
    }
}

/// What services of one account know together because they hold the same data.
#[derive(Debug, Default)]
pub(crate) struct SameData {
    last_sync: Arc<LastSyncCell>,
    changes: Arc<Changes>,
    floor: OnceLock<Arc<ReadFloor>>,
}

/// What a service knows of the age of its copy, and how old it may be.
pub(crate) struct Age {
    pub(crate) rules: CopyRules,
    pub(crate) changes: Arc<Changes>,
}

impl Age {
    pub(crate) fn new(
        max_staleness: Option<Duration>,
        read_your_writes: bool,
        same_data: Option<Arc<SameData>>,
    ) -> Self {
        let data = same_data.unwrap_or_default();
        Self {
            rules: CopyRules {
                last_sync: Arc::clone(&data.last_sync),
                max_staleness,
                floor: read_your_writes.then(|| Arc::clone(data.floor.get_or_init(Arc::default))),
            },
            changes: Arc::clone(&data.changes),
        }
    }
}

/// The service's own clock when it answered: its `Date`, else ours.
pub(crate) fn service_clock(state: &State, headers: &HeaderMap) -> SystemTime {
    headers
        .get(DATE)
        .and_then(|date| date.to_str().ok())
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or_else(|| (state.extra().wall_clock)())
}

/// How far the secondary is, as far as that is known at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastSyncState {
    /// The Last Sync Time: all writes before it are in the copy. `None`: not known.
    pub time: Option<SystemTime>,
    /// How replication is going; `None` before the first answer.
    pub status: Option<ReplicationStatus>,
    /// How long ago the copy said so.
    pub age: Option<Duration>,
    /// How far the copy is behind at most: its clock, carried on by ours, minus `time`.
    pub behind: Option<Duration>,
    /// How many polls have failed since then; they change nothing else.
    pub failed_polls: u32,
}

impl LastSyncState {
    fn new(last: LastSync, now: Instant) -> Self {
        Self {
            time: last.time(),
            status: last.status(),
            age: last.age(now),
            behind: last.behind(now),
            failed_polls: last.failed_polls(),
        }
    }
}

impl GeoService {
    /// How far the secondary is, as far as that is known at this moment (F1).
    ///
    /// Nothing is known until somebody asks: see `spawn_last_sync` (feature `last-sync`), or tell
    /// it with [`record_last_sync`](Self::record_last_sync). The services of an
    /// [`Account`](crate::Account) that hold blobs (blob, dfs, web) know it together.
    #[must_use]
    pub fn last_sync(&self) -> LastSyncState {
        let last = self.state_ref().extra().copies.last_sync.get();
        LastSyncState::new(last, runtime::now())
    }

    /// Follows the Last Sync Time.
    #[must_use]
    pub fn watch_last_sync(&self) -> LastSyncWatch {
        LastSyncWatch {
            changes: self.state_ref().extra().last_sync_changes.0.subscribe(),
            service: self.clone(),
        }
    }

    /// Tells what a copy said of its replication when its own clock showed `clock`. For services
    /// that this crate cannot ask, and for programs that ask by themselves.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use tower_geo::{GeoService, ReplicationStats, ReplicationStatus};
    ///
    /// let shop = GeoService::static_copies("shop")
    ///     .region("eu", "https://eu.example.test")
    ///     .region("us", "https://us.example.test")
    ///     .max_staleness(Duration::from_secs(300))
    ///     .build()?;
    /// let clock = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    /// let last_sync = clock - Duration::from_secs(40);
    /// let stats = ReplicationStats::new(ReplicationStatus::Live, Some(last_sync));
    /// shop.record_last_sync(stats, clock);
    /// assert_eq!(shop.last_sync().time, Some(last_sync));
    /// # Ok::<(), tower_geo::ConfigError>(())
    /// ```
    pub fn record_last_sync(&self, stats: ReplicationStats, clock: SystemTime) {
        let runtime = self.state_ref().extra();
        runtime.copies.last_sync.heard(stats, clock, runtime::now());
        runtime.last_sync_changes.tell();
    }

    #[cfg(feature = "last-sync")]
    pub(crate) fn note_failed_poll(&self) {
        let runtime = self.state_ref().extra();
        runtime.copies.last_sync.failed();
        runtime.last_sync_changes.tell();
    }
}

/// Follows how far the secondary is.
///
/// ```
/// # async fn follow(service: tower_geo::GeoService) {
/// let mut last_sync = service.watch_last_sync();
/// loop {
///     let state = last_sync.changed().await;
///     println!("{}: behind by {:?}", service.name(), state.behind);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct LastSyncWatch {
    service: GeoService,
    changes: watch::Receiver<u64>,
}

impl LastSyncWatch {
    /// How far the secondary is at this moment.
    #[must_use]
    pub fn get(&self) -> LastSyncState {
        self.service.last_sync()
    }

    /// Waits until something is heard of it, or a poll fails, and returns what is known then.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost: a change that was not returned is returned by the next call.
    pub async fn changed(&mut self) -> LastSyncState {
        // The sender lives in the service that we hold, so there is no error.
        let _ = self.changes.changed().await;
        self.get()
    }
}
