//! The table at the end, and the same as JSON.

use std::fmt::{self, Write as _};
use std::time::Duration;

use serde::Serialize;

use crate::account::Region;
use crate::load::{End, Kind, Op};
use crate::options::Options;
use crate::story::{Claim, Moments};

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Happened {
    at_ms: u128,
    what: String,
}

impl Happened {
    pub(crate) const fn new(at: Duration, what: String) -> Self {
        Self {
            at_ms: at.as_millis(),
            what,
        }
    }
}

/// Operations of one kind by who answered them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    east: u64,
    west: u64,
    central: u64,
    unknown: u64,
    failed: u64,
}

impl Counts {
    fn of<'a>(ops: impl Iterator<Item = &'a Op>) -> Self {
        let mut counts = Self::default();
        for op in ops {
            *match op.end {
                End::Done(Region::East) => &mut counts.east,
                End::Done(Region::West) => &mut counts.west,
                End::Done(Region::Central) => &mut counts.central,
                End::Unknown => &mut counts.unknown,
                End::Failed { .. } => &mut counts.failed,
            } += 1;
        }
        counts
    }
}

/// A part of the story, and the operations that began in it.
#[derive(Clone, Debug, Serialize)]
struct Phase {
    name: &'static str,
    from_ms: u128,
    reads: Counts,
    writes: Counts,
}

/// Everything that is told at the end.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    holds: bool,
    duration_ms: u128,
    rate: u32,
    operations: usize,
    slowest_ms: u128,
    phases: Vec<Phase>,
    claims: Vec<Claim>,
    events: Vec<Happened>,
}

impl Report {
    pub(crate) fn new(
        options: &Options,
        moments: &Moments,
        ops: &[Op],
        claims: Vec<Claim>,
        events: Vec<Happened>,
    ) -> Self {
        Self {
            holds: claims.iter().all(|claim| claim.holds),
            duration_ms: options.duration.as_millis(),
            rate: options.rate,
            operations: ops.len(),
            slowest_ms: ops.iter().map(|op| op.took.as_millis()).max().unwrap_or(0),
            phases: phases(ops, moments),
            claims,
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
            "\n{:<26}{:>8}{:>8}{:>23}{:>30}",
            "", "", "", "reads answered by", "writes taken by"
        )?;
        write!(out, "{:<26}{:>8}", "", "from s")?;
        for _ in 0..2 {
            write!(
                out,
                "   {:>6}{:>6}{:>9}{:>8}",
                "East", "West", "Central", "failed"
            )?;
        }
        writeln!(out, "{:>9}", "unknown")?;
        for phase in &self.phases {
            #[expect(clippy::cast_precision_loss, reason = "for people")]
            let from = phase.from_ms as f64 / 1000.0;
            write!(out, "{:<26}{from:>8.2}", phase.name)?;
            for counts in [&phase.reads, &phase.writes] {
                let Counts {
                    east,
                    west,
                    central,
                    failed,
                    ..
                } = counts;
                write!(out, "   {east:>6}{west:>6}{central:>9}{failed:>8}")?;
            }
            writeln!(out, "{:>9}", phase.writes.unknown)?;
        }
        writeln!(
            out,
            "\n{} operations; the slowest took {} ms\n",
            self.operations, self.slowest_ms
        )?;
        for claim in &self.claims {
            let mark = if claim.holds { "✓" } else { "✗" };
            writeln!(out, "{mark} {} ({})", claim.claim, claim.found)?;
        }
        write!(
            out,
            "\n{}",
            if self.holds {
                "Every claim holds."
            } else {
                "NOT EVERY CLAIM HOLDS."
            }
        )
    }
}

fn phases(ops: &[Op], moments: &Moments) -> Vec<Phase> {
    let starts = [
        ("East writes, West reads", Duration::ZERO),
        ("West leaves", moments.leaves),
        ("West has left", moments.has_left),
        ("Central joins", moments.joins),
        ("the writer moves", moments.moves),
        ("Central writes", moments.has_moved),
        ("Central is lost", moments.lost),
    ];
    let ends = starts.iter().skip(1).map(|(_, at)| *at);
    starts
        .iter()
        .zip(ends.chain([Duration::MAX]))
        .map(|((name, from), to)| {
            let within = |op: &&Op| *from <= op.at && op.at < to;
            let of = |kind: Kind| {
                Counts::of(ops.iter().filter(within).filter(move |op| op.kind == kind))
            };
            Phase {
                name,
                from_ms: from.as_millis(),
                reads: of(Kind::Read),
                writes: of(Kind::Write),
            }
        })
        .collect()
}
