//! What a storage connection string says.

use std::fmt;

use super::endpoints::{DEFAULT_SUFFIX, StorageService, check_account_name};
use crate::config_error::ConfigError;
use crate::region::Endpoint;

/// The account of the emulator.
pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";

/// The key of the emulator's account. It is published by the vendor and the same everywhere, so
/// it is no secret.
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A text that must not be seen: its `Debug` form hides it, and it has no `Display` form.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// The text itself.
    #[must_use]
    pub const fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A storage connection string, taken apart.
///
/// | key | means |
/// |---|---|
/// | `AccountName` | the account; its endpoints follow from the name where they are not given, unless one that is has the account in its path |
/// | `DefaultEndpointsProtocol` | the scheme of endpoints that follow from the name (default `https`) |
/// | `EndpointSuffix` | their suffix (default `core.windows.net`) |
/// | `BlobEndpoint`, `QueueEndpoint`, `TableEndpoint`, `FileEndpoint` | a primary endpoint |
/// | `BlobSecondaryEndpoint`, … | a secondary endpoint, beside its primary |
/// | `AccountKey`, or `SharedAccessSignature` | how requests are signed, by whoever signs them |
/// | `UseDevelopmentStorage=true` | the emulator, and nothing else but `DevelopmentStorageProxyUri` |
///
/// Keys are read whatever their case. A secondary that is not given is not made up here: derive
/// it with [`AccountEndpoint`](super::AccountEndpoint).
///
/// ```
/// use tower_geo_policy::azure_storage::{ConnectionString, StorageService};
///
/// let parsed = ConnectionString::parse(
///     "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=Zm9v;\
///      EndpointSuffix=core.windows.net",
/// )?;
/// let blob = parsed.primary(StorageService::Blob).map(ToString::to_string);
/// assert_eq!(blob.as_deref(), Some("https://contoso.blob.core.windows.net"));
/// assert_eq!(parsed.secondary(StorageService::Blob), None);
/// assert!(!format!("{parsed:?}").contains("Zm9v"));
/// # Ok::<(), tower_geo_policy::config_error::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionString {
    account: Option<Box<str>>,
    key: Option<Secret>,
    signature: Option<Secret>,
    /// In the order of `StorageService::ALL`.
    primaries: [Option<Endpoint>; 6],
    secondaries: [Option<Endpoint>; 6],
    development: bool,
}

/// The services whose endpoints can be given, their keys, and their ports on the emulator.
const GIVEN: [(StorageService, Key, Key); 4] = [
    (
        StorageService::Blob,
        Key::BlobEndpoint,
        Key::BlobSecondaryEndpoint,
    ),
    (
        StorageService::Queue,
        Key::QueueEndpoint,
        Key::QueueSecondaryEndpoint,
    ),
    (
        StorageService::Table,
        Key::TableEndpoint,
        Key::TableSecondaryEndpoint,
    ),
    (
        StorageService::File,
        Key::FileEndpoint,
        Key::FileSecondaryEndpoint,
    ),
];

const DEVELOPMENT_PORTS: [(StorageService, u16); 3] = [
    (StorageService::Blob, 10000),
    (StorageService::Queue, 10001),
    (StorageService::Table, 10002),
];

impl ConnectionString {
    /// Reads a connection string.
    ///
    /// # Errors
    ///
    /// For a part without `=`, an unknown key, a key that is there twice, an empty value, a value
    /// that cannot work, a secondary endpoint without its primary, a key without an account, a key
    /// and a signature at once, and a string from which no endpoint follows. The error names the
    /// key and never repeats a value.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut values = Values::read(text)?;
        if let Some(value) = values.take(Key::UseDevelopmentStorage) {
            if !value.eq_ignore_ascii_case("true") {
                return Err(Key::UseDevelopmentStorage.error("must be `true` or absent"));
            }
            let proxy = values.take(Key::DevelopmentStorageProxyUri);
            if let Some(extra) = values.first() {
                return Err(extra.error("cannot be used together with `UseDevelopmentStorage`"));
            }
            return Self::development(proxy);
        }
        if values.take(Key::DevelopmentStorageProxyUri).is_some() {
            return Err(Key::DevelopmentStorageProxyUri.error("needs `UseDevelopmentStorage=true`"));
        }

