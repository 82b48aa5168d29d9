//! What a run tells a person.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests may panic as tests do"
)]

mod common;

use common::{run_stdin, text};
use serde_json::{Value, json};

fn told(drill: &Value) -> String {
    let output = run_stdin(drill.to_string().as_bytes(), &[]);
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Two hours in which the primary fails ten seconds of every two minutes.
fn flapping() -> Value {
    let rules: Vec<Value> = (0..60)
        .map(|minute| {
            json!({"host": "contoso.blob.core.windows.net", "from": format!("{}s", minute * 120 + 40),
                "until": format!("{}s", minute * 120 + 50), "answers": [{"status": 503}]})
        })
        .collect();
    json!({
        "name": "up\nand down",
        "services": {"blob": {"provider": "azure-storage", "endpoint": "https://contoso.blob.core.windows.net",
            "location_mode": "primary-then-secondary"}},
        "rules": rules,
        "requests": [{"id": "r", "every": "500ms", "until": "2h", "service": "blob", "path": "/c/b"}]
    })
}

#[test]
fn a_column_of_several_states_is_not_shown_as_open_throughout() {
    let told = told(&flapping());
    let line = told
        .lines()
        .find(|line| line.trim_start().starts_with("primary reads"))
        .unwrap();
    // Open and closed again in each column: never all of it, and the trial is to be seen.
    assert!(line.contains('▞') && !line.contains('█'), "{told}");
    assert!(told.contains("▞ that, and half open"), "{told}");
}

#[test]
fn the_last_events_are_listed_as_the_first_are() {
    let told = told(&flapping());
    let events: Vec<&str> = told
        .lines()
        .skip_while(|line| *line != "events")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect();
    assert_eq!(events.len(), 17, "{told}");
    assert!(
        events[0].contains("primary reads: closed to open (streak)"),
        "{told}"
    );
    // Times of different length end in one column.
    assert!(events.iter().all(|line| line.chars().nth(11) != Some(' ')));
    assert!(
        events[8].contains("… ") && events[8].contains(" between: --format json"),
        "{told}"
    );
    assert!(
        events[9..]
            .iter()
            .any(|line| line.contains("half-open to closed (probe)")),
        "{told}"
    );
}

#[test]
fn a_name_of_several_lines_is_told_in_one() {
    assert_eq!(told(&flapping()).lines().next(), Some("up and down"));
}

#[test]
fn where_nothing_was_answered_there_is_no_latency_to_tell() {
    let told = told(&json!({
        "services": {"blob": {"provider": "azure-storage", "endpoint": "https://contoso.blob.core.windows.net"}},
        "expect": [{"at": "/operations/0/id", "is": "r"}]
    }));
    assert!(
        told.contains("no operation got an answer or failed"),
        "{told}"
    );
    assert!(!told.contains("0 ms"), "{told}");
    assert!(told.contains("got     nothing there"), "{told}");
}
