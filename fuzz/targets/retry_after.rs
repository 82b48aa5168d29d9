//! `Retry-After` and its relatives: one header a line, as `NAME: VALUE`.
#![no_main]

use std::time::{Duration, Instant, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use tower_geo_policy::retry_after::{LONGEST_TOLD_WAIT, told_wait};

fuzz_target!(|data: &[u8]| {
    let mut headers = HeaderMap::new();
    for line in data.split(|&byte| byte == b'\n') {
        let mut parts = line.splitn(2, |&byte| byte == b':');
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value.trim_ascii()))
        else {
            continue;
        };
        // More headers than a map holds come from no server.
        if headers.len() < 100 {
            headers.append(name, value);
        }
    }
    // 1 June 2025, 12:00:00 GMT.
    let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_748_779_200);
    let told = told_wait(&headers, || noon);
    if let Some(wait) = told {
        assert!(wait <= LONGEST_TOLD_WAIT);
        // It can be waited for: no instant overflows.
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let until = Instant::now().checked_add(wait);
        assert!(until.is_some());
    }
    // A header that says nothing changes nothing.
    headers.append("retry-after-ms", HeaderValue::from_static("-1"));
    assert_eq!(told_wait(&headers, || noon), told);
});
