//! Files that cannot be used: exit 2 with the path of the key, and never a panic.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests may panic as tests do"
)]

mod common;

use std::path::Path;

use common::{files, run_stdin, text};
use geodrill::{Syntax, check};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_assert, proptest};
use serde_json::{Value, json};

/// Good drills in all three syntaxes.
fn good() -> Vec<(String, Syntax)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let gallery = files(&root.join("../../drills"), &["toml", "yaml"]);
    let azure = files(&root.join("tests/drills/azure-storage"), &["json"]);
    gallery
        .into_iter()
        .chain(azure.into_iter().step_by(20))
        .map(|path| {
            let syntax = match path.extension().unwrap().to_str().unwrap() {
                "toml" => Syntax::Toml,
                "yaml" => Syntax::Yaml,
                _ => Syntax::Json,
            };
            (std::fs::read_to_string(path).unwrap(), syntax)
        })
        .filter(|(text, syntax)| check(text, *syntax).is_ok())
        .collect()
}

/// A drill that uses every key that is supported.
fn rich() -> Value {
    json!({
        "name": "rich", "seed": 1, "defaults": "exact", "start": "2026-01-01T00:00:00Z",
        "services": {
            "blob": {
                "provider": "azure-storage", "endpoint": "https://contoso.blob.core.windows.net",
                "secondary": "derive", "location_mode": "primary-then-secondary",
                "retry": {"mode": "fixed", "max_retries": 2, "delay": "1s", "max_delay": "2s",
                    "jitter": "full", "attempt_timeout": "1s", "deadline": "10s",
                    "budget": {"capacity": 10}, "replay": "all", "buffer": 16,
                    "body_idle": "1s", "resume": false},
                "breaker": {"streak": 3,
                    "rate": {"threshold": 0.5, "window": "1m", "minimum": 5},
                    "slow": {"after": "1s", "threshold": 0.5, "window": "1m", "minimum": 5},
                    "open_for": "1s", "max_open_for": "5s", "open_for_calls": 7,
                    "suspect_after": "1s", "jitter": "equal", "probes": 2,
                    "probe_deadline": "1s", "close_after": 2, "ramp": [0.5], "ramp_step": "1s"},
                "read_only": "manual", "writes_while_read_only": "refuse",
                "monitor": {"method": "HEAD", "path": "/ping", "every": "5s", "timeout": "1s"},
                "last_sync": {"every": "30s"}, "max_staleness": "5m", "read_your_writes": true
            },
            "queue": {"provider": "azure-storage", "share_state_with": "blob",
                "endpoint": "https://contoso.queue.core.windows.net"},
            "mirror": {"provider": "static", "regions": [
                {"name": "eu", "endpoint": "https://eu.example.test", "writable": true},
                {"name": "us", "endpoint": "https://us.example.test"}]},
            "docs": {"provider": "cosmos", "endpoint": "https://acct.documents.azure.com",
                "preferred": ["West US"], "excluded": ["East US"], "multi_write": true,
                "discovery": true, "refresh": "5m", "refresh_jitter": "1s", "mark_for": "5m"}
        },
        "accounts": {"acct.documents.azure.com": {
            "readable": ["East US", "West US"], "writable": ["East US"], "multi_write": false,
            "changes": [{"at": "10s", "readable": ["West US"], "writable": ["West US"], "multi_write": true}]}},
        "stores": {"contoso.blob.core.windows.net": {"secondary_lag": "10s"}},
        "hosts": {"eu.example.test": {"answer": {"status": 200, "body": "x"}, "latency": "5ms"}},
        "rules": [{"host": "contoso.blob.core.windows.net", "method": "GET", "path": "/c/*",
            "headers": {"x-ms-version": "2024-*"}, "from": "1s", "until": "2s", "rate": 0.5,
            "answers": [
                {"status": 200, "times": 2, "headers": {"etag": "x"}, "body": "0123", "latency": "1ms", "cut_after": 2},
                {"status": 200, "body": "0123", "stall_after": 2},
                {"status": 502, "applied": true},
                {"fault": "connect"}]}],
        "requests": [{"id": "r", "at": "1s", "every": "1s", "until": "5s", "service": "blob",
            "method": "GET", "path": "/c/b", "headers": {"accept": "*/*"}, "body": "", "streaming": false,
            "replayable": true, "location_mode": "primary-only", "pin": "primary",
            "show": ["host"], "cancel_after": "1s"},
            {"id": "c", "service": "docs", "path": "/dbs", "excluded": ["West US"]}],
        "operator": [{"at": "1s", "service": "blob", "do": "force-open", "region": "secondary"},
            {"at": "1s", "service": "blob", "do": "location-mode", "to": "primary-only"}],
        "expect": [{"at": "/summary/failed", "is": 0}]
    })
}

/// Whether the keys of an object are names that the user makes up.
fn is_free_form(path: &str) -> bool {
    ["services", "hosts", "accounts", "stores", "headers"]
        .iter()
        .any(|end| path.ends_with(end))
}

