//! Keeps secrets out of what a client's own error says of itself.
//!
//! Clients like to print the URL that failed, and a URL may carry a signature. Where we print such
//! an error it goes through here; whoever walks the chain of sources gets it as it is.

use std::error::Error as StdError;
use std::fmt;

/// The debug form of something foreign, without query strings and credentials.
pub(crate) struct Redacted<'a>(pub(crate) &'a dyn fmt::Debug);

impl fmt::Debug for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact(&format!("{:?}", self.0)))
    }
}

/// What an error and its sources say, without query strings and credentials. Their debug forms may
/// hold whole requests, and are not asked.
pub(crate) struct Words<'a>(pub(crate) &'a (dyn StdError + 'static));

impl fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chain = std::iter::successors(Some(self.0), |&error| error.source());
        f.debug_list()
            .entries(chain.map(|error| redact(&error.to_string())))
            .finish()
    }
}

/// Words after which the rest of a header's value follows.
const SCHEMES: [&str; 5] = ["Bearer", "SharedKey", "SharedKeyLite", "Basic", "Digest"];
/// Names of parameters whose values are secrets; so is whatever stands behind them.
const SECRETS: [&str; 5] = ["sig=", "accountkey=", "token=", "password=", "secret="];

/// What is there instead of what was left out.
const LEFT_OUT: &str = "…";

/// Cuts every word where its query begins, and leaves words out that are credentials.
pub(crate) fn redact(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut after_scheme = false;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(is_end_of_word).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        if !word.is_empty() {
            if after_scheme {
                clean.push_str(LEFT_OUT);
            } else {
                push_word(&mut clean, word);
            }
            after_scheme = SCHEMES
                .iter()
                .any(|scheme| scheme.eq_ignore_ascii_case(word));
        }
        let mut ends = behind.chars();
        clean.extend(ends.next());
        rest = ends.as_str();
    }
    clean
}

fn is_end_of_word(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>'
        )
}

fn push_word(clean: &mut String, word: &str) {
    let (before, query) = match word.split_once('?') {
        // A question mark at the end ends a sentence.
        Some((before, query)) if !query.is_empty() => (before, true),
        _ => (word, false),
    };
    let lower = before.to_ascii_lowercase();
    let secret = SECRETS.iter().filter_map(|name| lower.find(name)).min();
    // A name that was found is of ASCII, and so is the place where it begins.
    clean.push_str(secret.and_then(|at| before.get(..at)).unwrap_or(before));
    if query {
        clean.push('?');
    }
    if query || secret.is_some() {
        clean.push_str(LEFT_OUT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_and_credentials_are_left_out() {
        for (text, clean) in [
            ("connection refused", "connection refused"),
            ("why? nobody knows", "why? nobody knows"),
            (
                r#"Error { url: "https://a.test/b?sv=1&sig=abc%3D", kind: Connect }"#,
                r#"Error { url: "https://a.test/b?…", kind: Connect }"#,
            ),
            (r#"query: Some("sv=1&sig=abc")"#, r#"query: Some("sv=1&…")"#),
            ("AccountName=a;AccountKey=abc==", "AccountName=a;…"),
            (
                "authorization: SharedKey a:bc== was wrong",
                "authorization: SharedKey … was wrong",
            ),
            (r#""Bearer eyJ.x.y""#, r#""Bearer …""#),
            ("größer?a=1", "größer?…"),
            ("", ""),
        ] {
            assert_eq!(redact(text), clean);
        }
    }
}
