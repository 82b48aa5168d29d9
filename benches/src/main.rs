//! What the layers of tower-geo cost, beside what one would use instead.
//!
//! `README.md` of this crate says what each row does and how to read it.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what this program is for"
)]

mod baseline;
mod goals;
mod loopback;
mod measure;
mod report;
mod row;
mod rows;
mod versions;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Parser, ValueEnum};
use tower_geo_benches::readme;

use baseline::Baseline;
use measure::{Measured, Want, callgrind};
use report::markdown;
use row::{FLOOR, OURS, Row, Work};

/// The compiler of this program: instructions are those of a compiler.
const RUSTC: &str = env!("BENCHES_RUSTC");
const TARGET: &str = env!("BENCHES_TARGET");

/// Measures what the layers of tower-geo cost, and what one would use instead.
///
/// Each row is measured three ways: instructions (by valgrind's callgrind) and allocations, which
/// are the same on a busy machine, and nanoseconds (thread CPU time), which are for the eye.
#[derive(Parser)]
#[command(
    name = "tower-geo-benches",
    version,
    after_help = "Examples:\n  \
        tower-geo-benches\n  \
        tower-geo-benches --format json breaker/closed stack\n  \
        tower-geo-benches --who tower-geo --no-time\n  \
        tower-geo-benches --check benches/baseline.json --check-readme README.md"
)]
struct Arguments {
    /// The rows to measure, or groups of them (`breaker`); all if none is named.
    rows: Vec<String>,
    /// Only rows of this implementation.
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Leave instructions out (they need valgrind).
    #[arg(long)]
    no_instructions: bool,
    /// Leave out whatever is timed: nanoseconds, two threads, loopback.
    #[arg(long)]
    no_time: bool,
    /// Take the rows from the JSON of an earlier run instead of measuring.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Compare our rows with a baseline; exits with 1 if one has grown. Times nothing.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Write our rows as the new baseline.
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
    /// Compare the table of counts in a README; exits with 1 if it is out of date. Times nothing.
    #[arg(long, value_name = "FILE")]
    check_readme: Option<PathBuf>,
    /// Write the tables into a README, between their markers.
    #[arg(long, value_name = "FILE")]
    write_readme: Option<PathBuf>,
    /// Compare what a README says of peers as well.
    #[arg(long)]
    peers: bool,
    /// Only do the chosen rows so many times and say nothing: for a profiler.
    #[arg(long, value_name = "CALLS")]
    only_call: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Markdown,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("tower-geo-benches: {message}");
            ExitCode::from(2)
        }
    }
}

/// Whether all checks that were asked for are content.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let runtime = timers().ok_or("no runtime")?;
    let _context = runtime.enter();
    if let Some(calls) = arguments.only_call {
        only_call(&chosen(arguments)?, calls);
        return Ok(true);
    }
    let checks = arguments.check.is_some() || arguments.check_readme.is_some();
    let measured = match &arguments.from {
        Some(file) => report::parse(&read(file)?)?,
        None => measure_all(
            &chosen(arguments)?,
            Want {
                instructions: !arguments.no_instructions,
                time: !arguments.no_time && !checks && arguments.write_baseline.is_none(),
            },
        )?,
    };
    let mut is_content = true;
    if let Some(file) = &arguments.check {
        let verdict = Baseline::parse(&read(file)?)?.compare(&measured);
        print!("{}", verdict.text(&file.display().to_string()));
        is_content &= verdict.grown.is_empty();
    }
    if let Some(file) = &arguments.check_readme {
        is_content &= is_up_to_date(file, &measured)?;
    }
    if let Some(file) = &arguments.write_baseline {
        write(file, &Baseline::of(&measured).to_json()?)?;
    }
    if let Some(file) = &arguments.write_readme {
        let mut text = readme::replaced(&read(file)?, "counts", &markdown::counts(&measured))?;
        // What was not timed stays as it was.
        if measured.iter().any(|row| row.ns.is_some()) {
            text = readme::replaced(&text, "times", &markdown::times(&measured))?;
        }
        write(file, &text)?;
    }
    if !checks {
        match arguments.format {
            Format::Text => print!("{}", report::text(&measured)),
            Format::Json => print!("{}", report::json(&measured)?),
            Format::Markdown => print!(
                "{}\n{}",
                markdown::counts(&measured),
                markdown::times(&measured)
            ),
        }
    }
    Ok(is_content)
}

