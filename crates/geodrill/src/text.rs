//! The result of a drill for a person: a time line per service, sums, and what failed.

use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, Table, presets};

use crate::expect::Checked;
use crate::format::Millis;
use crate::result::Summary;
use crate::run::Report;
use crate::stage::{Event, EventRecord};
use crate::states::{self, Levels};
use crate::timeline::{Bucket, RegionBucket, Timeline};

/// Columns of a time line; with its labels it fits a terminal of 100.
const COLUMNS: usize = 72;
/// Events that are listed from the start, and so many from the end, where the regions come back;
/// `--format json` has them all.
const EVENTS: usize = 8;

const ACCOUNT_READ: &str = "account read";

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();

/// Everything about a drill, with colours; whoever prints it takes them out again where the
/// output is no terminal.
pub(crate) fn write(report: &Report, expect: &[Checked]) -> Result<String, fmt::Error> {
    let mut out = String::new();
    heading(&mut out, report)?;
    let timeline = report.seen.timeline.within(COLUMNS);
    for service in 0..report.services.len() {
        time_line(&mut out, report, &timeline, service)?;
    }
    events(&mut out, report)?;
    writeln!(
        out,
        "{}",
        sums(&Summary::of(report), report.seen.latencies.is_empty())
    )?;
    for warning in &report.seen.warnings {
        writeln!(out, "{WARN}warning{WARN:#} {warning}")?;
    }
    wishes(&mut out, expect)?;
    Ok(out)
}

fn heading(out: &mut String, report: &Report) -> fmt::Result {
    let name = report.title();
    writeln!(
        out,
        "{BOLD}{name}{BOLD:#}\n{DIM}{} operations in {} of virtual time, seed {}{DIM:#}\n",
        report.seen.counts.operations,
        Millis(report.end_ms).rough(),
        report.seed
    )
}

/// What a time line says about which region served.
struct Served<'a> {
    label: &'static str,
    count: fn(&RegionBucket) -> u64,
    /// For each region.
    letters: &'a [char],
}

impl Served<'_> {
    /// The region that served most of a column.
    fn of(&self, bucket: &Bucket) -> char {
        bucket
            .regions
            .iter()
            .zip(self.letters)
            .filter(|(region, _)| (self.count)(region) > 0)
            // The first of equals, as the order of regions has it.
            .rev()
            .max_by_key(|(region, _)| (self.count)(region))
            .map_or(' ', |(_, letter)| *letter)
    }
}

/// One row for a service, or one for reads and one for writes where they may part.
fn rows_of_regions<'a>(is_cosmos: bool, letters: &'a [char]) -> Vec<Served<'a>> {
    let row = |label, count| Served {
        label,
        count,
        letters,
    };
    if is_cosmos {
        vec![
            row("reads by", |region: &RegionBucket| {
                region.served - region.wrote
            }),
            row("writes by", |region: &RegionBucket| region.wrote),
        ]
    } else {
        vec![row("served by", |region: &RegionBucket| region.served)]
    }
}

/// One letter for each region: the first of its name, or its number where letters would clash
/// among those that are shown.
fn letters(regions: &[String], shown: &[usize]) -> Vec<char> {
    let first: Vec<char> = regions
        .iter()
        .map(|name| name.chars().next().unwrap_or('?').to_ascii_uppercase())
        .collect();
    let clash = (1..shown.len()).any(|at| {
        let (before, here) = (&shown[..at], shown[at]);
        before.iter().any(|other| first[*other] == first[here])
    });
    if !clash {
        return first;
    }
    let number = |region: &usize| {
        // The numbers of those that are shown have no gaps.
        let place = shown.iter().position(|other| other == region)?;
        char::from_digit(u32::try_from(place + 1).ok()?, 36)
    };
    let all = 0..regions.len();
    all.map(|region| number(&region).unwrap_or('?')).collect()
}

