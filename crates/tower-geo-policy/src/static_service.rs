//! Any HTTP service that has copies, known by nothing but HTTP itself.

use http::{HeaderMap, Method, StatusCode, Uri};

use crate::conditions::harmless_by_condition;
use crate::intent::{Intent, Ruling};
use crate::provider::Provider;
use crate::status_table;
use crate::verdict::{FromCopy, Verdict};

/// Any HTTP service with copies: a mirror, a read replica behind an API, a site in two regions.
///
/// | request | is |
/// |---|---|
/// | GET, HEAD | a read that every copy may answer |
/// | OPTIONS | neutral |
/// | PUT, DELETE | a write that is harmless to repeat |
/// | anything with `If-None-Match`, or `If-Match` with an entity tag | a write that is harmless to repeat |
/// | anything else | a write that is repeated only if it surely did not arrive |
///
/// Use it when that is true of the service. If its GET changes something, or its PUT adds to
/// something, implement [`Provider`] instead.
///
/// ```
/// use http::{HeaderMap, Method, Uri};
/// use tower_geo_policy::intent::Intent;
/// use tower_geo_policy::provider::Provider;
/// use tower_geo_policy::static_service::StaticService;
///
/// let uri = Uri::from_static("https://eu.example.test/orders/1");
/// let ruling = StaticService::new().intent(&Method::DELETE, &uri, &HeaderMap::new());
/// assert_eq!(ruling.intent, Intent::WRITE_HARMLESS);
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct StaticService;

impl StaticService {
    /// The provider; it has no settings.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Provider for StaticService {
    fn intent(&self, method: &Method, _uri: &Uri, headers: &HeaderMap) -> Ruling {
        match *method {
            Method::GET | Method::HEAD => Ruling::new(
                Intent::READ,
                "GET and HEAD are reads that any copy may answer",
            ),
            Method::OPTIONS => Ruling::new(
                Intent::NEUTRAL,
                "OPTIONS asks what is allowed and touches no data",
            ),
            Method::PUT => Ruling::new(
                Intent::WRITE_HARMLESS,
                "PUT is a write that gives the same result twice",
            ),
            Method::DELETE => Ruling::new(
                Intent::WRITE_HARMLESS,
                "DELETE is a write that gives the same result twice",
            ),
            _ => harmless_by_condition(headers).unwrap_or(Ruling::new(
                Intent::WRITE_ONCE,
                "every other method is a write that may not arrive twice",
            )),
        }
    }

    /// The verdict table without the rows that are about `x-ms-` headers: so no answer that
    /// refuses a request is known to come from the service itself.
    fn verdict(&self, _intent: Intent, status: StatusCode, _headers: &HeaderMap) -> Verdict {
        status_table::verdict(status, || false)
    }

    fn judge_copy(&self, status: StatusCode, _headers: &HeaderMap) -> FromCopy {
        status_table::from_copy(status)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn intent(method: &str, headers: &[(&'static str, &'static str)]) -> Intent {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        StaticService::new()
            .intent(
                &method,
                &Uri::from_static("https://eu.example.test/a"),
                &map,
            )
            .intent
    }

    /// I1: GET and HEAD are reads, everything else is a write. V1: PUT and DELETE are harmless,
    /// the rest is not.
    #[test]
    fn methods_decide() {
        for (method, expected) in [
            ("GET", Intent::READ),
            ("HEAD", Intent::READ),
            ("OPTIONS", Intent::NEUTRAL),
            ("PUT", Intent::WRITE_HARMLESS),
            ("DELETE", Intent::WRITE_HARMLESS),
            ("POST", Intent::WRITE_ONCE),
            ("PATCH", Intent::WRITE_ONCE),
            ("MERGE", Intent::WRITE_ONCE),
            ("TRACE", Intent::WRITE_ONCE),
            ("CONNECT", Intent::WRITE_ONCE),
            ("PURGE", Intent::WRITE_ONCE),
            ("get", Intent::WRITE_ONCE),
        ] {
            assert_eq!(intent(method, &[]), expected, "{method}");
        }
    }

    /// V1: the conditional headers work here, too.
    #[test]
    fn conditions_make_a_post_harmless() {
        assert_eq!(
            intent("POST", &[("if-none-match", "*")]),
            Intent::WRITE_HARMLESS
        );
        assert_eq!(
            intent("PATCH", &[("if-match", "\"1\"")]),
            Intent::WRITE_HARMLESS
        );
        assert_eq!(intent("PATCH", &[("if-match", "*")]), Intent::WRITE_ONCE);
    }

    /// The verdict table without the `x-ms-` rows.
    #[test]
    fn the_status_alone_gives_the_verdict() {
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-error-code", HeaderValue::from_static("ServerBusy"));
        headers.insert("x-ms-request-id", HeaderValue::from_static("1"));
        headers.insert(
            "x-ms-copy-source-error-code",
            HeaderValue::from_static("ServerBusy"),
        );
        for (statuses, expected) in [
            (
                &[200_u16, 204, 206, 301, 304, 404, 409, 412, 416][..],
                Verdict::Answered,
            ),
            (
                &[400, 401, 403, 405, 410, 418, 451, 501, 505, 507, 599],
                Verdict::Refused { alive: false },
            ),
            (&[429], Verdict::Throttled),
            (&[408, 500, 502, 503, 504], Verdict::Transient),
        ] {
            for status in statuses {
                let status = StatusCode::from_u16(*status).unwrap();
                for intent in [Intent::READ, Intent::WRITE_ONCE] {
                    assert_eq!(
                        StaticService::new().verdict(intent, status, &headers),
                        expected,
                        "{status}"
                    );
                }
            }
        }
    }

    /// R4: 404, 412, 400, 401 and 403 of a copy. R6 is about Azure Storage only.
    #[test]
    fn the_writer_decides_what_a_copy_may_not_know() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "x-ms-error-code",
            HeaderValue::from_static("InsufficientAccountPermissions"),
        );
        for status in 100..1000 {
            let status = StatusCode::from_u16(status).unwrap();
            let expected = match status.as_u16() {
                400 | 401 | 403 | 404 | 412 => FromCopy::WriterDecides,
                _ => FromCopy::Usual,
            };
            assert_eq!(
                StaticService::new().judge_copy(status, &headers),
                expected,
                "{status}"
            );
        }
    }
}
