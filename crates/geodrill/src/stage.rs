//! What is shared while a drill is played: the clock, the script, and everything that was seen.
//!
//! Two ways of keeping what was seen: in full, every operation with its sends, or counters only,
//! which take the same memory for a million operations as for ten.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderName;
use tokio::time::Instant;

use crate::account::Accounts;
use crate::format::Fault;
use crate::script::Script;
use crate::store::Store;
use crate::timeline::Timeline;
use crate::transport::Told;

/// The shared part of a drill under way.
#[derive(Debug)]
pub(crate) struct Stage {
    start: Instant,
    keep: bool,
    script: Mutex<Script>,
    accounts: Mutex<Accounts>,
    stores: Mutex<Vec<Store>>,
    seen: Mutex<Seen>,
}

/// Everything that was seen so far.
#[derive(Debug)]
pub(crate) struct Seen {
    /// In the order in which they began; empty unless everything is kept.
    pub(crate) operations: Vec<Option<OperationRecord>>,
    pub(crate) events: Vec<EventRecord>,
    /// Sends that belong to no operation, with their service and purpose.
    pub(crate) background: Vec<(usize, &'static str, Arc<Sends>)>,
    pub(crate) counts: Counts,
    /// By service and region.
    pub(crate) sends: Vec<Vec<u64>>,
    pub(crate) sends_in_all: u64,
    /// How many operations took how long, in milliseconds.
    pub(crate) latencies: BTreeMap<u64, u64>,
    pub(crate) timeline: Timeline,
    pub(crate) warnings: Vec<String>,
}

impl Seen {
    fn new(services: usize) -> Self {
        Self {
            operations: Vec::new(),
            events: Vec::new(),
            background: Vec::new(),
            counts: Counts::default(),
            sends: vec![Vec::new(); services],
            sends_in_all: 0,
            latencies: BTreeMap::new(),
            timeline: Timeline::new(services),
            warnings: Vec::new(),
        }
    }
}

/// How operations ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) operations: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) deferred: u64,
    pub(crate) cancelled: u64,
}

/// One operation, after its end.
#[derive(Debug)]
pub(crate) struct OperationRecord {
    /// The index of the request in the file, and of the repetition where it is a series.
    pub(crate) request: usize,
    pub(crate) repetition: Option<u64>,
    pub(crate) at_ms: u64,
    pub(crate) done_ms: u64,
    pub(crate) sends: Arc<Sends>,
    pub(crate) outcome: Outcome,
    pub(crate) freshness: Option<&'static str>,
}

/// What the caller got.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answer {
        status: u16,
        /// Whether it is one to the question.
        good: bool,
        region: Option<usize>,
        body: String,
        body_error: Option<&'static str>,
        after_ambiguous: bool,
    },
    Error {
        kind: &'static str,
        message: String,
    },
    Cancelled,
}

impl Outcome {
    fn class(&self) -> Class {
        match self {
            Self::Answer {
                good, body_error, ..
            } if *good && body_error.is_none() => Class::Succeeded,
            Self::Error { kind, .. } if matches!(*kind, "read-only" | "breaker-open") => {
                Class::Refused
            }
            Self::Answer { .. } | Self::Error { .. } => Class::Failed,
            Self::Cancelled => Class::Cancelled,
        }
    }
}

#[derive(Clone, Copy)]
enum Class {
    Succeeded,
    Failed,
    Refused,
    Cancelled,
}

/// The sends of one operation; a request extension, so that the transport knows where a send
/// belongs.
#[derive(Debug, Default)]
pub(crate) struct Sends(Mutex<Ongoing>);

#[derive(Debug, Default)]
pub(crate) struct Ongoing {
    pub(crate) list: Vec<SendRecord>,
    /// The caller is dropping the call, so a send that ends now was not timed out.
    pub(crate) caller_leaves: bool,
    /// Request headers to keep of each send.
    pub(crate) show: Arc<[HeaderName]>,
}

