//! The program as a person runs it, on real HTTP and in real time, only shorter.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic, as tests do"
)]

use std::process::{Command, Stdio};

use serde_json::Value;

fn outage(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outage"));
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Plays short stories at once, since they take time but hardly any work, and checks that each
/// holds, by the exit code and by the report.
fn play<const N: usize>(stories: [&[&str]; N]) -> [Value; N] {
    let short = ["--duration", "9", "--outage", "2.5", "--format", "json"];
    let begun = stories.map(|story| outage(&[&short, story].concat()).spawn().unwrap());
    let ended = begun.map(|child| child.wait_with_output().unwrap());
    ended.map(|output| {
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
    })
}

/// R3, R7, G2, B4, V1, T3, B7: reads go on, and no write is lost or made up, whether connections are
/// refused, reset, or swallowed by a black hole.
#[test]
fn the_story_holds_however_the_primary_fails() {
    let stories = [
        &["--failure", "refuse"][..],
        &["--failure", "reset"],
        &["--failure", "freeze"],
    ];
    for report in play(stories) {
        assert_eq!(report["regions"], "embedded store");
    }
}

/// The same against the storage emulator. Needs `scripts/setup`.
#[test]
fn the_story_holds_against_the_storage_emulator() {
    let [report] = play([&["--azurite"][..]]);
    assert_eq!(report["regions"], "azurite");
}

#[test]
fn people_get_what_happened_and_a_table() {
    let mut output = outage(&["--duration", "6.5", "--outage", "2", "--rate", "20"]);
    let output = output.output().unwrap();
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
        let output = outage(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
        assert!(!output.stderr.is_empty());
    }
}
