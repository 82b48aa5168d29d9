//! What an answer of Cosmos DB means, by status and sub-status (C5 to C9, C15).

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::verdict::Verdict;

/// The header that makes a status precise.
pub const SUB_STATUS: HeaderName = HeaderName::from_static("x-ms-substatus");

/// The header, and its value, without which a region that is not the hub refuses writes (C12).
pub const ALLOW_TENTATIVE_WRITES: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-ms-cosmos-allow-tentative-writes"),
    HeaderValue::from_static("True"),
);

static ACTIVITY_ID: HeaderName = HeaderName::from_static("x-ms-activity-id");
static REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");

/// The sub-status of an answer; 0 where there is none, or none that can be read.
#[must_use]
pub fn sub_status(headers: &HeaderMap) -> u32 {
    headers
        .get(&SUB_STATUS)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

/// What an answer means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Meaning {
    /// The question was answered: 2xx, 3xx, 404/0, 409, 412, 416.
    Answered,
    /// The request was wrong: 400, 401, 403/0, most others. Handed over.
    Refused {
        /// Whether the answer surely comes from the service itself.
        alive: bool,
    },
    /// 403/3: this region takes no writes (C5). Surely not applied.
    WriteForbidden,
    /// 403/1008: the region is leaving the account, or has left it (C5). Surely not applied.
    RegionGone,
    /// 404/1002: the region has not caught up with the session (C6).
    SessionLag,
    /// 429: too many requests (C9). Surely not applied.
    Throttled {
        /// Sub-status 3092: the region itself is overloaded, not the caller's share of it.
        overloaded: bool,
    },
    /// 449: a conflict inside the service; the same request works a moment later (C9). Surely
    /// not applied.
    RetryWith,
    /// 500, 502, 503, 504, 408, 410/1022: the region failed (C7).
    Transient,
}

impl Meaning {
    /// What an answer means.
    #[must_use]
    pub fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        // Healthy answers are not looked into.
        if status.as_u16() < 400 {
            return Self::Answered;
        }
        match (status.as_u16(), sub_status(headers)) {
            (403, 3) => Self::WriteForbidden,
            (403, 1008) => Self::RegionGone,
            (404, 1002) => Self::SessionLag,
            (404 | 409 | 412 | 416, _) => Self::Answered,
            (429, sub) => Self::Throttled {
                overloaded: sub == 3092,
            },
            (449, _) => Self::RetryWith,
            (408 | 500 | 502 | 503 | 504, _) | (410, 1022) => Self::Transient,
            _ => Self::Refused {
                alive: headers.contains_key(&ACTIVITY_ID) || headers.contains_key(&REQUEST_ID),
            },
        }
    }

    /// What the circuits learn. 403/3, 403/1008, 404/1002, 429 and 449 do not count (C15): they
    /// tell about roles, replication and the caller's share, not about health.
    #[must_use]
    pub const fn for_breaker(self) -> Verdict {
        match self {
            Self::Answered => Verdict::Answered,
            Self::Refused { alive } => Verdict::Refused { alive },
            Self::Transient => Verdict::Transient,
            Self::WriteForbidden
            | Self::RegionGone
            | Self::SessionLag
            | Self::Throttled { .. }
            | Self::RetryWith => Verdict::Refused { alive: false },
        }
    }

    /// Whether it ends a hedged read (C15): it is the answer in every region.
    #[must_use]
    pub const fn is_final_for_hedge(self) -> bool {
        matches!(self, Self::Answered | Self::Refused { .. })
    }

    /// What the trail says.
    #[must_use]
    pub const fn for_trail(self) -> Verdict {
        match self {
            Self::Throttled { .. } | Self::RetryWith => Verdict::Throttled,
            other => other.for_breaker(),
        }
    }
}

