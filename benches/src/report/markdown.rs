//! The tables of the README.

use std::fmt::Write as _;

use tower_geo_benches::readme::{UNKNOWN, thousands};

use crate::measure::Measured;
use crate::row::{FLOOR, OURS, Row};
use crate::versions::versions;

/// A line of the table of counts: what it is called, its row, and what it would take without any
/// layer or breaker.
pub(super) struct Shown {
    title: &'static str,
    row: &'static str,
    without: Option<&'static str>,
}

const fn shown(title: &'static str, row: &'static str, without: Option<&'static str>) -> Shown {
    Shown {
        title,
        row,
        without,
    }
}

/// What a reader wants to know first.
pub(super) const SHOWN: &[Shown] = &[
    shown("breaker alone: admit and settle", "breaker/closed", None),
    shown("… refuse while open", "breaker/open", None),
    shown("… with 10 calls in its window", "breaker/window-10", None),
    shown("… with 1,000", "breaker/window-1000", None),
    shown("… with 1,000,000", "breaker/window-1000000", None),
    shown("breaker as a layer", "layer/breaker", Some("bare/trivial")),
    shown("… refuses", "layer/breaker-open", Some("bare/trivial")),
    shown(
        "retry, first send succeeds",
        "retry/first-succeeds",
        Some("bare/trivial"),
    ),
    shown(
        "… request with 8 headers",
        "retry/request",
        Some("bare/request-cloned"),
    ),
    shown(
        "write refused by the gate",
        "gate/refused",
        Some("bare/trivial"),
    ),
    shown("whole stack", "stack/trivial", Some("bare/trivial")),
    shown(
        "… request with 8 headers",
        "stack/request",
        Some("bare/request-cloned"),
    ),
    shown(
        "… and a client that is Pending once",
        "stack/pending-once",
        Some("bare/pending-once"),
    ),
];

/// Who has a column, in order.
const WHO: [&str; 6] = [
    OURS,
    FLOOR,
    "tower-resilience",
    "recloser",
    "failsafe",
    "tower",
];

/// Whether a row is in the table of counts.
pub(crate) fn shows(row: &Row) -> bool {
    WHO.contains(&row.who)
        && SHOWN
            .iter()
            .any(|line| line.row == row.name || line.without == Some(row.name))
}

/// Instructions and allocations: the same on every machine, for one compiler.
pub(crate) fn counts(rows: &[Measured]) -> String {
    let mut text =
        String::from("| instructions · allocations of a call | tower-geo | client alone | floor |");
    for who in &WHO[2..] {
        _ = write!(text, " {who} |");
    }
    text.push_str("\n|---|---|---|---|---|---|---|---|\n");
    for line in SHOWN {
        let cell = |who: &str, row: &str| cell(rows, who, row);
        let without = line
            .without
            .map_or_else(|| "–".to_owned(), |row| cell(OURS, row));
        _ = write!(
            text,
            "| {} | **{}** | {without} |",
            line.title,
            cell(OURS, line.row)
        );
        for who in &WHO[1..] {
            _ = write!(text, " {} |", cell(who, line.row));
        }
        text.push('\n');
    }
    let versions: Vec<String> = versions()
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    _ = write!(
        text,
        "\nCounted by callgrind and by the allocator, rustc {} for {}; {}. What each row does, and \
         what a floor is: [benches/README.md](benches/README.md).\n",
        crate::RUSTC,
        crate::TARGET,
        versions.join(", ")
    );
    text
}

fn cell(rows: &[Measured], who: &str, name: &str) -> String {
    let is_row = |row: &&Measured| row.row == name && row.who == who;
    if let Some(row) = rows.iter().find(is_row) {
        let (instructions, allocations) = (row.instructions, row.allocations);
        let counts = instructions.zip(allocations);
        return counts.map_or_else(
            || UNKNOWN.to_owned(),
            |(instructions, allocations)| format!("{} · {allocations}", thousands(instructions)),
        );
    }
    let exists = crate::rows::all()
        .iter()
        .any(|row| row.name == name && row.who == who);
    if exists { UNKNOWN } else { "–" }.to_owned()
}

/// What depends on the machine: it is told, and compared by nobody.
pub(crate) fn times(rows: &[Measured]) -> String {
    let mut text = String::from(
        "| on one machine | | tower-geo | tower-resilience | recloser | failsafe |\n\
         |---|---|---|---|---|---|\n",
    );
    let find = |name: &str, who: &str| rows.iter().find(|row| row.row == name && row.who == who);
    for (title, name) in [
        ("breaker alone: admit and settle", "breaker/closed"),
        ("whole stack, request with 8 headers", "stack/request"),
    ] {
        _ = write!(text, "| {title} | ns |");
        for who in [OURS, "tower-resilience", "recloser", "failsafe"] {
            let ns = find(name, who).and_then(|row| row.ns);
            _ = write!(
                text,
                " {} |",
                told(ns.map(|ns| format!("{:.0}", ns.median)))
            );
        }
        text.push('\n');
    }
    for (title, name) in [
        (
            "two threads on one breaker, a call against one thread's",
            "breaker/two-threads",
        ),
        ("the same for the whole stack", "stack/two-threads"),
    ] {
        _ = write!(text, "| {title} | × |");
        for who in [OURS, "tower-resilience", "recloser", "failsafe"] {
            let row = find(name, who);
            let ratio = row.and_then(|row| {
                Some(format!(
                    "{:.2} ({} clean batches)",
                    row.ratio?.median, row.clean_batches?
                ))
            });
            _ = write!(text, " {} |", told(ratio));
        }
        text.push('\n');
    }
    for (title, bare, stack) in [
        (
            "hyper over loopback, HTTP/1.1, with the stack against without",
            "hyper/bare",
            "hyper/stack",
        ),
        ("… HTTP/2", "hyper/bare-http2", "hyper/stack-http2"),
    ] {
        let ratios = |name, who| {
            let row = find(name, who)?;
            let loopback = row.loopback.as_ref()?;
            let told = format!(
                "throughput {:.3}, CPU of the client {:.3}",
                row.ratio?.median, loopback.cpu_ratio.median
            );
            Some((told, loopback.pairs))
        };
        if let (Some((bare, pairs)), Some((with, _)), Some((floor, _))) = (
            ratios(bare, "hyper"),
            ratios(stack, OURS),
            ratios(stack, FLOOR),
        ) {
            _ = writeln!(
                text,
                "| {title} | × | {with} | floor: {floor}; bare against bare, {pairs} pairs: {bare} | | |"
            );
        }
    }
    text
}

fn told(value: Option<String>) -> String {
    value.unwrap_or_else(|| "–".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_shown_has_a_row_of_ours() {
        let rows = crate::rows::all();
        for line in SHOWN {
            for name in [Some(line.row), line.without].into_iter().flatten() {
                let is_there = rows.iter().any(|row| row.name == name && row.who == OURS);
                assert!(is_there, "{name}");
            }
        }
    }
}
