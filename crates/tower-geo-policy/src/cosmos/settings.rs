//! What a user says of an account.

use std::time::Duration;

use crate::config_error::ConfigError;

use super::names::RegionName;

/// What a user says of an account with several regions.
///
/// | setting | unit | default | why |
/// |---|---|---|---|
/// | `preferred` | regions, best first | none | reads, and writes of a multi-write account, go there first (C1, C2) |
/// | `excluded` | regions | none | never used, except by writes that have only one place to go (C11) |
/// | `multi_write` | | yes | no: every account is treated as one that takes writes in one region (C2) |
/// | `discovery` | | yes | no: only the given host, ever, and the account is not read (C4) |
/// | `refresh` | time | 5 min | a region that joins the account is used at the latest then (C3) |
/// | `refresh_jitter` | time | 15 s | added by chance, so that clients do not read together |
/// | `mark_for` | time | 5 min | how long a region that refused is left for last (C10) |
///
/// ```
/// use std::time::Duration;
/// use tower_geo_policy::cosmos::AccountSettings;
///
/// let settings = AccountSettings::new()
///     .preferred(["West US 2", "East US"])
///     .mark_for(Duration::from_secs(90));
/// settings.validate()?;
/// assert!(AccountSettings::new().preferred([" "]).validate().is_err());
/// # Ok::<(), tower_geo_policy::config_error::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct AccountSettings {
    preferred: Box<[RegionName]>,
    excluded: Box<[RegionName]>,
    multi_write: bool,
    discovery: bool,
    refresh: Duration,
    refresh_jitter: Duration,
    mark_for: Duration,
}

impl Default for AccountSettings {
    fn default() -> Self {
        Self::new()
    }
}

fn names<I>(names: I) -> Box<[RegionName]>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    names
        .into_iter()
        .map(|name| RegionName::new(name.as_ref()))
        .collect()
}

impl AccountSettings {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            preferred: Box::default(),
            excluded: Box::default(),
            multi_write: true,
            discovery: true,
            refresh: Duration::from_secs(5 * 60),
            refresh_jitter: Duration::from_secs(15),
            mark_for: Duration::from_secs(5 * 60),
        }
    }

    /// The regions to prefer, best first (C1). Those that the account does not have are ignored
    /// until it has them.
    pub fn preferred<I>(mut self, regions: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.preferred = names(regions);
        self
    }

    /// The regions to leave out everywhere (C11). The list of a request, where it has one, counts
    /// instead.
    pub fn excluded<I>(mut self, regions: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.excluded = names(regions);
        self
    }

    /// Whether to make use of an account that takes writes in several regions (C2).
    pub const fn multi_write(mut self, multi_write: bool) -> Self {
        self.multi_write = multi_write;
        self
    }

    /// Whether to ask the account for its regions (C4).
    pub const fn discovery(mut self, discovery: bool) -> Self {
        self.discovery = discovery;
        self
    }

    /// The time between two reads of the account when nothing happens (C3). Longer than zero.
    pub const fn refresh(mut self, refresh: Duration) -> Self {
        self.refresh = refresh;
        self
    }

    /// The most that chance adds to [`refresh`](Self::refresh).
    pub const fn refresh_jitter(mut self, jitter: Duration) -> Self {
        self.refresh_jitter = jitter;
        self
    }

    /// How long a mark lasts (C10). Longer than zero.
    pub const fn mark_for(mut self, mark_for: Duration) -> Self {
        self.mark_for = mark_for;
        self
    }

    /// See [`Self::preferred`].
    #[must_use]
    pub const fn get_preferred(&self) -> &[RegionName] {
        &self.preferred
    }

    /// See [`Self::excluded`].
    #[must_use]
    pub const fn get_excluded(&self) -> &[RegionName] {
        &self.excluded
    }

    /// See [`Self::multi_write`].
    #[must_use]
    pub const fn get_multi_write(&self) -> bool {
        self.multi_write
    }

    /// See [`Self::discovery`].
    #[must_use]
    pub const fn get_discovery(&self) -> bool {
        self.discovery
    }

    /// See [`Self::refresh`].
    #[must_use]
    pub const fn get_refresh(&self) -> Duration {
        self.refresh
    }

    /// See [`Self::refresh_jitter`].
    #[must_use]
    pub const fn get_refresh_jitter(&self) -> Duration {
        self.refresh_jitter
    }

    /// See [`Self::mark_for`].
    #[must_use]
    pub const fn get_mark_for(&self) -> Duration {
        self.mark_for
    }

    /// Refuses settings that make no sense.
    ///
    /// # Errors
    ///
    /// Names the setting and says what it may be.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for (setting, regions) in [("preferred", &self.preferred), ("excluded", &self.excluded)] {
            if regions.iter().any(RegionName::is_empty) {
                return Err(ConfigError::new(
                    setting,
                    "must be names of regions, such as `West US 2` (one is blank)",
                ));
            }
        }
        for (setting, time) in [("refresh", self.refresh), ("mark_for", self.mark_for)] {
            if time.is_zero() {
                return Err(ConfigError::new(setting, "must be longer than zero"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every senseless value is an error that names it.
    #[test]
    fn senseless_values_are_named() {
        let good = AccountSettings::new;
        assert!(good().validate().is_ok());
        assert!(good().refresh_jitter(Duration::ZERO).validate().is_ok());
        let bad = [
            ("preferred", good().preferred(["West US", ""])),
            ("excluded", good().excluded(["\t"])),
            ("refresh", good().refresh(Duration::ZERO)),
            ("mark_for", good().mark_for(Duration::ZERO)),
        ];
        for (setting, settings) in bad {
            assert_eq!(settings.validate().unwrap_err().setting(), setting);
        }
    }
}
