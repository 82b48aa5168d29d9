//! Which headers make it harmless to send a write again (V1).

use http::HeaderMap;
use http::header::{IF_MATCH, IF_NONE_MATCH};

use crate::intent::{Intent, Ruling};

/// The ruling on a write that carries `If-None-Match`, or `If-Match` with an entity tag: a second
/// arrival of it finds the condition broken by the first. `If-Match: *` only asks that something
/// is there, which is still true after the first.
pub(crate) fn harmless_by_condition(headers: &HeaderMap) -> Option<Ruling> {
    if headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .any(|value| !value.as_bytes().trim_ascii().is_empty())
    {
        return Some(Ruling::new(
            Intent::WRITE_HARMLESS,
            "carries `If-None-Match`, so a second arrival changes nothing",
        ));
    }
    if names_an_entity(headers) {
        return Some(Ruling::new(
            Intent::WRITE_HARMLESS,
            "carries `If-Match` with an entity tag, so a second arrival changes nothing",
        ));
    }
    None
}

/// Whether `If-Match` lists entity tags and nothing else. A `*` anywhere, or an empty element,
/// makes it no protection.
fn names_an_entity(headers: &HeaderMap) -> bool {
    let mut tags = headers
        .get_all(IF_MATCH)
        .iter()
        // A comma inside of a quoted tag splits it, too; that can only turn down a tag, never
        // take a `*` for one.
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .peekable();
    tags.peek().is_some() && tags.all(|tag| !matches!(tag, b"" | b"*"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::HeaderName;

    use super::*;

    fn is_harmless(headers: &[(HeaderName, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_static(value));
        }
        harmless_by_condition(&map).is_some()
    }

    /// V1: `If-None-Match` in every form.
    #[test]
    fn if_none_match_makes_a_write_harmless() {
        assert!(is_harmless(&[(IF_NONE_MATCH, "*")]));
        assert!(is_harmless(&[(IF_NONE_MATCH, "\"0x8D\"")]));
        assert!(!is_harmless(&[(IF_NONE_MATCH, "")]));
    }

    /// V1: `If-Match` with an ETag, not `*`.
    #[test]
    fn if_match_makes_a_write_harmless_only_with_a_tag() {
        assert!(is_harmless(&[(IF_MATCH, "\"0x8D\"")]));
        assert!(is_harmless(&[(IF_MATCH, "0x8D")]));
        assert!(is_harmless(&[(
            IF_MATCH,
            "W/\"datetime'2026-01-01T00%3A00%3A00Z'\""
        )]));
        assert!(is_harmless(&[(IF_MATCH, "\"a\", \"b\"")]));
        for (name, value) in [
            (IF_MATCH, "*"),
            (IF_MATCH, " * "),
            (IF_MATCH, ""),
            (IF_MATCH, "\"a\", *"),
            (
                http::header::IF_MODIFIED_SINCE,
                "Sat, 01 Jan 2000 00:00:00 GMT",
            ),
            (
                http::header::IF_UNMODIFIED_SINCE,
                "Sat, 01 Jan 2000 00:00:00 GMT",
            ),
        ] {
            assert!(!is_harmless(&[(name.clone(), value)]), "{name}: {value}");
        }
        assert!(!is_harmless(&[(IF_MATCH, "\"a\""), (IF_MATCH, "*")]));
        assert!(!is_harmless(&[]));
    }
}
