//! The command line: exit codes, several files, standard input, long drills.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests may panic as tests do"
)]

mod common;

use common::{geodrill, run_stdin, text};
use serde_json::{Value, json};

fn drill(expect: u64) -> Vec<u8> {
    json!({
        "name": "one read",
        "services": {"blob": {"provider": "azure-storage", "endpoint": "https://contoso.blob.core.windows.net"}},
        "requests": [{"id": "r", "service": "blob", "path": "/c/b"}],
        "expect": [{"at": "/operations/0/result/status", "is": expect}]
    })
    .to_string()
    .into_bytes()
}

#[test]
fn the_exit_code_tells_whether_expectations_hold() {
    let good = run_stdin(&drill(200), &[]);
    assert_eq!(good.status.code(), Some(0), "{}", text(&good.stderr));
    assert!(text(&good.stdout).contains("1 of 1 expectations hold"));
    let failed = run_stdin(&drill(404), &[]);
    assert_eq!(failed.status.code(), Some(1));
    let told = text(&failed.stdout);
    assert!(
        told.contains("wanted  404") && told.contains("got     200"),
        "{told}"
    );
    // Not a terminal, so no colours.
    assert!(!told.contains('\u{1b}'));
    assert_eq!(run_stdin(b"{}", &[]).status.code(), Some(2));
    assert_eq!(
        geodrill(["run", "no-such-file.json"]).status.code(),
        Some(2)
    );
    assert_eq!(geodrill(["run", "no-extension"]).status.code(), Some(2));
    assert_eq!(geodrill(["dance"]).status.code(), Some(2));
}

/// `geodrill run drill.json | head -1` ends as it does without `head`.
#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_does_not_change_the_exit_code() {
    use std::io::Write;
    use std::process::{Command, Stdio};

    for (drill, wanted) in [(drill(200), 0), (drill(404), 1), (b"{}".to_vec(), 2)] {
        for format in ["text", "json"] {
            // Nobody has the reading end of this pipe.
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let mut child = Command::new(env!("CARGO_BIN_EXE_geodrill"))
                .args(["run", "-", "--format", format])
                .stdin(Stdio::piped())
                .stdout(writer.try_clone().unwrap())
                .stderr(writer)
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(&drill).unwrap();
            let code = child.wait().unwrap().code();
            assert_eq!(code, Some(wanted), "{format}");
        }
    }
}

#[test]
fn a_picture_has_the_exit_code_of_the_run_and_its_warnings() {
    let folder = tempdir("plot");
    let file = folder.join("failing.JSON");
    let svg = folder.join("out.svg");
    let mut failing: Value = serde_json::from_slice(&drill(404)).unwrap();
    failing["rules"] = json!([{"host": "nobody.test", "answers": [{"status": 500}]}]);
    // As an editor may write it.
    std::fs::write(&file, format!("\u{feff}{failing}")).unwrap();
    let file = file.to_str().unwrap();
    let plot = |file: &str| geodrill(["plot", file, "-o", svg.to_str().unwrap()]);
    let drawn = plot(file);
    let told = text(&drawn.stderr);
    assert_eq!(drawn.status.code(), Some(1), "{told}");
    let warning = format!("geodrill: {file}: warning: rules[0] (host nobody.test)");
    assert!(told.contains(&warning), "{told}");
    assert!(told.contains("wanted 404, got 200"), "{told}");
    assert!(std::fs::read_to_string(&svg).unwrap().contains("</svg>"));
    let missing = plot("missing.json");
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).starts_with("geodrill: missing.json: cannot read"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// A folder for one test of this run.
fn tempdir(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// What only the layers know is told at the key of the drill, too.
#[test]
fn a_service_that_cannot_be_built_is_unusable_and_names_the_key() {
    let azure = |host: &str, keys: Value| {
        let mut service =
            json!({"provider": "azure-storage", "endpoint": format!("https://{host}")});
        for (key, value) in keys.as_object().unwrap() {
            service[key] = value.clone();
        }
        service
    };
    let blob = "contoso.blob.core.windows.net";
    let file = "contoso.file.core.windows.net";
    let then = "primary-then-secondary";
    for (service, key) in [
        (
            azure(
                blob,
                json!({"breaker": {"ramp": [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]}}),
            ),
            "breaker.ramp",
        ),
        (
            azure(blob, json!({"breaker": {"probes": 100}})),
            "breaker.probes",
        ),
        (
            azure(blob, json!({"retry": {"max_retries": 1000}})),
            "retry.max_retries",
        ),
        (
            azure(blob, json!({"secondary": format!("https://{blob}")})),
            "secondary",
        ),
        (
            azure(blob, json!({"secondary": "http://copy.example.test"})),
            "secondary",
        ),
        (azure(file, json!({"location_mode": then})), "location_mode"),
        (
            azure("files.contoso.test", json!({"location_mode": then})),
            "secondary",
        ),
        (
            azure("contoso-secondary.blob.core.windows.net", json!({})),
            "endpoint",
        ),
        (
            json!({"provider": "static", "regions": [{"name": "eu", "endpoint": "https://eu.test", "writable": false}]}),
            "regions",
        ),
    ] {
        let drill = json!({"services": {"s": service}}).to_string();
        let output = run_stdin(drill.as_bytes(), &[]);
        assert_eq!(output.status.code(), Some(2), "{drill}");
        let told = text(&output.stderr);
        let start = format!("geodrill: -: services.s.{key}: ");
        assert!(told.starts_with(&start), "{key}: {told}");
    }
}

#[test]
fn one_file_is_an_object_and_several_are_an_array() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drills");
    let (one, two) = (
        format!("{folder}/throttled.toml"),
        format!("{folder}/flapping.yaml"),
    );
    let run = |files: &[&str]| {
        let output = geodrill(["run", "--format", "json"].iter().chain(files));
        (
            serde_json::from_slice::<Value>(&output.stdout),
            output.status.code(),
        )
    };
    let (single, _) = run(&[&one]);
    let single = single.unwrap();
    let keys: Vec<&String> = single.as_object().unwrap().keys().collect();
    let wanted = [
        "name",
        "seed",
        "operations",
        "events",
        "background",
        "summary",
        "warnings",
        "expect",
    ];
    assert_eq!(keys, wanted);
    let (several, _) = run(&[&one, &two]);
    assert_eq!(several.unwrap().as_array().unwrap()[0], single);
    // The good one is played all the same.
    let (rest, code) = run(&["missing.json", &one]);
    assert_eq!(code, Some(2));
    assert_eq!(rest.unwrap().as_array().unwrap().len(), 1);
    let (none, code) = run(&["missing.json", "gone.json"]);
    assert_eq!((none.unwrap(), code), (json!([]), Some(2)));
}

#[test]
fn help_has_examples_and_every_shell_its_completion() {
    let help = text(&geodrill(["--help"]).stdout);
    assert!(
        help.contains("Examples:") && help.contains("Exit codes:"),
        "{help}"
    );
    // What it says can be typed.
    for word in help.split_whitespace() {
        if word.starts_with("drills/") && !word.contains('*') {
            let path = format!("{}/../../{word}", env!("CARGO_MANIFEST_DIR"));
            assert!(std::path::Path::new(&path).exists(), "{word}");
        }
    }
    for command in ["run", "explain", "completions"] {
        let help = text(&geodrill([command, "--help"]).stdout);
        assert!(help.contains("Example"), "{help}");
    }
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = geodrill(["completions", shell]);
        assert!(text(&output.stdout).contains("geodrill"), "{shell}");
    }
}

