//! The names of regions, and the hosts that are guessed from them (C3).

use crate::region::Endpoint;

/// The name of the given host in trails and events, as long as the account does not list it as
/// one of its regions.
pub const GLOBAL: &str = "global";

/// The name of a region, so written that names which differ in blanks and letter case only are
/// equal (C3).
///
/// ```
/// use tower_geo_policy::cosmos::RegionName;
///
/// assert_eq!(RegionName::new("East US 2"), RegionName::new("eastus2"));
/// assert_ne!(RegionName::new("East US"), RegionName::new("East US 2"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegionName(Box<str>);

impl RegionName {
    /// The name, in any writing.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let significant = name.chars().filter(|letter| !letter.is_whitespace());
        Self(
            significant
                .map(|letter| letter.to_ascii_lowercase())
                .collect(),
        )
    }

    /// Without blanks, in lower case: as it appears in host names.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing is left of it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `name` is this region in any writing. Allocates nothing.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        let significant = name.chars().filter(|letter| !letter.is_whitespace());
        significant
            .map(|letter| letter.to_ascii_lowercase())
            .eq(self.0.chars())
    }
}

/// The host of a region, guessed from the global host: the region's name is added to the first
/// label. The port, if there is one, stays.
///
/// A guess, for the start only: once the account document is known, its own hosts count.
///
/// ```
/// use tower_geo_policy::cosmos::{RegionName, regional_host};
///
/// assert_eq!(
///     regional_host("contoso.documents.azure.com:443", &RegionName::new("West US 2")),
///     "contoso-westus2.documents.azure.com:443"
/// );
/// ```
#[must_use]
pub fn regional_host(global: &str, region: &RegionName) -> String {
    let end = global.find(['.', ':']).unwrap_or(global.len());
    let (label, rest) = global.split_at(end);
    format!("{label}-{}{rest}", region.as_str())
}

/// The endpoint of a region, guessed from the given one. None where the given one has no name to
/// guess from: an IP address, or an account in the path.
#[must_use]
pub fn regional_endpoint(given: &Endpoint, region: &RegionName) -> Option<Endpoint> {
    if given.is_ip_address() || given.account_segment().is_some() {
        return None;
    }
    given.with_host(&regional_host(given.host(), region)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C3: comparing with a text gives what comparing the names gives.
    #[test]
    fn a_name_is_known_in_any_writing() {
        let name = RegionName::new("North Central US");
        for same in ["North Central US", "northcentralus", " NORTH\tcentral Us "] {
            assert!(name.is(same), "{same}");
            assert_eq!(RegionName::new(same), name);
        }
        for other in [
            "North Central US 2",
            "North Central U",
            "",
            "South Central US",
        ] {
            assert!(!name.is(other), "{other}");
            assert_ne!(RegionName::new(other), name);
        }
        assert!(RegionName::new(" \t").is_empty());
    }

    /// C3: the port and the scheme stay; addresses have no name to guess from.
    #[test]
    fn hosts_are_guessed_only_from_names() {
        let guess = |given: &str| {
            let given = Endpoint::parse(given).unwrap();
            regional_endpoint(&given, &RegionName::new("West US 3")).map(|e| e.to_string())
        };
        assert_eq!(
            guess("https://acct.documents.azure.com:443/").as_deref(),
            Some("https://acct-westus3.documents.azure.com")
        );
        assert_eq!(
            guess("http://acct.documents.test:8081").as_deref(),
            Some("http://acct-westus3.documents.test:8081")
        );
        assert_eq!(guess("https://127.0.0.1:8081"), None);
        assert_eq!(guess("https://[::1]:8081"), None);
        assert_eq!(guess("http://localhost:10000/acct"), None);
    }
}