fn is_up_to_date(file: &Path, measured: &[Measured]) -> Result<bool, String> {
    let text = read(file)?;
    let differences =
        readme::differences(readme::block(&text, "counts")?, &markdown::counts(measured));
    for difference in &differences {
        println!("{}: stands:\n{difference}", file.display());
    }
    if differences.is_empty() {
        println!("the table of counts in {} is up to date", file.display());
    } else {
        println!("write it anew: scripts/bench readme");
    }
    Ok(differences.is_empty())
}

/// A runtime for rows that arm timers; nothing runs on it.
pub(crate) fn timers() -> Option<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().ok()
}

fn chosen(arguments: &Arguments) -> Result<Vec<&'static Row>, String> {
    let all = rows::all();
    let is_named = |row: &Row, name: &str| {
        let group = row.name.strip_prefix(name);
        group.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || name.ends_with('/'))
    };
    for name in &arguments.rows {
        if !all.iter().any(|row| is_named(row, name)) {
            let mut known: Vec<_> = all.iter().map(|row| row.name).collect();
            known.dedup();
            return Err(format!("no row `{name}`; there are {}", known.join(", ")));
        }
    }
    if let Some(who) = &arguments.who
        && !all.iter().any(|row| row.who == who)
    {
        return Err(format!("nothing is measured of `{who}`"));
    }
    // Checks are about our own code, unless they are asked for more.
    let checks = arguments.check.is_some() || arguments.check_readme.is_some();
    let is_wanted = |row: &Row| {
        if checks && !arguments.peers {
            row.who == OURS || row.who == FLOOR
        } else if checks || arguments.write_baseline.is_some() {
            row.who == OURS || markdown::shows(row)
        } else {
            true
        }
    };
    Ok(all
        .into_iter()
        .filter(|row| {
            arguments.rows.is_empty() || arguments.rows.iter().any(|name| is_named(row, name))
        })
        .filter(|row| arguments.who.as_deref().is_none_or(|who| row.who == who))
        .filter(|row| is_wanted(row))
        .collect())
}

/// All of these, in their order.
fn measure_all(rows: &[&Row], want: Want) -> Result<Vec<Measured>, String> {
    let rows: Vec<&Row> = rows
        .iter()
        .copied()
        .filter(|row| want.time || row.is_exact())
        .collect();
    let instructions = if want.instructions {
        callgrind::is_there()?;
        count_instructions(&rows)?
    } else {
        vec![None; rows.len()]
    };
    let mut measured = Vec::new();
    let mut loopback: Vec<Measured> = Vec::new();
    for (row, instructions) in rows.into_iter().zip(instructions) {
        let Work::Loopback(side) = row.work else {
            measured.push(measure::measure(row, want, instructions));
            continue;
        };
        let is_it = |found: &&Measured| found.row == row.name && found.who == row.who;
        if !loopback.iter().any(|found| is_it(&found)) {
            loopback.extend(loopback::measure(side.protocol)?);
        }
        measured.extend(loopback.iter().find(is_it).cloned());
    }
    Ok(measured)
}

/// By a process for each row, as many at once as there are cores: nothing is timed.
fn count_instructions(rows: &[&Row]) -> Result<Vec<Option<u64>>, String> {
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(vec![None; rows.len()]));
    let work = || -> Result<(), String> {
        while let Some(place) = Some(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(row) = rows.get(place) else { break };
            let count = callgrind::instructions(row)?;
            // Should another thread have panicked, it will be told of that one.
            if let Ok(mut counts) = counts.lock() {
                counts[place] = count;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..report::cores()).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(_) => Err("a thread that counts has panicked".to_owned()),
            })
    })?;
    counts.into_inner().map_err(|error| error.to_string())
}

fn only_call(rows: &[&Row], calls: u32) {
    measure::allocations::uncounted(|| {
        for row in rows {
            let mut call = match row.work {
                Work::Calls(start) | Work::Fresh(_, start) => start(),
                Work::Threads(start) => start()(),
                Work::Memory(_) | Work::Loopback(_) => continue,
            };
            (0..calls).for_each(|_| call());
        }
    });
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
