//! What is said about a setting that cannot work, when a service is built.

use std::error::Error;
use std::fmt;

/// A setting that cannot work: named, and with the reason.
///
/// Settings are checked once, when a service is built, so this error never ends a request.
/// The message never holds the value of a secret.
///
/// ```
/// use tower_geo_policy::config_error::ConfigError;
///
/// let error = ConfigError::new("streak", "must be at least 1 (got 0)");
/// assert_eq!(error.setting(), "streak");
/// assert_eq!(error.to_string(), "`streak`: must be at least 1 (got 0)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    setting: &'static str,
    message: Box<str>,
}

impl ConfigError {
    /// An error about `setting`; the message is in lower case, without a final dot, and says
    /// what to do instead.
    #[must_use]
    pub fn new(setting: &'static str, message: impl Into<String>) -> Self {
        Self {
            setting,
            message: message.into().into_boxed_str(),
        }
    }

    /// The name of the setting, as it is written in code or in a connection string.
    #[must_use]
    pub const fn setting(&self) -> &str {
        self.setting
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.setting, self.message)
    }
}

impl Error for ConfigError {}
