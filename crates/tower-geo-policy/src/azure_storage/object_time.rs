//! When an object was changed last, by its own account (F2).

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{ETAG, LAST_MODIFIED};

/// The time in the headers of an answer: `Last-Modified`, or the time in the `ETag` of a table
/// entity, which is its `Timestamp`.
pub(super) fn object_time(headers: &HeaderMap) -> Option<SystemTime> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(date) = text(LAST_MODIFIED) {
        return httpdate::parse_http_date(date).ok();
    }
    entity_time(text(ETAG)?)
}

/// `W/"datetime'2026-06-01T10%3A00%3A00.0000000Z'"`
fn entity_time(etag: &str) -> Option<SystemTime> {
    let (_, rest) = etag.split_once("datetime'")?;
    let (time, _) = rest.split_once('\'')?;
    parse_timestamp(&time.replace("%3A", ":").replace("%3a", ":"))
}

/// Reads the `Timestamp` of a table entity: `2026-06-01T10:00:00.1234567Z`, always UTC.
///
/// For lists of entities, whose answer carries no time in its headers: see
/// [`Freshness::judge_all`](crate::freshness::Freshness::judge_all).
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tower_geo_policy::azure_storage::parse_timestamp;
///
/// let time = parse_timestamp("1970-01-02T00:00:01.5Z");
/// assert_eq!(time, Some(SystemTime::UNIX_EPOCH + Duration::from_millis(86_401_500)));
/// assert_eq!(parse_timestamp("yesterday"), None);
/// ```
#[must_use]
pub fn parse_timestamp(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix(['Z', 'z'])?;
    let (date, time) = text.split_once(['T', 't'])?;
    let mut date = date.split('-');
    let year = digits(date.next()?, 4)?;
    let month = digits(date.next()?, 2).filter(|month| (1..=12).contains(month))?;
    let day = digits(date.next()?, 2)?;
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = whole.split(':');
    let hour = digits(time.next()?, 2).filter(|&hour| hour < 24)?;
    let minute = digits(time.next()?, 2).filter(|&minute| minute < 60)?;
    let second = digits(time.next()?, 2).filter(|&second| second < 60)?;
    let is_day = (1..=days_of(year, month)).contains(&day);
    if !is_day || date.next().is_some() || time.next().is_some() {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos(fraction)?))
}

fn digits(text: &str, count: usize) -> Option<u64> {
    let plain = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// The fraction of a second: 1 to 9 digits.
fn nanos(fraction: &str) -> Option<u32> {
    let places = u32::try_from(fraction.len()).ok().filter(|&n| n <= 9)?;
    let value = u32::try_from(digits(fraction, fraction.len())?).ok()?;
    value.checked_mul(10_u32.pow(9 - places))
}

const fn is_leap(year: u64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let years = year.checked_sub(1970)?;
    // Leap days before this year, less those before 1970.
    let before = year - 1;
    let leap_days = (before / 4 - before / 100 + before / 400) - 477;
    let months: u64 = (1..month).map(|month| days_of(year, month)).sum();
    Some(years * 365 + leap_days + months + day - 1)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn headers(pairs: &[(http::HeaderName, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect()
    }

    /// F2: the `Timestamp` of an entity is in its ETag.
    #[test]
    fn the_etag_of_an_entity_tells_its_time() {
        let etag = "W/\"datetime'2026-06-01T10%3A00%3A20.0000000Z'\"";
        let told = object_time(&headers(&[(ETAG, etag)]));
        assert_eq!(
            told,
            httpdate::parse_http_date("Mon, 01 Jun 2026 10:00:20 GMT").ok()
        );
        assert_eq!(
            object_time(&headers(&[(ETAG, "\"0x8D4BCC2E4835CD0\"")])),
            None
        );
    }

    #[test]
    fn last_modified_goes_before_the_etag() {
        let date = "Mon, 01 Jun 2026 10:00:00 GMT";
        let etag = "W/\"datetime'2027-06-01T10%3A00%3A20.0000000Z'\"";
        let told = object_time(&headers(&[(LAST_MODIFIED, date), (ETAG, etag)]));
        assert_eq!(told, httpdate::parse_http_date(date).ok());
        assert_eq!(object_time(&headers(&[(LAST_MODIFIED, "noon")])), None);
        assert_eq!(object_time(&headers(&[])), None);
    }

    #[test]
    fn what_is_no_timestamp_is_none() {
        for text in [
            "",
            "2026-06-01",
            "2026-06-01T10:00:00",
            "2026-13-01T10:00:00Z",
            "2026-02-29T10:00:00Z",
            "2026-06-01T24:00:00Z",
            "2026-06-01T10:60:00Z",
            "2026-06-01T10:00:00.Z",
            "2026-06-01T10:00:00.1234567890Z",
            "1969-12-31T23:59:59Z",
            "2026-06-01T10:00:00+02:00Z",
            "+026-06-01T10:00:00Z",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,40}") {
            let _ = parse_timestamp(&text);
            let _ = entity_time(&text);
        }

        /// Against an independent reading of the same instant.
        #[test]
        fn every_second_is_read_as_it_was_written(second in 0_u64..253_402_300_800) {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            let date = httpdate::HttpDate::from(time).to_string();
            let part = |range: std::ops::Range<usize>| date[range].to_owned();
            let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
            let month = months.find(&part(8..11)).unwrap() / 3 + 1;
            let text = format!("{}-{month:02}-{}T{}.0000000Z", part(12..16), part(5..7), part(17..25));
            prop_assert_eq!(parse_timestamp(&text), Some(time));
        }
    }
}
