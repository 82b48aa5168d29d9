//! How the secondary's host is derived from the primary's (R11).

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use crate::config_error::ConfigError;
use crate::region::Endpoint;

use DeriveErrorKind::{AlreadySecondary, InvalidUrl, NoReadableSecondary, NotDerivable};

/// The suffix of the public cloud's host names.
pub const DEFAULT_SUFFIX: &str = "core.windows.net";

/// A service of a storage account. Each has its own endpoints, and its own state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StorageService {
    /// Blobs.
    Blob,
    /// Queues.
    Queue,
    /// Tables.
    Table,
    /// Data Lake Storage: the blobs again, as files and directories.
    Dfs,
    /// A static web site, read only by nature.
    Web,
    /// File shares. They have no readable secondary (I6).
    File,
}

impl StorageService {
    /// Every service.
    pub const ALL: [Self; 6] = [
        Self::Blob,
        Self::Queue,
        Self::Table,
        Self::Dfs,
        Self::Web,
        Self::File,
    ];

    /// The service's label in host names.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Queue => "queue",
            Self::Table => "table",
            Self::Dfs => "dfs",
            Self::Web => "web",
            Self::File => "file",
        }
    }

    /// Whether an account can have a secondary of this service that can be read (I6).
    #[must_use]
    pub const fn has_readable_secondary(self) -> bool {
        !matches!(self, Self::File)
    }

    /// The endpoint of an account by its name: `https://ACCOUNT.SERVICE.SUFFIX`, where the suffix
    /// of the public cloud is [`DEFAULT_SUFFIX`].
    ///
    /// ```
    /// use tower_geo_policy::azure_storage::{DEFAULT_SUFFIX, StorageService};
    ///
    /// let endpoint = StorageService::Table.endpoint("contoso", DEFAULT_SUFFIX)?;
    /// assert_eq!(endpoint.to_string(), "https://contoso.table.core.windows.net");
    /// # Ok::<(), tower_geo_policy::config_error::ConfigError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the name is not 3 to 24 lower-case letters and digits, or the suffix is no host name;
    /// and for [`Web`](Self::Web), whose host has a zone that does not follow from the name.
    pub fn endpoint(self, account: &str, suffix: &str) -> Result<Endpoint, ConfigError> {
        self.endpoint_with_scheme("https", account, suffix)
    }

    pub(super) fn endpoint_with_scheme(
        self,
        scheme: &str,
        account: &str,
        suffix: &str,
    ) -> Result<Endpoint, ConfigError> {
        check_account_name(account)?;
        if self == Self::Web {
            return Err(ConfigError::new(
                "account",
                "does not tell the host of a static web site, which has a zone: give its url, \
                 such as https://ACCOUNT.z13.web.core.windows.net",
            ));
        }
        let suffix = suffix.trim_start_matches('.');
        if suffix.is_empty() || suffix.contains(['/', '@', ':']) {
            return Err(ConfigError::new(
                "endpoint_suffix",
                "must be the end of a host name, such as core.windows.net",
            ));
        }
        Endpoint::parse(&format!("{scheme}://{account}.{self}.{suffix}"))
            .map_err(|error| error.of_setting("endpoint_suffix"))
    }
}

impl fmt::Display for StorageService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for StorageService {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        of_label(text).ok_or_else(|| {
            ConfigError::new(
                "service",
                "must be blob, queue, table, dfs, web or file, in lower case",
            )
        })
    }
}

fn of_label(label: &str) -> Option<StorageService> {
    StorageService::ALL
        .into_iter()
        .find(|service| service.as_str() == label)
}

pub(super) fn check_account_name(account: &str) -> Result<(), ConfigError> {
    if is_account_name(account) {
        Ok(())
    } else {
        Err(ConfigError::new(
            "account",
            "must be 3 to 24 lower-case letters and digits",
        ))
    }
}

