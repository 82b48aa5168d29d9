//! Cosmos accounts, as the command shows them: the result, the text, the warnings, `explain`.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests may panic as tests do"
)]

mod common;

use common::{geodrill, run_stdin, text};
use serde_json::{Value, json};

/// Reads and writes of a single-write account whose writer moves, and whose first region leaves.
fn drill() -> Value {
    let write = json!({"id": "w", "at": "100ms", "every": "1s", "until": "30s", "service": "docs",
        "method": "POST", "path": "/dbs/d/colls/c/docs", "body": "{}", "show": ["x-ms-version"]});
    json!({
        "services": {"docs": {"provider": "cosmos", "endpoint": "https://acct.documents.azure.com",
            "preferred": ["West US", "Mars"], "refresh": "10s"}},
        "accounts": {"acct.documents.azure.com": {
            "readable": ["East US", "West US"], "writable": ["East US"],
            "changes": [{"at": "15s", "readable": ["West US", "East US"], "writable": ["West US"]}]}},
        "hosts": {"acct.documents.azure.com": {"latency": "3ms"}},
        "rules": [
            {"host": "acct.documents.azure.com", "path": "/", "from": "9s", "until": "11s",
                "answers": [{"status": 503}]},
            {"host": "acct-eastus.documents.azure.com", "method": "POST", "from": "15s",
                "answers": [{"status": 403, "headers": {"x-ms-substatus": "3"}}]}],
        "requests": [{"id": "r", "every": "1s", "until": "30s", "service": "docs", "path": "/dbs/d/colls/c/docs/1"}, write]
    })
}

