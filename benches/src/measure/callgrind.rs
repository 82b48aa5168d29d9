//! Instructions of one call: the difference of two runs under callgrind.
//!
//! Both runs do the same except for the number of calls, so that what a program does before and
//! after cancels out. No time is involved: a busy machine counts the same.

use std::process::Command;

use crate::row::{Row, Work};

const FEW: u32 = 2_000;
const MANY: u32 = 12_000;

/// How many instructions one call of this row takes; None where that says nothing.
pub(crate) fn instructions(row: &Row) -> Result<Option<u64>, String> {
    let (few, many) = match row.work {
        Work::Calls(_) => (FEW, MANY),
        Work::Fresh(calls, _) => (0, calls),
        Work::Threads(_) | Work::Memory(_) | Work::Loopback(_) => return Ok(None),
    };
    let calls = u64::from(many - few);
    let more = total(row, many)?.saturating_sub(total(row, few)?);
    Ok(Some((more + calls / 2) / calls))
}

/// Whether there is a valgrind, and what to do if not.
pub(crate) fn is_there() -> Result<(), String> {
    match Command::new("valgrind").arg("--version").output() {
        Ok(said) if said.status.success() => Ok(()),
        Ok(said) => Err(format!("`valgrind --version` fails: {}", said.status)),
        Err(error) => Err(format!(
            "valgrind does not start ({error}): install it (scripts/setup benches; Debian: \
             apt-get install valgrind), or measure with --no-instructions"
        )),
    }
}

fn total(row: &Row, calls: u32) -> Result<u64, String> {
    let own = std::env::current_exe().map_err(|error| format!("where am I? {error}"))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .args([
            "--only-call",
            &calls.to_string(),
            "--who",
            row.who,
            row.name,
        ])
        .output()
        .map_err(|error| format!("valgrind does not start: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("`{}` of {} fails:\n{said}", row.name, row.who));
    }
    said.lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("callgrind said nothing of `{}`:\n{said}", row.name))
}
