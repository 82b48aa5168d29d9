//! Carries an [`Operation`](tower_geo_policy::operation::Operation) out: the one loop behind Retry and GeoRedirect.
//!
//! It asks the operation what comes next, sends, waits, and keeps the answers that may have to be
//! handed over in the end. All decisions are the operation's.

#[cfg(feature = "cosmos")]
mod account;
mod answer;
mod decider;
mod future;
mod hedge;
mod outcome;
mod sending;
mod start;
mod tell;

#[cfg(feature = "cosmos")]
pub(crate) use decider::Decider;
pub use future::ResponseFuture;
pub(crate) use start::{Opening, Start, start};
#[cfg(feature = "cosmos")]
pub(crate) use start::{PIN_WITHOUT_REDIRECT, note_repeat};

use http::Request;
use tower_geo_policy::retry_settings::SIGNATURE_AGE;
use tower_geo_policy::tick::Tick;

use crate::runtime::State;

/// When the signed bytes of a request are too old to be sent again (T5).
fn signature_limit<B>(state: &State, request: &Request<B>, sent_at: Tick, now: Tick) -> Tick {
    let age = request
        .headers()
        .get("x-ms-date")
        .and_then(|date| date.to_str().ok())
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .and_then(|signed| (state.extra().wall_clock)().duration_since(signed).ok());
    match age {
        Some(age) => now + SIGNATURE_AGE.saturating_sub(age),
        None => sent_at + SIGNATURE_AGE,
    }
}
