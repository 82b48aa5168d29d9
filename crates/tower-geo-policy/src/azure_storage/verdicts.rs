//! What an answer of Azure Storage means (the verdict table, V3, R4, R6).

use http::header::HeaderName;
use http::{HeaderMap, StatusCode};

use crate::intent::Intent;
use crate::status_table;
use crate::verdict::{FromCopy, Verdict};

static ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");
static COPY_SOURCE_ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-copy-source-error-code");
static REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");

/// An error code that says more than the status does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Busy,
    Failed,
}

/// The code is preferred over the status (V3). Where the header is missing, as in answers about
/// tables, the body is not parsed: it may be long, and it is the caller's.
fn trouble(headers: &HeaderMap, name: &HeaderName) -> Option<Trouble> {
    match headers.get(name)?.as_bytes() {
        b"ServerBusy" => Some(Trouble::Busy),
        b"InternalError" | b"OperationTimedOut" => Some(Trouble::Failed),
        _ => None,
    }
}

#[inline]
pub(super) fn verdict(intent: Intent, status: StatusCode, headers: &HeaderMap) -> Verdict {
    if status.as_u16() < 400 && !intent.is_write() {
        // By far the most frequent answer. Only a write can have a source to copy from, so nothing
        // is looked up here.
        return Verdict::Answered;
    }
    with_closer_look(status, headers)
}

fn with_closer_look(status: StatusCode, headers: &HeaderMap) -> Verdict {
    if status.as_u16() >= 400 {
        match trouble(headers, &ERROR_CODE) {
            Some(Trouble::Busy) => return Verdict::Throttled,
            Some(Trouble::Failed) => return Verdict::Transient,
            None => {}
        }
    }
    // "Whatever the status": a copy can be accepted although its source is in trouble, and the
    // status is often the one that the source gave.
    if trouble(headers, &COPY_SOURCE_ERROR_CODE).is_some() {
        return Verdict::TransientElsewhere;
    }
    status_table::verdict(status, || is_alive(headers))
}

/// Whether an answer that refuses a request surely comes from the service, and not from a proxy
/// or a front end that could not reach it. `AccountIsDisabled` is what a front end says during a
/// failover of the account, so it proves nothing.
fn is_alive(headers: &HeaderMap) -> bool {
    headers.contains_key(&REQUEST_ID)
        && headers
            .get(&ERROR_CODE)
            .is_none_or(|code| code.as_bytes() != b"AccountIsDisabled")
}

