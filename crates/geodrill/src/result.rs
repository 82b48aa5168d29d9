//! The result of a drill as JSON, field by field as the format has it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use indexmap::IndexMap;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::expect::{self, Checked};
use crate::format::Fault;
use crate::run::Report;
use crate::stack::Info;
use crate::stage::{Event, OperationRecord, Outcome, Reply, Seen, SendKind, SendRecord};

/// A result, to be serialised.
#[derive(Serialize)]
pub(crate) struct Output<'a> {
    name: &'a str,
    seed: u64,
    operations: Operations<'a>,
    events: Vec<EventOut<'a>>,
    background: Vec<SendOut<'a>>,
    pub(crate) summary: Summary<'a>,
    warnings: &'a [String],
    expect: &'a [Checked],
}

/// The numbers of a whole drill.
#[derive(Serialize)]
pub(crate) struct Summary<'a> {
    pub(crate) operations: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) deferred: u64,
    pub(crate) cancelled: u64,
    /// By the names of regions, over all services.
    pub(crate) sends: IndexMap<&'a str, u64>,
    pub(crate) amplification: f64,
    pub(crate) p50_ms: u64,
    pub(crate) p99_ms: u64,
    pub(crate) max_ms: u64,
}

impl<'a> Summary<'a> {
    pub(crate) fn of(report: &'a Report) -> Self {
        let seen = &report.seen;
        let mut sends = IndexMap::new();
        for (service, (info, counts)) in report.services.iter().zip(&seen.sends).enumerate() {
            for index in report.shown(service) {
                *sends.entry(info.regions[index].as_str()).or_insert(0) +=
                    counts.get(index).copied().unwrap_or(0);
            }
        }
        let counts = seen.counts;
        Self {
            operations: counts.operations,
            succeeded: counts.succeeded,
            failed: counts.failed,
            refused: counts.refused,
            deferred: counts.deferred,
            cancelled: counts.cancelled,
            sends,
            amplification: amplification(seen),
            p50_ms: percentile(&seen.latencies, 50),
            p99_ms: percentile(&seen.latencies, 99),
            max_ms: seen.latencies.keys().next_back().copied().unwrap_or(0),
        }
    }
}

/// Sends per operation, refused ones included, to three places; 1 where nothing was asked.
fn amplification(seen: &Seen) -> f64 {
    let operations = seen.counts.operations;
    if operations == 0 {
        return 1.0;
    }
    let background: usize = seen
        .background
        .iter()
        .map(|(.., sends)| sends.lock().list.len())
        .sum();
    let sends = seen.sends_in_all.saturating_sub(background as u64);
    #[expect(clippy::cast_precision_loss, reason = "to three places")]
    let ratio = sends as f64 / operations as f64;
    (ratio * 1_000.0).round() / 1_000.0
}

/// The smallest latency that so many percent of operations do not exceed.
fn percentile(latencies: &BTreeMap<u64, u64>, percent: u64) -> u64 {
    let all: u64 = latencies.values().sum();
    let rank = (all * percent).div_ceil(100);
    let mut below = 0;
    latencies
        .iter()
        .find(|(_, count)| {
            below += **count;
            below >= rank
        })
        .map_or(0, |(latency, _)| *latency)
}

impl<'a> Output<'a> {
    pub(crate) fn new(report: &'a Report, expect: &'a [Checked]) -> Self {
        let seen = &report.seen;
        Self {
            name: &report.name,
            seed: report.seed,
            operations: Operations(report),
            events: seen
                .events
                .iter()
                .map(|record| EventOut::new(record, &report.services[record.service]))
                .collect(),
            background: background(report),
            summary: Summary::of(report),
            warnings: &seen.warnings,
            expect,
        }
    }
}

impl Output<'_> {
    /// One key of the result as a value.
    fn part(&self, name: &str) -> Result<Option<Value>, serde_json::Error> {
        Ok(Some(match name {
            "name" => serde_json::to_value(self.name)?,
            "seed" => serde_json::to_value(self.seed)?,
            "operations" => serde_json::to_value(&self.operations)?,
            "events" => serde_json::to_value(&self.events)?,
            "background" => serde_json::to_value(&self.background)?,
            "summary" => serde_json::to_value(&self.summary)?,
            "warnings" => serde_json::to_value(self.warnings)?,
            "expect" => serde_json::to_value(self.expect)?,
            _ => return Ok(None),
        }))
    }
}

