//! Instructions of one call: the difference of two runs under callgrind.

use std::process::Command;

const FEW: u64 = 2_000;
const MANY: u64 = 12_000;

/// How many instructions one call of this row takes.
pub(crate) fn instructions(row: &str) -> Result<u64, String> {
    let many = total(row, MANY)?;
    let few = total(row, FEW)?;
    Ok((many.saturating_sub(few) + (MANY - FEW) / 2) / (MANY - FEW))
}

fn total(row: &str, calls: u64) -> Result<u64, String> {
    let own = std::env::current_exe().map_err(|error| format!("where am I? {error}"))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .args(["--only-call", &calls.to_string(), row])
        .output()
        .map_err(|error| {
            format!("valgrind does not start ({error}); install it, or use --no-instructions")
        })?;
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("callgrind said nothing of `{row}`:\n{said}"))
}