fn is_account_name(text: &str) -> bool {
    (3..=24).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

const SECONDARY: &str = "-secondary";

/// The endpoint of one service of an account, taken apart.
///
/// Every `http` or `https` URL of a service is one, also one whose secondary cannot be derived:
/// [`derive_secondary`](Self::derive_secondary) then says why, and what to configure instead.
///
/// ```
/// use tower_geo_policy::azure_storage::{AccountEndpoint, DeriveErrorKind};
///
/// # fn main() -> Result<(), tower_geo_policy::azure_storage::DeriveError> {
/// let endpoint = AccountEndpoint::parse("https://contoso-ipv6.blob.core.windows.net")?;
/// assert_eq!(endpoint.account(), Some("contoso"));
/// assert_eq!(
///     endpoint.derive_secondary()?.to_string(),
///     "https://contoso-secondary-ipv6.blob.core.windows.net"
/// );
///
/// let custom = AccountEndpoint::parse("https://files.contoso.test")?;
/// let error = custom.derive_secondary().unwrap_err();
/// assert_eq!(error.kind(), DeriveErrorKind::NotDerivable);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountEndpoint {
    endpoint: Endpoint,
    form: Form,
    account: Option<Box<str>>,
    service: Option<StorageService>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The account is the first label of the host.
    Host,
    /// The account is the first segment of the path.
    Path,
    /// Either of them, and it is the secondary's.
    Secondary,
    /// None of them, for this reason.
    Other(&'static str),
}

impl AccountEndpoint {
    /// Reads the URL of a service.
    ///
    /// The account is expected in the host (`https://ACCOUNT.blob.core.windows.net`). It may be in
    /// the path instead where the host is an IP address, `localhost` or a name without dots
    /// (`http://127.0.0.1:10000/ACCOUNT`); such a URL does not tell which service it is.
    ///
    /// # Errors
    ///
    /// [`DeriveErrorKind::InvalidUrl`] when it is no URL of a service at all.
    pub fn parse(url: &str) -> Result<Self, DeriveError> {
        let endpoint =
            Endpoint::parse(url).map_err(|error| DeriveError::new(InvalidUrl, error.reason()))?;
        if let Some(segment) = endpoint.account_segment() {
            let form = if HostParts::of(&endpoint).service.is_some() {
                // Taken for path style, it would make strangers of all other containers.
                return Err(DeriveError::new(InvalidUrl, PATH_ON_A_SERVICE));
            } else if endpoint.host().contains('.') && !endpoint.is_ip_address() {
                Form::Other(PATH_ON_A_NAME)
            } else if is_account_name(segment) {
                Form::Path
            } else if segment.strip_suffix(SECONDARY).is_some_and(is_account_name) {
                Form::Secondary
            } else {
                Form::Other(NO_ACCOUNT_NAME)
            };
            let account = match form {
                Form::Path => Some(segment),
                Form::Secondary => segment.strip_suffix(SECONDARY),
                Form::Host | Form::Other(_) => None,
            };
            return Ok(Self {
                account: account.map(Into::into),
                service: None,
                form,
                endpoint,
            });
        }
        let host = HostParts::of(&endpoint);
        Ok(Self {
            form: host.form,
            account: host.account.map(Into::into),
            service: host.service,
            endpoint,
        })
    }

    /// Which service it is, if the host tells.
    #[must_use]
    pub const fn service(&self) -> Option<StorageService> {
        self.service
    }

    /// The name of the account, without a suffix, if the URL tells.
    #[must_use]
    pub fn account(&self) -> Option<&str> {
        self.account.as_deref()
    }

    /// The endpoint itself, normalised.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether it is the secondary's endpoint.
    #[must_use]
    pub const fn is_secondary(&self) -> bool {
        matches!(self.form, Form::Secondary)
    }

    /// The endpoint of blobs in the same account and region, for a `dfs` or `web` endpoint: it
    /// tells their Last Sync Time (F1). `None` where it does not follow from this one.
    ///
    /// ```
    /// use tower_geo_policy::azure_storage::AccountEndpoint;
    ///
    /// # fn main() -> Result<(), tower_geo_policy::azure_storage::DeriveError> {
    /// let web = AccountEndpoint::parse("https://contoso-secondary.z13.web.core.windows.net")?;
    /// let blob = web.blob_sibling().map(|blob| blob.to_string());
    /// assert_eq!(blob.as_deref(), Some("https://contoso-secondary.blob.core.windows.net"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn blob_sibling(&self) -> Option<Endpoint> {
        let service = self.service?;
        if !matches!(service, StorageService::Dfs | StorageService::Web) {
            return None;
        }
        self.of_service(StorageService::Blob)
    }

    /// The endpoint of another service of the same account, if it follows from this one: where the
    /// host is `ACCOUNT.SERVICE.SUFFIX`, without a port of its own. Never that of a static web
    /// site, whose zone does not follow.
    ///
    /// ```
    /// use tower_geo_policy::azure_storage::{AccountEndpoint, StorageService};
    ///
    /// # fn main() -> Result<(), tower_geo_policy::azure_storage::DeriveError> {
    /// let blob = AccountEndpoint::parse("https://contoso.blob.core.windows.net")?;
    /// let queue = blob.sibling(StorageService::Queue).map(|queue| queue.to_string());
    /// assert_eq!(queue.as_deref(), Some("https://contoso.queue.core.windows.net"));
    ///
    /// let emulator = AccountEndpoint::parse("http://127.0.0.1:10000/devstoreaccount1")?;
    /// assert_eq!(emulator.sibling(StorageService::Queue), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn sibling(&self, service: StorageService) -> Option<Endpoint> {
        let is_known = matches!(self.form, Form::Host | Form::Secondary);
        if !is_known || service == StorageService::Web || self.endpoint.port().is_some() {
            return None;
        }
        self.of_service(service)
    }

    /// This host with the label of another service.
    fn of_service(&self, other: StorageService) -> Option<Endpoint> {
        let service = self.service?;
        let mut labels: Vec<&str> = self.endpoint.host().split('.').collect();
        // The first label is the account's, whatever its name.
        let place_of = |labels: &[&str]| {
            let places = labels.iter().enumerate().skip(1);
            let mut places = places.filter(|(_, label)| **label == service.as_str());
            places.next().map(|(place, _)| place)
        };
        let place = place_of(&labels)?;
        // Web sites of every account have a zone; its other services have one only where the
        // account was made with one, and then the end of the name is another.
        if service == StorageService::Web
            && place == 2
            && !labels.ends_with(&["storage", "azure", "net"])
        {
            labels.remove(1);
        }
        let place = place_of(&labels)?;
        *labels.get_mut(place)? = other.as_str();
        self.endpoint.with_host(&labels.join(".")).ok()
    }

    /// The endpoint of the secondary: the suffix `-secondary` goes behind the account's name, and
    /// nothing else changes.
    ///
    /// # Errors
    ///
    /// See [`DeriveErrorKind`]; the message says what to configure instead.
    pub fn derive_secondary(&self) -> Result<Endpoint, DeriveError> {
        if self.service == Some(StorageService::File) {
            return Err(DeriveError::new(
                NoReadableSecondary,
                "file shares have no secondary that can be read: use the location mode \
                 primary-only for this service",
            ));
        }
        let account = self.account().unwrap_or_default();
        let derived = match self.form {
            Form::Host => {
                // What follows the account's name in the host: a feature, if any, and the rest.
                let rest = self.endpoint.host().get(account.len()..).unwrap_or("");
                self.endpoint
                    .with_host(&format!("{account}{SECONDARY}{rest}"))
            }
            Form::Path => self
                .endpoint
                .with_account_segment(&format!("{account}{SECONDARY}")),
            Form::Secondary => {
                return Err(DeriveError::new(
                    AlreadySecondary,
                    "this is the endpoint of a secondary already: give the primary's",
                ));
            }
            Form::Other(reason) => return Err(DeriveError::new(NotDerivable, reason)),
        };
        derived.map_err(|error| DeriveError::new(NotDerivable, error.reason()))
    }
}

