//! Every entry of `cosmos-lists.json`: small cases, each an input and what must come out.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};
use serde_json::{Value, json};
use sha2::Sha256;

use super::*;
use crate::breaker::Circuit;
use crate::fault::Fault;
use crate::intent::Intent;
use crate::operation::Reach;
use crate::provider::Provider as _;
use crate::region::{Endpoint, RegionId};
use crate::tick::Tick;

const VECTORS: &str = include_str!("cosmos-lists.json");

fn texts(value: &Value) -> Vec<&str> {
    let list = value.as_array().unwrap();
    list.iter().map(|text| text.as_str().unwrap()).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

/// The account document that lists these regions.
pub(super) fn document_of(readable: &[&str], writable: &[&str], multi_write: bool) -> Vec<u8> {
    let locations = |names: &[&str]| -> Value {
        let location = |name: &&str| {
            let host = regional_host("acct.documents.azure.com", &RegionName::new(name));
            json!({"name": name, "databaseAccountEndpoint": format!("https://{host}:443/")})
        };
        names.iter().map(location).collect()
    };
    let document = json!({
        "id": "acct",
        "readableLocations": locations(readable),
        "writableLocations": locations(writable),
        "enableMultipleWriteLocations": multi_write,
    });
    document.to_string().into_bytes()
}

fn topology(account: &Value, settings: &AccountSettings) -> Topology {
    let body = document_of(
        &texts(&account["readable"]),
        &texts(&account["writable"]),
        account["multi_write"].as_bool().unwrap(),
    );
    let document = AccountDocument::of_answer(StatusCode::OK, &body).unwrap();
    let given = Endpoint::parse("https://acct.documents.azure.com").unwrap();
    let before = Topology::given(given, settings).unwrap();
    before.with_document(&document, settings).unwrap().topology
}

fn headers(value: &Value) -> HeaderMap {
    let given = value.as_object().unwrap();
    given
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value.as_str().unwrap()).unwrap(),
            )
        })
        .collect()
}

fn request(value: &Value) -> (Method, Uri, HeaderMap) {
    (
        text(value, "method").parse().unwrap(),
        format!("https://acct.documents.azure.com{}", text(value, "path"))
            .parse()
            .unwrap(),
        headers(&value["headers"]),
    )
}

fn account_document(id: &str, input: &Value, expect: &Value) {
    let status = StatusCode::from_u16(input["status"].as_u64().unwrap().try_into().unwrap());
    let body = input["body"].to_string();
    let read = AccountDocument::of_answer(status.unwrap(), body.as_bytes());
    if expect["accepted"] == json!(false) {
        assert!(read.is_err(), "{id}");
        return;
    }
    let read = read.unwrap();
    let regions = |locations: &[Location]| -> Value {
        let region = |location: &Location| json!({"name": location.name(), "host": location.endpoint().authority()});
        locations.iter().map(region).collect()
    };
    assert_eq!(regions(read.readable()), expect["readable"], "{id}");
    assert_eq!(regions(read.writable()), expect["writable"], "{id}");
    assert_eq!(json!(read.is_multi_write()), expect["multi_write"], "{id}");
}

fn region_order(id: &str, input: &Value, expect: &Value) {
    let settings = AccountSettings::new()
        .preferred(texts(&input["preferred"]))
        .excluded(texts(&input["excluded"]))
        .multi_write(input["multi_write"].as_bool().unwrap());
    let topology = topology(&input["account"], &settings);
    let now = Tick::ZERO + Duration::from_secs(1000);
    let marks = Marks::new();
    for mark in input["marks"].as_array().unwrap() {
        let region = topology
            .listed_by_name(&RegionName::new(text(mark, "region")))
            .unwrap();
        let age = Duration::from_secs(mark["age_s"].as_u64().unwrap());
        let until = Tick::ZERO + (Duration::from_secs(1000) + settings.get_mark_for() - age);
        for kind in texts(&mark["kinds"]) {
            let kind = match kind {
                "read" => Circuit::Reads,
                "write" => Circuit::Writes,
                other => panic!("{other}"),
            };
            marks.mark(region, kind.into(), until);
        }
    }
    let route = match text(input, "request") {
        "read" => Route::Read,
        "write" => Route::Write,
        other => panic!("{other}"),
    };
    let order = topology.order(route, &marks, topology.excluded(), now);
    if expect["error"] == json!("config") {
        assert_eq!(order, Err(AllExcluded), "{id}");
        return;
    }
    let names: Vec<_> = order
        .unwrap()
        .iter()
        .map(|region| topology.name(region).unwrap().to_owned())
        .collect();
    match expect.get("first") {
        Some(first) => assert_eq!(json!(names[0]), *first, "{id}"),
        None => assert_eq!(json!(names), expect["order"], "{id}"),
    }
}

