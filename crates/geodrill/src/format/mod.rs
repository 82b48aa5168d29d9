//! The drill format: from the text of a file to a drill that can be played.
//!
//! Three steps: `tree` (syntax), `raw` by way of `strict` (keys and types), `resolve` (defaults,
//! names, sense). A problem of any of them carries the path of the key.

mod maybe;
mod millis;
mod raw;
mod resolve;
mod strict;
mod tree;
mod unsupported;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;
use tower_geo::fault::Rules;
use tower_geo_policy::region::Endpoint;

use strict::{Failure, Strict};

pub(crate) use millis::Millis;
pub use tree::Syntax;

use crate::problem::Problem;

/// Reads a drill; every key is checked, and every name resolved.
pub(crate) fn read(text: &str, syntax: Syntax) -> Result<Drill, Problem> {
    let tree = tree::parse(text, syntax)?;
    let raw = serde_path_to_error::deserialize(Strict(tree)).map_err(|error| {
        let path = tree::path_of(error.path());
        match error.into_inner() {
            // Where a key is missing, the path is that of the object.
            Failure::Missing(key) if path.is_empty() => Problem::at(key, "missing"),
            Failure::Missing(key) => Problem::at(format!("{path}.{key}"), "missing"),
            failure => Problem::at(path, failure.to_string()),
        }
    })?;
    resolve::resolve(raw)
}

/// A drill with every default filled in.
#[derive(Debug)]
pub(crate) struct Drill {
    pub(crate) name: String,
    pub(crate) seed: u64,
    /// The wall clock at time 0.
    pub(crate) start: SystemTime,
    pub(crate) services: Vec<Service>,
    /// By authority in lower case.
    pub(crate) hosts: IndexMap<String, Answer>,
    /// What Cosmos accounts say of themselves, by the authority of the global host.
    pub(crate) accounts: IndexMap<String, Account>,
    /// How far the secondary of a store is behind, by the authority of its primary.
    pub(crate) stores: IndexMap<String, Duration>,
    pub(crate) rules: Rules<Arc<Answer>>,
    pub(crate) requests: Vec<Request>,
    pub(crate) operator: Vec<Act>,
    pub(crate) expect: Vec<Expect>,
}

/// Which defaults hold: those of the format, or those of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Defaults {
    Exact,
    Product,
}

/// A location mode (R2), as it is written in a drill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    PrimaryOnly,
    PrimaryThenSecondary,
    SecondaryOnly,
    SecondaryThenPrimary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Jitter {
    None,
    Equal,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RetryMode {
    Exponential,
    Fixed,
}

/// A service, to be built by `stack`.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) kind: ServiceKind,
    pub(crate) mode: Mode,
    /// The index of the service whose group this one joins (B12).
    pub(crate) shares_with: Option<usize>,
    pub(crate) retry: Option<Retry>,
    pub(crate) breaker: Option<Breaker>,
    /// Whether an open circuit makes the service read-only by itself (G1).
    pub(crate) read_only_while_open: bool,
    pub(crate) monitor: Option<Monitor>,
    /// How often the Last Sync Time is asked for.
    pub(crate) last_sync: Option<Pace>,
    pub(crate) max_staleness: Option<Duration>,
    pub(crate) read_your_writes: bool,
}

impl Service {
    pub(crate) const fn is_cosmos(&self) -> bool {
        matches!(self.kind, ServiceKind::Cosmos { .. })
    }
}

/// A real read of the primary at an interval (B11).
#[derive(Debug)]
pub(crate) struct Monitor {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) timeout: Duration,
    pub(crate) pace: Pace,
}

/// How often something is done in the background.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) every: Duration,
    /// Whether at exact times, or with the product's jitter.
    pub(crate) exact: bool,
}

#[derive(Debug)]
pub(crate) enum ServiceKind {
    AzureStorage {
        endpoint: Endpoint,
        secondary: Secondary,
    },
    Static {
        regions: Vec<Region>,
    },
    Cosmos {
        endpoint: Endpoint,
        settings: Cosmos,
    },
}

/// What a user says of a Cosmos account.
#[derive(Debug)]
pub(crate) struct Cosmos {
    pub(crate) preferred: Vec<String>,
    pub(crate) excluded: Vec<String>,
    pub(crate) multi_write: bool,
    pub(crate) discovery: bool,
    pub(crate) refresh: Duration,
    pub(crate) refresh_jitter: Duration,
    pub(crate) mark_for: Duration,
}

