//! What the stack costs.
//!
//! `cargo run --release -p tower-geo-benches` prints a row for each thing that is measured:
//! instructions (callgrind, exact), allocations and bytes (a counting allocator, exact) and
//! nanoseconds (for the eye only). `--format json` for machines.

mod callgrind;
mod report;
mod rows;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

/// Measures what the layers of tower-geo cost.
#[derive(Parser)]
#[command(
    version,
    after_help = "Examples:\n  tower-geo-benches\n  tower-geo-benches --format json breaker/closed stack/request"
)]
struct Arguments {
    /// The rows to measure; all if none is named.
    rows: Vec<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Leave the instructions out (they need valgrind).
    #[arg(long)]
    no_instructions: bool,
    /// Only do a row so many times and say nothing: for a profiler.
    #[arg(long, value_name = "CALLS")]
    only_call: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            report::complain(&message);
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let chosen = chosen(&arguments.rows)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    let _context = runtime.enter();
    if let Some(calls) = arguments.only_call {
        for row in chosen {
            let mut call = (row.start)();
            (0..calls).for_each(|_| call());
        }
        return Ok(());
    }
    let mut measured = Vec::new();
    for row in chosen {
        let instructions = if arguments.no_instructions {
            None
        } else {
            Some(callgrind::instructions(row.name)?)
        };
        measured.push(report::measure(row, instructions));
    }
    match arguments.format {
        Format::Text => report::text(&measured),
        Format::Json => report::json(&measured)?,
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static rows::Row>, String> {
    if names.is_empty() {
        return Ok(rows::ROWS.iter().collect());
    }
    names
        .iter()
        .map(|name| {
            rows::ROWS
                .iter()
                .find(|row| row.name == name)
                .ok_or_else(|| {
                    let known: Vec<_> = rows::ROWS.iter().map(|row| row.name).collect();
                    format!("no row `{name}`; there are {}", known.join(", "))
                })
        })
        .collect()
}
