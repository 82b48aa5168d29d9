//! The drills that the rules were written with, through the binary.
//!
//! `drills/unsupported.txt` lists the files that need a key whose rule is not built yet, and
//! `drills/failing.txt` those that do not hold although every key of theirs is known. Both lists
//! can only shrink: a file that works must be taken out.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests may panic as tests do"
)]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::{files, geodrill, text};
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/drills")
        .join(name)
}

/// The lines `file: reason` of a list.
fn list(name: &str) -> BTreeMap<String, String> {
    std::fs::read_to_string(folder(name))
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| {
            let (file, reason) = line.split_once(": ").unwrap_or((line, ""));
            (file.to_owned(), reason.to_owned())
        })
        .collect()
}

fn drills() -> Vec<(String, PathBuf)> {
    ["azure-storage", "cosmos"]
        .iter()
        .flat_map(|name| {
            files(&folder(name), &["json"])
                .into_iter()
                .map(move |path| {
                    let file = path.file_name().unwrap().to_string_lossy().into_owned();
                    (format!("{name}/{file}"), path)
                })
        })
        // Two are tables of questions, and have tests of their own.
        .filter(|(name, _)| !name.ends_with("explain.json") && !name.ends_with("endpoints.json"))
        .collect()
}

#[test]
fn every_drill_whose_rules_are_built_holds() {
    let (mut unsupported, mut failing) = (BTreeMap::new(), BTreeMap::new());
    let mut held = 0;
    for (name, path) in drills() {
        let output = geodrill(["run".as_ref(), path.as_os_str()]);
        let told = text(&output.stderr);
        match output.status.code() {
            Some(0) => held += 1,
            Some(1) => {
                failing.insert(name, text(&output.stdout));
            }
            Some(2) if told.trim_end().ends_with("not supported yet") => {
                let key = told.trim_end().trim_end_matches(": not supported yet");
                let key = key.rsplit(": ").next().unwrap_or_default();
                unsupported.insert(name, key.to_owned());
            }
            code => {
                failing.insert(name, format!("exit {code:?}\n{told}"));
            }
        }
    }
    println!("{held} drills hold");
    println!(
        "{} need a key that is not supported yet:",
        unsupported.len()
    );
    for (name, key) in &unsupported {
        println!("  {name}: {key}");
    }
    let known = list("failing.txt");
    println!("{} do not hold:", failing.len());
    for (name, told) in &failing {
        println!(
            "  {name} ({})",
            known.get(name).map_or("NEW", String::as_str)
        );
        if !known.contains_key(name) {
            println!("{told}");
        }
    }
    let new: Vec<_> = failing
        .keys()
        .filter(|name| !known.contains_key(*name))
        .collect();
    assert!(new.is_empty(), "drills that do not hold: {new:#?}");
    let fixed: Vec<_> = known
        .keys()
        .filter(|name| !failing.contains_key(*name))
        .collect();
    assert!(
        fixed.is_empty(),
        "take these out of failing.txt: {fixed:#?}"
    );
    let wanted = list("unsupported.txt");
    assert_eq!(unsupported, wanted, "unsupported.txt can only shrink");
}

fn table(name: &str) -> Vec<Value> {
    let path = folder("azure-storage").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Every key of `wanted` is in `got`, with the same value.
fn assert_within(wanted: &Value, got: &Value, case: &Value) {
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(got.get(key), Some(value), "`{key}` of {case}\n{got}");
    }
}

/// I1 to I6.
#[test]
fn explain_rules_as_the_table_says() {
    for case in table("explain.json") {
        let word = |key: &str| case[key].as_str().unwrap().to_owned();
        let mut arguments = vec![
            "explain".to_owned(),
            "--format".to_owned(),
            "json".to_owned(),
            "--endpoint".to_owned(),
            word("endpoint"),
            word("method"),
            word("path"),
        ];
        for (name, value) in case["headers"].as_object().into_iter().flatten() {
            arguments.push("-H".to_owned());
            arguments.push(format!("{name}: {}", value.as_str().unwrap()));
        }
        let output = geodrill(&arguments);
        assert!(output.status.success(), "{case}: {}", text(&output.stderr));
        let got: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_within(&case["expect"], &got, &case);
        assert!(!got["why"].as_str().unwrap().is_empty());
    }
}

/// R11.
#[test]
fn endpoints_are_derived_as_the_table_says() {
    for case in table("endpoints.json") {
        let url = case["url"].as_str().unwrap();
        let output = geodrill(["endpoints", url, "--format", "json"]);
        let got: Value = serde_json::from_slice(&output.stdout).unwrap();
        if case["error"].is_null() {
            assert_eq!(output.status.code(), Some(0), "{case}");
            assert_within(&case["expect"], &got, &case);
        } else {
            assert_eq!(output.status.code(), Some(2), "{case}");
            assert_within(&case["error"], &got["error"], &case);
            let message = got["error"]["message"].as_str().unwrap();
            assert!(!message.is_empty() && !message.ends_with('.'), "{message}");
            let plain = geodrill(["endpoints", url]);
            assert_eq!(plain.status.code(), Some(2));
            assert!(text(&plain.stderr).contains(message));
        }
    }
}