/// Every place in a tree: the path as problems write it, and the JSON pointer.
fn places(value: &Value, path: String, pointer: String, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                let dot = if path.is_empty() { "" } else { "." };
                places(
                    child,
                    format!("{path}{dot}{key}"),
                    format!("{pointer}/{key}"),
                    out,
                );
            }
        }
        Value::Array(list) => {
            for (index, child) in list.iter().enumerate() {
                places(
                    child,
                    format!("{path}[{index}]"),
                    format!("{pointer}/{index}"),
                    out,
                );
            }
        }
        _ => {}
    }
    out.push((path, pointer));
}

/// Bad files, each with the path that its problem must begin with.
fn mutations() -> Vec<(String, Value)> {
    let rich = rich();
    let mut all = Vec::new();
    places(&rich, String::new(), String::new(), &mut all);
    let mut bad = Vec::new();
    for (path, pointer) in all {
        // What an expectation wants may be any value at all.
        if path == "expect[0].is" {
            continue;
        }
        let mut replace = |with: Value| {
            let mut copy = rich.clone();
            *copy.pointer_mut(&pointer).unwrap() = with;
            bad.push((path.clone(), copy));
        };
        match rich.pointer(&pointer).unwrap() {
            Value::Object(map) => {
                replace(json!(7));
                replace(json!("text"));
                // The values in the order of the keys are no object.
                replace(json!([]));
                replace(map.values().cloned().collect());
                let is_pattern = path.ends_with("headers");
                if !is_free_form(&path) || is_pattern {
                    let mut more = map.clone();
                    let (key, value) = if is_pattern {
                        ("not a name", json!("x"))
                    } else {
                        ("unknown", json!(1))
                    };
                    more.insert(key.to_owned(), value);
                    replace(Value::Object(more));
                }
            }
            Value::Array(_) => {
                replace(json!({"a": 1}));
                replace(json!([{"unknown": 1}]));
            }
            Value::String(_) => {
                replace(json!({"a": 1}));
                replace(json!([]));
                let free = path == "expect[0].at"
                    || [
                        "name",
                        "body",
                        "path",
                        "id",
                        "headers.etag",
                        "headers.accept",
                        "x-ms-version",
                    ]
                    .iter()
                    .any(|end| path.ends_with(end));
                if !free {
                    replace(json!("-5s \u{7f}"));
                }
            }
            Value::Number(_) => {
                replace(json!("5"));
                replace(json!(-1));
                replace(json!(1e300));
            }
            Value::Bool(_) => {
                replace(json!("yes"));
                replace(json!(1));
            }
            Value::Null => {}
        }
    }
    bad
}

#[test]
fn the_drill_to_be_broken_is_good() {
    assert_eq!(check(&rich().to_string(), Syntax::Json), Ok(()));
    assert!(good().len() > 15);
}

#[test]
fn every_mutation_is_refused_with_the_path_of_its_key() {
    let mutations = mutations();
    assert!(mutations.len() >= 250, "{}", mutations.len());
    for (path, drill) in mutations {
        match check(&drill.to_string(), Syntax::Json) {
            Ok(()) => panic!("{path} was taken: {}", drill),
            Err(problem) => {
                let told = problem.path();
                assert!(
                    told.starts_with(&path) || path.starts_with(told) && !told.is_empty(),
                    "{path}: {problem}"
                );
            }
        }
    }
}

#[test]
fn a_hundred_mutations_end_the_command_with_exit_2_and_a_path() {
    let mutations = mutations();
    let step = (mutations.len() / 100).max(1);
    let mut tried = 0;
    for (path, drill) in mutations.into_iter().step_by(step) {
        let output = run_stdin(drill.to_string().as_bytes(), &[]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{path}: {told}");
        let told = told
            .strip_prefix("geodrill: -: ")
            .unwrap_or_else(|| panic!("{told}"));
        let root = path.split(['.', '[']).next().unwrap();
        assert!(told.starts_with(root), "{path}: {told}");
        assert!(output.stdout.is_empty());
        tried += 1;
    }
    assert!(tried >= 100, "{tried}");
}

/// A good file of any syntax with a few bytes changed, taken out or put in.
fn damaged() -> impl Strategy<Value = (Vec<u8>, Syntax)> {
    let good = good();
    (0..good.len()).prop_flat_map(move |index| {
        let (text, syntax) = good[index].clone();
        let edits =
            prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6);
        (Just(text), Just(syntax), edits).prop_map(|(text, syntax, edits)| {
            let mut bytes = text.into_bytes();
            for (at, byte, edit) in edits {
                let at = at.index(bytes.len());
                match edit {
                    0 => bytes[at] = byte,
                    1 => drop(bytes.remove(at)),
                    2 => bytes.insert(at, byte),
                    // A run of the same byte, as deep nesting or a long number is.
                    _ => drop(bytes.splice(at..at, std::iter::repeat_n(byte, 300))),
                }
            }
            (bytes, syntax)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_read_or_refused((bytes, syntax) in damaged()) {
        if let Err(problem) = check(&String::from_utf8_lossy(&bytes), syntax) {
            prop_assert!(!problem.message().is_empty());
            prop_assert!(!problem.message().contains('\n'), "{}", problem);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}", which in 0..3_usize) {
        let syntax = [Syntax::Json, Syntax::Toml, Syntax::Yaml][which];
        prop_assert!(check(&text, syntax).is_err());
    }
}
