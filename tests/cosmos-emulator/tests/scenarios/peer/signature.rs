//! Is a request signed with the key of the account? Worked out apart from the code that signs.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Method};
use sha2::Sha256;

use super::KEY;

/// The types of resources that these tests use, of which the last in a path without an id is a list.
const TYPES: [&str; 3] = ["dbs", "colls", "docs"];

pub(super) fn is_right(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let (Some(date), Some(given)) = (headers.get("x-ms-date"), headers.get("authorization")) else {
        return false;
    };
    let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (kind, link) = match segments.split_last() {
        None => ("", String::new()),
        Some((last, before)) if before.len() % 2 == 0 => (*last, before.join("/")),
        Some((_, before)) => (before[before.len() - 1], segments.join("/")),
    };
    assert!(kind.is_empty() || TYPES.contains(&kind), "{path}");

    let date = date.to_str().unwrap().to_lowercase();
    let verb = method.as_str().to_lowercase();
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(KEY).unwrap()).unwrap();
    mac.update(format!("{verb}\n{kind}\n{link}\n{date}\n\n").as_bytes());
    let signature = STANDARD
        .encode(mac.finalize().into_bytes())
        .replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D");
    given.to_str().unwrap() == format!("type%3Dmaster%26ver%3D1.0%26sig%3D{signature}")
}
