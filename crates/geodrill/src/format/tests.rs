use std::time::Duration;

use super::{BodyEnd, Drill, Jitter, Mode, Secondary, ServiceKind, Syntax, What, read};
use crate::problem::Problem;

const BLOB: &str = r#""services": {"blob": {"provider": "azure-storage", "endpoint": "https://contoso.blob.core.windows.net"}}"#;

fn drill(text: &str) -> Drill {
    read(text, Syntax::Json).unwrap()
}

fn problem(text: &str) -> Problem {
    read(text, Syntax::Json).unwrap_err()
}

#[test]
fn defaults_are_those_of_the_format() {
    let drill = drill(&format!("{{{BLOB}}}"));
    assert_eq!((drill.name.as_str(), drill.seed), ("", 0));
    let start = humantime::parse_rfc3339("2026-01-01T00:00:00Z").unwrap();
    assert_eq!(drill.start, start);
    let service = &drill.services[0];
    assert!(service.read_only_while_open);
    assert_eq!(service.mode, Mode::PrimaryOnly);
    let ServiceKind::AzureStorage { secondary, .. } = &service.kind else {
        panic!("{service:?}");
    };
    assert_eq!(*secondary, Secondary::Derive);
    let retry = service.retry.as_ref().unwrap();
    assert_eq!((retry.max_retries, retry.budget), (5, Some(500)));
    assert_eq!(retry.delay, Duration::from_millis(800));
    assert_eq!(retry.deadline, Some(Duration::from_secs(60)));
    assert_eq!(retry.jitter, Jitter::None);
    let breaker = service.breaker.as_ref().unwrap();
    assert_eq!((breaker.streak, breaker.probes), (Some(10), 1));
    assert_eq!(breaker.rate.unwrap().minimum, 20);
    assert!(breaker.ramp.is_empty() && breaker.slow.is_none());
}

#[test]
fn the_products_own_defaults_are_jitter_and_a_ramp() {
    let drill = drill(&format!(r#"{{"defaults": "product", {BLOB}}}"#));
    let service = &drill.services[0];
    assert_eq!(service.retry.as_ref().unwrap().jitter, Jitter::Equal);
    let breaker = service.breaker.as_ref().unwrap();
    assert_eq!(breaker.jitter, Jitter::Equal);
    assert_eq!(breaker.ramp, [0.05, 0.25]);
}

#[test]
fn false_is_null_in_every_syntax() {
    let json = |off: &str| {
        format!(
            r#"{{"services": {{"s": {{"provider": "azure-storage", "endpoint": "https://a.test",
                 "retry": {off}, "secondary": {off}, "breaker": {{"streak": {off}, "rate": {off}}}}}}}}}"#
        )
    };
    let toml = r#"
        start = 2026-02-01T00:00:00Z
        [services.s]
        provider = "azure-storage"
        endpoint = "https://a.test"
        retry = false
        secondary = false
        breaker = { streak = false, rate = false }
    "#;
    let yaml = "
services:
  s:
    provider: azure-storage
    endpoint: https://a.test
    retry: false
    secondary: ~
    breaker: {streak: null, rate: false}
";
    for (text, syntax) in [
        (json("false"), Syntax::Json),
        (json("null"), Syntax::Json),
        (toml.to_owned(), Syntax::Toml),
        (yaml.to_owned(), Syntax::Yaml),
    ] {
        let drill = read(&text, syntax).unwrap();
        let service = &drill.services[0];
        assert!(service.retry.is_none(), "{syntax:?}");
        let breaker = service.breaker.as_ref().unwrap();
        assert!(breaker.streak.is_none() && breaker.rate.is_none());
        let ServiceKind::AzureStorage { secondary, .. } = &service.kind else {
            panic!("{service:?}");
        };
        assert_eq!(*secondary, Secondary::None);
    }
}

