//! The program as a person runs it, on real HTTP and in real time, only shorter.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic, as tests do"
)]

use std::process::{Command, Output};

use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosmos-regions"));
    command.args(arguments).output().unwrap()
}

/// C3, C4, C5, C8, C10, C13: a region that leaves, one that joins, a writer that moves, and one
/// that is lost.
#[test]
fn every_claim_holds() {
    let output = run(&["--duration", "8", "--format", "json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}{text}", output.status);
    // The whole of standard output is one object.
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["holds"], true);
    let claims = report["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 11);
    assert!(claims.iter().all(|claim| claim["holds"] == true));
    // Every part of the story was played, with reads and writes.
    let phases = report["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 7);
    let of = |phase: usize, kind: &str, region: &str| phases[phase][kind][region].as_u64().unwrap();
    assert!(of(0, "reads", "west") > 0 && of(0, "writes", "east") > 0);
    assert!(of(1, "reads", "east") > 0 && of(1, "reads", "west") == 0);
    assert!(of(5, "reads", "central") > 0 && of(5, "writes", "central") > 0);
    assert!(of(6, "reads", "east") > 0 && of(6, "writes", "east") > 0);
}

#[test]
fn people_get_what_happened_and_a_table() {
    let output = run(&["--duration", "8", "--rate", "20"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "reads are answered by West US",
        "WEST US LEAVES",
        "reads are answered by East US, no longer by West US",
        "CENTRAL US JOINS",
        "reads are answered by Central US, no longer by East US",
        "THE WRITER MOVES",
        "writes are answered by Central US, no longer by East US",
        "THE WRITER IS LOST",
        "writes are answered by East US, no longer by Central US",
        "Every claim holds.",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert!(output.stderr.is_empty());
}

#[test]
fn bad_options_have_an_exit_code_of_their_own() {
    for arguments in [
        &["--duration", "7"][..],
        &["--rate", "0"],
        &["--no-such-option"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
        assert!(!output.stderr.is_empty());
    }
}