/// Whether an answer ends a hedged read (C15): it is the answer in every region.
#[must_use]
pub fn is_final_for_hedge(status: StatusCode, headers: &HeaderMap) -> bool {
    Meaning::of(status, headers).is_final_for_hedge()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Evidence;

    fn headers(sub: Option<&'static str>) -> HeaderMap {
        let value = sub.map(|sub| (SUB_STATUS, HeaderValue::from_static(sub)));
        value.into_iter().collect()
    }

    fn of(status: u16, sub: Option<&'static str>) -> Meaning {
        Meaning::of(StatusCode::from_u16(status).unwrap(), &headers(sub))
    }

    const REFUSED: Meaning = Meaning::Refused { alive: false };
    const THROTTLED: Meaning = Meaning::Throttled { overloaded: false };

    /// C5 to C9: the table, row by row.
    #[test]
    fn status_and_sub_status_decide() {
        let table = [
            (200, None, Meaning::Answered),
            (201, None, Meaning::Answered),
            (204, None, Meaning::Answered),
            (304, None, Meaning::Answered),
            (400, Some("0"), REFUSED),
            (400, Some("1001"), REFUSED),
            (401, None, REFUSED),
            (403, None, REFUSED),
            (403, Some("0"), REFUSED),
            (403, Some("3"), Meaning::WriteForbidden),
            (403, Some(" 3 "), Meaning::WriteForbidden),
            (403, Some("1008"), Meaning::RegionGone),
            (403, Some("5300"), REFUSED),
            (403, Some("3x"), REFUSED),
            (404, None, Meaning::Answered),
            (404, Some("0"), Meaning::Answered),
            (404, Some("1003"), Meaning::Answered),
            (404, Some("1002"), Meaning::SessionLag),
            (405, None, REFUSED),
            (408, None, Meaning::Transient),
            (409, None, Meaning::Answered),
            (410, None, REFUSED),
            (410, Some("1002"), REFUSED),
            (410, Some("1022"), Meaning::Transient),
            (412, None, Meaning::Answered),
            (413, None, REFUSED),
            (429, None, THROTTLED),
            (429, Some("3200"), THROTTLED),
            (429, Some("3092"), Meaning::Throttled { overloaded: true }),
            (449, None, Meaning::RetryWith),
            (449, Some("5352"), Meaning::RetryWith),
            (500, None, Meaning::Transient),
            (501, None, REFUSED),
            (502, None, Meaning::Transient),
            (503, None, Meaning::Transient),
            (503, Some("21008"), Meaning::Transient),
            (504, None, Meaning::Transient),
            (505, None, REFUSED),
        ];
        for (status, sub, meaning) in table {
            assert_eq!(of(status, sub), meaning, "{status}/{sub:?}");
        }
    }

    /// C15: what does not count for the breaker; C7: what feeds it.
    #[test]
    fn roles_lag_and_throttling_do_not_count() {
        for (status, sub) in [
            (403, Some("3")),
            (403, Some("1008")),
            (404, Some("1002")),
            (429, None),
            (429, Some("3092")),
            (449, None),
        ] {
            let meaning = of(status, sub);
            assert_eq!(
                meaning.for_breaker().evidence(),
                Evidence::Nothing,
                "{status}"
            );
            assert!(!meaning.for_trail().may_be_applied(), "{status}");
        }
        for (status, sub) in [(408, None), (500, None), (503, None), (410, Some("1022"))] {
            let evidence = of(status, sub).for_breaker().evidence();
            assert_eq!(evidence, Evidence::Failure, "{status}");
        }
        assert_eq!(of(404, None).for_breaker().evidence(), Evidence::Success);
    }

    /// B5: an answer that refuses the request settles a probe if it is the service's own.
    #[test]
    fn the_service_is_known_by_its_activity_id() {
        let id = (ACTIVITY_ID.clone(), HeaderValue::from_static("5f2c"));
        let given: HeaderMap = [id].into_iter().collect();
        let meaning = Meaning::of(StatusCode::BAD_REQUEST, &given);
        assert_eq!(meaning, Meaning::Refused { alive: true });
        assert_eq!(meaning.for_breaker().evidence(), Evidence::Alive);
    }

    /// C15: what ends a hedged read, and what does not.
    #[test]
    fn final_answers_end_a_hedge() {
        let ends =
            |status, sub| is_final_for_hedge(StatusCode::from_u16(status).unwrap(), &headers(sub));
        for (status, sub) in [(200, None), (400, None), (401, None), (403, Some("0"))] {
            assert!(ends(status, sub), "{status}");
        }
        assert!(ends(404, Some("0")) && ends(409, None) && ends(412, None));
        for (status, sub) in [
            (403, Some("3")),
            (403, Some("1008")),
            (404, Some("1002")),
            (410, Some("1022")),
            (449, None),
            (408, None),
            (429, None),
            (503, None),
        ] {
            assert!(!ends(status, sub), "{status}");
        }
    }
}
