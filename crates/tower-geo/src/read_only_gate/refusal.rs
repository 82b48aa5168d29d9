//! What is said to a write that is refused.

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use tower_geo_policy::gate::ReadOnly;
use tower_geo_policy::region::LocationMode;
use tower_geo_policy::tick::Tick;

use crate::error::Error;
use crate::known::Known;
use crate::runtime::State;

/// On a client: the typed error.
pub(super) fn error(state: &State, refused: &ReadOnly, now: Tick) -> Error {
    Error::read_only(state, refused.why, refused.since, refused.until, now)
}

/// On a server: 503 with `Retry-After` and a problem body (RFC 9457).
pub(super) fn response(state: &State, refused: &ReadOnly, now: Tick) -> Response<String> {
    let mode = if state.in_maintenance() {
        LocationMode::SecondaryOnly
    } else {
        state.mode()
    };
    // Only a copy can be promised; what shuts the gate is trouble with the primary, as a rule.
    let known = Known::now(state);
    let reads_elsewhere = state.extra().has_account() || mode.needs_secondary();
    let reads = if known.regions(state).len() > 1 && reads_elsewhere {
        "; reads still work"
    } else {
        ""
    };
    // The name of a service is checked when it is built: nothing in it has to be escaped.
    let problem = format!(
        r#"{{"type":"about:blank","title":"Service is read-only","status":503,"detail":"{}: {}{reads}"}}"#,
        state.name(),
        refused.why,
    );
    let mut response = Response::new(problem);
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    // Whole seconds, rounded up: a client that comes back a moment too early is refused again.
    let seconds = refused.until.map_or(DEFAULT_RETRY_AFTER, |until| {
        until.since(now).as_secs_f64().ceil().max(1.0)
    });
    if let Ok(value) = HeaderValue::try_from(format!("{seconds:.0}")) {
        headers.insert(RETRY_AFTER, value);
    }
    response
}

/// Seconds, where nobody knows when writes will be allowed again: an operator has to say so.
const DEFAULT_RETRY_AFTER: f64 = 30.0;

#[cfg(test)]
mod tests {
    use tower_geo_policy::gate::{GateCheck, ReadOnlyWhy};

    use super::*;
    use crate::GeoService;

    fn problem(mode: LocationMode) -> String {
        let service = GeoService::azure_storage("https://contoso.blob.core.windows.net")
            .location_mode(mode)
            .build()
            .unwrap();
        service.operator().read_only();
        let GateCheck::Refused(refused) = service.state().check_gate(Tick::ZERO) else {
            panic!("an operator said so");
        };
        assert_eq!(refused.why, ReadOnlyWhy::Operator);
        response(&service.state(), &refused, Tick::ZERO).into_body()
    }

    /// G2: nothing is promised that only a secondary could keep.
    #[test]
    fn reads_are_promised_only_where_a_copy_takes_them() {
        let with = problem(LocationMode::PrimaryThenSecondary);
        assert!(with.contains("reads still work"), "{with}");
        let without = problem(LocationMode::PrimaryOnly);
        assert!(!without.contains("reads"), "{without}");
    }
}
