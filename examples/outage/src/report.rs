//! The table at the end, and the same as JSON.

use std::fmt::{self, Write as _};
use std::time::Duration;

use serde::Serialize;
use tower_geo::{Circuit, CircuitPhase, GateStatus};

use crate::load::{End, Op, WriteEnd};
use crate::options::Options;
use crate::story::{self, Standing};

/// So many reasons of failed operations are shown.
const SHOWN_FAULTS: usize = 5;

/// Operations by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// Reads that the primary answered.
    pub(crate) reads_primary: u64,
    /// Reads that the secondary answered.
    pub(crate) reads_secondary: u64,
    /// Reads that were not answered, or wrongly.
    pub(crate) reads_failed: u64,
    /// Writes that were acknowledged.
    pub(crate) stored: u64,
    /// Writes that the gate refused; nothing was sent.
    pub(crate) refused: u64,
    /// Writes that were tried and surely did not arrive.
    pub(crate) not_sent: u64,
    /// Writes whose callers were told that their fate is unknown.
    pub(crate) unknown: u64,
    /// Writes that ended in any other way.
    pub(crate) unexpected: u64,
    /// Requests that left for the wire.
    pub(crate) sends: u64,
}

impl Counts {
    pub(crate) fn of<'a>(ops: impl IntoIterator<Item = &'a Op>) -> Self {
        let mut counts = Self::default();
        for op in ops {
            let count = match &op.end {
                End::Read {
                    from_secondary: false,
                } => &mut counts.reads_primary,
                End::Read {
                    from_secondary: true,
                } => &mut counts.reads_secondary,
                End::ReadFailed { .. } => &mut counts.reads_failed,
                End::Write { end, .. } => match end {
                    WriteEnd::Stored => &mut counts.stored,
                    WriteEnd::Refused => &mut counts.refused,
                    WriteEnd::NotSent => &mut counts.not_sent,
                    WriteEnd::Unknown => &mut counts.unknown,
                    WriteEnd::Unexpected { .. } => &mut counts.unexpected,
                },
            };
            *count += 1;
            counts.sends += u64::try_from(op.sends).unwrap_or(u64::MAX);
        }
        counts
    }

    /// Counts these too.
    pub(crate) const fn add(&mut self, more: &Self) {
        self.reads_primary += more.reads_primary;
        self.reads_secondary += more.reads_secondary;
        self.reads_failed += more.reads_failed;
        self.stored += more.stored;
        self.refused += more.refused;
        self.not_sent += more.not_sent;
        self.unknown += more.unknown;
        self.unexpected += more.unexpected;
        self.sends += more.sends;
    }

    pub(crate) const fn reads(&self) -> u64 {
        self.reads_primary + self.reads_secondary + self.reads_failed
    }

    pub(crate) const fn writes(&self) -> u64 {
        self.stored + self.refused + self.not_sent + self.unknown + self.unexpected
    }

    pub(crate) const fn operations(&self) -> u64 {
        self.reads() + self.writes()
    }

    /// Sends for each operation; none where there was no operation.
    #[expect(
        clippy::cast_precision_loss,
        reason = "for people; exact up to 2^52 operations"
    )]
    fn sends_per_operation(&self) -> Option<f64> {
        (self.operations() > 0).then(|| self.sends as f64 / self.operations() as f64)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "reads: {:>3} primary {:>3} secondary {:>2} failed | writes: {:>3} stored {:>3} refused",
            self.reads_primary, self.reads_secondary, self.reads_failed, self.stored, self.refused,
        )?;
        for (number, what) in [
            (self.not_sent, "not sent"),
            (self.unknown, "unknown"),
            (self.unexpected, "UNEXPECTED"),
        ] {
            if number > 0 {
                write!(f, " {number:>3} {what}")?;
            }
        }
        Ok(())
    }
}

/// When what turned, from the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    /// The primary was taken away; later than everything until it is.
    pub(crate) gone: Duration,
    /// It was brought back.
    pub(crate) back: Duration,
    /// One of its circuits opened before that, without a reason.
    pub(crate) opened_before: bool,
    /// Its circuit of reads opened: from here on reads start at the secondary.
    pub(crate) reads_switched: Option<Duration>,
    /// The gate began to refuse writes.
    pub(crate) read_only: Option<Duration>,
    /// After the return: the circuit of reads closed.
    pub(crate) reads_closed: Option<Duration>,
    /// After the return: the gate opened.
    pub(crate) writes_back: Option<Duration>,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            gone: Duration::MAX,
            back: Duration::MAX,
            opened_before: false,
            reads_switched: None,
            read_only: None,
            reads_closed: None,
            writes_back: None,
        }
    }
}

impl Moments {
    /// A circuit of the primary changed.
    pub(crate) fn circuit_turned(&mut self, at: Duration, circuit: Circuit, to: CircuitPhase) {
        match (circuit, to) {
            (_, CircuitPhase::Open) if at < self.gone => self.opened_before = true,
            (Circuit::Reads, CircuitPhase::Open) => {
                self.reads_switched.get_or_insert(at);
                self.reads_closed = None;
            }
            (Circuit::Reads, CircuitPhase::Closed) => self.reads_closed = Some(at),
            _ => {}
        }
    }

