//! What is wrong with a file or an argument, and where.

use std::fmt;

/// Something that makes a drill unusable (exit code 2): the path of the key, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    path: String,
    message: String,
}

impl Problem {
    /// A problem at a key such as `services.blob.retry.delay`, or at the whole file (empty path).
    pub(crate) fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }

    /// The path of the key, such as `rules[2].answers[0].latency`; empty where the file as a
    /// whole cannot be read, or where the problem is none of a file.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong, in lower case and without a final dot.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for Problem {}
