//! Measures what can be measured in this process, and prints.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what this program is for"
)]

use std::time::Instant;

use serde::Serialize;
use stats_alloc::Region;

use crate::ALLOCATOR;
use crate::rows::Row;

#[derive(Serialize)]
pub(crate) struct Measured {
    row: &'static str,
    who: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    allocations: usize,
    bytes: usize,
    ns: Spread,
    about: &'static str,
}

#[derive(Serialize)]
struct Spread {
    p10: f64,
    median: f64,
    p90: f64,
}

/// Allocations of one call, and the time of a batch of calls.
pub(crate) fn measure(row: &Row, instructions: Option<u64>) -> Measured {
    let mut call = (row.start)();
    (0..200).for_each(|_| call());
    const COUNTED: usize = 1_000;
    let region = Region::new(ALLOCATOR);
    (0..COUNTED).for_each(|_| call());
    let counted = region.change();
    const BATCH: u32 = 500;
    let mut batches: Vec<f64> = (0..201)
        .map(|_| {
            #[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
            let before = Instant::now();
            (0..BATCH).for_each(|_| call());
            #[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
            let took = before.elapsed();
            took.as_secs_f64() * 1e9 / f64::from(BATCH)
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    let at = |tenths: usize| {
        let value = batches.get(batches.len() * tenths / 10).copied();
        (value.unwrap_or_default() * 10.0).round() / 10.0
    };
    Measured {
        row: row.name,
        who: "tower-geo",
        instructions,
        allocations: counted.allocations / COUNTED,
        bytes: counted.bytes_allocated / COUNTED,
        ns: Spread {
            p10: at(1),
            median: at(5),
            p90: at(9),
        },
        about: row.about,
    }
}

pub(crate) fn text(rows: &[Measured]) {
    println!(
        "{:<22} {:>12} {:>7} {:>7} {:>9} {:>9} {:>9}  about",
        "row", "instructions", "allocs", "bytes", "ns p10", "median", "p90"
    );
    for row in rows {
        let instructions = row
            .instructions
            .map_or_else(|| "-".to_owned(), |n| n.to_string());
        println!(
            "{:<22} {:>12} {:>7} {:>7} {:>9.1} {:>9.1} {:>9.1}  {}",
            row.row,
            instructions,
            row.allocations,
            row.bytes,
            row.ns.p10,
            row.ns.median,
            row.ns.p90,
            row.about
        );
    }
}

pub(crate) fn json(rows: &[Measured]) -> Result<(), String> {
    #[derive(Serialize)]
    struct Rows<'a> {
        rows: &'a [Measured],
    }
    let text = serde_json::to_string_pretty(&Rows { rows }).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(())
}

pub(crate) fn complain(message: &str) {
    eprintln!("tower-geo-benches: {message}");
}
