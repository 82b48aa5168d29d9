//! How breakers and retries behave: ours, and what one would use instead. Nothing is typed: each
//! answer is what was seen when it was run.
//!
//! `README.md` of this crate says what each check does.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what this program is for"
)]

mod checks;
mod subjects;
mod wire;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};
use tower_geo_benches::readme;

use checks::{CHECKS, Check, Finding};
use subjects::{SUBJECTS, Subject};

/// Runs breakers and retries against each other, and says how they behave.
#[derive(Parser)]
#[command(
    name = "tower-geo-behaviour",
    version,
    after_help = "Examples:\n  \
        tower-geo-behaviour\n  \
        tower-geo-behaviour --format json probe-cap\n  \
        tower-geo-behaviour --check-readme README.md"
)]
struct Arguments {
    /// The checks to run; all if none is named.
    checks: Vec<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Markdown)]
    format: Format,
    /// Compare the table in a README; exits with 1 if an answer is another.
    #[arg(long, value_name = "FILE")]
    check_readme: Option<PathBuf>,
    /// Write the table into a README, between its markers.
    #[arg(long, value_name = "FILE")]
    write_readme: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Markdown,
    Json,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("tower-geo-behaviour: {message}");
            ExitCode::from(2)
        }
    }
}

/// Whether the check that was asked for is content.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let found = chosen(&arguments.checks)?
        .into_iter()
        .map(|check| Ok((check, ask_all(check)?)))
        .collect::<Result<Vec<_>, String>>()?;
    let table = markdown(&found);
    if let Some(file) = &arguments.check_readme {
        let text = read(file)?;
        let differences = readme::differences(readme::block(&text, "behaviour")?, &table);
        for difference in &differences {
            println!("{} stands:\n{difference}", file.display());
        }
        if differences.is_empty() {
            println!("the table of behaviour in {} is up to date", file.display());
        } else {
            println!("write it anew: scripts/bench readme");
        }
        return Ok(differences.is_empty());
    }
    if let Some(file) = &arguments.write_readme {
        let text = readme::replaced(&read(file)?, "behaviour", &table)?;
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    match arguments.format {
        Format::Markdown => print!("{table}"),
        Format::Json => println!("{}", json(&found)?),
    }
    Ok(true)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Check>, String> {
    let known = || {
        let names: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
        names.join(", ")
    };
    for name in names {
        if !CHECKS.iter().any(|check| check.name == name) {
            return Err(format!("no check `{name}`; there are {}", known()));
        }
    }
    let is_chosen =
        |check: &&Check| names.is_empty() || names.iter().any(|name| name == check.name);
    Ok(CHECKS.iter().filter(is_chosen).collect())
}

fn ask_all(check: &Check) -> Result<Vec<Finding>, String> {
    SUBJECTS
        .iter()
        .map(|subject| {
            // Each has a clock of its own.
            let runtime = runtime(check, subject)?;
            Ok((check.ask)(subject, &runtime))
        })
        .collect()
}

fn runtime(check: &Check, subject: &Subject) -> Result<Runtime, String> {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(check.always_paused || subject.is_paused)
        .build()
        .map_err(|error| format!("no runtime: {error}"))
}

type Found = (&'static Check, Vec<Finding>);

fn markdown(found: &[Found]) -> String {
    let mut text = String::from("| |");
    for (place, subject) in SUBJECTS.iter().enumerate() {
        // Writing to a string does not fail.
        _ = match place {
            0 => write!(text, " **{}** |", subject.who),
            _ => write!(text, " {} |", subject.who),
        };
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(SUBJECTS.len()));
    text.push('\n');
    for (check, findings) in found {
        _ = write!(text, "| {} |", check.question);
        for finding in findings {
            _ = write!(text, " {} |", finding.cell());
        }
        text.push('\n');
    }
    text
}

fn json(found: &[Found]) -> Result<String, String> {
    #[derive(Serialize)]
    struct Answer {
        check: &'static str,
        question: &'static str,
        who: &'static str,
        /// None where there is nothing to ask.
        yes: Option<bool>,
        told: String,
    }
    let answers: Vec<Answer> = found
        .iter()
        .flat_map(|(check, findings)| {
            SUBJECTS
                .iter()
                .zip(findings)
                .map(|(subject, finding)| Answer {
                    check: check.name,
                    question: check.question,
                    who: subject.who,
                    yes: match finding {
                        Finding::Yes(_) => Some(true),
                        Finding::No(_) => Some(false),
                        Finding::Without(_) => None,
                    },
                    told: finding.cell(),
                })
        })
        .collect();
    serde_json::to_string_pretty(&answers).map_err(|error| error.to_string())
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}
