use std::fmt;

/// A pattern such as `/orders/*`, in which `*` stands for any run of characters, also an empty
/// one. Everything else stands for itself.
///
/// ```
/// use tower_geo::fault::Pattern;
///
/// assert!(Pattern::new("/orders/*").matches(b"/orders/1?x=y"));
/// assert!(!Pattern::new("/orders/*").matches(b"/order/1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    /// A pattern without `*` is compared, which most hosts are.
    plain: bool,
}

impl Pattern {
    /// A pattern, as it is written.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let plain = !text.contains('*');
        Self { text, plain }
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the whole of `text` fits.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        let pattern = self.text.as_bytes();
        if self.plain {
            return pattern == text;
        }
        // Greedy, with one way back: only the last star can have to take more. Linear in
        // practice and quadratic at worst, whatever the pattern.
        let (mut p, mut t) = (0, 0);
        let mut back: Option<(usize, usize)> = None;
        while t < text.len() {
            if pattern.get(p) == Some(&b'*') {
                back = Some((p + 1, t));
                p += 1;
            } else if pattern.get(p) == text.get(t) {
                p += 1;
                t += 1;
            } else if let Some((after_star, from)) = back {
                back = Some((after_star, from + 1));
                p = after_star;
                t = from + 1;
            } else {
                return false;
            }
        }
        pattern[p..].iter().all(|&byte| byte == b'*')
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run() {
        for (pattern, text, wanted) in [
            ("/orders/*", "/orders/", true),
            ("/orders/*", "/orders/1?x=y", true),
            ("/orders/*", "/order/1", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*.example.test", "eu.example.test", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a**c", "ac", true),
            ("2024-*", "2024-11-04", true),
            ("/a?b", "/axb", false),
        ] {
            assert_eq!(
                Pattern::new(pattern).matches(text.as_bytes()),
                wanted,
                "{pattern} {text}"
            );
        }
    }
}
