//! How long a server asks to be left alone (T1).

use std::time::{Duration, SystemTime};

use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

#[cfg(test)]
mod tests;

/// The longest wait that is ever reported, 100 years: longer ones are cut to it, so that adding
/// one to an instant cannot overflow.
pub const LONGEST_TOLD_WAIT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

static IN_MILLISECONDS: [HeaderName; 2] = [
    HeaderName::from_static("retry-after-ms"),
    HeaderName::from_static("x-ms-retry-after-ms"),
];

/// The wait that an answer asks for, or none if it asks for none.
///
/// Read are `Retry-After` (seconds, or an HTTP date), `retry-after-ms` and `x-ms-retry-after-ms`.
/// The longest of several counts, and unreadable ones do not. A date that has passed is a wait of
/// zero. No wait is longer than [`LONGEST_TOLD_WAIT`].
///
/// `wall` is the time on the clock on the wall. It is only asked for if there is a date.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use http::HeaderMap;
/// use tower_geo_policy::retry_after::told_wait;
///
/// let start = SystemTime::UNIX_EPOCH;
/// let mut headers = HeaderMap::new();
/// assert_eq!(told_wait(&headers, || start), None);
///
/// headers.insert("retry-after", "Thu, 01 Jan 1970 00:00:03 GMT".parse()?);
/// assert_eq!(told_wait(&headers, || start), Some(Duration::from_secs(3)));
///
/// headers.insert("x-ms-retry-after-ms", "3200".parse()?);
/// assert_eq!(told_wait(&headers, || start), Some(Duration::from_millis(3200)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn told_wait(headers: &HeaderMap, wall: impl FnOnce() -> SystemTime) -> Option<Duration> {
    let mut longest: Option<Duration> = None;
    let mut wall = Wall::Unread(wall);
    for value in headers.get_all(RETRY_AFTER) {
        let wait = match whole_number(value) {
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => date(value).map(|date| {
                let now = wall.read();
                date.duration_since(now).unwrap_or(Duration::ZERO)
            }),
        };
        longest = longest.max(wait);
    }
    for name in &IN_MILLISECONDS {
        for value in headers.get_all(name) {
            longest = longest.max(whole_number(value).map(Duration::from_millis));
        }
    }
    longest.map(|wait| wait.min(LONGEST_TOLD_WAIT))
}

/// A clock that is read at most once, so that several dates are measured against one time.
enum Wall<F> {
    Unread(F),
    Read(SystemTime),
}

impl<F: FnOnce() -> SystemTime> Wall<F> {
    fn read(&mut self) -> SystemTime {
        // The placeholder is gone again before anyone can see it.
        let now = match std::mem::replace(self, Self::Read(SystemTime::UNIX_EPOCH)) {
            Self::Unread(clock) => clock(),
            Self::Read(now) => now,
        };
        *self = Self::Read(now);
        now
    }
}

/// Digits and nothing else, cut to the largest number there is.
fn whole_number(value: &HeaderValue) -> Option<u64> {
    let digits = value.as_bytes().trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0_u64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    }))
}

fn date(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?.trim()).ok()
}