pub(super) fn from_copy(status: StatusCode, headers: &HeaderMap) -> FromCopy {
    // R6: read access is not enabled, so this copy answers no read at all.
    if status == StatusCode::FORBIDDEN
        && headers
            .get(&ERROR_CODE)
            .is_some_and(|code| code.as_bytes() == b"InsufficientAccountPermissions")
    {
        return FromCopy::MayNotBeRead;
    }
    // A copy that is in trouble has not said that it lacks something, whatever the status.
    if trouble(headers, &ERROR_CODE).is_some() {
        return FromCopy::Usual;
    }
    status_table::from_copy(status)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const ID: (&str, &str) = ("x-ms-request-id", "7c2e0b1d-0001");

    fn headers(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        headers
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    fn judge(intent: Intent, status: u16, given: &[(&'static str, &'static str)]) -> Verdict {
        verdict(
            intent,
            StatusCode::from_u16(status).unwrap(),
            &headers(given),
        )
    }

    fn both(status: u16, given: &[(&'static str, &'static str)]) -> Verdict {
        let read = judge(Intent::READ, status, given);
        for other in [
            Intent::READ_AT_COPY,
            Intent::READ_AT_WRITER,
            Intent::WRITE_HARMLESS,
            Intent::WRITE_ONCE,
        ] {
            assert_eq!(judge(other, status, given), read, "{status} {other:?}");
        }
        read
    }

    /// Verdict table, row 1.
    #[test]
    fn answers_are_answers() {
        for status in [200, 201, 202, 204, 206, 304, 307, 404, 409, 412, 416] {
            assert_eq!(both(status, &[]), Verdict::Answered, "{status}");
            let code = ("x-ms-error-code", "BlobNotFound");
            assert_eq!(both(status, &[code, ID]), Verdict::Answered, "{status}");
        }
    }

    /// Verdict table, row 2: alive with a request id, unless the account is disabled.
    #[test]
    fn other_errors_refuse_the_request() {
        for status in [400, 401, 403, 405, 410, 411, 413, 501, 505, 507, 511, 599] {
            let alive = |alive| Verdict::Refused { alive };
            assert_eq!(both(status, &[]), alive(false), "{status}");
            assert_eq!(both(status, &[ID]), alive(true), "{status}");
            let code = ("x-ms-error-code", "AuthorizationFailure");
            assert_eq!(both(status, &[ID, code]), alive(true), "{status}");
            assert_eq!(both(status, &[code]), alive(false), "{status}");
            let disabled = ("x-ms-error-code", "AccountIsDisabled");
            assert_eq!(both(status, &[ID, disabled]), alive(false), "{status}");
        }
    }

    /// Verdict table, rows 3 and 4.
    #[test]
    fn throttling_and_failures_are_known_by_status() {
        assert_eq!(both(429, &[]), Verdict::Throttled);
        for status in [408, 500, 502, 503, 504] {
            assert_eq!(both(status, &[]), Verdict::Transient, "{status}");
            let code = ("x-ms-error-code", "SomethingNew");
            assert_eq!(both(status, &[ID, code]), Verdict::Transient, "{status}");
        }
    }

    /// V3: the error-code header is preferred over the status, from 400 on.
    #[test]
    fn the_error_code_is_preferred_over_the_status() {
        for status in [400, 403, 404, 408, 409, 412, 416, 429, 500, 501, 503, 507] {
            for (code, expected) in [
                ("ServerBusy", Verdict::Throttled),
                ("InternalError", Verdict::Transient),
                ("OperationTimedOut", Verdict::Transient),
            ] {
                assert_eq!(
                    both(status, &[("x-ms-error-code", code), ID]),
                    expected,
                    "{status} {code}"
                );
            }
        }
        for status in [200, 202, 304] {
            assert_eq!(
                both(status, &[("x-ms-error-code", "ServerBusy")]),
                Verdict::Answered
            );
        }
    }

    /// The copy-source row: whatever the status, and never a failure of this region.
    #[test]
    fn trouble_at_the_copy_source_is_elsewhere() {
        for code in ["ServerBusy", "InternalError", "OperationTimedOut"] {
            let source = ("x-ms-copy-source-error-code", code);
            for status in [400, 403, 404, 409, 412, 429, 500, 503] {
                let own = ("x-ms-error-code", "CannotVerifyCopySource");
                assert_eq!(
                    both(status, &[source]),
                    Verdict::TransientElsewhere,
                    "{status}"
                );
                assert_eq!(
                    both(status, &[source, own, ID]),
                    Verdict::TransientElsewhere,
                    "{status}"
                );
            }
            for write in [Intent::WRITE_HARMLESS, Intent::WRITE_ONCE] {
                assert_eq!(judge(write, 202, &[source]), Verdict::TransientElsewhere);
            }
        }
        // Other codes of the source are the caller's business.
        assert_eq!(
            both(404, &[("x-ms-copy-source-error-code", "BlobNotFound")]),
            Verdict::Answered
        );
        // What the region says about itself outweighs what it says about the source.
        let busy_source = ("x-ms-copy-source-error-code", "InternalError");
        assert_eq!(
            both(503, &[("x-ms-error-code", "ServerBusy"), busy_source]),
            Verdict::Throttled
        );
    }

    fn from(status: u16, given: &[(&'static str, &'static str)]) -> FromCopy {
        from_copy(StatusCode::from_u16(status).unwrap(), &headers(given))
    }

    /// R4: 404 and 412, and 400, 401 and 403.
    #[test]
    fn the_writer_decides_what_a_copy_may_not_know() {
        for status in [400, 401, 403, 404, 412] {
            assert_eq!(from(status, &[]), FromCopy::WriterDecides, "{status}");
        }
        for status in [200, 206, 304, 405, 408, 409, 410, 416, 429, 500, 501, 503] {
            assert_eq!(from(status, &[]), FromCopy::Usual, "{status}");
        }
        assert_eq!(
            from(404, &[("x-ms-error-code", "ServerBusy")]),
            FromCopy::Usual
        );
    }

    /// R6: 403 `InsufficientAccountPermissions`, and no other.
    #[test]
    fn a_copy_without_read_access_may_not_be_read() {
        let code = ("x-ms-error-code", "InsufficientAccountPermissions");
        assert_eq!(from(403, &[code]), FromCopy::MayNotBeRead);
        assert_eq!(from(401, &[code]), FromCopy::WriterDecides);
        for other in [
            "AuthorizationFailure",
            "AccountIsDisabled",
            "AuthenticationFailed",
        ] {
            assert_eq!(
                from(403, &[("x-ms-error-code", other)]),
                FromCopy::WriterDecides
            );
        }
    }
}