const CUSTOM_DOMAIN: &str = "the host is not ACCOUNT.SERVICE.SUFFIX, so its secondary cannot be \
    known: give the secondary's url as well";
const PRIVATE_LINK: &str = "a privatelink host is the alias of an endpoint, not an endpoint: give \
    the account's own url, and a private endpoint of its own to the secondary";
const IP_ADDRESS: &str = "an ip address does not name an account: put the account into the path, \
    as in http://127.0.0.1:10000/ACCOUNT, or give the secondary's url as well";
const PATH_ON_A_NAME: &str = "the account can be in the path only where the host is an ip \
    address or a name without dots: give the account's url without a path, or the secondary's url as well";
const PATH_ON_A_SERVICE: &str = "has a path although the host names the account: give the \
    service's own url, without a container or a file";
const NO_ACCOUNT_NAME: &str = "the name of an account is 3 to 24 letters and digits: give the \
    account's url, or the secondary's url as well";

struct HostParts<'a> {
    form: Form,
    account: Option<&'a str>,
    service: Option<StorageService>,
}

impl<'a> HostParts<'a> {
    fn of(endpoint: &'a Endpoint) -> Self {
        let unknown = |reason| Self {
            form: Form::Other(reason),
            account: None,
            service: None,
        };
        if endpoint.is_ip_address() {
            return unknown(IP_ADDRESS);
        }
        let host = endpoint.host();
        if host.split('.').any(|label| label == "privatelink") {
            return unknown(PRIVATE_LINK);
        }
        let mut labels = host.split('.');
        let first = labels.next().unwrap_or("");
        let mut second = labels.next().unwrap_or("");
        if is_zone(second) {
            second = labels.next().unwrap_or("");
        }
        let Some(service) = of_label(second) else {
            return unknown(CUSTOM_DOMAIN);
        };
        // The name of an account has no hyphen, so the first one begins a suffix.
        let (account, suffix) = match first.find('-') {
            Some(hyphen) => first.split_at(hyphen),
            None => (first, ""),
        };
        let form = match suffix {
            _ if !is_account_name(account) => Form::Other(NO_ACCOUNT_NAME),
            "" | "-ipv6" | "-dualstack" => Form::Host,
            "-secondary" | "-secondary-ipv6" | "-secondary-dualstack" => Form::Secondary,
            _ => Form::Other(CUSTOM_DOMAIN),
        };
        Self {
            account: match form {
                Form::Other(_) => None,
                Form::Host | Form::Path | Form::Secondary => Some(account),
            },
            form,
            service: Some(service),
        }
    }
}

