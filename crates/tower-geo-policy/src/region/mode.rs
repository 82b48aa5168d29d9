//! Which copies reads may use, and in which order (R2).

use std::fmt;
use std::str::FromStr;

use crate::config_error::ConfigError;

/// Which copies reads may use, and in which order (R2). Writes go to the region that takes them
/// in every mode.
///
/// Where there are more than two copies, "secondary" stands for all but the writer, in order.
///
/// | written as | reads begin at | and go on to |
/// |---|---|---|
/// | `primary-only` (default) | the writer | nothing |
/// | `primary-then-secondary` | the writer | the copies |
/// | `secondary-only` | the copies | nothing |
/// | `secondary-then-primary` | the copies | the writer |
///
/// ```
/// use tower_geo_policy::region::LocationMode;
///
/// let mode: LocationMode = "primary-then-secondary".parse()?;
/// assert_eq!(mode, LocationMode::PrimaryThenSecondary);
/// assert!(mode.needs_secondary());
/// assert!(!LocationMode::default().needs_secondary());
/// # Ok::<(), tower_geo_policy::config_error::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LocationMode {
    /// Reads are answered by the writer or not at all.
    #[default]
    PrimaryOnly,
    /// Reads begin at the writer and fall over to the copies.
    PrimaryThenSecondary,
    /// Reads are answered by the copies or not at all.
    SecondaryOnly,
    /// Reads begin at the copies and fall over to the writer.
    SecondaryThenPrimary,
}

impl LocationMode {
    const ALL: [Self; 4] = [
        Self::PrimaryOnly,
        Self::PrimaryThenSecondary,
        Self::SecondaryOnly,
        Self::SecondaryThenPrimary,
    ];

    /// Whether a healthy read begins at the region that takes the writes.
    #[must_use]
    pub const fn starts_at_primary(self) -> bool {
        matches!(self, Self::PrimaryOnly | Self::PrimaryThenSecondary)
    }

    /// Whether this mode cannot work without a copy besides the writer.
    #[must_use]
    pub const fn needs_secondary(self) -> bool {
        !matches!(self, Self::PrimaryOnly)
    }

    /// The mode as it is written in settings and in drills.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PrimaryOnly => "primary-only",
            Self::PrimaryThenSecondary => "primary-then-secondary",
            Self::SecondaryOnly => "secondary-only",
            Self::SecondaryThenPrimary => "secondary-then-primary",
        }
    }

    /// A number from 0 to 3, so that a mode fits into an atomic.
    #[must_use]
    pub const fn to_bits(self) -> u8 {
        match self {
            Self::PrimaryOnly => 0,
            Self::PrimaryThenSecondary => 1,
            Self::SecondaryOnly => 2,
            Self::SecondaryThenPrimary => 3,
        }
    }

    /// The mode of a number that [`to_bits`](Self::to_bits) made.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::PrimaryOnly),
            1 => Some(Self::PrimaryThenSecondary),
            2 => Some(Self::SecondaryOnly),
            3 => Some(Self::SecondaryThenPrimary),
            _ => None,
        }
    }
}

impl fmt::Display for LocationMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for LocationMode {
    type Err = ConfigError;

    /// Reads what [`as_str`](Self::as_str) writes.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| {
                ConfigError::new(
                    "location_mode",
                    "must be primary-only, primary-then-secondary, secondary-only or \
                     secondary-then-primary",
                )
            })
    }
}