fn time_line(
    out: &mut String,
    report: &Report,
    timeline: &Timeline,
    service: usize,
) -> fmt::Result {
    let info = &report.services[service];
    let width_ms = timeline.width_ms();
    let buckets = timeline.service(service);
    let columns = timeline.len().max(1);
    let tracks = states::tracks(report, service);
    let shown = report.shown(service);
    let letters = letters(&info.regions, &shown);
    let rows = rows_of_regions(info.is_cosmos, &letters);
    let reads = report.account_reads(service);
    let label_width = tracks
        .iter()
        .map(|track| track.label.chars().count())
        .chain(rows.iter().map(|row| row.label.len()))
        .chain((!reads.is_empty()).then_some(ACCOUNT_READ.len()))
        .max()
        .unwrap_or(0);
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}  {DIM}one column is {}{DIM:#}",
        info.name,
        Millis(width_ms)
    )?;
    writeln!(
        out,
        "  {:label_width$}  {DIM}{}{DIM:#}",
        "",
        axis(width_ms, columns)
    )?;
    for row in &rows {
        let served: String = buckets.iter().map(|bucket| row.of(bucket)).collect();
        // A service that is only read, say, needs no row for writes.
        if rows.len() == 1 || !served.trim().is_empty() {
            writeln!(out, "  {:label_width$}  {}", row.label, served.trim_end())?;
        }
    }
    let trouble: String = buckets.iter().map(trouble).collect();
    if !trouble.trim().is_empty() {
        writeln!(
            out,
            "  {:label_width$}  {BAD}{}{BAD:#}",
            "trouble",
            trouble.trim_end()
        )?;
    }
    if !reads.is_empty() {
        let signs = account_signs(&reads, width_ms, columns);
        writeln!(out, "  {ACCOUNT_READ:label_width$}  {signs}")?;
    }
    let mut mixed = false;
    for track in &tracks {
        write!(out, "  {:label_width$}  ", track.label)?;
        for column in 0..columns as u64 {
            let from = column * width_ms;
            let (sign, style) = sign(track.within(from, from + width_ms));
            mixed |= matches!(sign, '▄' | '▞');
            write!(out, "{style}{sign}{style:#}")?;
        }
        out.push('\n');
    }
    let mut key: Vec<String> = shown
        .iter()
        .map(|region| format!("{} {}", letters[*region], info.regions[*region]))
        .collect();
    if !trouble.trim().is_empty() {
        key.extend(["! failed", "x refused", "~ dropped by the caller"].map(str::to_owned));
    }
    if tracks.is_empty() {
        key.push("circuits closed and gate open all the time".to_owned());
    } else {
        let states = [
            "─ closed, read-write",
            "▒ half open, trial",
            "█ open, read-only",
        ];
        key.extend(states.map(str::to_owned));
    }
    let mut keys = lines_of(key);
    if !reads.is_empty() {
        keys.push(
            "● the account document was read  ○ a host that was asked for it had none".to_owned(),
        );
    }
    if mixed {
        keys.push("▄ open for a part of the column  ▞ that, and half open".to_owned());
    }
    for key in keys {
        writeln!(out, "  {:label_width$}  {DIM}{key}{DIM:#}", "")?;
    }
    out.push('\n');
    Ok(())
}

