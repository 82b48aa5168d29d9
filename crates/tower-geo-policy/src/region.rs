//! The copies of a service (a minimal stand-in until the real module is merged).

use std::fmt;

use crate::config_error::ConfigError;

/// Which copy of a service: its place in the order of [`Regions`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct RegionId(u8);

impl RegionId {
    /// The first region.
    pub const FIRST: Self = Self(0);

    /// The region at this place.
    #[must_use]
    pub const fn new(index: u8) -> Self {
        Self(index)
    }

    /// The place.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where reads may go (R2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum LocationMode {
    /// Only the primary.
    #[default]
    PrimaryOnly,
    /// The primary first.
    PrimaryThenSecondary,
    /// Only the secondary.
    SecondaryOnly,
    /// The secondary first.
    SecondaryThenPrimary,
}

impl LocationMode {
    /// Whether a second region must exist.
    #[must_use]
    pub const fn needs_secondary(self) -> bool {
        !matches!(self, Self::PrimaryOnly)
    }

    /// As a number.
    #[must_use]
    pub const fn to_bits(self) -> u8 {
        match self {
            Self::PrimaryOnly => 0,
            Self::PrimaryThenSecondary => 1,
            Self::SecondaryOnly => 2,
            Self::SecondaryThenPrimary => 3,
        }
    }

    /// From a number.
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

/// A base URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint(String);

impl Endpoint {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// When it is empty.
    pub fn parse(url: &str) -> Result<Self, ConfigError> {
        if url.is_empty() {
            return Err(ConfigError::new("endpoint", "must not be empty"));
        }
        Ok(Self(url.to_owned()))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    name: String,
    endpoint: Endpoint,
    writable: bool,
}

impl Region {
    /// A copy that takes no writes.
    #[must_use]
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> Self {
        Self {
            name: name.into(),
            endpoint,
            writable: false,
        }
    }

    /// Whether it takes writes.
    #[must_use]
    pub fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its base URL.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether it takes writes.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writable
    }
}

/// The copies of one service, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Regions(Vec<Region>);

impl Regions {
    /// One to sixteen copies.
    ///
    /// # Errors
    ///
    /// When there are none or too many, or none takes writes.
    pub fn new(regions: Vec<Region>) -> Result<Self, ConfigError> {
        if regions.is_empty() || regions.len() > 16 || !regions.iter().any(Region::is_writable) {
            return Err(ConfigError::new(
                "regions",
                "one to sixteen, one of them writable",
            ));
        }
        Ok(Self(regions))
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, id: RegionId) -> Option<&Region> {
        self.0.get(id.index())
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Region> {
        self.0.iter()
    }

    /// The first that takes writes.
    #[must_use]
    pub fn writer(&self) -> RegionId {
        let at = self.0.iter().position(Region::is_writable).unwrap_or(0);
        RegionId(u8::try_from(at).unwrap_or(0))
    }
}
