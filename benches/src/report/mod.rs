//! Prints what was measured.

pub(crate) mod markdown;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::goals::{Goal, goals};
use crate::measure::{Measured, Spread};
use crate::versions::versions;

/// A whole run.
#[derive(Serialize)]
struct Run<'a> {
    rows: &'a [Measured],
    goals: Vec<Goal>,
    rustc: &'a str,
    target: &'a str,
    cores: usize,
    versions: BTreeMap<&'a str, &'a str>,
}

/// What is read of an earlier run.
#[derive(Deserialize)]
struct Earlier {
    rows: Vec<Measured>,
}

pub(crate) fn json(rows: &[Measured]) -> Result<String, String> {
    let run = Run {
        rows,
        goals: goals(rows),
        rustc: crate::RUSTC,
        target: crate::TARGET,
        cores: cores(),
        versions: versions(),
    };
    let json = serde_json::to_string_pretty(&run).map_err(|error| error.to_string())?;
    Ok(json + "\n")
}

pub(crate) fn parse(json: &str) -> Result<Vec<Measured>, String> {
    let earlier: Earlier =
        serde_json::from_str(json).map_err(|error| format!("not a run of ours: {error}"))?;
    Ok(earlier.rows)
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

pub(crate) fn text(rows: &[Measured]) -> String {
    let mut text = format!(
        "{:<22} {:<17} {:>12} {:>6} {:>7} {:>9} {:>9} {:>9}  about\n",
        "row", "who", "instructions", "allocs", "bytes", "ns p10", "median", "p90"
    );
    for row in rows {
        line(&mut text, row);
    }
    let goals = goals(rows);
    if !goals.is_empty() {
        // Writing to a string does not fail.
        _ = writeln!(text, "\n{:>10} {:>8}       goal", "measured", "limit");
        for goal in goals {
            let met = if goal.met { "met" } else { "MISSED" };
            _ = writeln!(
                text,
                "{:>10} {:>8} {met:<6} {}",
                goal.measured, goal.limit, goal.goal
            );
        }
    }
    text
}

fn line(text: &mut String, row: &Measured) {
    let whole = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let ns =
        |at: fn(&Spread) -> f64| whole(row.ns.as_ref().map(|spread| format!("{:.1}", at(spread))));
    let instructions = whole(row.instructions.map(|count| count.to_string()));
    let allocations = whole(row.allocations.map(|count| count.to_string()));
    let bytes = whole(row.bytes.map(|count| count.to_string()));
    let (p10, median, p90) = (ns(|ns| ns.p10), ns(|ns| ns.median), ns(|ns| ns.p90));
    _ = writeln!(
        text,
        "{:<22} {:<17} {instructions:>12} {allocations:>6} {bytes:>7} {p10:>9} {median:>9} \
         {p90:>9}  {}",
        row.row, row.who, row.about
    );
    if let (Some(batches), Some(clean)) = (row.batches, row.clean_batches) {
        let one = row.one_thread_ns.unwrap_or_default().median;
        let ratio = row.ratio.map_or_else(
            || "no clean batch, so no ratio".to_owned(),
            |ratio| format!("× {} [{} to {}]", ratio.median, ratio.p10, ratio.p90),
        );
        _ = writeln!(
            text,
            "    {ratio} of one thread's {one} ns; {clean} of {batches} batches had both cores"
        );
    }
    if let Some(loopback) = &row.loopback {
        let ratio = row.ratio.unwrap_or_default();
        _ = writeln!(
            text,
            "    {:.0} requests/s, p50 {} µs, p99 {} µs; × {} [{} to {}] in {} pairs; CPU of the \
             client {} µs, × {} [{} to {}]",
            loopback.throughput,
            loopback.p50_us,
            loopback.p99_us,
            ratio.median,
            ratio.p10,
            ratio.p90,
            loopback.pairs,
            loopback.cpu_us,
            loopback.cpu_ratio.median,
            loopback.cpu_ratio.p10,
            loopback.cpu_ratio.p90,
        );
    }
}
