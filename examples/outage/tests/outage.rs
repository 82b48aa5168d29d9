//! The program as a person runs it, on real HTTP and in real time, only shorter.

use std::process::{Command, Output};

use serde_json::Value;

fn outage(arguments: &[&str]) -> Output {
    #[expect(clippy::unwrap_used, reason = "a helper of tests: they may panic")]
    Command::new(env!("CARGO_BIN_EXE_outage"))
        .args(arguments)
        .output()
        .unwrap()
}

/// Plays a short story and checks that it holds, by the exit code and by the report.
#[expect(clippy::unwrap_used, reason = "a helper of tests: they may panic")]
fn play(arguments: &[&str]) -> Value {
    let short = ["--duration", "9", "--outage", "2.5", "--format", "json"];
    let output = outage(&[&short, arguments].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}{text}", output.status);
    // The whole of standard output is one object.
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["holds"], true);
    assert_eq!(report["failed_reads"], 0);
    assert_eq!(report["writes_at_secondary"], 0);
    assert!(report["refused_writes"].as_u64().unwrap() > 0);
    assert!(report["times"]["to_switch_ms"].as_f64().unwrap() > 0.0);
    assert!(report["times"]["to_return_writes_ms"].as_f64().unwrap() > 0.0);
    report
}

/// R3, R7, G2, B4: refused connections move reads at once, and no write is lost or made up.
#[test]
fn the_story_holds_when_connections_are_refused() {
    let report = play(&["--failure", "refuse"]);
    assert_eq!(report["regions"], "embedded store");
}

/// V1: resets leave writes in the unknown, and the callers are told.
#[test]
fn the_story_holds_when_connections_are_reset() {
    play(&["--failure", "reset"]);
}

/// T3, B7: a black hole costs the first reads a time-out, and no later one.
#[test]
fn the_story_holds_when_the_primary_is_a_black_hole() {
    play(&["--failure", "freeze"]);
}

/// The same against the storage emulator. Needs `scripts/setup`.
#[test]
fn the_story_holds_against_the_storage_emulator() {
    let report = play(&["--azurite"]);
    assert_eq!(report["regions"], "azurite");
}

#[test]
fn people_get_what_happened_and_a_table() {
    let output = outage(&["--duration", "6", "--outage", "1.5", "--rate", "20"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "THE PRIMARY IS GONE: connections are refused",
        "gate: read-only (breaker)",
        "THE PRIMARY IS BACK",
        "sends per operation",
        "every acknowledged write is there, with its content",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert!(output.stderr.is_empty());
}

#[test]
fn bad_options_have_an_exit_code_of_their_own() {
    for arguments in [
        &["--outage", "60"][..],
        &["--duration", "soon"],
        &["--failure", "explode"],
        &["--no-such-option"],
    ] {
        let output = outage(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
        assert!(!output.stderr.is_empty());
    }
}
