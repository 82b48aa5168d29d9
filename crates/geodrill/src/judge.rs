//! Whether an answer is one to the question, for sums and pictures.

use http::{HeaderMap, StatusCode};
use tower_geo_policy::cosmos::Meaning;

/// Tells good answers from others.
pub(crate) type Judge = fn(StatusCode, &HeaderMap) -> bool;

/// Anything but a server's own failure, a time-out and throttling.
pub(crate) fn by_status(status: StatusCode, _: &HeaderMap) -> bool {
    !status.is_server_error() && !matches!(status.as_u16(), 408 | 429 | 600..)
}

/// On Cosmos that includes an answer that only tells where else to go, or to come back.
pub(crate) fn of_cosmos(status: StatusCode, headers: &HeaderMap) -> bool {
    let is_final = matches!(
        Meaning::of(status, headers),
        Meaning::Answered | Meaning::Refused { .. }
    );
    is_final && by_status(status, headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_redirections_are_no_answers() {
        let judge = |judge: Judge, status: u16, sub_status: &'static str| {
            let headers = [("x-ms-substatus", sub_status)];
            let headers =
                headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            judge(
                StatusCode::from_u16(status).unwrap(),
                &HeaderMap::from_iter(headers),
            )
        };
        for (status, sub_status, usual, cosmos) in [
            (200, "0", true, true),
            (404, "0", true, true),
            (404, "1002", true, false),
            (403, "0", true, true),
            (403, "3", true, false),
            (403, "1008", true, false),
            (408, "0", false, false),
            (410, "1022", true, false),
            (429, "3200", false, false),
            (449, "0", true, false),
            (501, "0", false, false),
            (503, "0", false, false),
            (600, "0", false, false),
        ] {
            assert_eq!(
                judge(by_status, status, sub_status),
                usual,
                "{status}/{sub_status}"
            );
            assert_eq!(
                judge(of_cosmos, status, sub_status),
                cosmos,
                "{status}/{sub_status}"
            );
        }
    }
}