#[test]
fn explain_and_endpoints_speak_to_people_too() {
    let endpoint = [
        "explain",
        "--endpoint",
        "https://contoso.queue.core.windows.net",
    ];
    let explained = geodrill(endpoint.iter().chain(&["GET", "/orders/messages"]));
    assert!(
        text(&explained.stdout).contains("write"),
        "{}",
        text(&explained.stdout)
    );
    let endpoints = geodrill(["endpoints", "https://contoso.blob.core.windows.net"]);
    assert!(text(&endpoints.stdout).contains("https://contoso-secondary.blob.core.windows.net"));
    // An address does not tell which service it is, unless it is said.
    let address = [
        "explain",
        "--endpoint",
        "http://127.0.0.1:10000/devstoreaccount1",
    ];
    let path = ["GET", "/devstoreaccount1/q/messages"];
    let silent = geodrill(address.iter().chain(&path));
    assert_eq!(silent.status.code(), Some(2));
    assert!(text(&silent.stderr).contains("--service"));
    let told = geodrill(address.iter().chain(&["--service", "queue"]).chain(&path));
    assert!(
        text(&told.stdout).contains("write"),
        "{}",
        text(&told.stdout)
    );
    // A header that cannot be one is refused without being repeated.
    let secret = ["GET", "/c/b", "-H", "authorization\u{7f}: secret"];
    let refused = geodrill(endpoint.iter().chain(&secret));
    assert_eq!(refused.status.code(), Some(2));
    assert!(!text(&refused.stderr).contains("secret"));
}