/// Sends that belong to no operation, in the order in which they left.
fn background(report: &Report) -> Vec<SendOut<'_>> {
    let mut list: Vec<SendOut<'_>> = Vec::new();
    for (service, purpose, sends) in &report.seen.background {
        let info = &report.services[*service];
        for record in &sends.lock().list {
            let mut send = SendOut::new(Cow::Owned(record.clone()), record.kind, info);
            send.of = Some((&info.name, purpose));
            list.push(send);
        }
    }
    list.sort_by_key(|send| send.record.at_ms);
    list
}

/// Operations are made one at a time while they are written: there may be a million.
struct Operations<'a>(&'a Report);

impl Serialize for Operations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = self.0;
        let mut list = serializer.serialize_seq(None)?;
        for record in report.seen.operations.iter().flatten() {
            list.serialize_element(&OperationOut { record, report })?;
        }
        list.end()
    }
}

struct OperationOut<'a> {
    record: &'a OperationRecord,
    report: &'a Report,
}

impl Serialize for OperationOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = self.record;
        let request = &self.report.requests[record.request];
        let info = &self.report.services[request.service];
        let sends = record.sends.lock();
        let mut map = serializer.serialize_map(None)?;
        match record.repetition {
            None => map.serialize_entry("id", &request.id)?,
            Some(number) => map.serialize_entry("id", &format!("{}#{number}", request.id))?,
        }
        map.serialize_entry("service", &info.name)?;
        map.serialize_entry("method", request.method.as_str())?;
        map.serialize_entry("path", &request.path)?;
        map.serialize_entry("at_ms", &record.at_ms)?;
        map.serialize_entry("done_ms", &record.done_ms)?;
        let list: Vec<SendOut<'_>> = kinds(&sends.list)
            .zip(&sends.list)
            .map(|(kind, send)| SendOut::new(Cow::Borrowed(send), Some(kind), info))
            .collect();
        map.serialize_entry("sends", &list)?;
        map.serialize_entry("result", &OutcomeOut(&record.outcome, info))?;
        if let Some(freshness) = record.freshness {
            map.serialize_entry("freshness", freshness)?;
        }
        map.end()
    }
}

/// Why each send was made. The layers say so where there was more than one (E1); an operation
/// that was dropped by its caller leaves no trail, so there the order of regions has to do.
pub(crate) fn kinds(sends: &[SendRecord]) -> impl Iterator<Item = SendKind> {
    sends.iter().enumerate().map(|(index, send)| {
        let seen_before = || {
            sends[..index]
                .iter()
                .any(|other| other.region == send.region)
        };
        send.kind.unwrap_or_else(|| match index {
            0 => SendKind::First,
            _ if seen_before() => SendKind::Retry,
            _ => SendKind::FallOver,
        })
    })
}

struct OutcomeOut<'a>(&'a Outcome, &'a Info);

impl Serialize for OutcomeOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            Outcome::Answer {
                status,
                region,
                body,
                body_error,
                after_ambiguous,
                ..
            } => {
                map.serialize_entry("status", status)?;
                map.serialize_entry("region", &region_name(*region, self.1))?;
                map.serialize_entry("body", body)?;
                if let Some(error) = body_error {
                    map.serialize_entry("body_error", error)?;
                }
                if *after_ambiguous {
                    map.serialize_entry("after_ambiguous", &true)?;
                }
            }
            Outcome::Error { kind, message } => {
                map.serialize_entry("error", kind)?;
                map.serialize_entry("message", message)?;
            }
            Outcome::Cancelled => map.serialize_entry("cancelled", &true)?,
        }
        map.end()
    }
}

fn region_name(region: Option<usize>, info: &Info) -> Option<&str> {
    region
        .and_then(|index| info.regions.get(index))
        .map(String::as_str)
}

struct SendOut<'a> {
    record: Cow<'a, SendRecord>,
    kind: Option<SendKind>,
    info: &'a Info,
    /// The service and the purpose, of a send in the background.
    of: Option<(&'a str, &'a str)>,
}

impl<'a> SendOut<'a> {
    const fn new(record: Cow<'a, SendRecord>, kind: Option<SendKind>, info: &'a Info) -> Self {
        Self {
            record,
            kind,
            info,
            of: None,
        }
    }
}

