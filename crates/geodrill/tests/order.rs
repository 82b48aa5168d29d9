//! What comes first at one instant: operators, timers, requests in file order.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests may panic as tests do"
)]

mod common;

use common::{run_stdin, text};
use serde_json::{Value, json};

const HOST: &str = "contoso.blob.core.windows.net";

/// Plays a drill with one service and gives its result.
fn play(service: &Value, rest: &Value) -> Value {
    let mut blob = json!({"provider": "azure-storage", "endpoint": format!("https://{HOST}")});
    let mut drill = json!({});
    for (into, from) in [(&mut blob, service), (&mut drill, rest)] {
        for (key, value) in from.as_object().unwrap() {
            into[key] = value.clone();
        }
    }
    drill["services"] = json!({ "blob": blob });
    let output = run_stdin(drill.to_string().as_bytes(), &["--format", "json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn put(at: &str) -> Value {
    json!({"id": at, "at": at, "service": "blob", "method": "PUT", "path": "/c/b",
        "headers": {"x-ms-blob-type": "BlockBlob"}, "body": "x"})
}

#[test]
fn an_operator_comes_before_a_request_of_the_same_instant() {
    for at in ["0s", "5s"] {
        let result = play(
            &json!({}),
            &json!({
                "requests": [put(at)],
                "operator": [{"at": at, "service": "blob", "do": "read-only"}]
            }),
        );
        assert_eq!(
            result["operations"][0]["result"]["error"], "read-only",
            "{at}"
        );
    }
}

/// A write that waits for a retry ends with what it has when maintenance begins (G4): also when
/// its timer is due at that very instant.
#[test]
fn an_operator_comes_before_a_timer_of_the_same_instant() {
    let drill = |maintenance: &str| {
        play(
            &json!({"retry": {"delay": "1s"}, "breaker": null}),
            &json!({
                "rules": [{"host": HOST, "answers": [{"status": 503}, {"status": 201}]}],
                "requests": [put("0s")],
                "operator": [{"at": maintenance, "service": "blob", "do": "maintenance"}]
            }),
        )
    };
    let statuses = |result: Value| result["operations"][0]["result"]["status"].clone();
    assert_eq!(statuses(drill("1s")), 503);
    assert_eq!(statuses(drill("1001ms")), 201);
}

#[test]
fn a_timer_comes_before_a_request_of_the_same_instant() {
    // The answer that opens the circuit is there at the very instant of the second request.
    let get = |at: &str| json!({"id": at, "at": at, "service": "blob", "path": "/c/b"});
    let result = play(
        &json!({"retry": {"max_retries": 0}, "breaker": {"streak": 1}}),
        &json!({
            "rules": [{"host": HOST, "answers": [{"status": 503, "latency": "10ms"}]}],
            "requests": [get("0s"), get("9ms"), get("10ms")]
        }),
    );
    let ends: Vec<&Value> = (0..3)
        .map(|index| &result["operations"][index]["result"])
        .collect();
    assert_eq!(ends[0]["status"], 503);
    assert_eq!(ends[1]["status"], 503);
    assert_eq!(ends[2]["error"], "breaker-open");
}

#[test]
fn requests_of_one_instant_come_in_file_order_and_so_do_their_results() {
    let request =
        |id: &str, at: &str| json!({"id": id, "at": at, "service": "blob", "path": "/c/b"});
    let series = json!({"id": "s", "at": "0s", "every": "1s", "until": "3s", "service": "blob", "path": "/c/s"});
    let result = play(
        &json!({}),
        &json!({
            "hosts": {HOST: {"latency": "1h"}},
            "rules": [{"host": HOST, "answers": [{"status": 201}, {"status": 202}, {"status": 203}, {"status": 204}, {"status": 205}]}],
            "requests": [request("b", "1s"), series, request("a", "1s")]
        }),
    );
    let operations = result["operations"].as_array().unwrap();
    let ids: Vec<&str> = operations
        .iter()
        .map(|operation| operation["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["s#0", "b", "s#1", "a", "s#2"]);
    let statuses: Vec<u64> = operations
        .iter()
        .map(|operation| operation["result"]["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 202, 203, 204, 205]);
}

#[test]
fn what_an_operator_cannot_do_is_a_warning() {
    let result = play(
        &json!({"secondary": null}),
        &json!({"operator": [{"at": "1s", "service": "blob", "do": "maintenance"}]}),
    );
    let warning = result["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("operator at 1s on blob: "), "{warning}");
}