        let account = values.take(Key::AccountName);
        if let Some(account) = account {
            check_account_name(account).map_err(|_| {
                Key::AccountName.error("must be 3 to 24 lower-case letters and digits")
            })?;
        }
        let (key, signature) = values.credentials(account)?;
        let mut parsed = Self {
            account: account.map(Into::into),
            key,
            signature,
            primaries: values.by_name(account)?,
            secondaries: [const { None }; 6],
            development: false,
        };
        let mut given = [false; 6];
        for (service, primary, secondary) in GIVEN {
            let index = index_of(service);
            let is_given = values.endpoint(primary, &mut parsed.primaries[index])?;
            given[index] = is_given;
            if values.endpoint(secondary, &mut parsed.secondaries[index])? && !is_given {
                return Err(secondary.error(format!("needs `{}` beside it", primary.name())));
            }
        }
        // An emulator: its other services are not in the cloud, where the name would lead.
        let mut all = parsed.primaries.iter().zip(given);
        if all.any(|(endpoint, given)| given && endpoint.as_ref().is_some_and(is_path_style)) {
            for (endpoint, given) in parsed.primaries.iter_mut().zip(given) {
                if !given {
                    *endpoint = None;
                }
            }
        }
        if parsed.primaries.iter().all(Option::is_none) {
            return Err(ConfigError::new(
                "connection_string",
                "must have `AccountName`, an endpoint, or `UseDevelopmentStorage=true`",
            ));
        }
        Ok(parsed)
    }

    fn development(proxy: Option<&str>) -> Result<Self, ConfigError> {
        let base = proxy.unwrap_or("http://127.0.0.1");
        let key = Key::DevelopmentStorageProxyUri;
        let base = Endpoint::parse(base).map_err(|error| error.of_setting(key.name()))?;
        if base.port().is_some() || base.account_segment().is_some() {
            return Err(key.error(
                "must be scheme and host alone: the emulator's ports and account follow from it",
            ));
        }
        let mut parsed = Self {
            account: Some(DEVELOPMENT_ACCOUNT.into()),
            key: Some(Secret(DEVELOPMENT_KEY.into())),
            signature: None,
            primaries: [const { None }; 6],
            secondaries: [const { None }; 6],
            development: true,
        };
        for (service, port) in DEVELOPMENT_PORTS {
            let url = format!(
                "{}://{}:{port}/{DEVELOPMENT_ACCOUNT}",
                base.scheme(),
                base.host()
            );
            let endpoint = Endpoint::parse(&url).map_err(|error| error.of_setting(key.name()))?;
            parsed.primaries[index_of(service)] = Some(endpoint);
        }
        Ok(parsed)
    }

    /// The account, if the string names it.
    #[must_use]
    pub fn account_name(&self) -> Option<&str> {
        self.account.as_deref()
    }

    /// The key of the account, if the string has it.
    #[must_use]
    pub const fn account_key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// The shared access signature, without a leading `?`, if the string has one.
    #[must_use]
    pub const fn shared_access_signature(&self) -> Option<&Secret> {
        self.signature.as_ref()
    }

    /// The primary endpoint of a service: the one that is given, else the one that follows from
    /// the account's name. None if neither is there; a static web site's never is.
    #[must_use]
    pub const fn primary(&self, service: StorageService) -> Option<&Endpoint> {
        self.primaries[index_of(service)].as_ref()
    }

    /// The secondary endpoint of a service, if it is given.
    #[must_use]
    pub const fn secondary(&self, service: StorageService) -> Option<&Endpoint> {
        self.secondaries[index_of(service)].as_ref()
    }

    /// Whether this is the emulator (`UseDevelopmentStorage=true`).
    #[must_use]
    pub const fn is_development(&self) -> bool {
        self.development
    }
}

const fn index_of(service: StorageService) -> usize {
    match service {
        StorageService::Blob => 0,
        StorageService::Queue => 1,
        StorageService::Table => 2,
        StorageService::Dfs => 3,
        StorageService::Web => 4,
        StorageService::File => 5,
    }
}

macro_rules! keys {
    ($($key:ident),* $(,)?) => {
        /// The keys of connection strings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(clippy::enum_variant_names, reason = "the names are those of the keys")]
        enum Key {
            $($key),*
        }

        impl Key {
            const ALL: &[Self] = &[$(Self::$key),*];

            const fn name(self) -> &'static str {
                match self {
                    $(Self::$key => stringify!($key)),*
                }
            }
        }
    };
}

keys! {
    UseDevelopmentStorage,
    DevelopmentStorageProxyUri,
    DefaultEndpointsProtocol,
    AccountName,
    AccountKey,
    EndpointSuffix,
    SharedAccessSignature,
    BlobEndpoint,
    QueueEndpoint,
    TableEndpoint,
    FileEndpoint,
    BlobSecondaryEndpoint,
    QueueSecondaryEndpoint,
    TableSecondaryEndpoint,
    FileSecondaryEndpoint,
}

