use proptest::prelude::*;

use super::*;

/// Sat, 01 Jan 2000 00:00:00 GMT.
fn wall() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_800)
}

fn told(headers: &[(&'static str, &str)]) -> Option<Duration> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_str(value).unwrap());
    }
    told_wait(&map, wall)
}

const fn ms(ms: u64) -> Option<Duration> {
    Some(Duration::from_millis(ms))
}

/// T1: seconds, a date, and the two headers in milliseconds.
#[test]
fn each_form_is_read() {
    assert_eq!(told(&[("retry-after", "3")]), ms(3000));
    assert_eq!(told(&[("retry-after", " 0 ")]), ms(0));
    assert_eq!(told(&[("retry-after-ms", "1250")]), ms(1250));
    assert_eq!(told(&[("x-ms-retry-after-ms", "2400")]), ms(2400));
    for date in [
        "Sat, 01 Jan 2000 00:01:00 GMT",
        "Saturday, 01-Jan-00 00:01:00 GMT",
        "Sat Jan  1 00:01:00 2000",
    ] {
        assert_eq!(told(&[("retry-after", date)]), ms(60_000), "{date}");
    }
}

/// T1: unreadable waits do not count.
#[test]
fn unreadable_waits_do_not_count() {
    for text in [
        "", " ", "-5", "+5", "1.5", "3s", "soon", "1, 2", "0x10", "1e3",
    ] {
        assert_eq!(told(&[("retry-after", text)]), None, "{text:?}");
        assert_eq!(told(&[("retry-after-ms", text)]), None, "{text:?}");
        assert_eq!(
            told(&[("retry-after", text), ("x-ms-retry-after-ms", "7")]),
            ms(7),
            "{text:?}"
        );
    }
    // A date is no number of milliseconds.
    assert_eq!(
        told(&[("retry-after-ms", "Sat, 01 Jan 2000 00:01:00 GMT")]),
        None
    );
    assert_eq!(told(&[]), None);
}

/// T1: the longest of several told waits counts, whichever header it is in and wherever it stands.
#[test]
fn the_longest_wait_counts() {
    assert_eq!(
        told(&[
            ("retry-after", "1"),
            ("retry-after", "3"),
            ("retry-after", "2")
        ]),
        ms(3000)
    );
    assert_eq!(
        told(&[
            ("retry-after", "1"),
            ("retry-after-ms", "1500"),
            ("x-ms-retry-after-ms", "900")
        ]),
        ms(1500)
    );
    assert_eq!(
        told(&[
            ("retry-after", "Sat, 01 Jan 2000 00:00:05 GMT"),
            ("retry-after", "Sat, 01 Jan 2000 00:00:09 GMT"),
            ("retry-after", "2"),
        ]),
        ms(9000)
    );
}

/// T1: a date that has passed is a wait, of nothing.
#[test]
fn a_date_that_has_passed_is_a_wait_of_zero() {
    assert_eq!(
        told(&[("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT")]),
        ms(0)
    );
}

#[test]
fn huge_waits_are_cut() {
    let nines = "9".repeat(400);
    for (name, text) in [
        ("retry-after", "18446744073709551615"),
        ("retry-after", "18446744073709551616"),
        ("retry-after", &nines),
        ("retry-after-ms", &nines),
        ("x-ms-retry-after-ms", "18446744073709551615"),
        ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
    ] {
        assert_eq!(told(&[(name, text)]), Some(LONGEST_TOLD_WAIT), "{text}");
    }
}

#[test]
fn the_clock_is_read_only_for_a_date_and_only_once() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_static("5"));
    headers.insert("retry-after-ms", HeaderValue::from_static("5"));
    assert_eq!(
        told_wait(&headers, || panic!("nobody asked")),
        ms(5000),
        "no date, no clock"
    );
    headers.append(
        "retry-after",
        HeaderValue::from_static("Sat, 01 Jan 2000 00:00:09 GMT"),
    );
    headers.append(
        "retry-after",
        HeaderValue::from_static("Sat, 01 Jan 2000 00:00:08 GMT"),
    );
    let mut readings = 0;
    let wait = told_wait(&headers, || {
        readings += 1;
        wall()
    });
    assert_eq!((wait, readings), (ms(9000), 1));
}

proptest! {
    /// T1: whatever the headers hold, there is an answer, and it can be added to a time.
    #[test]
    fn arbitrary_bytes_give_a_wait_that_is_safe_to_add(
        values in prop::collection::vec((0..3_usize, prop::collection::vec(any::<u8>(), 0..40)), 0..6),
        wall in any::<u32>(),
    ) {
        let names = ["retry-after", "retry-after-ms", "x-ms-retry-after-ms"];
        let mut headers = HeaderMap::new();
        for (name, bytes) in values {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                headers.append(names[name], value);
            }
        }
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(wall));
        if let Some(wait) = told_wait(&headers, || wall) {
            prop_assert!(wait <= LONGEST_TOLD_WAIT);
            prop_assert!(wall.checked_add(wait).is_some());
        }
    }

    /// T1: text that looks like a number or a date, with one character changed.
    #[test]
    fn text_that_is_nearly_a_date_does_no_harm(
        template in prop::sample::select(vec![
            "Sat, 01 Jan 2000 00:01:00 GMT",
            "Saturday, 01-Jan-00 00:01:00 GMT",
            "Sat Jan  1 00:01:00 2000",
            "18446744073709551615",
        ]),
        at in 0..32_usize,
        byte in 0x20..0x7f_u8,
    ) {
        let mut bytes = template.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_bytes(&bytes).unwrap());
        prop_assert!(told_wait(&headers, wall).is_none_or(|wait| wait <= LONGEST_TOLD_WAIT));
    }

    /// T1: every number of seconds and of milliseconds is read as what it says, up to the cut.
    #[test]
    fn numbers_mean_what_they_say(number in any::<u64>()) {
        let text = number.to_string();
        prop_assert_eq!(
            told(&[("retry-after", &text)]),
            Some(Duration::from_secs(number).min(LONGEST_TOLD_WAIT))
        );
        prop_assert_eq!(
            told(&[("retry-after-ms", &text)]),
            Some(Duration::from_millis(number).min(LONGEST_TOLD_WAIT))
        );
    }
}