/// What the account document says, from the start and from later instants on.
#[derive(Debug)]
pub(crate) struct Account {
    /// At least one, the first from time 0 on; in order of time.
    pub(crate) documents: Vec<Document>,
}

/// What the account document says from an instant on.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) from: Duration,
    pub(crate) readable: Vec<String>,
    pub(crate) writable: Vec<String>,
    pub(crate) multi_write: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Secondary {
    /// By R11, when something needs it.
    Derive,
    At(Endpoint),
    None,
}

#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) writable: bool,
}

#[derive(Debug)]
pub(crate) struct Retry {
    pub(crate) mode: RetryMode,
    pub(crate) max_retries: u32,
    pub(crate) delay: Duration,
    pub(crate) max_delay: Duration,
    pub(crate) jitter: Jitter,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) budget: Option<u32>,
    pub(crate) replay_all: bool,
    pub(crate) buffer: Option<u64>,
    pub(crate) body_idle: Option<Duration>,
    pub(crate) resume: bool,
    pub(crate) hedge: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct Breaker {
    pub(crate) streak: Option<u32>,
    pub(crate) rate: Option<Rate>,
    pub(crate) slow: Option<Slow>,
    pub(crate) open_for: Duration,
    pub(crate) max_open_for: Duration,
    pub(crate) open_for_calls: Option<u32>,
    pub(crate) suspect_after: Duration,
    pub(crate) jitter: Jitter,
    pub(crate) probes: u32,
    pub(crate) probe_deadline: Duration,
    pub(crate) close_after: u32,
    pub(crate) ramp: Vec<f64>,
    pub(crate) ramp_step: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) threshold: f64,
    pub(crate) window: Duration,
    pub(crate) minimum: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slow {
    pub(crate) after: Duration,
    pub(crate) rate: Rate,
}

/// What the wire does with one send.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) latency: Duration,
    pub(crate) what: What,
    /// The store does what was asked, whatever the answer says.
    pub(crate) applied: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Fault(Fault),
    Response {
        status: StatusCode,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Bytes,
        end: BodyEnd,
    },
}

/// A send that gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Connect,
    Dns,
    Tls,
    Reset,
    Hang,
}

/// How a response body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    Whole,
    CutAfter(usize),
    StallAfter(usize),
}

/// A request, or a series of them.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) at: Millis,
    /// The interval, and the end that is not part of it.
    pub(crate) every: Option<(Millis, Millis)>,
    pub(crate) service: usize,
    pub(crate) method: Method,
    /// As written in the file.
    pub(crate) path: String,
    /// `None` when the path is relative to the service's endpoint.
    pub(crate) absolute: Option<Uri>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    pub(crate) streaming: bool,
    pub(crate) options: RequestOptions,
    pub(crate) show: Vec<HeaderName>,
    pub(crate) cancel_after: Option<Duration>,
}

impl Request {
    /// How many operations the request makes.
    pub(crate) fn count(&self) -> u64 {
        match self.every {
            None => 1,
            Some((every, until)) => (until.0 - self.at.0).div_ceil(every.0),
        }
    }
}

/// What the caller says for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestOptions {
    pub(crate) replayable: bool,
    pub(crate) mode: Option<Mode>,
    /// The name of a region of the service.
    pub(crate) pin: Option<String>,
    /// The regions to leave out, instead of those that the service leaves out.
    pub(crate) excluded: Option<Vec<String>>,
}

/// What an operator does by hand.
#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) at: Millis,
    pub(crate) service: usize,
    pub(crate) deed: Deed,
}

/// Circuits of the writer where no region is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    ReadOnly,
    ReadWrite,
    Maintenance,
    EndMaintenance,
    ForceOpen(Option<String>),
    ForceClosed(Option<String>),
    Automatic(Option<String>),
    Reset(Option<String>),
    LocationMode(Mode),
}

/// What must hold of the result.
#[derive(Debug)]
pub(crate) struct Expect {
    pub(crate) at: String,
    pub(crate) wishes: Vec<Wish>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wish {
    Is(Value),
    IsNot(Value),
    AtLeast(f64),
    AtMost(f64),
    Contains(Value),
    Absent,
}

#[cfg(test)]
mod tests;