/// Words in lines that are no longer than a time line.
fn lines_of(words: Vec<String>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        let length = |text: &str| text.chars().count();
        match lines.last_mut() {
            Some(line) if length(line) + 2 + length(&word) <= COLUMNS => {
                line.push_str("  ");
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// When the account was read: one sign for each column.
fn account_signs(reads: &[(u64, bool)], width_ms: u64, columns: usize) -> String {
    let mut signs = vec![' '; columns];
    for (at_ms, good) in reads {
        let column = usize::try_from(at_ms / width_ms).unwrap_or(usize::MAX);
        if let Some(sign) = signs.get_mut(column) {
            // A read that failed is not hidden by one that did not.
            *sign = if *good && *sign != '○' {
                '●'
            } else {
                '○'
            };
        }
    }
    signs.into_iter().collect::<String>().trim_end().to_owned()
}

/// The sign for the states of one column.
const fn sign(levels: Levels) -> (char, Style) {
    match (levels.stopped, levels.trying, levels.usual) {
        (true, false, false) => ('█', BAD),
        (true, false, true) => ('▄', BAD),
        (true, true, _) => ('▞', BAD),
        (false, true, _) => ('▒', WARN),
        (false, false, _) => ('─', DIM),
    }
}

/// Marks of time, every twelve columns.
fn axis(width_ms: u64, columns: usize) -> String {
    const EVERY: usize = 12;
    (0..columns)
        .step_by(EVERY)
        .map(|column| {
            let mark = Millis(column as u64 * width_ms).rough();
            // A mark that is longer than its place would shift those behind it.
            format!(
                "{:<EVERY$}",
                mark.chars().take(EVERY - 1).collect::<String>()
            )
        })
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// The worst that callers met in a column.
const fn trouble(bucket: &Bucket) -> char {
    if bucket.failed > 0 {
        '!'
    } else if bucket.refused > 0 {
        'x'
    } else if bucket.cancelled > 0 {
        '~'
    } else {
        ' '
    }
}

fn events(out: &mut String, report: &Report) -> fmt::Result {
    let events = &report.seen.events;
    if events.is_empty() {
        return Ok(());
    }
    writeln!(out, "{BOLD}events{BOLD:#}")?;
    let between = events.len().saturating_sub(2 * EVENTS);
    // A line that says that one is left out is no shorter than that one.
    let between = if between > 1 { between } else { 0 };
    for (index, record) in events.iter().enumerate() {
        if index == EVENTS && between > 0 {
            writeln!(
                out,
                "  {DIM}{:>10}  and {between} between: --format json has them all{DIM:#}",
                "…"
            )?;
        }
        if (EVENTS..EVENTS + between).contains(&index) {
            continue;
        }
        let info = &report.services[record.service];
        let region = record
            .region
            .and_then(|index| info.regions.get(index))
            .map_or("", String::as_str);
        let what = told(record, region);
        let at = Millis(record.at_ms).to_string();
        writeln!(out, "  {at:>10}  {}  {what}", info.name)?;
    }
    out.push('\n');
    Ok(())
}

fn told(record: &EventRecord, region: &str) -> String {
    match record.event {
        Event::Breaker {
            circuit,
            from,
            to,
            why,
        } => format!("{region} {circuit}: {from} to {to} ({why})"),
        Event::Gate { to, why } => format!("gate: {to} ({why})"),
        Event::Secondary { to } => format!("{region}: {to}"),
    }
}

fn sums(summary: &Summary<'_>, none_was_timed: bool) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let share = |count: u64| {
        #[expect(clippy::cast_precision_loss, reason = "to one place")]
        let percent = count as f64 * 100.0 / summary.operations.max(1) as f64;
        format!("{percent:.1} %")
    };
    table.add_row(["operations", &summary.operations.to_string(), ""]);
    for (name, count) in [
        ("  succeeded", summary.succeeded),
        ("  failed", summary.failed),
        ("  refused", summary.refused),
        ("  deferred", summary.deferred),
        ("  cancelled", summary.cancelled),
    ] {
        if count > 0 || name == "  failed" {
            table.add_row([name, &count.to_string(), &share(count)]);
        }
    }
    let amplification = format!("{} per operation", summary.amplification);
    let all: u64 = summary.sends.values().sum();
    table.add_row(["sends", &all.to_string(), &amplification]);
    for (region, count) in &summary.sends {
        table.add_row([&format!("  {region}"), &count.to_string(), ""]);
    }
    if none_was_timed {
        table.add_row(["latency", "–", "no operation got an answer or failed"]);
    } else {
        table.add_row([
            "latency",
            &format!("{} ms", summary.p50_ms),
            "half of the operations took no longer",
        ]);
        table.add_row(["", &format!("{} ms", summary.p99_ms), "99 of 100"]);
        table.add_row(["", &format!("{} ms", summary.max_ms), "the longest"]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn wishes(out: &mut String, expect: &[Checked]) -> fmt::Result {
    if expect.is_empty() {
        return Ok(());
    }
    let held = expect.iter().filter(|checked| checked.ok).count();
    let style = if held == expect.len() { GOOD } else { BAD };
    writeln!(
        out,
        "\n{style}{held} of {} expectations hold{style:#}",
        expect.len()
    )?;
    for checked in expect.iter().filter(|checked| !checked.ok) {
        writeln!(out, "  {BAD}failed{BAD:#} {}", checked.at)?;
        writeln!(out, "    wanted  {}", checked.wanted)?;
        writeln!(out, "    got     {}", checked.got())?;
    }
    Ok(())
}
