//! A host that really holds objects, with a copy that follows (`stores` of a drill).
//!
//! An object is what was put at a path. Every change is kept with its instant, so the copy is the
//! same list, read at an earlier instant: it has all that was written before its Last Sync Time.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, DATE, ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::format::{Answer, BodyEnd, What};

/// The objects of one host.
#[derive(Debug)]
pub(crate) struct Store {
    /// How far the copy is behind.
    lag: Duration,
    /// The wall clock at time 0.
    start: SystemTime,
    objects: HashMap<String, Vec<Version>>,
    changes: u64,
    used: bool,
}

/// What a path was from an instant on.
#[derive(Debug)]
struct Version {
    at: Duration,
    /// Nothing, after it was deleted.
    object: Option<Object>,
}

#[derive(Clone, Debug)]
struct Object {
    body: Bytes,
    modified: SystemTime,
    etag: String,
}

/// A request, as far as a store looks at it.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Whether it came to the copy.
    pub(crate) of_copy: bool,
    pub(crate) method: Method,
    /// Below the account.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
}

/// A status and a code that refuse a request.
type Refusal = (StatusCode, &'static str);

impl Store {
    pub(crate) fn new(lag: Duration, start: SystemTime) -> Self {
        Self {
            lag,
            start,
            objects: HashMap::new(),
            changes: 0,
            used: false,
        }
    }

    /// Whether anything was ever asked of it.
    pub(crate) const fn is_used(&self) -> bool {
        self.used
    }

    /// Does what was asked at an instant, and answers at once.
    pub(crate) fn serve(&mut self, asked: &Asked, body: Bytes, at: Duration) -> Answer {
        self.used = true;
        let (status, mut headers, body) = self
            .route(asked, body, at)
            .unwrap_or_else(|(status, code)| refusal(status, code));
        header(&mut headers, DATE, &http_date(self.start + at));
        let id = HeaderName::from_static("x-ms-request-id");
        header(&mut headers, id, &format!("{:08x}", at.as_millis()));
        Answer {
            latency: Duration::ZERO,
            what: What::Response {
                status,
                headers,
                body: if asked.method == Method::HEAD {
                    Bytes::new()
                } else {
                    body
                },
                end: BodyEnd::Whole,
            },
            applied: false,
        }
    }

    fn route(&mut self, asked: &Asked, body: Bytes, at: Duration) -> Result<Given, Refusal> {
        let says = |parameter| asked.query.split('&').any(|given| given == parameter);
        let is_read = asked.method == Method::GET || asked.method == Method::HEAD;
        if is_read && says("comp=stats") && says("restype=service") {
            return if asked.of_copy {
                Ok(self.stats(at))
            } else {
                Err((StatusCode::BAD_REQUEST, "InvalidQueryParameterValue"))
            };
        }
        let seen_at = if asked.of_copy {
            // Nothing had been replicated when the drill began, less than a lag ago.
            at.checked_sub(self.lag)
        } else {
            Some(at)
        };
        let found = seen_at.and_then(|seen_at| self.at(&asked.path, seen_at));
        if is_read {
            let found = found.ok_or((StatusCode::NOT_FOUND, "ResourceNotFound"))?;
            check_conditions(asked, Some(found))?;
            return Ok((
                StatusCode::OK,
                found.headers(&asked.path),
                found.body.clone(),
            ));
        }
        if asked.of_copy {
            return Err((StatusCode::FORBIDDEN, "InsufficientAccountPermissions"));
        }
        check_conditions(asked, found)?;
        let before = found.cloned();
        let (status, object) = match (asked.method.as_str(), before) {
            ("DELETE", None) => return Err((StatusCode::NOT_FOUND, "ResourceNotFound")),
            ("DELETE", Some(_)) => (StatusCode::ACCEPTED, None),
            // Of its metadata, tags, tier and so on, all that shows is that it was changed.
            ("PUT", before)
                if asked
                    .query
                    .split('&')
                    .any(|given| given.starts_with("comp=")) =>
            {
                let before = before.ok_or((StatusCode::NOT_FOUND, "ResourceNotFound"))?;
                (StatusCode::OK, Some(before.body))
            }
            ("PUT" | "POST", _) => (StatusCode::CREATED, Some(body)),
            _ => (StatusCode::NO_CONTENT, Some(body)),
        };
        self.changes += 1;
        let object = object.map(|body| Object {
            body,
            modified: self.start + at,
            etag: self.etag(&asked.path, at),
        });
        let headers = object
            .as_ref()
            .map_or_else(Vec::new, |object| object.headers(&asked.path));
        let versions = self.objects.entry(asked.path.clone()).or_default();
        versions.push(Version { at, object });
        Ok((status, headers, Bytes::new()))
    }

    /// What the path was at an instant. What was written at the very instant of the Last Sync Time
    /// is not before it; the writer has it, of course.
    fn at(&self, path: &str, at: Duration) -> Option<&Object> {
        let versions = self.objects.get(path)?;
        let last = versions.iter().rfind(|version| version.at <= at)?;
        last.object.as_ref()
    }

    fn stats(&self, at: Duration) -> Given {
        let time = http_date(
            (self.start + at)
                .checked_sub(self.lag)
                .unwrap_or(self.start),
        );
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication>\
             <Status>live</Status><LastSyncTime>{time}</LastSyncTime>\
             </GeoReplication></StorageServiceStats>"
        );
        let mut headers = Vec::new();
        header(&mut headers, CONTENT_TYPE, "application/xml");
        (StatusCode::OK, headers, body.into())
    }

    /// The ETag of a table entity is its time; of others a number that is never used twice.
    fn etag(&self, path: &str, at: Duration) -> String {
        if !is_entity(path) {
            return format!("\"0x{:X}\"", 0x8DE_0000_0000_u64 + self.changes);
        }
        let time = humantime::format_rfc3339_nanos(self.start + at).to_string();
        // A service has seven places, not nine.
        let time = time.strip_suffix("00Z").unwrap_or(&time);
        format!("W/\"datetime'{}Z'\"", time.replace(':', "%3A"))
    }
}

