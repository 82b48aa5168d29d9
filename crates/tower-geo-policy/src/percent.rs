//! Comparing the text of a request with known words, without decoding into a buffer.
//!
//! A service decodes `%6Dessages` before it looks at it, so whoever decides what a request does
//! must see through the encoding too: else a write could be dressed up as a read.

/// The bytes that percent-encoded text stands for. A `%` without two hex digits is a plain `%`.
#[derive(Clone)]
struct Decoded<'a>(&'a [u8]);

/// The bytes that `encoded` stands for.
pub(crate) fn decoded(encoded: &str) -> impl Iterator<Item = u8> + Clone {
    Decoded(encoded.as_bytes())
}

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        match self.0 {
            [b'%', high, low, rest @ ..] => {
                if let (Some(high), Some(low)) = (hex(*high), hex(*low)) {
                    self.0 = rest;
                    return Some(high << 4 | low);
                }
                self.0 = self.0.get(1..).unwrap_or_default();
                Some(b'%')
            }
            [byte, rest @ ..] => {
                self.0 = rest;
                Some(*byte)
            }
            [] => None,
        }
    }
}

const fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Whether `encoded` stands for exactly `plain`.
pub(crate) fn decodes_to(encoded: &str, plain: &str) -> bool {
    // An encoding is never shorter than what it stands for.
    encoded.len() >= plain.len() && Decoded(encoded.as_bytes()).eq(plain.bytes())
}

/// Whether `encoded` stands for `plain`, whatever the case of its ASCII letters.
pub(crate) fn decodes_to_word(encoded: &str, plain: &str) -> bool {
    encoded.len() >= plain.len()
        && Decoded(encoded.as_bytes())
            .map(|byte| byte.to_ascii_lowercase())
            .eq(plain.bytes().map(|byte| byte.to_ascii_lowercase()))
}

/// The last byte that `encoded` stands for, and what comes before it.
pub(crate) fn split_last(encoded: &str) -> Option<(&str, u8)> {
    let bytes = encoded.as_bytes();
    if let [.., b'%', high, low] = bytes {
        if let (Some(high), Some(low)) = (hex(*high), hex(*low)) {
            let rest = encoded.get(..encoded.len() - 3)?;
            return Some((rest, high << 4 | low));
        }
    }
    let last = *bytes.last()?;
    Some((encoded.get(..encoded.len() - 1)?, last))
}

/// The values of the query parameter `name` (whatever its case), as they were written.
pub(crate) fn values<'q>(query: &'q str, name: &'static str) -> impl Iterator<Item = &'q str> {
    query.split('&').filter_map(move |parameter| {
        let (given, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        decodes_to_word(given, name).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_text_is_seen_through_once() {
        assert!(decodes_to("%6Dessages", "messages"));
        assert!(decodes_to_word("%4DESSAGES", "messages"));
        assert!(!decodes_to("Messages", "messages"));
        // The service decodes once, so we do.
        assert!(!decodes_to("%256Dessages", "messages"));
        assert!(decodes_to("%256Dessages", "%6Dessages"));
    }

    #[test]
    fn a_percent_sign_without_digits_is_itself() {
        assert!(decodes_to("50%", "50%"));
        assert!(decodes_to("%zz", "%zz"));
        assert!(decodes_to("%4", "%4"));
        assert!(decodes_to("%%41", "%A"));
        assert!(!decodes_to("%", ""));
    }

    #[test]
    fn parameters_are_found_by_name_in_any_case() {
        let query = "a=1&PeekOnly=true&peek%6Fnly=false&peekonly&peekonlyx=1";
        assert_eq!(
            values(query, "peekonly").collect::<Vec<_>>(),
            ["true", "false", ""]
        );
        assert_eq!(values("", "comp").count(), 0);
    }

    #[test]
    fn the_last_byte_is_found_in_either_form() {
        assert_eq!(split_last("T(a)"), Some(("T(a", b')')));
        assert_eq!(split_last("T(a%29"), Some(("T(a", b')')));
        assert_eq!(split_last("T%2"), Some(("T%", b'2')));
        assert_eq!(split_last(""), None);
        assert_eq!(split_last("é"), None);
    }
}