fn result(drill: &Value) -> Value {
    let output = run_stdin(drill.to_string().as_bytes(), &["--format", "json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The account read at start and all later ones are in `background`, and count for no region.
#[test]
fn account_reads_are_in_the_background() {
    let result = result(&drill());
    let background = result["background"].as_array().unwrap();
    let first = &background[0];
    assert_eq!(
        *first,
        json!({"at_ms": 0, "service": "docs", "purpose": "account", "kind": "first", "region": "global",
            "host": "acct.documents.azure.com", "path": "/", "answer": 200, "took_ms": 3})
    );
    // At start, each 10 s after the one before, and at once when a write was refused.
    let at: Vec<_> = background
        .iter()
        .map(|send| send["at_ms"].as_u64().unwrap())
        .collect();
    assert_eq!(at, [0, 10_003, 15_100, 25_103]);
    assert_eq!(background[1]["answer"], 503);
    // Nothing but the account was asked of the global host, so it is no region of the summary.
    assert_eq!(
        result["summary"]["sends"],
        json!({"East US": 16, "West US": 45})
    );
    assert_eq!(result["summary"]["operations"], 60);
    assert_eq!(result["summary"]["amplification"], 1.017);
}

#[test]
fn sends_and_answers_name_the_regions_of_the_account() {
    let result = result(&drill());
    let operations = result["operations"].as_array().unwrap();
    let first = &operations[0];
    assert_eq!(
        (&first["id"], &first["sends"][0]["region"]),
        (&json!("r#0"), &json!("West US"))
    );
    // The operation waited for the account.
    assert_eq!(first["sends"][0]["at_ms"], 3);
    let moved = operations
        .iter()
        .find(|operation| operation["id"] == "w#15")
        .unwrap();
    let sends = moved["sends"].as_array().unwrap();
    let regions: Vec<_> = sends
        .iter()
        .map(|send| send["region"].as_str().unwrap())
        .collect();
    assert_eq!(regions, ["East US", "West US"]);
    assert_eq!(moved["result"]["region"], "West US");
    let kinds: Vec<_> = sends
        .iter()
        .map(|send| send["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[0], "first");
}

#[test]
fn names_that_the_account_never_had_are_told() {
    let warnings = result(&drill())["warnings"].clone();
    let mars = "services.docs.preferred[1]: the account never had a region `Mars`";
    assert_eq!(warnings, json!([mars]));
    let mut unread = drill();
    unread["accounts"] =
        json!({"other.documents.azure.com": {"readable": ["A"], "writable": ["A"]}});
    let result = result(&unread);
    let warnings = result["warnings"].as_array().unwrap();
    let told: Vec<_> = warnings
        .iter()
        .map(|warning| warning.as_str().unwrap())
        .collect();
    assert!(
        told.contains(&"accounts.other.documents.azure.com: nobody read it"),
        "{told:?}"
    );
    let no_document = told
        .iter()
        .any(|warning| warning.contains("nobody gave it an account document"));
    assert!(no_document, "{told:?}");
    // Without an account nothing can be asked of it.
    let errors = result["operations"].as_array().unwrap().iter();
    let errors = errors.filter(|operation| operation["result"]["error"] == "transport");
    assert_eq!(errors.count(), 60);
}

#[test]
fn people_see_reads_writes_and_account_reads_apart() {
    let output = run_stdin(drill().to_string().as_bytes(), &[]);
    let told = text(&output.stdout);
    let row = |label: &str| {
        let line = told
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(label));
        line.unwrap_or_else(|| panic!("no {label} in\n{told}"))
            .trim_start()
            .to_owned()
    };
    let letters = |row: &str| {
        row.chars()
            .filter(char::is_ascii_alphabetic)
            .collect::<String>()
    };
    assert!(
        letters(&row("reads by"))
            .chars()
            .all(|letter| letter == 'W')
    );
    let writes = letters(&row("writes by"));
    assert!(writes.starts_with('E') && writes.ends_with('W'), "{writes}");
    let reads = row("account read");
    assert_eq!(
        (reads.matches('●').count(), reads.matches('○').count()),
        (3, 1),
        "{told}"
    );
    assert!(
        told.contains("E East US  W West US") && !told.contains("global"),
        "{told}"
    );
    let width = told.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(width <= 100, "{width}\n{told}");
}

/// A refusal that only says where else to go is no answer: neither in the summary nor in pictures.
#[test]
fn a_refusal_that_moves_a_request_is_a_failure() {
    let drill = json!({
        "services": {"docs": {"provider": "cosmos", "endpoint": "https://acct.documents.azure.com"}},
        "accounts": {"acct.documents.azure.com": {"readable": ["East US"], "writable": ["East US"]}},
        "rules": [{"host": "acct-eastus.documents.azure.com", "path": "/dbs*",
            "answers": [{"status": 403, "headers": {"x-ms-substatus": "1008"}}]}],
        "requests": [{"id": "r", "service": "docs", "path": "/dbs/d/colls/c/docs/1"}],
        "expect": [{"at": "/summary/failed", "is": 1}, {"at": "/operations/0/result/status", "is": 403}]
    });
    let result = result(&drill);
    assert!(
        result["expect"]
            .as_array()
            .unwrap()
            .iter()
            .all(|expect| expect["ok"] == true)
    );
}

/// C11: a list of a request counts instead of that of its service, also an empty one.
#[test]
fn a_request_can_leave_other_regions_out() {
    let read = |id: &str, excluded: Value| json!({"id": id, "service": "docs", "path": "/dbs/d/colls/c/docs/1", "excluded": excluded});
    let drill = json!({
        "services": {"docs": {"provider": "cosmos", "endpoint": "https://acct.documents.azure.com",
            "excluded": ["East US"]}},
        "accounts": {"acct.documents.azure.com": {"readable": ["East US", "West US"], "writable": ["East US"]}},
        "requests": [read("none", json!(null)), read("empty", json!([])), read("west", json!(["westus"])),
            read("all", json!(["West US", "East US"]))]
    });
    let result = result(&drill);
    let regions: Vec<_> = result["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| {
            operation["result"]["region"]
                .as_str()
                .unwrap_or("none")
                .to_owned()
        })
        .collect();
    assert_eq!(regions, ["West US", "East US", "East US", "none"]);
    assert_eq!(result["operations"][3]["result"]["error"], "config");
}

/// I7, C2.
#[test]
fn explain_knows_cosmos_by_its_host_or_by_name() {
    let ask = |arguments: &[&str]| -> Value {
        let arguments = [&["explain", "--format", "json"], arguments].concat();
        let output = geodrill(&arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let host = ["--endpoint", "https://acct.documents.azure.com"];
    let docs = "/dbs/d/colls/c/docs";
    for (more, intent, gated, redirectable) in [
        (&["GET", docs][..], "read", false, true),
        (&["POST", docs], "write", true, false),
        (
            &["POST", docs, "-H", "x-ms-documentdb-isquery: True"],
            "read",
            false,
            true,
        ),
        (
            &["POST", docs, "-H", "content-type: application/query+json"],
            "read",
            false,
            true,
        ),
        (&["POST", "/dbs/d/colls/c/sprocs/s"], "write", true, false),
        (&["POST", "/dbs/d/colls"], "write", true, false),
        (&["OPTIONS", docs], "neutral", false, false),
    ] {
        let said = ask(&[&host[..], more].concat());
        assert_eq!(said["service"], "cosmos");
        assert_eq!(said["intent"], intent, "{more:?}");
        assert_eq!(
            (&said["gated"], &said["redirectable"]),
            (&json!(gated), &json!(redirectable))
        );
        assert!(!said["why"].as_str().unwrap().is_empty());
    }
    let endpoints = geodrill([
        "endpoints",
        "https://acct.documents.azure.com",
        "--format",
        "json",
    ]);
    let said: Value = serde_json::from_slice(&endpoints.stdout).unwrap();
    assert_eq!(endpoints.status.code(), Some(2));
    assert_eq!(said["error"]["kind"], "not-derivable");
    let message = said["error"]["message"].as_str().unwrap();
    assert!(message.contains("account document"), "{message}");
    let emulator = ask(&[
        "--endpoint",
        "https://127.0.0.1:8081",
        "--service",
        "cosmos",
        "GET",
        docs,
    ]);
    assert_eq!(
        (&emulator["service"], &emulator["intent"]),
        (&json!("cosmos"), &json!("read"))
    );
    let regional = ask(&[
        "--endpoint",
        "https://acct-westus.documents.azure.cn:443",
        "GET",
        docs,
    ]);
    assert_eq!(regional["service"], "cosmos");
}