type Given = (StatusCode, Vec<(HeaderName, HeaderValue)>, Bytes);

impl Object {
    fn headers(&self, path: &str) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::new();
        header(&mut headers, ETAG, &self.etag);
        if !is_entity(path) {
            header(&mut headers, LAST_MODIFIED, &http_date(self.modified));
        }
        headers
    }
}

fn is_entity(path: &str) -> bool {
    path.contains('(')
}

/// `If-Match` and `If-None-Match`, each with one tag or a star.
fn check_conditions(asked: &Asked, found: Option<&Object>) -> Result<(), Refusal> {
    let meets = |name| {
        let wanted = asked.headers.get(name)?.to_str().ok()?;
        Some(found.is_some_and(|found| wanted == "*" || wanted == found.etag))
    };
    let is_read = asked.method == Method::GET || asked.method == Method::HEAD;
    match (meets(IF_MATCH), meets(IF_NONE_MATCH)) {
        (Some(false), _) => Err((StatusCode::PRECONDITION_FAILED, "ConditionNotMet")),
        (_, Some(true)) if is_read => Err((StatusCode::NOT_MODIFIED, "ConditionNotMet")),
        (_, Some(true)) => Err((StatusCode::CONFLICT, "ResourceAlreadyExists")),
        _ => Ok(()),
    }
}

fn refusal(status: StatusCode, code: &str) -> Given {
    let mut headers = Vec::new();
    header(
        &mut headers,
        HeaderName::from_static("x-ms-error-code"),
        code,
    );
    (status, headers, Bytes::new())
}

fn header(headers: &mut Vec<(HeaderName, HeaderValue)>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.push((name, value));
    }
}

