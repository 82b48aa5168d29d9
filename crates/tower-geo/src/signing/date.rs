//! The date that is signed, and the headers around it.

use super::SigningError;
use http::{HeaderName, HeaderValue};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) static X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
pub(crate) static X_MS_VERSION: HeaderName = HeaderName::from_static("x-ms-version");

/// The first second that the four digits of an HTTP date cannot show: the year 10000.
const END_OF_HTTP_DATES: Duration = Duration::from_secs(253_402_300_800);

/// The value of `x-ms-date`.
pub(crate) fn http_date(time: SystemTime) -> Result<HeaderValue, SigningError> {
    // Formatting panics outside this range.
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) if since < END_OF_HTTP_DATES => {
            HeaderValue::try_from(httpdate::fmt_http_date(time)).map_err(|_| SigningError::date())
        }
        _ => Err(SigningError::date()),
    }
}