/// `z` and two digits.
fn is_zone(label: &str) -> bool {
    matches!(label.as_bytes(), [b'z', one, two] if one.is_ascii_digit() && two.is_ascii_digit())
}

/// Why the secondary's endpoint cannot be derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeriveErrorKind {
    /// The service has no secondary that can be read (I6).
    NoReadableSecondary,
    /// It does not follow from the URL: a custom domain, an IP address, a private link. It can be
    /// given.
    NotDerivable,
    /// The URL is that of a secondary.
    AlreadySecondary,
    /// It is no URL of a service.
    InvalidUrl,
}

impl DeriveErrorKind {
    /// The kind as it is written in output for programs, such as `not-derivable`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            NoReadableSecondary => "no-readable-secondary",
            NotDerivable => "not-derivable",
            AlreadySecondary => "already-secondary",
            InvalidUrl => "invalid-url",
        }
    }
}

impl fmt::Display for DeriveErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a URL has no secondary that can be derived, and what to configure instead. The message does
/// not repeat the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeriveError {
    kind: DeriveErrorKind,
    message: &'static str,
}

impl DeriveError {
    const fn new(kind: DeriveErrorKind, message: &'static str) -> Self {
        Self { kind, message }
    }

    /// The kind of the error.
    #[must_use]
    pub const fn kind(&self) -> DeriveErrorKind {
        self.kind
    }
}

impl fmt::Display for DeriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            // What the URL parser says has no subject.
            InvalidUrl => write!(f, "the endpoint {}", self.message),
            _ => f.write_str(self.message),
        }
    }
}

impl Error for DeriveError {}

impl From<DeriveError> for ConfigError {
    fn from(error: DeriveError) -> Self {
        match error.kind {
            InvalidUrl => Self::new("endpoint", error.message),
            _ => Self::new("secondary", error.message),
        }
    }
}

#[cfg(test)]
mod tests;