fn http_date(time: SystemTime) -> String {
    httpdate::fmt_http_date(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600)
    }

    fn asked(of_copy: bool, method: &str, path_and_query: &str) -> Asked {
        let (path, query) = path_and_query
            .split_once('?')
            .unwrap_or((path_and_query, ""));
        Asked {
            of_copy,
            method: method.parse().unwrap(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: HeaderMap::new(),
        }
    }

    struct Told {
        status: u16,
        body: String,
        headers: HeaderMap,
    }

    impl Store {
        fn ask(&mut self, asked: &Asked, body: &'static str, second: u64) -> Told {
            let answer = self.serve(asked, Bytes::from(body), Duration::from_secs(second));
            let What::Response {
                status,
                headers,
                body,
                ..
            } = answer.what
            else {
                panic!("a store has no faults");
            };
            Told {
                status: status.as_u16(),
                body: String::from_utf8(body.to_vec()).unwrap(),
                headers: headers.into_iter().collect(),
            }
        }
    }

    #[test]
    fn the_copy_has_what_was_written_a_lag_ago() {
        let mut store = Store::new(Duration::from_secs(10), start());
        let (put, get) = (asked(false, "PUT", "/c/b"), asked(false, "GET", "/c/b"));
        let copy = asked(true, "GET", "/c/b");
        assert_eq!(store.ask(&get, "", 1).status, 404);
        assert_eq!(store.ask(&put, "one", 5).status, 201);
        assert_eq!(store.ask(&put, "two", 20).status, 201);
        assert_eq!(store.ask(&get, "", 20).body, "two");
        assert_eq!(store.ask(&copy, "", 9).status, 404);
        assert_eq!(store.ask(&copy, "", 15).body, "one");
        assert_eq!(store.ask(&copy, "", 29).body, "one");
        assert_eq!(store.ask(&copy, "", 30).body, "two");
        assert_eq!(
            store.ask(&asked(false, "DELETE", "/c/b"), "", 31).status,
            202
        );
        assert_eq!(store.ask(&get, "", 31).status, 404);
        assert_eq!(store.ask(&copy, "", 40).body, "two");
        assert_eq!(store.ask(&copy, "", 41).status, 404);
    }

    #[test]
    fn the_copy_takes_no_writes_and_tells_its_time() {
        let mut store = Store::new(Duration::from_secs(10), start());
        assert_eq!(store.ask(&asked(true, "PUT", "/c/b"), "x", 1).status, 403);
        let stats = "/?restype=service&comp=stats";
        assert_eq!(store.ask(&asked(false, "GET", stats), "", 1).status, 400);
        let told = store.ask(&asked(true, "GET", stats), "", 70);
        assert!(
            told.body
                .contains("<LastSyncTime>Thu, 01 Jan 2026 00:01:00 GMT<"),
            "{}",
            told.body
        );
        assert_eq!(told.headers[DATE], "Thu, 01 Jan 2026 00:01:10 GMT");
    }

    #[test]
    fn conditions_are_checked() {
        let mut store = Store::new(Duration::ZERO, start());
        let mut put = asked(false, "PUT", "/c/b");
        let etag = store.ask(&put, "one", 1).headers[ETAG].clone();
        put.headers
            .insert(IF_MATCH, HeaderValue::from_static("\"other\""));
        assert_eq!(store.ask(&put, "two", 2).status, 412);
        put.headers.insert(IF_MATCH, etag.clone());
        assert_eq!(store.ask(&put, "two", 2).status, 201);
        let mut once = asked(false, "PUT", "/c/b");
        once.headers
            .insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        assert_eq!(store.ask(&once, "three", 3).status, 409);
        let mut get = asked(false, "GET", "/c/b");
        get.headers.insert(IF_NONE_MATCH, etag);
        assert_eq!(store.ask(&get, "", 3).body, "two");
        let properties = asked(false, "PUT", "/c/b?comp=metadata");
        assert_eq!(store.ask(&properties, "", 4).status, 200);
        assert_eq!(store.ask(&asked(false, "GET", "/c/b"), "", 4).body, "two");
    }

    #[test]
    fn the_etag_of_an_entity_is_its_time() {
        let mut store = Store::new(Duration::ZERO, start());
        let put = asked(false, "PUT", "/people(PartitionKey='a',RowKey='b')");
        let told = store.ask(&put, "{}", 1);
        assert_eq!(
            told.headers[ETAG],
            "W/\"datetime'2026-01-01T00%3A00%3A01.0000000Z'\""
        );
        assert!(!told.headers.contains_key(LAST_MODIFIED));
    }
}
