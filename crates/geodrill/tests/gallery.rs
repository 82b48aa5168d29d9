//! The drills that users start from: they hold, they are the same each time, they can be drawn.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests may panic as tests do"
)]

mod common;

use std::path::{Path, PathBuf};

use common::{files, geodrill, text};
use serde_json::Value;

fn gallery() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drills");
    files(&folder, &["toml", "yaml", "json"])
}

#[test]
fn every_drill_of_the_gallery_holds_without_a_warning() {
    let mut failed = Vec::new();
    for path in gallery() {
        let output = geodrill(["run".as_ref(), path.as_os_str()]);
        let told = text(&output.stdout);
        if output.status.code() != Some(0) || told.contains("warning") {
            failed.push(format!(
                "{}\n{told}{}",
                path.display(),
                text(&output.stderr)
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_gallery_has_its_outages_and_lists_them() {
    let names: Vec<String> = gallery()
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), 12, "{names:?}");
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drills/README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    for name in names {
        assert!(readme.contains(&format!("({name})")), "{name}");
    }
}

#[test]
fn the_same_drill_gives_the_same_bytes() {
    for path in gallery() {
        for format in ["json", "text"] {
            let run = || geodrill(["run", path.to_str().unwrap(), "--format", format]).stdout;
            let first = run();
            assert!(!first.is_empty());
            assert!(first == run(), "{} as {format}", path.display());
        }
    }
}

#[test]
fn another_seed_gives_another_run_where_something_is_random() {
    let path = gallery()
        .into_iter()
        .find(|path| path.ends_with("half-of-it-fails.toml"))
        .unwrap();
    let run = |seed: &str| {
        let output = geodrill([
            "run",
            path.to_str().unwrap(),
            "--format",
            "json",
            "--seed",
            seed,
        ]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let (first, second) = (run("1"), run("2"));
    assert_eq!((&first["seed"], &second["seed"]), (&1.into(), &2.into()));
    assert_ne!(first["operations"], second["operations"]);
}

/// The drill asks its reader to play it so: 1 is its own, and in 7 the streak comes first.
#[test]
fn a_random_drill_holds_with_other_seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drills");
    let path = folder.join("half-of-it-fails.toml");
    for seed in ["2", "7", "11"] {
        let output = geodrill(["run", path.to_str().unwrap(), "--seed", seed]);
        let told = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{seed}: {told}");
    }
}

/// Text and pictures need counters only; they must tell the same as the full result.
#[test]
fn counters_agree_with_the_operations_they_count() {
    for path in gallery() {
        let output = geodrill(["run", path.to_str().unwrap(), "--format", "json"]);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let operations = result["operations"].as_array().unwrap();
        let summary = &result["summary"];
        assert_eq!(summary["operations"], operations.len());
        let sends: usize = operations
            .iter()
            .map(|operation| operation["sends"].as_array().unwrap().len())
            .sum();
        let counted: u64 = summary["sends"]
            .as_object()
            .unwrap()
            .values()
            .map(|count| count.as_u64().unwrap())
            .sum();
        assert_eq!(counted, sends as u64, "{}", path.display());
        let ended: u64 = ["succeeded", "failed", "refused", "deferred", "cancelled"]
            .iter()
            .map(|key| summary[*key].as_u64().unwrap())
            .sum();
        assert_eq!(ended, operations.len() as u64);
        // The text of a run that keeps counters only shows the same sums.
        let shown = text(&geodrill(["run".as_ref(), path.as_os_str()]).stdout);
        assert!(
            shown.contains(&format!("{} operations", operations.len())),
            "{shown}"
        );
    }
}

#[test]
fn every_drill_of_the_gallery_can_be_drawn() {
    for path in gallery() {
        let output = geodrill(["plot", path.to_str().unwrap(), "-o", "-"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let svg = text(&output.stdout);
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("prefers-color-scheme: dark"));
        assert!(svg.len() < 1_000_000, "{}", svg.len());
    }
}
