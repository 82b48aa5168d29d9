use super::{CosmosKey, hosts::AccountHosts, service::Signer};
use crate::signing::{AccountKey, SigningError};
use http::HeaderValue;
use std::{fmt, sync::Arc, time::SystemTime};
use tower_layer::Layer;

/// Signs requests to one Azure Cosmos DB account with its key.
///
/// See the [module documentation](super) for the order in a stack and an example.
///
/// | setting | default | set by |
/// |---|---|---|
/// | hosts | the endpoint's, and those of the account's regions | [`allow_host`](Self::allow_host) adds one |
/// | `x-ms-date` | the system's clock | [`wall_clock`](Self::wall_clock); always replaces a caller's |
/// | `x-ms-version` | `2018-12-31` | [`service_version`](Self::service_version); a caller's header wins |
#[derive(Clone)]
pub struct CosmosKeyLayer {
    signer: Signer,
}

impl CosmosKeyLayer {
    /// A layer that signs for the account at `endpoint`, its global endpoint as the portal shows it
    /// (`https://contoso.documents.azure.com:443/`), with one of its keys in Base64.
    ///
    /// With a read-only key, only what the service lets such a key do is answered. The key itself
    /// is not kept, only what the signature is computed from, and it is never shown.
    ///
    /// # Errors
    ///
    /// When the endpoint is no URL with a host alone, and when the key is empty or not Base64.
    pub fn new(endpoint: impl AsRef<str>, key_base64: &str) -> Result<Self, SigningError> {
        Ok(Self {
            signer: Signer {
                hosts: AccountHosts::of(endpoint.as_ref())?,
                key: AccountKey::from_base64(key_base64)?,
                clock: Arc::new(crate::runtime::system_time),
                version: HeaderValue::from_static("2018-12-31"),
            },
        })
    }

    /// Signs requests to `host` as well, which does not tell by its name that it is the account's: a
    /// private endpoint, a region of an account whose global endpoint was not given, or an
    /// emulator's region. The port may be any.
    ///
    /// ```
    /// # use tower_geo::cosmos_key::CosmosKeyLayer;
    /// # fn main() -> Result<(), tower_geo::signing::SigningError> {
    /// let layer = CosmosKeyLayer::new("https://contoso.documents.azure.com", "c2VjcmV0")?
    ///     .allow_host("cosmos.contoso.test")?;
    /// # drop(layer);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When it is no host name, or has a scheme, a port or a path.
    pub fn allow_host(mut self, host: impl AsRef<str>) -> Result<Self, SigningError> {
        self.signer.hosts = self.signer.hosts.with(host.as_ref())?;
        Ok(self)
    }

    /// Reads dates from `clock` instead of the system's clock.
    ///
    /// ```
    /// # use tower_geo::cosmos_key::CosmosKeyLayer;
    /// use std::time::{Duration, SystemTime};
    ///
    /// # fn main() -> Result<(), tower_geo::signing::SigningError> {
    /// let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    /// let layer = CosmosKeyLayer::new("https://contoso.documents.azure.com", "c2VjcmV0")?
    ///     .wall_clock(move || noon);
    /// # drop(layer);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn wall_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.signer.clock = Arc::new(clock);
        self
    }

    /// Sends `version` as `x-ms-version` with requests that have none.
    #[must_use]
    pub fn service_version(mut self, version: HeaderValue) -> Self {
        self.signer.version = version;
        self
    }
}

impl<S> Layer<S> for CosmosKeyLayer {
    type Service = CosmosKey<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CosmosKey::new(inner, self.signer.clone())
    }
}

impl fmt::Debug for CosmosKeyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CosmosKeyLayer")
            .field("signer", &self.signer)
            .finish()
    }
}
