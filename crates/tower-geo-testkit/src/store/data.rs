//! What each region holds, and how writes get from one to the other.

use super::Clock;
use crate::Side;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    time::{Duration, SystemTime},
};
use tokio::time::Instant;

/// When a write reaches the secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Replication {
    /// At once.
    #[default]
    Immediate,
    /// This long after it was acknowledged, by tokio's clock.
    After(Duration),
    /// Only when a test says so, with `replicate_next` or `replicate_blob`.
    Held,
}

/// One version of a blob.
#[derive(Clone, Debug)]
pub(super) struct Blob {
    pub(super) content: Bytes,
    pub(super) etag: String,
    pub(super) modified: SystemTime,
    /// `Content-Type` and `x-ms-meta-…`.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

pub(super) type Containers = BTreeMap<String, BTreeMap<String, Blob>>;

#[derive(Clone, Debug)]
pub(super) enum Change {
    CreateContainer(String),
    DeleteContainer(String),
    Put(String, String, Blob),
    Delete(String, String),
}

impl Change {
    fn apply(self, containers: &mut Containers) {
        match self {
            Self::CreateContainer(container) => {
                containers.entry(container).or_default();
            }
            Self::DeleteContainer(container) => {
                containers.remove(&container);
            }
            Self::Put(container, name, blob) => {
                containers.entry(container).or_default().insert(name, blob);
            }
            Self::Delete(container, name) => {
                if let Some(blobs) = containers.get_mut(&container) {
                    blobs.remove(&name);
                }
            }
        }
    }

    fn is_of(&self, container: &str, blob: &str) -> bool {
        match self {
            Self::Put(c, b, _) | Self::Delete(c, b) => c == container && b == blob,
            Self::CreateContainer(_) | Self::DeleteContainer(_) => false,
        }
    }
}

struct Pending {
    acknowledged: Instant,
    wall: SystemTime,
    change: Change,
}

pub(super) struct Data {
    primary: Containers,
    secondary: Containers,
    pending: VecDeque<Pending>,
    replication: Replication,
    pub(super) secondary_readable: bool,
    clock: Clock,
    versions: u64,
    answers: u64,
}

impl Data {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            primary: Containers::new(),
            secondary: Containers::new(),
            pending: VecDeque::new(),
            replication: Replication::Immediate,
            secondary_readable: true,
            clock,
            versions: 0,
            answers: 0,
        }
    }

    pub(super) fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// What a region shows now.
    pub(super) fn view(&mut self, side: Side) -> &Containers {
        match side {
            Side::Primary => &self.primary,
            Side::Secondary => {
                self.replicate_due();
                &self.secondary
            }
        }
    }

    /// Applies a write at the primary, and hands it to replication.
    pub(super) fn change(&mut self, change: Change) {
        // What was due before this write is older than it.
        self.replicate_due();
        change.clone().apply(&mut self.primary);
        self.pending.push_back(Pending {
            acknowledged: Instant::now(),
            wall: self.now(),
            change,
        });
        self.replicate_due();
    }

    pub(super) fn new_version(
        &mut self,
        content: Bytes,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Blob {
        self.versions += 1;
        Blob {
            content,
            etag: format!("\"0x8DC{:012X}\"", self.versions),
            modified: self.now(),
            headers,
        }
    }

    pub(super) fn next_request_id(&mut self) -> String {
        self.answers += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.answers)
    }

    pub(super) fn set_replication(&mut self, replication: Replication) {
        self.replicate_due();
        self.replication = replication;
    }

    pub(super) fn replicate_next(&mut self, writes: usize) {
        let count = writes.min(self.pending.len());
        for pending in self.pending.drain(..count) {
            pending.change.apply(&mut self.secondary);
        }
    }

    pub(super) fn replicate_blob(&mut self, container: &str, blob: &str) {
        let (now, later): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|pending| pending.change.is_of(container, blob));
        self.pending = later;
        for pending in now {
            pending.change.apply(&mut self.secondary);
        }
    }

    pub(super) fn pending(&mut self) -> usize {
        self.replicate_due();
        self.pending.len()
    }

    /// The acknowledgement of the oldest write that is not there yet; now, if all are.
    pub(super) fn last_sync_time(&mut self) -> SystemTime {
        self.replicate_due();
        self.pending
            .front()
            .map_or_else(|| self.now(), |oldest| oldest.wall)
    }

    pub(super) fn seed_container(&mut self, container: &str) {
        for containers in [&mut self.primary, &mut self.secondary] {
            containers.entry(container.to_owned()).or_default();
        }
    }

    pub(super) fn seed(&mut self, container: &str, name: &str, content: Bytes) {
        let blob = self.new_version(content, Vec::new());
        let put = Change::Put(container.to_owned(), name.to_owned(), blob);
        put.clone().apply(&mut self.primary);
        put.apply(&mut self.secondary);
    }

    pub(super) fn content(&mut self, side: Side, container: &str, blob: &str) -> Option<Bytes> {
        let blob = self.view(side).get(container)?.get(blob)?;
        Some(blob.content.clone())
    }

    fn replicate_due(&mut self) {
        let lag = match self.replication {
            Replication::Held => return,
            Replication::Immediate => Duration::ZERO,
            Replication::After(lag) => lag,
        };
        let now = Instant::now();
        let due = self
            .pending
            .iter()
            .take_while(|pending| pending.acknowledged + lag <= now)
            .count();
        self.replicate_next(due);
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Data")
            .field("containers", &self.primary.len())
            .field("pending", &self.pending.len())
            .field("replication", &self.replication)
            .finish_non_exhaustive()
    }
}