/// I8.
#[test]
fn explain_says_that_another_account_is_none_of_the_services() {
    let explain = |path: &str| {
        let endpoint = "http://127.0.0.1:10001/devstoreaccount1";
        let output = geodrill([
            "explain",
            "--endpoint",
            endpoint,
            "--service",
            "queue",
            "PUT",
            path,
            "--format",
            "json",
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let why = "not one of the service's endpoints: passes untouched (I8)";
    for other in ["/other/q1/x", "/devstoreaccount12/q1", "/"] {
        let wanted = json!({"service": "queue", "intent": "neutral", "gated": false,
            "redirectable": false, "why": why});
        assert_eq!(explain(other), wanted, "{other}");
    }
    for own in ["/devstoreaccount1/q1/x", "/devstoreaccount1-secondary/q1"] {
        assert_eq!(explain(own)["intent"], "write", "{own}");
    }
}

#[test]
fn what_nothing_used_is_a_warning() {
    let mut drill: Value = serde_json::from_slice(&drill(404)).unwrap();
    let warnings = |drill: &Value| {
        let output = run_stdin(drill.to_string().as_bytes(), &["--format", "json"]);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        result["warnings"].as_array().unwrap().clone()
    };
    drill["services"]["blob"]["max_staleness"] = json!("5m");
    drill["hosts"] = json!({"contoso.blob.core.windows.net": {}, "Contso.test": {}});
    drill["stores"] = json!({"contoso.blob.core.windows.net": {}, "contso.test": {}});
    let told = warnings(&drill);
    assert_eq!(told.len(), 3, "{told:?}");
    for (told, start) in told.iter().zip([
        "services.blob.max_staleness: without last_sync",
        "hosts.contso.test: ",
        "stores.contso.test: ",
    ]) {
        assert!(told.as_str().unwrap().starts_with(start), "{told}");
    }
    drill["services"]["blob"]["last_sync"] = json!({"every": "30s"});
    assert_eq!(warnings(&drill).len(), 2);
}

#[test]
fn a_call_without_an_end_is_dropped_and_told() {
    let drill = json!({
        "services": {"blob": {"provider": "azure-storage", "endpoint": "https://contoso.blob.core.windows.net",
            "retry": null, "breaker": null}},
        "rules": [{"host": "contoso.blob.core.windows.net", "answers": [{"fault": "hang"}]}],
        "requests": [{"id": "r", "service": "blob", "path": "/c/b"}],
        "expect": [{"at": "/operations/0/result/cancelled", "is": true}]
    });
    let output = run_stdin(drill.to_string().as_bytes(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("had no end after 24 hours"));
}

/// What `expect` looks at must not be in memory beside the operations themselves.
#[cfg(target_os = "linux")]
#[test]
fn expectations_of_sums_take_no_memory() {
    let run = |expect: Value, limit: u64| {
        let drill = json!({
            "services": {"blob": {"provider": "azure-storage", "endpoint": "https://contoso.blob.core.windows.net"}},
            "requests": [{"id": "r", "every": "10ms", "until": "500s", "service": "blob", "path": "/c/b"}],
            "expect": expect
        });
        run_limited(&drill, &format!("ulimit -v {limit}"), &["--format", "json"])
    };
    // Enough for 50000 operations, and far from enough for as many trees of values (400 MB).
    let limit = 163_840;
    let without = run(json!([]), limit);
    assert!(without.status.success(), "{}", text(&without.stderr));
    let with = run(
        json!([{"at": "/summary/operations", "is": 50_000},
            {"at": "/events", "is": []},
            {"at": "/operations/49999/id", "is": "r#49999"},
            {"at": "/operations/50000/id", "absent": true}]),
        limit,
    );
    assert_eq!(with.status.code(), Some(0), "{}", text(&with.stderr));
    assert_eq!(
        with.stdout.iter().filter(|&&byte| byte == b'{').count(),
        without.stdout.iter().filter(|&&byte| byte == b'{').count() + 5
    );
}

/// Plays a drill below the limits of a shell.
#[cfg(target_os = "linux")]
fn run_limited(drill: &Value, limits: &str, arguments: &[&str]) -> std::process::Output {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let mut child = Command::new("sh")
        .args(["-c", &format!("{limits}; exec \"$0\" run - \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_geodrill"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(drill.to_string().as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Twenty services, two hours and a million operations, within ten seconds of processor time and
/// 512 MiB. Builds without optimisation get a twentieth of the load, which still shows a leak.
#[cfg(target_os = "linux")]
#[test]
fn a_million_operations_take_seconds_and_little_memory() {
    let every = if cfg!(debug_assertions) { 2_880 } else { 144 };
    let account = |index: u32| format!("acct{index}.blob.core.windows.net");
    let services: serde_json::Map<String, Value> = (0..20)
        .map(|index| {
            let endpoint = format!("https://{}", account(index));
            let service = json!({"provider": "azure-storage", "endpoint": endpoint,
                "location_mode": "primary-then-secondary"});
            (format!("s{index}"), service)
        })
        .collect();
    let requests: Vec<Value> = (0..20)
        .map(|index| {
            json!({"id": format!("r{index}"), "at": format!("{}ms", index * 7),
                "every": format!("{every}ms"), "until": "2h", "service": format!("s{index}"),
                "path": "/c/b"})
        })
        .collect();
    let rules: Vec<Value> = (0..20)
        .map(|index| {
            json!({"host": account(index), "from": "30m", "until": "1h",
                "answers": [{"status": 503, "latency": "10ms"}]})
        })
        .collect();
    let drill = json!({
        "services": services, "requests": requests, "rules": rules,
        "expect": [{"at": "/summary/operations", "is": 20 * 7_200_000 / every}]
    });
    let output = run_limited(&drill, "ulimit -t 10; ulimit -v 524288", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}
