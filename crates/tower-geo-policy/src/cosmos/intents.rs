//! What a request to Cosmos DB does (I1, I7, C2).

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use http::{Method, StatusCode, Uri};

use crate::intent::{Intent, Ruling};
use crate::provider::Provider;
use crate::verdict::{FromCopy, Verdict};

use super::routing::Route;
use super::verdicts::Meaning;

static IS_QUERY: HeaderName = HeaderName::from_static("x-ms-documentdb-isquery");
static IS_QUERY_PLAN: HeaderName = HeaderName::from_static("x-ms-cosmos-is-query-plan-request");
const QUERY_TYPE: &str = "application/query+json";

/// What a request does, as finely as the rules of Cosmos DB tell requests apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RequestKind {
    /// A read, also a query in a POST.
    Read,
    /// Creates, replaces, changes or deletes a document.
    DocumentWrite,
    /// Runs a stored procedure: sent again only when it surely did not run (I7).
    Procedure,
    /// Any other write, such as the creation of a container: it belongs to the hub (C2).
    OtherWrite,
    /// Neither: sent once, as it is.
    Neutral,
}

impl RequestKind {
    /// What a request does.
    #[must_use]
    pub fn of(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        classify(method, uri, headers).0
    }

    /// What it does, in the words that all services share.
    ///
    /// No write of Cosmos DB is harmless to repeat by its headers or its method: a copy of it that
    /// arrives in another region is another write (C7).
    #[must_use]
    pub const fn intent(self) -> Intent {
        match self {
            Self::Read => Intent::READ,
            Self::Neutral => Intent::NEUTRAL,
            Self::DocumentWrite | Self::Procedure | Self::OtherWrite => Intent::WRITE_ONCE,
        }
    }

    /// Which regions it may use.
    #[must_use]
    pub const fn route(self) -> Route {
        match self {
            Self::Read | Self::Neutral => Route::Read,
            Self::DocumentWrite | Self::Procedure => Route::Write,
            Self::OtherWrite => Route::Hub,
        }
    }
}

fn classify(method: &Method, uri: &Uri, headers: &HeaderMap) -> (RequestKind, &'static str) {
    match *method {
        Method::GET | Method::HEAD => {
            return (
                RequestKind::Read,
                "GET and HEAD are reads that any region may answer",
            );
        }
        Method::OPTIONS => {
            return (
                RequestKind::Neutral,
                "OPTIONS asks what is allowed and touches no data",
            );
        }
        Method::POST if is_query(headers) => {
            return (
                RequestKind::Read,
                "the headers say that this POST is a query, which is a read",
            );
        }
        _ => {}
    }
    // dbs/{id}/colls/{id}/docs…, as names or as resource ids.
    let mut segments = uri.path().split('/').filter(|segment| !segment.is_empty());
    let (databases, _, containers, _, resource) = (
        segments.next(),
        segments.next(),
        segments.next(),
        segments.next(),
        segments.next(),
    );
    let in_container = databases.is_some_and(|it| it.eq_ignore_ascii_case("dbs"))
        && containers.is_some_and(|it| it.eq_ignore_ascii_case("colls"));
    let resource = resource.filter(|_| in_container).unwrap_or("");
    if resource.eq_ignore_ascii_case("docs") {
        return (
            RequestKind::DocumentWrite,
            "a write of documents goes to a region that takes writes",
        );
    }
    let names_one = segments.next().is_some() && segments.next().is_none();
    if *method == Method::POST && resource.eq_ignore_ascii_case("sprocs") && names_one {
        return (
            RequestKind::Procedure,
            "a stored procedure is sent again only when it surely did not run",
        );
    }
    (
        RequestKind::OtherWrite,
        "a write of anything but documents belongs to the hub",
    )
}

fn is_query(headers: &HeaderMap) -> bool {
    is_true(headers, &IS_QUERY) || is_true(headers, &IS_QUERY_PLAN) || has_query_type(headers)
}

fn is_true(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers
        .get(name)
        .is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"true"))
}

fn has_query_type(headers: &HeaderMap) -> bool {
    let Some(value) = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
    else {
        return false;
    };
    let media_type = value.split(';').next().unwrap_or("").trim();
    media_type.eq_ignore_ascii_case(QUERY_TYPE)
}

/// The [`Provider`] of Cosmos DB.
///
/// It tells the layers what is a read and what the circuits learn from an answer. Where requests
/// go, and what follows from an answer, is decided by [`operation`](super::operation) instead
/// (C15).
///
/// ```
/// use http::{HeaderMap, Method, Uri};
/// use tower_geo_policy::cosmos::Cosmos;
/// use tower_geo_policy::intent::Intent;
/// use tower_geo_policy::provider::Provider;
///
/// let uri = Uri::from_static("https://contoso.documents.azure.com/dbs/d/colls/c/docs");
/// let mut headers = HeaderMap::new();
/// let create = Cosmos::new().intent(&Method::POST, &uri, &headers);
/// assert_eq!(create.intent, Intent::WRITE_ONCE);
///
/// headers.insert("x-ms-documentdb-isquery", "True".parse()?);
/// let query = Cosmos::new().intent(&Method::POST, &uri, &headers);
/// assert_eq!(query.intent, Intent::READ);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Cosmos;