#[test]
fn a_problem_names_the_path_of_its_key() {
    for (text, path) in [
        (format!(r#"{{"nmae": "x", {BLOB}}}"#), "nmae"),
        (r#"{"name": "x"}"#.to_owned(), "services"),
        (r#"{"services": {}}"#.to_owned(), "services"),
        (format!(r#"{{"seed": -1, {BLOB}}}"#), "seed"),
        (format!(r#"{{"seed": null, {BLOB}}}"#), "seed"),
        (format!(r#"{{"start": "yesterday", {BLOB}}}"#), "start"),
        (
            r#"{"services": {"b": {"provider": "azure-storage"}}}"#.to_owned(),
            "services.b.endpoint",
        ),
        (
            r#"{"services": {"b": {"provider": "s3", "endpoint": "https://a.test"}}}"#.to_owned(),
            "services.b.provider",
        ),
        (
            service(r#""retry": {"delay": "-5s"}"#),
            "services.b.retry.delay",
        ),
        (
            service(r#""retry": {"delay": 5}"#),
            "services.b.retry.delay",
        ),
        (
            service(r#""retry": {"dellay": "5s"}"#),
            "services.b.retry.dellay",
        ),
        (service(r#""retry": true"#), "services.b.retry"),
        (
            service(r#""retry": {"budget": {"capacity": 0}}"#),
            "services.b.retry.budget.capacity",
        ),
        (
            service(r#""breaker": {"probes": 0}"#),
            "services.b.breaker.probes",
        ),
        (
            service(r#""breaker": {"rate": {"threshold": 1.5}}"#),
            "services.b.breaker.rate.threshold",
        ),
        (
            service(r#""breaker": {"slow": {}}"#),
            "services.b.breaker.slow.after",
        ),
        (
            service(r#""breaker": {"ramp": [0.5, 0.25]}"#),
            "services.b.breaker.ramp",
        ),
        (service(r#""regions": []"#), "services.b.regions"),
        (
            service(r#""preferred": ["West US"]"#),
            "services.b.preferred",
        ),
        (
            service(r#""share_state_with": "b""#),
            "services.b.share_state_with",
        ),
        (
            service(r#""share_state_with": "c""#),
            "services.b.share_state_with",
        ),
        (
            rule(r#""host": "a test", "answers": [{"status": 200}]"#),
            "rules[0].host",
        ),
        (
            rule(r#""host": "a.test", "answers": []"#),
            "rules[0].answers",
        ),
        (
            rule(r#""host": "a.test", "rate": 1.5, "answers": [{"status": 200}]"#),
            "rules[0].rate",
        ),
        (
            rule(r#""host": "a.test", "from": "5s", "until": "5s", "answers": [{"status": 200}]"#),
            "rules[0].until",
        ),
        (
            rule(r#""host": "a.test", "answers": [{"status": 200}, {"status": 100}]"#),
            "rules[0].answers[1].status",
        ),
        (
            rule(r#""host": "a.test", "answers": [{"status": 70000}]"#),
            "rules[0].answers[0].status",
        ),
        (
            rule(r#""host": "a.test", "answers": [{}]"#),
            "rules[0].answers[0]",
        ),
        (
            rule(r#""host": "a.test", "answers": [{"fault": "fire"}]"#),
            "rules[0].answers[0].fault",
        ),
        (
            rule(r#""host": "a.test", "answers": [{"fault": "dns", "body": "x"}]"#),
            "rules[0].answers[0].body",
        ),
        (
            rule(r#""host": "a.test", "answers": [{"status": 200, "cut_after": 1}]"#),
            "rules[0].answers[0].cut_after",
        ),
        (
            rule(r#""host": "a.test", "answers": [{"status": 200, "times": 0}]"#),
            "rules[0].answers[0].times",
        ),
        (
            rule(r#""host": "a.test", "answers": [{"status": 200, "latency": "soon"}]"#),
            "rules[0].answers[0].latency",
        ),
        (request(r#""service": "q""#), "requests[0].service"),
        (
            request(r#""service": "b", "every": "1s""#),
            "requests[0].until",
        ),
        (
            request(r#""service": "b", "until": "1s""#),
            "requests[0].every",
        ),
        (
            request(r#""service": "b", "every": "0s", "until": "1s""#),
            "requests[0].every",
        ),
        (
            request(r#""service": "b", "at": "1h", "every": "1ms", "until": "100h""#),
            "requests",
        ),
        (
            request(r#""service": "b", "method": "GE T""#),
            "requests[0].method",
        ),
        (
            request(r#""service": "b", "headers": {"a b": "c"}"#),
            "requests[0].headers",
        ),
        (
            request(r#""service": "b", "pin": "third""#),
            "requests[0].pin",
        ),
        (
            request(r#""service": "b", "show": [1]"#),
            "requests[0].show[0]",
        ),
        (act(r#""do": "explode""#), "operator[0].do"),
        (act(r#""do": "location-mode""#), "operator[0].to"),
        (
            act(r#""do": "read-only", "region": "primary""#),
            "operator[0].region",
        ),
        (
            act(r#""do": "reset", "region": "third""#),
            "operator[0].region",
        ),
        (
            format!(r#"{{{BLOB}, "expect": [{{"at": "x", "is": 1}}]}}"#),
            "expect[0].at",
        ),
        (
            format!(r#"{{{BLOB}, "expect": [{{"at": "/x"}}]}}"#),
            "expect[0]",
        ),
        (
            format!(r#"{{{BLOB}, "hosts": {{"a@b": {{}}}}}}"#),
            "hosts.a@b",
        ),
    ] {
        let problem = problem(&text);
        assert_eq!(problem.path(), path, "{text}\n{problem}");
        assert!(!problem.message().ends_with('.'), "{problem}");
    }
}

/// Serde takes a list for a structure, if nobody stops it.
#[test]
fn a_list_is_no_object() {
    let expected = "expected an object, got a list";
    let of_rate = "services.b.breaker.rate";
    for (text, path) in [
        ("[]".to_owned(), ""),
        (service(r#""retry": []"#), "services.b.retry"),
        (service(r#""breaker": {"rate": [0.9, "2m", 20]}"#), of_rate),
        (
            rule(r#""host": "a.test", "answers": [[503]]"#),
            "rules[0].answers[0]",
        ),
        (format!(r#"{{{BLOB}, "requests": [[]]}}"#), "requests[0]"),
        (format!(r#"{{{BLOB}, "hosts": []}}"#), "hosts"),
        (r#"{"services": [[]]}"#.to_owned(), "services"),
    ] {
        let problem = problem(&text);
        assert_eq!(
            (problem.path(), problem.message()),
            (path, expected),
            "{text}"
        );
    }
    let head = "services:\n  b:\n    provider: static\n";
    for (text, path) in [
        ("- 1\n".to_owned(), ""),
        (
            format!("{head}    breaker: {{rate: [0.9, 2m, 20]}}\n"),
            of_rate,
        ),
    ] {
        let problem = read(&text, Syntax::Yaml).unwrap_err();
        assert_eq!(
            (problem.path(), problem.message()),
            (path, expected),
            "{text}"
        );
    }
}

#[test]
fn a_wrong_type_is_told_without_words_of_the_program() {
    for (keys, message) in [
        (r#""retry": true"#, "expected an object, got true"),
        (
            r#""retry": {"max_retries": -1}"#,
            "expected a whole number from 0 to 4294967295, got the number -1",
        ),
        (
            r#""retry": {"max_retries": 1.5}"#,
            "expected a whole number from 0 to 4294967295, got the number 1.5",
        ),
        (
            r#""retry": {"mode": 1}"#,
            "expected one of `exponential`, `fixed`, got the number 1",
        ),
        (
            r#""retry": {"mode": "x"}"#,
            "unknown word `x`, expected one of `exponential`, `fixed`",
        ),
        (
            r#""retry": {"resume": "x"}"#,
            "expected true or false, got a text",
        ),
        (
            r#""breaker": {"ramp": {}}"#,
            "expected a list, got an object",
        ),
        (
            r#""breaker": {"ramp": ["x"]}"#,
            "expected a number, got a text",
        ),
        (
            r#""location_mode": null"#,
            "expected one of `primary-only`, `primary-then-secondary`, `secondary-only`, `secondary-then-primary`, got null",
        ),
        (
            r#""regions": [{"name": []}]"#,
            "expected a text, got a list",
        ),
        (
            r#""breaker": {"open_for": 5}"#,
            "expected a duration such as \"800ms\", \"2s\", \"2m\" or \"1h\", got the number 5",
        ),
    ] {
        assert_eq!(problem(&service(keys)).message(), message);
    }
    let unknown = problem(
        r#"{"name": "x", "services": {"a": {"provider": "static", "regions": [{"x": 1}]}}}"#,
    );
    assert_eq!(unknown.path(), "services.a.regions[0].x");
    assert_eq!(
        unknown.message(),
        "unknown key, expected one of `name`, `endpoint`, `writable`"
    );
}

#[test]
fn no_two_operations_have_one_id() {
    let requests = |list: &[&str]| {
        let list: Vec<String> = list
            .iter()
            .map(|keys| format!(r#"{{"service": "blob", "path": "/", {keys}}}"#))
            .collect();
        format!(r#"{{{BLOB}, "requests": [{}]}}"#, list.join(", "))
    };
    let series = r#""id": "a", "every": "1s", "until": "3s""#;
    for list in [
        [r#""id": "a""#, r#""id": "a""#],
        [series, series],
        [series, r#""id": "a#2""#],
    ] {
        assert_eq!(
            problem(&requests(&list)).path(),
            "requests[1].id",
            "{list:?}"
        );
    }
    // Nothing is called so: the series has three, and writes its numbers in one way.
    for id in [
        r#""id": "a""#,
        r#""id": "a#3""#,
        r#""id": "a#01""#,
        r#""id": "a#""#,
    ] {
        drill(&requests(&[series, id]));
    }
}

/// The limit of a wait follows the wait, unless the file names one.
#[test]
fn a_long_wait_raises_its_own_limit() {
    let long = drill(&service(
        r#""retry": {"delay": "2m"}, "breaker": {"open_for": "10m"}"#,
    ));
    let retry = long.services[0].retry.as_ref().unwrap();
    let breaker = long.services[0].breaker.as_ref().unwrap();
    assert_eq!(
        (retry.delay, retry.max_delay),
        (Duration::from_secs(120), Duration::from_secs(120))
    );
    assert_eq!(breaker.max_open_for, Duration::from_secs(600));
}

fn service(keys: &str) -> String {
    format!(
        r#"{{"services": {{"b": {{"provider": "azure-storage", "endpoint": "https://a.test", {keys}}}}}}}"#
    )
}

fn rule(keys: &str) -> String {
    format!(r#"{{{BLOB}, "rules": [{{{keys}}}]}}"#)
}

fn request(keys: &str) -> String {
    service(r#""retry": null"#).trim_end_matches('}').to_owned()
        + &format!(r#"}}}}, "requests": [{{"id": "r", "path": "/", {keys}}}]}}"#)
}

fn act(keys: &str) -> String {
    format!(r#"{{{BLOB}, "operator": [{{"at": "1s", "service": "blob", {keys}}}]}}"#)
}

#[test]
fn a_key_that_is_there_twice_is_refused_in_every_syntax() {
    let twice = problem(&format!(r#"{{"seed": 1, "seed": 2, {BLOB}}}"#));
    assert!(twice.message().contains("`seed`"), "{twice}");
    for (text, syntax) in [
        ("seed = 1\nseed = 2\n", Syntax::Toml),
        ("seed: 1\nseed: 2\n", Syntax::Yaml),
    ] {
        let twice = read(text, syntax).unwrap_err();
        assert!(twice.message().starts_with("not "), "{twice}");
    }
}

#[test]
fn what_is_no_syntax_at_all_says_where() {
    for (text, syntax) in [
        ("{\"seed\": 1,,}", Syntax::Json),
        ("seed = \n", Syntax::Toml),
        ("seed: [1\n", Syntax::Yaml),
        ("{} {}", Syntax::Json),
    ] {
        let problem = read(text, syntax).unwrap_err();
        assert!(problem.message().contains("line"), "{problem}");
        assert!(!problem.message().contains('\n'), "{problem}");
    }
}

#[test]
fn keys_whose_rules_are_not_built_say_so() {
    let problem = problem(&service(r#""writes_while_read_only": "defer""#));
    let told = (problem.path(), problem.message());
    assert_eq!(
        told,
        ("services.b.writes_while_read_only", "not supported yet")
    );
    drill(&format!(r#"{{"accounts": null, {BLOB}}}"#));
    // Their defaults are no use of them.
    drill(&service(
        r#""hedge": null, "monitor": false, "last_sync": null, "read_your_writes": false,
           "max_staleness": null, "writes_while_read_only": "refuse", "retry": {"resume": false}"#,
    ));
}

/// B11, F1, F3, F5: the defaults of what is known of the copy, and what is senseless.
#[test]
fn keys_about_age_are_read_with_their_defaults() {
    let drill = drill(&service(
        r#""monitor": {"path": "/ping", "every": "5s"}, "last_sync": {"every": "30s"},
           "max_staleness": "5m", "read_your_writes": true"#,
    ));
    let read = &drill.services[0];
    let monitor = read.monitor.as_ref().unwrap();
    assert_eq!(
        (monitor.method.as_str(), monitor.timeout.as_secs()),
        ("GET", 2)
    );
    assert!(monitor.pace.exact);
    assert_eq!(read.last_sync.unwrap().every.as_secs(), 30);
    assert_eq!(read.max_staleness.unwrap().as_secs(), 300);
    assert!(read.read_your_writes);
    for (text, path) in [
        (
            service("\"last_sync\": {\"every\": \"0s\"}"),
            "services.b.last_sync.every",
        ),
        (
            service("\"max_staleness\": \"0s\""),
            "services.b.max_staleness",
        ),
        (
            service("\"monitor\": {\"path\": \"/\", \"every\": \"0s\"}"),
            "services.b.monitor.every",
        ),
        (
            service("\"monitor\": {\"path\": \"/\", \"every\": \"1s\", \"timeout\": \"0s\"}"),
            "services.b.monitor.timeout",
        ),
        (
            service("\"monitor\": {\"path\": \"/\"}"),
            "services.b.monitor.every",
        ),
    ] {
        assert_eq!(problem(&text).path(), path);
    }
}

#[test]
fn stores_lag_ten_seconds_and_applied_needs_one() {
    let drill = drill(&format!(
        r#"{{{BLOB}, "stores": {{"A.test": {{}}, "b.test": {{"secondary_lag": "1m"}}}}}}"#
    ));
    assert_eq!(drill.stores["a.test"].as_secs(), 10);
    assert_eq!(drill.stores["b.test"].as_secs(), 60);
    let applied = r#""host": "a.test", "answers": [{"status": 502, "applied": true}]"#;
    assert_eq!(
        problem(&rule(applied)).path(),
        "rules[0].answers[0].applied"
    );
    let never = r#""host": "a.test", "answers": [{"fault": "connect", "applied": true}]"#;
    let text = format!(r#"{{{BLOB}, "stores": {{"a.test": {{}}}}, "rules": [{{{never}}}]}}"#);
    assert_eq!(problem(&text).path(), "rules[0].answers[0].applied");
}

#[test]
fn answers_and_requests_are_read_as_written() {
    let drill = drill(&format!(
        r#"{{{BLOB},
        "rules": [{{"host": "*.BLOB.core.windows.net", "answers": [
            {{"status": 200, "body": "0123456789", "cut_after": 4, "latency": "1s"}}, {{"fault": "hang", "times": 2}}]}}],
        "requests": [{{"id": "r", "at": "1s", "every": "10s", "until": "31s", "service": "blob", "path": "https://login.test/x"}}]}}"#
    ));
    let (rule, _) = drill.rules.uses().next().unwrap();
    assert_eq!(rule.host_pattern(), "*.blob.core.windows.net");
    let answers: Vec<_> = rule.answers().map(|answer| &answer.what).collect();
    let What::Response { end, .. } = answers[0] else {
        panic!("{answers:?}");
    };
    assert_eq!(*end, BodyEnd::CutAfter(4));
    assert!(matches!(answers[1], What::Fault(super::Fault::Hang)));
    let request = &drill.requests[0];
    assert_eq!(request.count(), 3);
    assert!(request.absolute.is_some());
}

#[test]
fn services_that_share_in_a_circle_are_refused() {
    let text = r#"{"services": {
        "a": {"provider": "azure-storage", "endpoint": "https://a.test", "share_state_with": "b"},
        "b": {"provider": "azure-storage", "endpoint": "https://b.test", "share_state_with": "a"}}}"#;
    assert_eq!(problem(text).path(), "services.a.share_state_with");
}

/// A drill with a Cosmos service that has these keys, and more beside the services.
fn docs(keys: &str, more: &str) -> String {
    format!(
        r#"{{"services": {{"docs": {{"provider": "cosmos", "endpoint": "https://acct.documents.azure.com"{keys}}},
                           "mirror": {{"provider": "static", "regions": [{{"name": "eu", "endpoint": "https://eu.test"}}]}}}}{more}}}"#
    )
}

/// C3, C4, C10: the defaults of a Cosmos service, exact and the product's.
#[test]
fn a_cosmos_service_has_the_defaults_of_the_format() {
    let settings = |text: &str| {
        let drill = drill(text);
        let ServiceKind::Cosmos { settings, .. } = &drill.services[0].kind else {
            panic!("{drill:?}");
        };
        let jitter = settings.refresh_jitter.as_secs();
        assert_eq!(
            (settings.refresh.as_secs(), settings.mark_for.as_secs()),
            (300, 300)
        );
        assert!(settings.multi_write && settings.discovery);
        assert!(settings.preferred.is_empty() && settings.excluded.is_empty());
        jitter
    };
    assert_eq!(settings(&docs("", "")), 0);
    assert_eq!(settings(&docs("", r#", "defaults": "product""#)), 15);
    assert_eq!(
        settings(&docs(r#", "refresh_jitter": "3s", "preferred": null"#, "")),
        3
    );
    let none = docs(
        r#", "refresh_jitter": "none", "excluded": []"#,
        r#", "defaults": "product""#,
    );
    assert_eq!(settings(&none), 0);
}

/// Each key has one place, and what makes no sense is told with its path.
#[test]
fn cosmos_keys_are_checked_where_they_stand() {
    for (keys, key) in [
        (r#""endpoint": "https://127.0.0.1:1/acct""#, "endpoint"),
        (r#""preferred": ["West US", " "]"#, "preferred[1]"),
        (r#""preferred": ["West US", "West_US"]"#, "preferred[1]"),
        (r#""preferred": "West US""#, "preferred"),
        (r#""excluded": [7]"#, "excluded[0]"),
        (r#""refresh": "0s""#, "refresh"),
        (r#""refresh": null"#, "refresh"),
        (r#""refresh_jitter": "some""#, "refresh_jitter"),
        (r#""mark_for": "0s""#, "mark_for"),
        (r#""multi_write": "yes""#, "multi_write"),
        (r#""regions": []"#, "regions"),
        (r#""secondary": "derive""#, "secondary"),
        (r#""location_mode": "primary-only""#, "location_mode"),
        (r#""last_sync": {"every": "1s"}"#, "last_sync"),
        (r#""max_staleness": "1s""#, "max_staleness"),
        (r#""read_your_writes": true"#, "read_your_writes"),
    ] {
        let endpoint = if key == "endpoint" {
            ""
        } else {
            r#""endpoint": "https://a.test","#
        };
        let text =
            format!(r#"{{"services": {{"d": {{"provider": "cosmos", {endpoint} {keys}}}}}}}"#);
        assert_eq!(problem(&text).path(), format!("services.d.{key}"), "{keys}");
    }
    let missing = r#"{"services": {"d": {"provider": "cosmos"}}}"#;
    assert_eq!(problem(missing).path(), "services.d.endpoint");
    for (request, key) in [
        (r#""service": "mirror", "excluded": ["eu"]"#, "excluded"),
        (
            r#""service": "docs", "excluded": ["eu", ""]"#,
            "excluded[1]",
        ),
        (
            r#""service": "docs", "location_mode": "primary-only""#,
            "location_mode",
        ),
    ] {
        let text = docs(
            "",
            &format!(r#", "requests": [{{"id": "r", "path": "/", {request}}}]"#),
        );
        assert_eq!(
            problem(&text).path(),
            format!("requests[0].{key}"),
            "{request}"
        );
    }
    let mode =
        r#", "operator": [{"service": "docs", "do": "location-mode", "to": "primary-only"}]"#;
    assert_eq!(problem(&docs("", mode)).path(), "operator[0].do");
    let only = docs(
        "",
        r#", "requests": [{"id": "r", "path": "/", "service": "docs", "excluded": []}]"#,
    );
    assert_eq!(drill(&only).requests[0].options.excluded, Some(Vec::new()));
}

/// What an account says: lists with names, changes in order that change something.
#[test]
fn accounts_are_checked_key_by_key() {
    let account = |keys: &str| docs("", &format!(r#", "accounts": {{"a.test": {{{keys}}}}}"#));
    let good = r#""readable": ["East US", "West US"], "writable": ["East US"]"#;
    let drill = drill(&account(&format!(
        r#"{good}, "changes": [{{"at": "10s", "multi_write": true}}, {{"at": "20s", "writable": ["West US"]}}]"#
    )));
    let documents = &drill.accounts["a.test"].documents;
    let times: Vec<_> = documents
        .iter()
        .map(|document| document.from.as_secs())
        .collect();
    assert_eq!(times, [0, 10, 20]);
    assert!(!documents[0].multi_write && documents[2].multi_write);
    assert_eq!(
        (&*documents[1].writable[0], &*documents[2].writable[0]),
        ("East US", "West US")
    );
    assert_eq!(documents[2].readable.len(), 2);
    for (keys, key) in [
        (r#""readable": [], "writable": ["East US"]"#, "readable"),
        (r#""readable": ["East US"], "writable": []"#, "writable"),
        (r#""readable": ["East US"]"#, "writable"),
        (
            r#""readable": ["East US", ""], "writable": ["East US"]"#,
            "readable[1]",
        ),
        (
            r#""readable": ["East US", "eastus"], "writable": ["East US"]"#,
            "readable[1]",
        ),
        (&format!(r#"{good}, "multi_write": null"#), "multi_write"),
        (
            &format!(r#"{good}, "changes": [{{"at": "1s"}}]"#),
            "changes[0]",
        ),
        (
            &format!(r#"{good}, "changes": [{{"multi_write": true}}]"#),
            "changes[0].at",
        ),
        (
            &format!(r#"{good}, "changes": [{{"at": "1s", "readable": []}}]"#),
            "changes[0].readable",
        ),
        (
            &format!(
                r#"{good}, "changes": [{{"at": "2s", "multi_write": true}}, {{"at": "1s", "multi_write": true}}]"#
            ),
            "changes[1].at",
        ),
    ] {
        let wanted = format!("accounts.a.test.{key}");
        assert_eq!(problem(&account(keys)).path(), wanted, "{keys}");
    }
    let twice = docs(
        "",
        &format!(r#", "accounts": {{"a.test": {{{good}}}, "a-eastus.test": {{{good}}}}}"#),
    );
    assert_eq!(problem(&twice).path(), "accounts.a-eastus.test");
    for address in ["127.0.0.1:8081", "[::1]"] {
        let text = docs("", &format!(r#", "accounts": {{"{address}": {{{good}}}}}"#));
        assert_eq!(problem(&text).path(), format!("accounts.{address}"));
    }
    let no_host = docs("", &format!(r#", "accounts": {{"a b": {{{good}}}}}"#));
    assert_eq!(problem(&no_host).path(), "accounts.a b");
}