    /// The gate changed.
    pub(crate) fn gate_turned(&mut self, at: Duration, to: GateStatus) {
        match to {
            GateStatus::ReadOnly if at >= self.gone => {
                self.read_only.get_or_insert(at);
                self.writes_back = None;
            }
            GateStatus::ReadWrite => self.writes_back = Some(at),
            _ => {}
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Happened {
    at_ms: f64,
    what: String,
}

impl Happened {
    pub(crate) fn new(at: Duration, what: String) -> Self {
        Self {
            at_ms: millis(at),
            what,
        }
    }
}

/// A claim, and whether it is so.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    claim: &'static str,
    holds: bool,
    found: String,
}

impl Check {
    pub(crate) const fn new(claim: &'static str, holds: bool, found: String) -> Self {
        Self {
            claim,
            holds,
            found,
        }
    }

    pub(crate) const fn holds(&self) -> bool {
        self.holds
    }

    #[cfg(test)]
    pub(crate) const fn claim(&self) -> &'static str {
        self.claim
    }
}

/// A part of the story and what became of the operations that began in it.
#[derive(Clone, Debug, Serialize)]
struct Phase {
    name: &'static str,
    from_ms: f64,
    #[serde(flatten)]
    counts: Counts,
    sends_per_operation: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct Times {
    /// From the loss to the moment from which reads start at the secondary.
    to_switch_ms: Option<f64>,
    /// From the loss to the moment from which writes are refused.
    to_read_only_ms: Option<f64>,
    /// From the return to the first write that is taken again.
    to_return_writes_ms: Option<f64>,
    /// From the return to the last read that the secondary answered.
    to_return_reads_ms: Option<f64>,
    /// The longest that a caller waited for a read.
    slowest_read_ms: Option<f64>,
    /// Half of the refused writes were told sooner.
    refusal_median_ms: Option<f64>,
}

/// Everything that is told at the end.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    holds: bool,
    regions: &'static str,
    failure: &'static str,
    rate: u32,
    duration_ms: f64,
    outage_ms: f64,
    operations: u64,
    failed_reads: u64,
    refused_writes: u64,
    sends_per_operation: Option<f64>,
    requests_at_primary: u64,
    requests_at_secondary: u64,
    writes_at_secondary: u64,
    times: Times,
    phases: Vec<Phase>,
    checks: Vec<Check>,
    faults: Vec<String>,
    events: Vec<Happened>,
}

impl Report {
    pub(crate) fn new(
        options: &Options,
        regions: &'static str,
        moments: Moments,
        events: Vec<Happened>,
        ops: &[Op],
        standing: &Standing,
    ) -> Self {
        let all = Counts::of(ops);
        let checks = story::checks(ops, &moments, standing);
        Self {
            holds: checks.iter().all(Check::holds),
            regions,
            failure: options.failure.as_str(),
            rate: options.rate,
            duration_ms: millis(options.duration),
            outage_ms: millis(options.outage),
            operations: all.operations(),
            failed_reads: all.reads_failed,
            refused_writes: all.refused,
            sends_per_operation: all.sends_per_operation(),
            requests_at_primary: standing.arrived.at_primary,
            requests_at_secondary: standing.arrived.at_secondary,
            writes_at_secondary: standing.arrived.writes_at_secondary,
            times: times(ops, &moments),
            phases: phases(ops, &moments),
            checks,
            faults: faults(ops),
            events,
        }
    }

    /// Whether every claim is so.
    pub(crate) const fn holds(&self) -> bool {
        self.holds
    }