impl Cosmos {
    /// The provider; it has no settings.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Provider for Cosmos {
    fn intent(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Ruling {
        let (kind, why) = classify(method, uri, headers);
        Ruling::new(kind.intent(), why)
    }

    fn verdict(&self, _intent: Intent, status: StatusCode, headers: &HeaderMap) -> Verdict {
        Meaning::of(status, headers).for_breaker()
    }

    /// A region is not a copy that may be behind, except where it says so itself (C6).
    fn judge_copy(&self, _status: StatusCode, _headers: &HeaderMap) -> FromCopy {
        FromCopy::Usual
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn kind(
        method: &str,
        path: &'static str,
        given: &[(&'static str, &'static str)],
    ) -> RequestKind {
        let headers = given
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let uri: Uri = format!("https://acct.documents.azure.com{path}")
            .parse()
            .unwrap();
        RequestKind::of(&method, &uri, &headers)
    }

    /// C2: documents and stored procedures, and all other writes.
    #[test]
    fn writes_are_told_apart_by_their_path() {
        use RequestKind::{DocumentWrite, OtherWrite, Procedure};
        for (method, path, expected) in [
            ("POST", "/dbs/d/colls/c/docs", DocumentWrite),
            ("POST", "/dbs/d/colls/c/docs/", DocumentWrite),
            ("PUT", "/dbs/d/colls/c/docs/1", DocumentWrite),
            ("PATCH", "/dbs/d/colls/c/docs/1?x=y", DocumentWrite),
            ("DELETE", "/dbs/d/colls/c/docs/docs", DocumentWrite),
            ("POST", "/dbs/d/colls/c/docs/1/attachments", DocumentWrite),
            ("POST", "/dbs/AAA=/colls/AAB=/docs", DocumentWrite),
            ("POST", "/dbs/d/colls/c/sprocs/s", Procedure),
            ("POST", "/dbs/d/colls/c/sprocs", OtherWrite),
            ("PUT", "/dbs/d/colls/c/sprocs/s", OtherWrite),
            ("DELETE", "/dbs/d/colls/c/sprocs/s", OtherWrite),
            ("POST", "/dbs", OtherWrite),
            ("POST", "/dbs/d/colls", OtherWrite),
            ("DELETE", "/dbs/d/colls/c", OtherWrite),
            ("DELETE", "/dbs/d/colls/docs", OtherWrite),
            ("POST", "/dbs/d/users/docs/docs", OtherWrite),
            ("PUT", "/offers/o", OtherWrite),
            ("PURGE", "/", OtherWrite),
        ] {
            assert_eq!(kind(method, path, &[]), expected, "{method} {path}");
        }
    }

    /// I7: a POST is a read when a header says so, in any of three ways.
    #[test]
    fn queries_are_reads() {
        let path = "/dbs/d/colls/c/docs";
        for header in [
            ("x-ms-documentdb-isquery", "True"),
            ("x-ms-documentdb-isquery", "true"),
            ("x-ms-cosmos-is-query-plan-request", "True"),
            ("content-type", "application/query+json"),
            ("content-type", "Application/Query+JSON; charset=utf-8"),
        ] {
            assert_eq!(
                kind("POST", path, &[header]),
                RequestKind::Read,
                "{header:?}"
            );
            let elsewhere = kind("PUT", "/dbs/d/colls/c/docs/1", &[header]);
            assert_eq!(elsewhere, RequestKind::DocumentWrite, "{header:?}");
        }
        for header in [
            ("x-ms-documentdb-isquery", "False"),
            ("content-type", "application/json"),
            ("content-type", "application/query+jsonx"),
        ] {
            let write = kind("POST", path, &[header]);
            assert_eq!(write, RequestKind::DocumentWrite, "{header:?}");
        }
    }

    /// I1: GET and HEAD are reads, unknown methods are writes; OPTIONS is neither.
    #[test]
    fn methods_decide_the_rest() {
        assert_eq!(kind("GET", "/", &[]), RequestKind::Read);
        assert_eq!(
            kind("HEAD", "/dbs/d/colls/c/sprocs/s", &[]),
            RequestKind::Read
        );
        assert_eq!(kind("OPTIONS", "/dbs", &[]), RequestKind::Neutral);
        for write in [
            RequestKind::DocumentWrite,
            RequestKind::Procedure,
            RequestKind::OtherWrite,
        ] {
            assert!(!write.intent().is_harmless_to_repeat());
        }
    }
}
