//! What a client of the proxy is told when there is no answer of the service.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde_json::json;
use tower_geo::{Error, ErrorKind};

/// An answer with a problem body (RFC 9457).
pub(crate) fn response(error: &Error) -> Response {
    let status = status(error);
    let problem = json!({
        "type": "about:blank",
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "detail": error.to_string(),
        "kind": error.kind().as_str(),
    });
    let mut response = (status, problem.to_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if let Some(after) = error.retry_after() {
        // Rounded up: a client that comes back a moment too early is refused again.
        headers.insert(RETRY_AFTER, after.as_secs().saturating_add(1).into());
    }
    response
}

fn status(error: &Error) -> StatusCode {
    match error.kind() {
        ErrorKind::ReadOnly | ErrorKind::BreakerOpen | ErrorKind::NotReplayable => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorKind::Deadline => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Config => StatusCode::BAD_REQUEST,
        _ if error.is_timeout() => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    }
}
