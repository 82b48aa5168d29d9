//! What is signed, as "Authorize with Shared Key" of the Storage REST API lays down.

use crate::signing::X_MS_DATE;
use http::{
    HeaderMap, HeaderName, Method, Uri,
    header::{
        CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, DATE, IF_MATCH,
        IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, RANGE,
    },
};
use std::{cmp::Ordering, collections::BTreeMap};

static CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// The two ways to sign with an account's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Blob, queue, dfs and file.
    Full,
    /// Table.
    Table,
}

/// The bytes to sign. Bytes, not text: header values need not be UTF-8.
///
/// `headers` must hold `x-ms-date`; `length` is the length of the body where no `Content-Length`
/// header says it.
pub(super) fn string_to_sign(
    scheme: Scheme,
    account: &str,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    length: Option<u64>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b'\n');
    match scheme {
        Scheme::Full => {
            full_headers(&mut out, headers, length);
            out.push(b'/');
            out.extend_from_slice(account.as_bytes());
            out.extend_from_slice(uri.path().as_bytes());
            full_query(&mut out, uri.query().unwrap_or_default());
        }
        Scheme::Table => {
            // The table service signs the date itself, and wants that of `x-ms-date` if there is one.
            for name in [&CONTENT_MD5, &CONTENT_TYPE, &X_MS_DATE] {
                push_values(&mut out, headers, name);
                out.push(b'\n');
            }
            out.push(b'/');
            out.extend_from_slice(account.as_bytes());
            out.extend_from_slice(uri.path().as_bytes());
            table_query(&mut out, uri.query().unwrap_or_default());
        }
    }
    out
}

fn full_headers(out: &mut Vec<u8>, headers: &HeaderMap, length: Option<u64>) {
    for name in [
        &CONTENT_ENCODING,
        &CONTENT_LANGUAGE,
        &CONTENT_LENGTH,
        &CONTENT_MD5,
        &CONTENT_TYPE,
        &DATE,
        &IF_MODIFIED_SINCE,
        &IF_MATCH,
        &IF_NONE_MATCH,
        &IF_UNMODIFIED_SINCE,
        &RANGE,
    ] {
        if name == CONTENT_LENGTH {
            let start = out.len();
            match length {
                Some(length) => out.extend_from_slice(length.to_string().as_bytes()),
                None => push_values(out, headers, name),
            }
            // Since version 2015-02-21 a length of zero is signed as if it were not there.
            if out.get(start..) == Some(b"0") {
                out.truncate(start);
            }
        } else if name != DATE {
            push_values(out, headers, name);
        }
        // `Date` stays empty: the date that counts is in `x-ms-date`, which is always there.
        out.push(b'\n');
    }

    let mut names: Vec<&str> = headers
        .keys()
        .map(HeaderName::as_str)
        .filter(|name| name.starts_with("x-ms-"))
        .collect();
    names.sort_unstable_by(|a, b| compare_names(a, b));
    for name in names {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        push_values(out, headers, name);
        out.push(b'\n');
    }
}

/// Appends the values of a header, trimmed, with commas between them. White space inside a value is
/// kept: the documents want runs of it folded, yet service and emulator sign it as it is.
fn push_values<K: http::header::AsHeaderName>(out: &mut Vec<u8>, headers: &HeaderMap, name: K) {
    for (index, value) in headers.get_all(name).iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(value.as_bytes().trim_ascii());
    }
}

/// The order of header names, which is that of a dictionary in the service's en-US culture, not that
/// of bytes: `x-ms-meta-a_b` comes before `x-ms-meta-a1`, and hyphens only break ties.
fn compare_names(a: &str, b: &str) -> Ordering {
    fn weights(name: &str) -> impl Iterator<Item = (u8, u8)> + '_ {
        name.bytes()
            .filter(|byte| !matches!(byte, b'-' | b'\''))
            .map(|byte| match byte {
                b'a'..=b'z' => (3, byte),
                b'0'..=b'9' => (2, byte),
                b'+' => (1, byte),
                // In ASCII order already, of the characters that a header name may have.
                other => (0, other),
            })
    }
    weights(a)
        .cmp(weights(b))
        .then_with(|| a.len().cmp(&b.len()))
        .then_with(|| a.cmp(b))
}

/// Every parameter: decoded, names in lower case and sorted, the values of one name sorted too.
fn full_query(out: &mut Vec<u8>, query: &str) {
    let mut parameters: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for (name, value) in pairs(query) {
        let mut name = decode(name);
        name.make_ascii_lowercase();
        parameters.entry(name).or_default().push(decode(value));
    }
    for (name, mut values) in parameters {
        values.sort_unstable();
        out.push(b'\n');
        out.extend_from_slice(&name);
        out.push(b':');
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(value);
        }
    }
}

/// Only `comp`, as it stands.
fn table_query(out: &mut Vec<u8>, query: &str) {
    let comp = pairs(query).find(|(name, _)| name.eq_ignore_ascii_case("comp"));
    if let Some((_, value)) = comp {
        out.extend_from_slice(b"?comp=");
        out.extend_from_slice(value.as_bytes());
    }
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Decodes `%XX` and `+`; what is no valid escape stays as it is.
fn decode(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        match (first, tail) {
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = after;
                }
                _ => out.push(first),
            },
            (b'+', _) => out.push(b' '),
            _ => out.push(first),
        }
    }
    out
}

const fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