impl Key {
    fn error(self, message: impl Into<String>) -> ConfigError {
        ConfigError::new(self.name(), message)
    }
}

/// What stands behind each key, until it is taken.
struct Values<'t>([Option<&'t str>; Key::ALL.len()]);

impl<'t> Values<'t> {
    fn read(text: &'t str) -> Result<Self, ConfigError> {
        let mut values = Self([None; Key::ALL.len()]);
        let parts = text.split(';').map(str::trim).enumerate();
        for (index, part) in parts.filter(|(_, part)| !part.is_empty()) {
            let number = index + 1;
            let error = |message| Err(ConfigError::new("connection_string", message));
            let Some((name, value)) = part.split_once('=') else {
                return error(format!("part {number} has no `=`"));
            };
            let (name, value) = (name.trim(), value.trim());
            let known = Key::ALL
                .iter()
                .find(|key| key.name().eq_ignore_ascii_case(name));
            let Some(key) = known.copied() else {
                // What is no word may be a piece of a secret.
                let is_word = (1..=40).contains(&name.len())
                    && name.bytes().all(|byte| byte.is_ascii_alphabetic());
                return error(if is_word {
                    format!("has the unknown key `{name}`")
                } else {
                    format!("part {number} begins with no known key")
                });
            };
            if value.is_empty() {
                return Err(key.error("is empty"));
            }
            if values.0[key as usize].replace(value).is_some() {
                return Err(key.error("is there twice"));
            }
        }
        Ok(values)
    }

    fn take(&mut self, key: Key) -> Option<&'t str> {
        self.0[key as usize].take()
    }

    /// The first key that has not been taken.
    fn first(&self) -> Option<Key> {
        Key::ALL
            .iter()
            .copied()
            .find(|key| self.0[*key as usize].is_some())
    }

    fn credentials(
        &mut self,
        account: Option<&str>,
    ) -> Result<(Option<Secret>, Option<Secret>), ConfigError> {
        let key = self.take(Key::AccountKey);
        let signature = self.take(Key::SharedAccessSignature);
        if key.is_some() && signature.is_some() {
            return Err(Key::AccountKey.error("cannot be used with `SharedAccessSignature`"));
        }
        if let Some(key) = key {
            if account.is_none() {
                return Err(Key::AccountKey.error("needs `AccountName`"));
            }
            if !is_base64(key) {
                return Err(Key::AccountKey.error("is not base64"));
            }
        }
        let signature = match signature.map(|text| text.strip_prefix('?').unwrap_or(text)) {
            Some("") => return Err(Key::SharedAccessSignature.error("is empty")),
            signature => signature,
        };
        Ok((
            key.map(|text| Secret(text.into())),
            signature.map(|text| Secret(text.into())),
        ))
    }

    /// The endpoints that follow from the account's name.
    fn by_name(&mut self, account: Option<&str>) -> Result<[Option<Endpoint>; 6], ConfigError> {
        let mut endpoints = [const { None }; 6];
        let protocol = self.take(Key::DefaultEndpointsProtocol);
        let suffix = self.take(Key::EndpointSuffix);
        let scheme = match protocol {
            None => "https",
            Some(text) if text.eq_ignore_ascii_case("https") => "https",
            Some(text) if text.eq_ignore_ascii_case("http") => "http",
            Some(_) => return Err(Key::DefaultEndpointsProtocol.error("must be https or http")),
        };
        // Without an account every endpoint is given, and these two are not needed.
        let Some(account) = account else {
            return Ok(endpoints);
        };
        for service in StorageService::ALL {
            // A static web site's host does not follow from the name.
            if service != StorageService::Web {
                let endpoint = service
                    .endpoint_with_scheme(scheme, account, suffix.unwrap_or(DEFAULT_SUFFIX))
                    .map_err(|_| Key::EndpointSuffix.error("must be the end of a host name"))?;
                endpoints[index_of(service)] = Some(endpoint);
            }
        }
        Ok(endpoints)
    }

    /// Puts the endpoint of a key, if it is there, into `slot`, and says whether it is.
    fn endpoint(&mut self, key: Key, slot: &mut Option<Endpoint>) -> Result<bool, ConfigError> {
        let Some(url) = self.take(key) else {
            return Ok(false);
        };
        *slot = Some(Endpoint::parse(url).map_err(|error| error.of_setting(key.name()))?);
        Ok(true)
    }
}

fn is_path_style(endpoint: &Endpoint) -> bool {
    endpoint.account_segment().is_some()
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len() % 4 == 0
        && text.len() - digits.len() <= 2
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

#[cfg(test)]
mod tests;
