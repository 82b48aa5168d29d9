//! The command line.

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use indicatif::{ProgressBar, ProgressStyle};
use tower_geo_policy::azure_storage::StorageService;

use crate::expect::{self, Checked};
use crate::explain::{self, Asked, Question};
use crate::format::{self, Drill, Syntax};
use crate::plot;
use crate::problem::Problem;
use crate::result::{self, Output};
use crate::run::{self, Report};
use crate::text;

/// Everything holds.
const FINE: u8 = 0;
/// An expectation of a drill does not hold.
const FAILED: u8 = 1;
/// A file or an argument cannot be used.
const UNUSABLE: u8 = 2;

/// Rehearse the outage of a region before it happens.
///
/// A drill is a file that says which services are called, how their regions behave and when, and
/// which requests are made. It is played against the real layers of tower-geo, with a scripted
/// wire and a virtual clock: two hours take milliseconds, and give the same result every time.
#[derive(Debug, Parser)]
#[command(name = "geodrill", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  geodrill run drills/hard-down.toml
      play an outage, and see which region served when
  geodrill run drills/*.toml drills/*.yaml --format json > results.json
      play several, for a program; the exit code is 1 if an expectation fails
  geodrill run drills/flapping.yaml --seed 7
      the same with other random choices
  geodrill plot drills/hard-down.toml -o hard-down.svg
      the time line as a picture
  geodrill explain --endpoint https://contoso.queue.core.windows.net GET '/orders/messages'
      why a request is a read or a write
  geodrill endpoints https://contoso.blob.core.windows.net
      where the secondary is

Exit codes: 0 everything holds, 1 an expectation does not, 2 a file or an argument is unusable.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Play drills and check what they expect
    #[command(after_help = "\
Examples:
  geodrill run drill.yaml
  geodrill run *.json --format json
  some-program | geodrill run -")]
    Run {
        /// Drill files: .json, .toml, .yaml or .yml; `-` reads JSON from standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// For a person or for a program
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
        /// Instead of the seed of the file
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
    },
    /// Say what the layers make of one request
    #[command(after_help = "\
Examples:
  geodrill explain --endpoint https://contoso.blob.core.windows.net PUT '/c/b?comp=lease'
  geodrill explain --endpoint http://127.0.0.1:10002/devstoreaccount1 --service table \\
      GET '/devstoreaccount1/Orders()' -H 'X-HTTP-Method: MERGE'")]
    Explain {
        /// The service's URL
        #[arg(long, value_name = "URL")]
        endpoint: String,
        /// Which service it is, where the URL does not tell
        #[arg(long, value_enum)]
        service: Option<ServiceName>,
        /// The method, such as GET
        method: String,
        /// The path and the query
        path: String,
        /// A header of the request; may be given several times
        #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
        headers: Vec<String>,
        /// For a person or for a program
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Derive the secondary of an endpoint, or say why that cannot be
    Endpoints {
        /// The primary's URL
        url: String,
        /// For a person or for a program
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Draw the time line of a drill as SVG; the exit code is that of `run`
    Plot {
        /// The drill file; `-` reads JSON from standard input
        file: PathBuf,
        /// Where the picture goes; `-` is standard output
        #[arg(short, long, value_name = "OUT.svg")]
        output: PathBuf,
        /// Instead of the seed of the file
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
    },
    /// Print a completion script for a shell
    #[command(after_help = "\
Example:
  geodrill completions bash > ~/.local/share/bash-completion/completions/geodrill")]
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ServiceName {
    Blob,
    Queue,
    Table,
    Dfs,
    Web,
    File,
    Cosmos,
}

impl From<ServiceName> for Asked {
    fn from(name: ServiceName) -> Self {
        Self::Storage(match name {
            ServiceName::Blob => StorageService::Blob,
            ServiceName::Queue => StorageService::Queue,
            ServiceName::Table => StorageService::Table,
            ServiceName::Dfs => StorageService::Dfs,
            ServiceName::Web => StorageService::Web,
            ServiceName::File => StorageService::File,
            ServiceName::Cosmos => return Self::Cosmos,
        })
    }
}

/// Why a command ended early.
enum Stop {
    Unusable(Problem),
    Output(io::Error),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Unusable(problem)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// A stream whose reader may go away, as `head` does when it has seen enough: what is written
/// from then on is lost, and that is no failure.
struct Unread<'a> {
    to: &'a mut dyn Write,
    gone: bool,
}

impl<'a> Unread<'a> {
    fn new(to: &'a mut dyn Write) -> Self {
        Self { to, gone: false }
    }

    fn tolerate<T>(&mut self, done: io::Result<T>, otherwise: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.gone = true;
                Ok(otherwise)
            }
            done => done,
        }
    }
}

impl Write for Unread<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gone {
            return Ok(bytes.len());
        }
        let done = self.to.write(bytes);
        self.tolerate(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.gone {
            return Ok(());
        }
        let done = self.to.flush();
        self.tolerate(done, ())
    }
}

/// See [`crate::run_cli`].
pub(crate) fn main<A, S>(arguments: A, out: &mut dyn Write, err: &mut dyn Write) -> u8
where
    A: IntoIterator<Item = S>,
    S: Into<std::ffi::OsString> + Clone,
{
    // What a drill comes to does not depend on who reads it.
    let (out, err): (&mut dyn Write, &mut dyn Write) =
        (&mut Unread::new(out), &mut Unread::new(err));
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let shown = error.render();
            let fine = !error.use_stderr();
            let stream: &mut dyn Write = if fine { out } else { err };
            // Nobody is left to tell when this fails.
            let _ = write!(stream, "{}", shown.ansi()).and_then(|()| stream.flush());
            return if fine { FINE } else { UNUSABLE };
        }
    };
    let obeyed = obey(arguments.command, out, err);
    match obeyed.and_then(|code| Ok(out.flush().map(|()| code)?)) {
        Ok(code) => code,
        Err(Stop::Unusable(problem)) => {
            let _ = writeln!(err, "geodrill: {problem}");
            UNUSABLE
        }
        Err(Stop::Output(error)) => {
            let _ = writeln!(err, "geodrill: cannot write: {error}");
            UNUSABLE
        }
    }
}

fn obey(command: Command, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Stop> {
    match command {
        Command::Run {
            files,
            format,
            seed,
        } => run_all(&files, format, seed, out, err),
        Command::Explain {
            endpoint,
            service,
            method,
            path,
            headers,
            format,
        } => {
            let explained = explain::explain(&Question {
                endpoint: &endpoint,
                service: service.map(Into::into),
                method: &method,
                path: &path,
                headers: &headers,
            })?;
            match format {
                Format::Text => out.write_all(explained.text().as_bytes())?,
                Format::Json => write_json(out, &explained)?,
            }
            Ok(FINE)
        }
        Command::Endpoints { url, format } => match explain::endpoints(&url) {
            Ok(endpoints) => {
                match format {
                    Format::Text => out.write_all(endpoints.text().as_bytes())?,
                    Format::Json => write_json(out, &endpoints)?,
                }
                Ok(FINE)
            }
            Err(none) => {
                match format {
                    Format::Text => writeln!(err, "geodrill: {}", none.error.message)?,
                    Format::Json => write_json(out, &none)?,
                }
                Ok(UNUSABLE)
            }
        },
        Command::Plot { file, output, seed } => plot_one(&file, &output, seed, out, err),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "geodrill", &mut script);
            out.write_all(&script)?;
            Ok(FINE)
        }
    }
}

fn write_json(out: &mut dyn Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Draws a file; the exit code is that of playing it, and what a picture cannot show is told.
fn plot_one(
    file: &Path,
    output: &Path,
    seed: Option<u64>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Stop> {
    let drawn = load(file, seed).and_then(|drill| {
        let keep = expect::looks_at_operations(&drill.expect);
        let report = play(drill, keep)?;
        let svg = plot::draw(&report)
            .map_err(|message| Problem::at("", format!("cannot draw: {message}")))?;
        let checked = checked(&report)?;
        Ok((report, svg, checked))
    });
    let (report, svg, checked) = match drawn {
        Ok(drawn) => drawn,
        Err(problem) => {
            writeln!(err, "geodrill: {}: {problem}", file.display())?;
            return Ok(UNUSABLE);
        }
    };
    if output == Path::new("-") {
        out.write_all(svg.as_bytes())?;
    } else {
        fs::write(output, svg).map_err(|error| {
            Problem::at("", format!("cannot write {}: {error}", output.display()))
        })?;
    }
    for warning in &report.seen.warnings {
        writeln!(err, "geodrill: {}: warning: {warning}", file.display())?;
    }
    let failed = checked.iter().filter(|checked| !checked.ok);
    let mut code = FINE;
    for one in failed {
        writeln!(
            err,
            "geodrill: {}: failed {}: wanted {}, got {}",
            file.display(),
            one.at,
            one.wanted,
            one.got()
        )?;
        code = FAILED;
    }
    Ok(code)
}

/// Plays each file; one that cannot be used does not keep the others from being played.
fn run_all(
    files: &[PathBuf],
    format: Format,
    seed: Option<u64>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Stop> {
    let mut code = FINE;
    let mut written = 0_usize;
    for file in files {
        let played = load(file, seed).and_then(|drill| {
            let keep = format == Format::Json || expect::looks_at_operations(&drill.expect);
            play(drill, keep)
        });
        let report = match played {
            Ok(report) => report,
            Err(problem) => {
                writeln!(err, "geodrill: {}: {problem}", file.display())?;
                code = UNUSABLE;
                continue;
            }
        };
        let checked = checked(&report)?;
        if checked.iter().any(|checked| !checked.ok) {
            code = code.max(FAILED);
        }
        match format {
            Format::Text => {
                if written > 0 {
                    writeln!(out)?;
                }
                let text = text::write(&report, &checked)
                    .map_err(|error| io::Error::other(error.to_string()))?;
                out.write_all(text.as_bytes())?;
            }
            Format::Json => {
                if files.len() > 1 {
                    out.write_all(if written == 0 { b"[\n" } else { b",\n" })?;
                }
                serde_json::to_writer_pretty(&mut *out, &Output::new(&report, &checked))
                    .map_err(io::Error::from)?;
            }
        }
        written += 1;
    }
    if format == Format::Json {
        if files.len() > 1 {
            out.write_all(if written == 0 { b"[]" } else { b"\n]" })?;
        }
        if written > 0 || files.len() > 1 {
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(code)
}

fn checked(report: &Report) -> Result<Vec<Checked>, Problem> {
    if report.expect.is_empty() {
        return Ok(Vec::new());
    }
    let found = result::found(report)
        .map_err(|error| Problem::at("", format!("cannot write the result: {error}")))?;
    Ok(expect::check(&report.expect, found))
}

fn load(file: &Path, seed: Option<u64>) -> Result<Drill, Problem> {
    let unreadable =
        |error: &dyn std::fmt::Display| Problem::at("", format!("cannot read: {error}"));
    let (bytes, syntax) = if file == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(&error))?;
        (bytes, Syntax::Json)
    } else {
        let extension = file.extension().and_then(|extension| extension.to_str());
        let extension = extension.map(str::to_ascii_lowercase);
        let syntax = match extension.as_deref() {
            Some("json") => Syntax::Json,
            Some("toml") => Syntax::Toml,
            Some("yaml" | "yml") => Syntax::Yaml,
            _ => {
                let message = "the extension must be .json, .toml, .yaml or .yml";
                return Err(Problem::at("", message));
            }
        };
        (fs::read(file).map_err(|error| unreadable(&error))?, syntax)
    };
    let text = String::from_utf8(bytes).map_err(|_| unreadable(&"not UTF-8"))?;
    let mut drill = format::read(&text, syntax)?;
    if let Some(seed) = seed {
        drill.seed = seed;
    }
    Ok(drill)
}

/// From this many operations on, somebody may want to know how far it is.
const LONG: u64 = 20_000;

fn play(drill: Drill, keep: bool) -> Result<Report, Problem> {
    let operations: u64 = drill.requests.iter().map(format::Request::count).sum();
    let bar = if operations >= LONG && io::stderr().is_terminal() {
        let bar = ProgressBar::new(operations);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3} %  {eta} left") {
            bar.set_style(style);
        }
        bar
    } else {
        ProgressBar::hidden()
    };
    let report = run::play(
        drill,
        &run::Options {
            keep,
            progress: &|begun| bar.set_position(begun),
        },
    );
    bar.finish_and_clear();
    report
}
