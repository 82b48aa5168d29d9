use std::time::Duration;

use http::{HeaderMap, Method};
use tower_geo::fault::Sent;

use super::Script;
use crate::format::{self, Syntax, What};

fn script(rules: &str) -> Script {
    let text = format!(
        r#"{{"services": {{"s": {{"provider": "azure-storage", "endpoint": "https://a.test"}}}},
             "hosts": {{"A.test": {{"answer": {{"status": 204}}}}}}, "rules": {rules}}}"#
    );
    Script::new(&mut format::read(&text, Syntax::Json).unwrap())
}

fn ask(script: &mut Script, at_ms: u64, host: &str, method: &Method, path: &str) -> u16 {
    let uri = format!("https://{host}{path}").parse().unwrap();
    let headers = HeaderMap::new();
    let sent = Sent::new(Duration::from_millis(at_ms), method, &uri, &headers);
    let of_rule = script.answer_of_rule(&sent);
    match &of_rule.unwrap_or_else(|| script.answer_of_host(host)).what {
        What::Response { status, .. } => status.as_u16(),
        What::Fault(_) => 0,
    }
}

#[test]
fn the_first_matching_rule_wins_and_hosts_answer_the_rest() {
    let mut script = script(
        r#"[{"host": "a.test", "method": "PUT", "answers": [{"status": 503}]},
            {"host": "a.test", "path": "/x*y=1", "from": "1s", "until": "2s", "answers": [{"status": 500}]},
            {"host": "nobody.test", "answers": [{"status": 500}]}]"#,
    );
    let mut get = |at, host, path| ask(&mut script, at, host, &Method::GET, path);
    assert_eq!(get(1_000, "a.test", "/x?y=1"), 500);
    assert_eq!(get(999, "a.test", "/x?y=1"), 204);
    assert_eq!(get(2_000, "a.test", "/x?y=1"), 204);
    assert_eq!(get(1_000, "a.test", "/x"), 204);
    assert_eq!(get(0, "b.test", "/"), 200);
    assert_eq!(ask(&mut script, 0, "a.test", &Method::PUT, "/"), 503);
    let left: Vec<_> = script.unmatched().collect();
    assert_eq!(left, [(2, "nobody.test")]);
}

#[test]
fn the_last_answer_repeats_unless_it_has_times() {
    let mut forever = script(
        r#"[{"host": "a.test", "answers": [{"status": 500, "times": 2}, {"status": 502}, {"status": 503}]}]"#,
    );
    let given: Vec<u16> = (0..6)
        .map(|_| ask(&mut forever, 0, "a.test", &Method::GET, "/"))
        .collect();
    assert_eq!(given, [500, 500, 502, 503, 503, 503]);
    let mut used_up = script(
        r#"[{"host": "a.test", "answers": [{"status": 500}, {"status": 502, "times": 1}]},
            {"host": "a.test", "answers": [{"status": 404}]}]"#,
    );
    let given: Vec<u16> = (0..4)
        .map(|_| ask(&mut used_up, 0, "a.test", &Method::GET, "/"))
        .collect();
    assert_eq!(given, [500, 502, 404, 404]);
}

#[test]
fn a_rate_is_a_share_of_the_matching_sends() {
    let mut script = script(r#"[{"host": "a.test", "rate": 0.25, "answers": [{"status": 503}]}]"#);
    let failed = (0..4_000)
        .filter(|_| ask(&mut script, 0, "a.test", &Method::GET, "/") == 503)
        .count();
    assert!((900..1_100).contains(&failed), "{failed}");
}
