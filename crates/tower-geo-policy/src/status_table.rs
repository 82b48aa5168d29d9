//! What a status means when nothing else is known about the answer: the rows of the verdict
//! table that every kind of service shares.

use http::StatusCode;

use crate::verdict::{FromCopy, Verdict};

/// The verdict on a status. `alive` tells whether an answer that refuses the request surely comes
/// from the service itself; it is only called for those.
pub(crate) fn verdict(status: StatusCode, alive: impl FnOnce() -> bool) -> Verdict {
    match status.as_u16() {
        ..400 | 404 | 409 | 412 | 416 => Verdict::Answered,
        429 => Verdict::Throttled,
        408 | 500 | 502 | 503 | 504 => Verdict::Transient,
        _ => Verdict::Refused { alive: alive() },
    }
}

/// R4: what a copy may say only because it is behind, or because something is not allowed there.
pub(crate) fn from_copy(status: StatusCode) -> FromCopy {
    match status.as_u16() {
        400 | 401 | 403 | 404 | 412 => FromCopy::WriterDecides,
        _ => FromCopy::Usual,
    }
}
