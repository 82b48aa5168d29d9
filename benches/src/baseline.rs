//! What our rows took when it was last agreed on, and whether they have grown.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use tower_geo_benches::margin::{self, is_more};

use crate::measure::Measured;
use crate::row::OURS;

/// The committed file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Baseline {
    /// Instructions are those of a compiler for a target.
    rustc: String,
    target: String,
    rows: Vec<Line>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    row: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocations: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<i64>,
}

/// What a comparison has to say.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Each a reason to fail.
    pub(crate) grown: Vec<String>,
    /// Each worth knowing.
    pub(crate) notes: Vec<String>,
    pub(crate) compared: usize,
}

impl Baseline {
    /// Of our own rows among these.
    pub(crate) fn of(rows: &[Measured]) -> Self {
        let line = |row: &Measured| Line {
            row: row.row.clone(),
            instructions: row.instructions,
            allocations: row.allocations,
            bytes: row.bytes,
        };
        Self {
            rustc: crate::RUSTC.to_owned(),
            target: crate::TARGET.to_owned(),
            rows: ours(rows).map(line).collect(),
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("not a baseline: {error}"))
    }

    pub(crate) fn to_json(&self) -> Result<String, String> {
        let json = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        Ok(json + "\n")
    }

    /// Compares what was measured now.
    pub(crate) fn compare(&self, rows: &[Measured]) -> Verdict {
        let mut verdict = Verdict::default();
        let same_compiler = self.rustc == crate::RUSTC && self.target == crate::TARGET;
        if !same_compiler {
            verdict.notes.push(format!(
                "instructions are not compared: the baseline is that of rustc {} for {}, \
                 this is {} for {}",
                self.rustc,
                self.target,
                crate::RUSTC,
                crate::TARGET
            ));
        }
        for line in &self.rows {
            let Some(now) = ours(rows).find(|row| row.row == line.row) else {
                let gone = format!("{}: is in the baseline, and was not measured", line.row);
                verdict.grown.push(gone);
                continue;
            };
            verdict.compared += 1;
            if same_compiler {
                line.compare_instructions(now, &mut verdict);
            }
            line.compare_heap(now, &mut verdict);
        }
        for row in ours(rows) {
            if !self.rows.iter().any(|line| line.row == row.row) {
                let new = format!("{}: is not in the baseline", row.row);
                verdict.grown.push(new);
            }
        }
        verdict
    }
}

impl Line {
    fn compare_instructions(&self, now: &Measured, verdict: &mut Verdict) {
        let (Some(before), Some(after)) = (self.instructions, now.instructions) else {
            return;
        };
        if is_more(before, after, margin::OURS) {
            let grown = format!("{}: {before} instructions, now {after}", self.row);
            verdict.grown.push(grown);
        } else if is_more(after, before, margin::OURS) {
            verdict.notes.push(format!(
                "{}: {before} instructions, now only {after}: lower the baseline",
                self.row
            ));
        }
    }

    fn compare_heap(&self, now: &Measured, verdict: &mut Verdict) {
        if let (Some(before), Some(after)) = (self.allocations, now.allocations)
            && after > before
        {
            let grown = format!("{}: {before} allocations, now {after}", self.row);
            verdict.grown.push(grown);
        }
        if let (Some(before), Some(after)) = (self.bytes, now.bytes)
            && after > before
        {
            let grown = format!("{}: {before} bytes, now {after}", self.row);
            verdict.grown.push(grown);
        }
    }
}

fn ours(rows: &[Measured]) -> impl Iterator<Item = &Measured> {
    rows.iter().filter(|row| {
        row.who == OURS
            && (row.instructions.is_some() || row.allocations.is_some() || row.bytes.is_some())
    })
}

impl Verdict {
    pub(crate) fn text(&self, file: &str) -> String {
        let mut text = String::new();
        for note in &self.notes {
            // Writing to a string does not fail.
            _ = writeln!(text, "note: {note}");
        }
        for grown in &self.grown {
            _ = writeln!(text, "grown: {grown}");
        }
        let count = self.grown.len();
        _ = if count == 0 {
            writeln!(text, "{} rows are no more than in {file}", self.compared)
        } else {
            writeln!(
                text,
                "{count} differ from {file}; if that is meant: scripts/bench baseline"
            )
        };
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(instructions: u64, allocations: u64) -> Measured {
        Measured {
            row: "stack/trivial".to_owned(),
            who: OURS.to_owned(),
            instructions: Some(instructions),
            allocations: Some(allocations),
            ..Measured::default()
        }
    }

    fn compare(before: Measured, after: Measured) -> Verdict {
        Baseline::of(&[before]).compare(&[after])
    }

    #[test]
    fn a_little_more_is_chance() {
        assert!(compare(row(400, 0), row(411, 0)).grown.is_empty());
    }

    #[test]
    fn more_than_the_margin_has_grown() {
        let verdict = compare(row(400, 0), row(412, 0));
        assert_eq!(verdict.grown, ["stack/trivial: 400 instructions, now 412"]);
    }

    #[test]
    fn one_allocation_more_has_grown() {
        let verdict = compare(row(400, 0), row(400, 1));
        assert_eq!(verdict.grown, ["stack/trivial: 0 allocations, now 1"]);
    }

    #[test]
    fn less_is_worth_a_note() {
        let verdict = compare(row(400, 0), row(300, 0));
        assert!(verdict.grown.is_empty());
        assert_eq!(verdict.notes.len(), 1);
    }

    #[test]
    fn rows_that_come_or_go_are_told() {
        assert_eq!(Baseline::of(&[]).compare(&[row(1, 0)]).grown.len(), 1);
        assert_eq!(Baseline::of(&[row(1, 0)]).compare(&[]).grown.len(), 1);
    }

    #[test]
    fn rows_of_others_are_none_of_its_business() {
        let mut peer = row(1, 0);
        peer.who = "recloser".to_owned();
        assert!(Baseline::of(&[]).compare(&[peer]).grown.is_empty());
    }

    #[test]
    fn another_compiler_counts_otherwise() {
        let mut baseline = Baseline::of(&[row(400, 0)]);
        baseline.rustc = "1.0.0".to_owned();
        let verdict = baseline.compare(&[row(500, 0)]);
        assert!(verdict.grown.is_empty());
        assert_eq!(verdict.notes.len(), 1);
    }

    #[test]
    fn what_is_written_can_be_read() {
        let text = Baseline::of(&[row(400, 2)]).to_json().unwrap();
        let verdict = Baseline::parse(&text).unwrap().compare(&[row(400, 2)]);
        assert!(verdict.grown.is_empty() && verdict.notes.is_empty());
    }
}