impl Serialize for SendOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = &*self.record;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at_ms", &record.at_ms)?;
        if let Some((service, purpose)) = self.of {
            map.serialize_entry("service", service)?;
            map.serialize_entry("purpose", purpose)?;
        }
        if let Some(kind) = self.kind {
            map.serialize_entry("kind", kind.as_str())?;
        }
        map.serialize_entry("region", &region_name(record.region, self.info))?;
        map.serialize_entry("host", &record.host)?;
        map.serialize_entry("path", &record.path)?;
        match record.reply {
            Some(Reply::Status { code, .. }) => map.serialize_entry("answer", &code)?,
            Some(reply) => map.serialize_entry("answer", reply_word(reply))?,
            None => map.serialize_entry("answer", "cancelled")?,
        }
        map.serialize_entry("took_ms", &record.took_ms)?;
        if record.probe {
            map.serialize_entry("probe", &true)?;
        }
        if !record.headers.is_empty() {
            let headers: IndexMap<&str, &str> = record
                .headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            map.serialize_entry("headers", &headers)?;
        }
        map.end()
    }
}

const fn reply_word(reply: Reply) -> &'static str {
    match reply {
        Reply::Fault(Fault::Connect) => "connect",
        Reply::Fault(Fault::Dns) => "dns",
        Reply::Fault(Fault::Tls) => "tls",
        Reply::Fault(Fault::Reset) => "reset",
        Reply::Timeout | Reply::Fault(Fault::Hang) => "timeout",
        Reply::Cut => "cut",
        Reply::Stall => "stall",
        Reply::Cancelled => "cancelled",
        Reply::Status { .. } => "status",
    }
}

impl SendKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::FallOver => "fall-over",
            Self::Retry => "retry",
            Self::Hedge => "hedge",
            Self::Resume => "resume",
        }
    }
}

/// An event; what it is about decides which keys it has.
#[derive(Serialize)]
struct EventOut<'a> {
    at_ms: u64,
    service: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'a str>,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    circuit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'static str>,
    to: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
}

impl<'a> EventOut<'a> {
    fn new(record: &crate::stage::EventRecord, info: &'a Info) -> Self {
        let (event, circuit, from, to, why) = match record.event {
            Event::Breaker {
                circuit,
                from,
                to,
                why,
            } => ("breaker", Some(circuit), Some(from), to, Some(why)),
            Event::Gate { to, why } => ("gate", None, None, to, Some(why)),
            Event::Secondary { to } => ("secondary", None, None, to, None),
        };
        Self {
            at_ms: record.at_ms,
            service: &info.name,
            region: region_name(record.region, info),
            event,
            circuit,
            from,
            to,
            why,
        }
    }
}

/// What the pointer of each `expect` leads to.
///
/// Only what the pointers name becomes a value, and operations do one at a time: a result may be
/// large, and is not to be in memory twice.
pub(crate) fn found(report: &Report) -> Result<Vec<Vec<Value>>, serde_json::Error> {
    let pointers: Vec<Vec<String>> = report
        .expect
        .iter()
        .map(|expect| expect::steps(&expect.at))
        .collect();
    let mut found = vec![Vec::new(); pointers.len()];
    let output = Output::new(report, &[]);
    let mut parts: HashMap<&str, Value> = HashMap::new();
    for (steps, found) in pointers.iter().zip(&mut found) {
        match steps.first().map(String::as_str) {
            // Everything is asked for, so everything it is.
            None | Some("*") => expect::follow(&serde_json::to_value(&output)?, steps, found),
            Some("operations") if steps.len() > 1 => {}
            Some(name) => {
                if !parts.contains_key(name)
                    && let Some(part) = output.part(name)?
                {
                    parts.insert(name, part);
                }
                if let Some(part) = parts.get(name) {
                    expect::follow(part, &steps[1..], found);
                }
            }
        }
    }
    for (index, record) in report.seen.operations.iter().flatten().enumerate() {
        let mut value = None;
        for (steps, found) in pointers.iter().zip(&mut found) {
            let asked = match steps.as_slice() {
                [first, which, ..] if first == "operations" => {
                    which == "*" || which.parse() == Ok(index)
                }
                _ => false,
            };
            if !asked {
                continue;
            }
            let value = match &mut value {
                Some(value) => value,
                none => none.insert(serde_json::to_value(OperationOut { record, report })?),
            };
            expect::follow(value, &steps[2..], found);
        }
    }
    Ok(found)
}