fn intent(id: &str, input: &Value, expect: &Value) {
    let (method, uri, headers) = request(input);
    let intent = Cosmos::new().intent(&method, &uri, &headers).intent;
    let expected = match text(expect, "intent") {
        "read" => Intent::READ,
        "write" => Intent::WRITE_ONCE,
        other => panic!("{other}"),
    };
    assert_eq!(intent, expected, "{id}");
}

/// Plays the sends with the decision maker, and does to the headers what it says.
fn request_headers(id: &str, input: &Value, expect: &Value) {
    let stops = input.get("from").into_iter().chain(input.get("to"));
    let preferred: Vec<_> = stops.map(|name| name.as_str().unwrap()).collect();
    let settings = AccountSettings::new()
        .preferred(&preferred)
        .multi_write(input["multi_write"].as_bool().unwrap());
    let account = &input["account"];
    let body = document_of(
        &texts(&account["readable"]),
        &texts(&account["writable"]),
        account["multi_write"].as_bool().unwrap(),
    );
    let mut bench = operation::bench::Bench::of_document(settings, &body);
    let (method, uri, mut headers) = request(&input["request"]);
    let kind = RequestKind::of(&method, &uri, &headers);
    let mut operation = operation::Operation::new(kind, RegionId::FIRST, Reach::Everywhere);
    let mut sent = bench.send(&mut operation);
    if let Some(from) = input.get("from") {
        assert_eq!(sent.region, from.as_str().unwrap(), "{id}");
        match input.get("after") {
            Some(after) => {
                let status = after["status"].as_u64().unwrap().try_into().unwrap();
                let sub = after["sub_status"].as_u64().unwrap_or(0);
                bench.answer(&mut operation, status, sub.try_into().unwrap());
            }
            None => {
                bench.fault(&mut operation, Fault::Connect);
                bench.send(&mut operation);
                bench.fault(&mut operation, Fault::Connect);
            }
        }
        sent = bench.send(&mut operation);
    }
    assert_eq!(sent.region, text(input, "to"), "{id}");
    if sent.tentative {
        let (name, value) = ALLOW_TENTATIVE_WRITES;
        headers.insert(name, value);
    }
    for (name, value) in expect["present"].as_object().into_iter().flatten() {
        assert_eq!(
            headers[name.as_str()],
            value.as_str().unwrap(),
            "{id}: {name}"
        );
    }
    for name in expect["absent"].as_array().into_iter().flatten() {
        assert!(
            !headers.contains_key(name.as_str().unwrap()),
            "{id}: {name}"
        );
    }
}

fn signature(id: &str, input: &Value, expect: &Value) {
    let key = STANDARD.decode(text(input, "key")).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    let to_sign = string_to_sign(
        text(input, "verb"),
        text(input, "resource_type"),
        text(input, "resource_link"),
        text(input, "date"),
    );
    mac.update(to_sign.as_bytes());
    let token = authorization_token(&STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(token, text(expect, "token"), "{id}");
}

/// C1, C2, C3, C6, C10, C11, C12, I7, R8: all entries, and no kind of entry that is not known.
#[test]
fn every_vector_holds() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let entries = vectors["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 61);
    for entry in entries {
        let (id, input, expect) = (text(entry, "id"), &entry["input"], &entry["expect"]);
        match text(entry, "kind") {
            "region-equality" => {
                let [a, b] = ["a", "b"].map(|name| RegionName::new(text(input, name)));
                assert_eq!(json!(a == b), expect["equal"], "{id}");
            }
            "regional-host" => {
                let region = RegionName::new(text(input, "region"));
                let host = regional_host(text(input, "global"), &region);
                assert_eq!(json!(host), expect["host"], "{id}");
            }
            "account-document" => account_document(id, input, expect),
            "region-order" => region_order(id, input, expect),
            "intent" => intent(id, input, expect),
            "request-headers" => request_headers(id, input, expect),
            "signature" => signature(id, input, expect),
            other => panic!("{id}: {other} is not known"),
        }
    }
}
