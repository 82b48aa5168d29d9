//! Drills about how old the secondary is: stores that replicate, polls, monitors, limits.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests may panic as tests do"
)]

mod common;

use common::{run_stdin, text};
use serde_json::{Value, json};

/// Plays a drill of one service called `blob` and gives its result.
fn play(blob: Value, rest: Value) -> Value {
    let mut drill = json!({
        "services": {"blob": {"provider": "azure-storage",
            "endpoint": "https://contoso.blob.core.windows.net"}},
        "stores": {"contoso.blob.core.windows.net": {"secondary_lag": "10s"}},
    });
    let merge = |into: &mut Value, from: Value| {
        let (into, from) = (
            into.as_object_mut().unwrap(),
            from.as_object().unwrap().clone(),
        );
        into.extend(from);
    };
    merge(&mut drill["services"]["blob"], blob);
    merge(&mut drill, rest);
    let output = run_stdin(drill.to_string().as_bytes(), &["--format", "json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn request(id: &str, at: &str, method: &str, body: &str) -> Value {
    json!({"id": id, "at": at, "service": "blob", "method": method, "path": "/c/b", "body": body,
        "headers": {"x-ms-blob-type": "BlockBlob"}})
}

fn results(played: &Value) -> Vec<(u64, String, String)> {
    let operations = played["operations"].as_array().unwrap();
    let of = |operation: &Value| {
        let result = &operation["result"];
        let word = |key: &str| result[key].as_str().unwrap_or("").to_owned();
        let region = result["error"]
            .as_str()
            .map_or_else(|| word("region"), str::to_owned);
        (result["status"].as_u64().unwrap_or(0), region, word("body"))
    };
    operations.iter().map(of).collect()
}

fn told(status: u64, region: &str, body: &str) -> (u64, String, String) {
    (status, region.to_owned(), body.to_owned())
}

/// What is written is in the secondary a lag later, and its freshness follows the Last Sync Time.
#[test]
fn a_store_replicates_with_its_lag() {
    let played = play(
        json!({"location_mode": "secondary-only", "last_sync": {"every": "1s"}}),
        json!({"requests": [
            request("w1", "0s", "PUT", "one"),
            request("early", "9900ms", "GET", ""),
            request("r1", "10s", "GET", ""),
            request("r2", "15s", "GET", ""),
            request("w2", "20s", "PUT", "two"),
            request("r3", "25s", "GET", ""),
            request("r4", "31s", "GET", ""),
        ]}),
    );
    assert_eq!(
        results(&played),
        [
            told(201, "primary", ""),
            told(404, "secondary", ""),
            told(200, "secondary", "one"),
            told(200, "secondary", "one"),
            told(201, "primary", ""),
            told(200, "secondary", "one"),
            told(200, "secondary", "two"),
        ]
    );
    let freshness = |index: usize| played["operations"][index]["freshness"].as_str();
    assert_eq!(freshness(1), Some("unknown"));
    // Written in the same second as the Last Sync Time.
    assert_eq!(freshness(2), Some("possibly-inconsistent"));
    assert_eq!(freshness(3), Some("consistent"));
    assert_eq!(freshness(6), Some("consistent"));
    assert_eq!(played["background"][0]["purpose"], "last-sync");
    assert_eq!(played["background"][0]["kind"], "first");
}

/// F5: a read does not go to the secondary until that has what was written.
#[test]
fn reads_see_what_was_written() {
    let drill = |on: bool| {
        play(
            json!({"location_mode": "secondary-then-primary", "last_sync": {"every": "1s"},
                "read_your_writes": on}),
            json!({"requests": [
                request("w1", "0s", "PUT", "one"),
                request("w2", "20s", "PUT", "two"),
                request("r1", "21s", "GET", ""),
                request("r2", "30s", "GET", ""),
                request("r3", "32s", "GET", ""),
            ]}),
        )
    };
    assert_eq!(
        results(&drill(false))[2],
        told(200, "secondary", "one"),
        "without it"
    );
    let played = drill(true);
    assert_eq!(results(&played)[2], told(200, "primary", "two"));
    assert_eq!(
        results(&played)[3],
        told(200, "primary", "two"),
        "LST is not later than w"
    );
    assert_eq!(results(&played)[4], told(200, "secondary", "two"));
}

/// F3: the secondary is never younger than its lag.
#[test]
fn a_limit_below_the_lag_is_always_stale() {
    let played = play(
        json!({"location_mode": "secondary-only", "last_sync": {"every": "1s"},
            "max_staleness": "9s"}),
        json!({"requests": [request("w", "0s", "PUT", "x"), request("r", "20s", "GET", "")]}),
    );
    assert_eq!(results(&played)[1], told(0, "stale", ""));
}

/// An answer that says otherwise than what was done, and a rule that does nothing.
#[test]
fn an_applied_answer_lies_about_what_the_store_did() {
    let played = play(
        json!({"retry": {"max_retries": 0}}),
        json!({
            "rules": [{"host": "contoso.blob.core.windows.net", "method": "PUT", "answers": [
                {"status": 502, "applied": true, "times": 1},
                {"status": 502, "times": 1},
                {"fault": "reset", "applied": true, "times": 1}]}],
            "requests": [
                request("w1", "0s", "PUT", "one"),
                request("r1", "1s", "GET", ""),
                request("w2", "2s", "PUT", "two"),
                request("r2", "3s", "GET", ""),
                request("w3", "4s", "PUT", "three"),
                request("r3", "5s", "GET", "")]
        }),
    );
    assert_eq!(
        results(&played),
        [
            told(502, "primary", ""),
            told(200, "primary", "one"),
            told(502, "primary", ""),
            told(200, "primary", "one"),
            told(0, "unknown-outcome", ""),
            told(200, "primary", "three"),
        ]
    );
}

/// B11: the pings of a monitor are in the background, and cost the callers nothing.
#[test]
fn a_monitor_finds_an_outage_that_no_caller_meets() {
    let played = play(
        json!({"location_mode": "primary-then-secondary", "breaker": {"streak": 2},
            "monitor": {"path": "/ping", "every": "5s", "timeout": "1s"}}),
        json!({
            "rules": [{"host": "contoso.blob.core.windows.net", "from": "7s", "until": "33s",
                "answers": [{"fault": "hang"}]}],
            "requests": [request("w", "0s", "PUT", "x"), request("r", "20s", "GET", ""),
                request("back", "36s", "GET", "")]
        }),
    );
    assert_eq!(
        played["events"][0]["at_ms"], 16_000,
        "two time-outs of a second"
    );
    assert_eq!(results(&played)[1], told(200, "secondary", "x"));
    assert_eq!(
        played["operations"][1]["sends"].as_array().unwrap().len(),
        1
    );
    assert_eq!(results(&played)[2], told(200, "primary", "x"));
    let pings = played["background"].as_array().unwrap();
    assert!(
        pings
            .iter()
            .all(|ping| ping["path"] == "/ping" && ping["purpose"] == "monitor")
    );
    assert_eq!(pings[1]["at_ms"], 10_000);
    assert_eq!(pings[1]["answer"], "timeout");
}

/// F1 and B11: what cannot be asked is told with its key, exit 2.
#[test]
fn what_cannot_be_asked_is_unusable() {
    for (service, path) in [
        (
            r#""endpoint": "https://a.file.core.windows.net", "last_sync": {"every": "1s"}"#,
            "services.s.last_sync",
        ),
        (
            r#""endpoint": "https://a.blob.core.windows.net", "secondary": null, "last_sync": {"every": "1s"}"#,
            "services.s.last_sync",
        ),
        (
            r#""endpoint": "https://a.queue.core.windows.net", "monitor": {"path": "/q/messages", "every": "1s"}"#,
            "services.s.monitor.path",
        ),
        (
            r#""endpoint": "https://a.blob.core.windows.net", "monitor": {"path": "/", "every": "1s", "method": "PUT"}"#,
            "services.s.monitor.method",
        ),
    ] {
        let drill =
            format!(r#"{{"services": {{"s": {{"provider": "azure-storage", {service}}}}}}}"#);
        let output = run_stdin(drill.as_bytes(), &[]);
        assert_eq!(output.status.code(), Some(2), "{drill}");
        let told = text(&output.stderr);
        assert!(
            told.starts_with(&format!("geodrill: -: {path}: ")),
            "{told}"
        );
    }
}