    /// One object.
    pub(crate) fn to_json(&self) -> String {
        // Plain structs of numbers and texts: there is nothing in them that JSON cannot hold.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// For people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a `String` does not fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "\n{:<22}{:>7}{:>9}{:>10}{:>8}{:>8}{:>9}{:>10}{:>9}{:>11}",
            "", "", "reads", "", "", "writes", "", "", "", "sends per"
        )?;
        writeln!(
            out,
            "{:<22}{:>7}{:>9}{:>10}{:>8}{:>8}{:>9}{:>10}{:>9}{:>11}",
            "phase",
            "from s",
            "primary",
            "secondary",
            "failed",
            "stored",
            "refused",
            "not sent",
            "unknown",
            "operation"
        )?;
        for phase in &self.phases {
            let counts = &phase.counts;
            writeln!(
                out,
                "{:<22}{:>7.2}{:>9}{:>10}{:>8}{:>8}{:>9}{:>10}{:>9}{:>11}",
                phase.name,
                phase.from_ms / 1000.0,
                counts.reads_primary,
                counts.reads_secondary,
                counts.reads_failed,
                counts.stored,
                counts.refused,
                counts.not_sent,
                counts.unknown,
                phase
                    .sends_per_operation
                    .map_or_else(|| "–".to_owned(), |sends| format!("{sends:.2}"))
            )?;
        }
        writeln!(out)?;
        let times = &self.times;
        for (what, value) in [
            ("operations", self.operations.to_string()),
            ("failed reads", self.failed_reads.to_string()),
            ("refused writes", self.refused_writes.to_string()),
            ("time to switch: reads", show(times.to_switch_ms)),
            ("time to switch: writes", show(times.to_read_only_ms)),
            ("time to return: writes", show(times.to_return_writes_ms)),
            ("time to return: reads", show(times.to_return_reads_ms)),
            ("slowest read", show(times.slowest_read_ms)),
            ("refusal, median", show(times.refusal_median_ms)),
            (
                "sends per operation",
                self.sends_per_operation
                    .map_or_else(|| "–".to_owned(), |sends| format!("{sends:.3}")),
            ),
            ("requests at primary", self.requests_at_primary.to_string()),
            (
                "requests at secondary",
                self.requests_at_secondary.to_string(),
            ),
        ] {
            writeln!(out, "{what:<24}{value:>14}")?;
        }
        writeln!(out)?;
        for check in &self.checks {
            let mark = if check.holds { "✓" } else { "✗" };
            writeln!(out, "{mark} {} ({})", check.claim, check.found)?;
        }
        for fault in &self.faults {
            writeln!(out, "  {fault}")?;
        }
        write!(
            out,
            "\n{}",
            if self.holds {
                "The story holds."
            } else {
                "THE STORY DOES NOT HOLD."
            }
        )
    }
}

fn phases(ops: &[Op], moments: &Moments) -> Vec<Phase> {
    let switched = moments
        .reads_switched
        .max(moments.read_only)
        .unwrap_or(moments.back)
        .clamp(moments.gone, moments.back);
    let returned = moments
        .back
        .max(moments.writes_back.unwrap_or(moments.back))
        .max(last_from_secondary(ops).unwrap_or(moments.back));
    let starts = [
        ("all is well", Duration::ZERO),
        ("primary gone: switching", moments.gone),
        ("primary gone", switched),
        ("primary back: returning", moments.back),
        ("all is back", returned),
    ];
    let ends = starts.iter().skip(1).map(|(_, at)| *at);
    starts
        .iter()
        .zip(ends.chain([Duration::MAX]))
        .map(|((name, from), to)| {
            let within = |op: &&Op| *from <= op.at && op.at < to;
            let counts = Counts::of(ops.iter().filter(within));
            Phase {
                name,
                from_ms: millis(*from),
                counts,
                sends_per_operation: counts.sends_per_operation(),
            }
        })
        .collect()
}

fn times(ops: &[Op], moments: &Moments) -> Times {
    let since = |from: Duration, to: Option<Duration>| to.map(|to| millis(to.saturating_sub(from)));
    let is_read = |op: &&Op| !matches!(op.end, End::Write { .. });
    let mut refusals: Vec<_> = ops
        .iter()
        .filter(|op| {
            matches!(
                &op.end,
                End::Write {
                    end: WriteEnd::Refused,
                    ..
                }
            )
        })
        .map(|op| op.took)
        .collect();
    refusals.sort_unstable();
    Times {
        to_switch_ms: since(moments.gone, moments.reads_switched),
        to_read_only_ms: since(moments.gone, moments.read_only),
        to_return_writes_ms: since(moments.back, moments.writes_back),
        to_return_reads_ms: moments
            .reads_closed
            .and_then(|_| since(moments.back, last_from_secondary(ops))),
        slowest_read_ms: ops
            .iter()
            .filter(is_read)
            .map(|op| millis(op.took))
            .reduce(f64::max),
        refusal_median_ms: refusals.get(refusals.len() / 2).copied().map(millis),
    }
}

/// When the last read ended that the secondary answered.
fn last_from_secondary(ops: &[Op]) -> Option<Duration> {
    ops.iter()
        .filter(|op| {
            matches!(
                op.end,
                End::Read {
                    from_secondary: true
                }
            )
        })
        .map(|op| op.at + op.took)
        .max()
}

/// The first few operations that ended as none should.
fn faults(ops: &[Op]) -> Vec<String> {
    ops.iter()
        .filter_map(|op| match &op.end {
            End::ReadFailed { why } => Some((op.at, "read", why)),
            End::Write {
                end: WriteEnd::Unexpected { why },
                ..
            } => Some((op.at, "write", why)),
            _ => None,
        })
        .take(SHOWN_FAULTS)
        .map(|(at, what, why)| format!("{:.3} s: {what}: {why}", at.as_secs_f64()))
        .collect()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn show(millis: Option<f64>) -> String {
    match millis {
        None => "–".to_owned(),
        Some(millis) if millis < 1.0 => format!("{:.0} µs", millis * 1000.0),
        Some(millis) => format!("{millis:.0} ms"),
    }
}