impl Sends {
    pub(crate) fn new(show: Arc<[HeaderName]>) -> Self {
        Self(Mutex::new(Ongoing {
            show,
            ..Ongoing::default()
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Ongoing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ongoing {
    /// Takes over what the trail says of each send.
    pub(crate) fn tell(&mut self, trail: &[Told]) {
        for (send, told) in self.list.iter_mut().zip(trail) {
            send.kind = told.kind;
            send.probe = told.probe;
            if told.outrun {
                send.reply = Some(Reply::Cancelled);
            }
        }
    }

    /// The region that gave the last answer.
    pub(crate) fn last_region(&self) -> Option<usize> {
        self.list.last().and_then(|send| send.region)
    }

    /// What the last send that had an answer says about the end of its body.
    pub(crate) fn how_the_body_ended(&self) -> &'static str {
        // A resume that has failed comes behind the send whose body broke off.
        let mut replies = self.list.iter().rev().map(|send| send.reply);
        let broke = |reply: &Option<Reply>| matches!(reply, Some(Reply::Cut | Reply::Stall));
        match replies.find(broke).flatten() {
            Some(Reply::Cut) => "cut",
            _ => "stall",
        }
    }
}

/// The extension of a request that says to which operation it belongs.
#[derive(Clone, Debug)]
pub(crate) struct Ticket(pub(crate) Arc<Sends>);

/// One send.
#[derive(Clone, Debug)]
pub(crate) struct SendRecord {
    pub(crate) at_ms: u64,
    pub(crate) kind: Option<SendKind>,
    pub(crate) probe: bool,
    pub(crate) region: Option<usize>,
    /// Empty, as is the path, unless everything is kept.
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) reply: Option<Reply>,
    pub(crate) took_ms: u64,
    pub(crate) headers: Vec<(HeaderName, String)>,
}

/// Why a send was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendKind {
    First,
    FallOver,
    Retry,
    Hedge,
    Resume,
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Status {
        code: u16,
        /// Whether it is an answer to the question.
        good: bool,
    },
    Fault(Fault),
    Timeout,
    Cut,
    Stall,
    Cancelled,
}

impl Reply {
    const fn is_good(self) -> bool {
        matches!(self, Self::Status { good: true, .. })
    }
}

/// A transition that the layers told of.
#[derive(Debug)]
pub(crate) struct EventRecord {
    pub(crate) at_ms: u64,
    pub(crate) service: usize,
    pub(crate) region: Option<usize>,
    pub(crate) event: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Breaker {
        circuit: &'static str,
        from: &'static str,
        to: &'static str,
        why: &'static str,
    },
    Gate {
        to: &'static str,
        why: &'static str,
    },
    Secondary {
        to: &'static str,
    },
}

impl Stage {
    /// A stage whose time 0 is the present instant of the runtime.
    pub(crate) fn new(
        script: Script,
        accounts: Accounts,
        stores: Vec<Store>,
        services: usize,
        keep: bool,
    ) -> Self {
        Self {
            start: Instant::now(),
            keep,
            script: Mutex::new(script),
            accounts: Mutex::new(accounts),
            stores: Mutex::new(stores),
            seen: Mutex::new(Seen::new(services)),
        }
    }

    /// Everything that was seen, at the end; nothing is left here.
    pub(crate) fn take_seen(&self) -> Seen {
        std::mem::replace(&mut *self.seen(), Seen::new(0))
    }

    /// Time 0.
    pub(crate) const fn start(&self) -> Instant {
        self.start
    }

    /// Whether every operation is kept.
    pub(crate) const fn keeps(&self) -> bool {
        self.keep
    }

    /// The present instant, in milliseconds from time 0.
    pub(crate) fn now_ms(&self) -> u64 {
        self.ms(Instant::now())
    }

    /// An instant, in milliseconds from time 0.
    pub(crate) fn ms(&self, instant: Instant) -> u64 {
        let past = instant.saturating_duration_since(self.start);
        u64::try_from(past.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn stores(&self) -> MutexGuard<'_, Vec<Store>> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operation begins; the number is its place in the result.
    pub(crate) fn begun(&self) -> usize {
        let mut seen = self.seen();
        seen.counts.operations += 1;
        if self.keep {
            seen.operations.push(None);
        }
        seen.operations.len().saturating_sub(1)
    }

    /// An operation has ended, and its body has been read. `is_write` is for services whose
    /// reads and writes may go to different regions.
    pub(crate) fn ended(
        &self,
        place: usize,
        service: usize,
        is_write: bool,
        record: OperationRecord,
    ) {
        let mut seen = self.seen();
        let took = record.done_ms.saturating_sub(record.at_ms);
        let class = record.outcome.class();
        if matches!(class, Class::Succeeded | Class::Failed) {
            *seen.latencies.entry(took).or_insert(0) += 1;
        }
        let bucket = seen.timeline.at(service, record.done_ms);
        match class {
            Class::Succeeded => bucket.succeeded += 1,
            Class::Failed => bucket.failed += 1,
            Class::Refused => bucket.refused += 1,
            Class::Cancelled => bucket.cancelled += 1,
        }
        if matches!(class, Class::Succeeded | Class::Failed) {
            bucket.latency_sum += took;
            bucket.latency_max = bucket.latency_max.max(took);
        }
        if let Outcome::Answer {
            region: Some(region),
            ..
        } = record.outcome
        {
            let region = bucket.region(region);
            region.served += 1;
            region.wrote += u64::from(is_write);
        }
        match class {
            Class::Succeeded => seen.counts.succeeded += 1,
            Class::Failed => seen.counts.failed += 1,
            Class::Refused => seen.counts.refused += 1,
            Class::Cancelled => seen.counts.cancelled += 1,
        }
        if let Some(slot) = seen.operations.get_mut(place) {
            *slot = Some(record);
        }
    }

    /// A send leaves.
    pub(crate) fn sent(&self, service: usize, region: Option<usize>) {
        let mut seen = self.seen();
        seen.sends_in_all += 1;
        if let Some(region) = region {
            let counts = &mut seen.sends[service];
            if counts.len() <= region {
                counts.resize(region + 1, 0);
            }
            counts[region] += 1;
        }
    }

    /// A send got its reply, or its reply turned out to be another.
    pub(crate) fn replied(
        &self,
        service: usize,
        region: Option<usize>,
        at_ms: u64,
        reply: Reply,
        instead_of: Option<Reply>,
    ) {
        let Some(region) = region else { return };
        let mut seen = self.seen();
        let bucket = seen.timeline.at(service, at_ms).region(region);
        if instead_of.is_some_and(Reply::is_good) {
            bucket.good -= 1;
        } else if instead_of.is_some() {
            bucket.bad -= 1;
        }
        if reply.is_good() {
            bucket.good += 1;
        } else {
            bucket.bad += 1;
        }
    }

    pub(crate) fn event(&self, event: EventRecord) {
        self.seen().events.push(event);
    }

    pub(crate) fn warn(&self, warning: String) {
        self.seen().warnings.push(warning);
    }
}
