//! The file as it is written: every key of the format, nothing filled in, nothing judged.
//!
//! A key that may be null is a [`Maybe`]; any other optional key is an `Option` that is only
//! `None` when the key is absent.

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::maybe::Maybe;
use super::millis::Millis;
use super::{Defaults, Jitter, Mode, RetryMode};

/// Reads a key that must have a value when it is there: `null` is not the same as absent.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Drill {
    #[serde(default, deserialize_with = "given")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "given")]
    pub(super) seed: Option<u64>,
    #[serde(default, deserialize_with = "given")]
    pub(super) defaults: Option<Defaults>,
    #[serde(default, deserialize_with = "given")]
    pub(super) start: Option<String>,
    pub(super) services: IndexMap<String, Service>,
    #[serde(default)]
    pub(super) hosts: IndexMap<String, Host>,
    #[serde(default)]
    pub(super) accounts: Maybe<IndexMap<String, Account>>,
    #[serde(default)]
    pub(super) stores: IndexMap<String, Store>,
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
    #[serde(default)]
    pub(super) requests: Vec<Request>,
    #[serde(default)]
    pub(super) operator: Vec<Act>,
    #[serde(default)]
    pub(super) expect: Vec<Expect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Provider {
    AzureStorage,
    Cosmos,
    Static,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ReadOnly {
    WhileOpen,
    Manual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WritesWhileReadOnly {
    Refuse,
    Defer,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Service {
    pub(super) provider: Provider,
    #[serde(default, deserialize_with = "given")]
    pub(super) endpoint: Option<String>,
    #[serde(default)]
    pub(super) secondary: Maybe<String>,
    #[serde(default, deserialize_with = "given")]
    pub(super) regions: Option<Vec<Region>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) location_mode: Option<Mode>,
    #[serde(default)]
    pub(super) share_state_with: Maybe<String>,
    #[serde(default)]
    pub(super) retry: Maybe<Retry>,
    #[serde(default)]
    pub(super) breaker: Maybe<Breaker>,
    #[serde(default, deserialize_with = "given")]
    pub(super) read_only: Option<ReadOnly>,
    #[serde(default, deserialize_with = "given")]
    pub(super) writes_while_read_only: Option<WritesWhileReadOnly>,
    #[serde(default)]
    pub(super) hedge: Maybe<Hedge>,
    #[serde(default)]
    pub(super) monitor: Maybe<Monitor>,
    #[serde(default)]
    pub(super) last_sync: Maybe<Poll>,
    #[serde(default)]
    pub(super) read_your_writes: Maybe<bool>,
    #[serde(default)]
    pub(super) max_staleness: Maybe<Millis>,
    // Keys of Cosmos accounts only.
    #[serde(default)]
    pub(super) preferred: Maybe<Vec<String>>,
    #[serde(default)]
    pub(super) excluded: Maybe<Vec<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) multi_write: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    pub(super) discovery: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    pub(super) refresh: Option<Millis>,
    #[serde(default)]
    pub(super) refresh_jitter: Maybe<String>,
    #[serde(default, deserialize_with = "given")]
    pub(super) mark_for: Option<Millis>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Region {
    pub(super) name: String,
    pub(super) endpoint: String,
    #[serde(default, deserialize_with = "given")]
    pub(super) writable: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Replay {
    Harmless,
    All,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Retry {
    #[serde(default, deserialize_with = "given")]
    pub(super) mode: Option<RetryMode>,
    #[serde(default, deserialize_with = "given")]
    pub(super) max_retries: Option<u32>,
    #[serde(default, deserialize_with = "given")]
    pub(super) delay: Option<Millis>,
    #[serde(default, deserialize_with = "given")]
    pub(super) max_delay: Option<Millis>,
    #[serde(default, deserialize_with = "given")]
    pub(super) jitter: Option<Jitter>,
    #[serde(default)]
    pub(super) attempt_timeout: Maybe<Millis>,
    #[serde(default)]
    pub(super) deadline: Maybe<Millis>,
    #[serde(default)]
    pub(super) budget: Maybe<Budget>,
    #[serde(default, deserialize_with = "given")]
    pub(super) replay: Option<Replay>,
    #[serde(default)]
    pub(super) buffer: Maybe<u64>,
    #[serde(default)]
    pub(super) body_idle: Maybe<Millis>,
    #[serde(default)]
    pub(super) resume: Maybe<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Budget {
    #[serde(default, deserialize_with = "given")]
    pub(super) capacity: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Breaker {
    #[serde(default)]
    pub(super) streak: Maybe<u32>,
    #[serde(default)]
    pub(super) rate: Maybe<Rate>,
    #[serde(default)]
    pub(super) slow: Maybe<Slow>,
    #[serde(default, deserialize_with = "given")]
    pub(super) open_for: Option<Millis>,
    #[serde(default, deserialize_with = "given")]
    pub(super) max_open_for: Option<Millis>,
    #[serde(default)]
    pub(super) open_for_calls: Maybe<u32>,
    #[serde(default, deserialize_with = "given")]
    pub(super) suspect_after: Option<Millis>,
    #[serde(default, deserialize_with = "given")]
    pub(super) jitter: Option<Jitter>,
    #[serde(default, deserialize_with = "given")]
    pub(super) probes: Option<u32>,
    #[serde(default, deserialize_with = "given")]
    pub(super) probe_deadline: Option<Millis>,
    #[serde(default, deserialize_with = "given")]
    pub(super) close_after: Option<u32>,
    #[serde(default)]
    pub(super) ramp: Maybe<Vec<f64>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) ramp_step: Option<Millis>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rate {
    #[serde(default, deserialize_with = "given")]
    pub(super) threshold: Option<f64>,
    #[serde(default, deserialize_with = "given")]
    pub(super) window: Option<Millis>,
    #[serde(default, deserialize_with = "given")]
    pub(super) minimum: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slow {
    pub(super) after: Millis,
    #[serde(default, deserialize_with = "given")]
    pub(super) threshold: Option<f64>,
    #[serde(default, deserialize_with = "given")]
    pub(super) window: Option<Millis>,
    #[serde(default, deserialize_with = "given")]
    pub(super) minimum: Option<u32>,
}

// The values of keys whose rules are not built are read, so that a typing error in them is
// told as such, and then refused by the table in `unsupported`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hedge {
    pub(super) after: Millis,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Monitor {
    #[serde(default, deserialize_with = "given")]
    pub(super) method: Option<String>,
    pub(super) path: String,
    pub(super) every: Millis,
    #[serde(default, deserialize_with = "given")]
    pub(super) timeout: Option<Millis>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Poll {
    pub(super) every: Millis,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Account {
    pub(super) readable: Vec<String>,
    pub(super) writable: Vec<String>,
    #[serde(default, deserialize_with = "given")]
    pub(super) multi_write: Option<bool>,
    #[serde(default)]
    pub(super) changes: Vec<AccountChange>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountChange {
    pub(super) at: Millis,
    #[serde(default, deserialize_with = "given")]
    pub(super) readable: Option<Vec<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) writable: Option<Vec<String>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) multi_write: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Store {
    #[serde(default, deserialize_with = "given")]
    pub(super) secondary_lag: Option<Millis>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    #[serde(default, deserialize_with = "given")]
    pub(super) answer: Option<Answer>,
    #[serde(default, deserialize_with = "given")]
    pub(super) latency: Option<Millis>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) host: String,
    #[serde(default)]
    pub(super) method: Maybe<String>,
    #[serde(default)]
    pub(super) path: Maybe<String>,
    #[serde(default)]
    pub(super) headers: IndexMap<String, String>,
    #[serde(default)]
    pub(super) from: Maybe<Millis>,
    #[serde(default)]
    pub(super) until: Maybe<Millis>,
    #[serde(default, deserialize_with = "given")]
    pub(super) rate: Option<f64>,
    pub(super) answers: Vec<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fault {
    Connect,
    Dns,
    Tls,
    Reset,
    Hang,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) status: Maybe<u16>,
    #[serde(default)]
    pub(super) fault: Maybe<Fault>,
    #[serde(default)]
    pub(super) times: Maybe<u64>,
    #[serde(default)]
    pub(super) headers: IndexMap<String, String>,
    #[serde(default)]
    pub(super) body: Maybe<String>,
    #[serde(default)]
    pub(super) latency: Maybe<Millis>,
    #[serde(default)]
    pub(super) cut_after: Maybe<usize>,
    #[serde(default)]
    pub(super) stall_after: Maybe<usize>,
    #[serde(default)]
    pub(super) applied: Maybe<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    #[serde(default, deserialize_with = "given")]
    pub(super) id: Option<String>,
    #[serde(default, deserialize_with = "given")]
    pub(super) at: Option<Millis>,
    #[serde(default)]
    pub(super) every: Maybe<Millis>,
    #[serde(default)]
    pub(super) until: Maybe<Millis>,
    pub(super) service: String,
    #[serde(default, deserialize_with = "given")]
    pub(super) method: Option<String>,
    pub(super) path: String,
    #[serde(default)]
    pub(super) headers: IndexMap<String, String>,
    #[serde(default)]
    pub(super) body: Maybe<String>,
    #[serde(default)]
    pub(super) streaming: Maybe<bool>,
    #[serde(default)]
    pub(super) replayable: Maybe<bool>,
    #[serde(default)]
    pub(super) location_mode: Maybe<Mode>,
    #[serde(default)]
    pub(super) pin: Maybe<String>,
    #[serde(default)]
    pub(super) excluded: Maybe<Vec<String>>,
    #[serde(default)]
    pub(super) show: Maybe<Vec<String>>,
    #[serde(default)]
    pub(super) cancel_after: Maybe<Millis>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Deed {
    ReadOnly,
    ReadWrite,
    Maintenance,
    EndMaintenance,
    ForceOpen,
    ForceClosed,
    Automatic,
    Reset,
    LocationMode,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Act {
    #[serde(default, deserialize_with = "given")]
    pub(super) at: Option<Millis>,
    pub(super) service: String,
    #[serde(rename = "do")]
    pub(super) deed: Deed,
    #[serde(default)]
    pub(super) region: Maybe<String>,
    #[serde(default)]
    pub(super) to: Maybe<Mode>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    pub(super) at: String,
    // `is: null` is a wish like any other, so these are not `Maybe`s.
    #[serde(default, deserialize_with = "given")]
    pub(super) is: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    pub(super) is_not: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    pub(super) at_least: Option<f64>,
    #[serde(default, deserialize_with = "given")]
    pub(super) at_most: Option<f64>,
    #[serde(default, deserialize_with = "given")]
    pub(super) contains: Option<Value>,
    #[serde(default)]
    pub(super) absent: Maybe<bool>,
}
