use super::{SharedKey, service::Signer, string_to_sign::Scheme};
use crate::signing::SigningError;
use http::HeaderValue;
use std::{fmt, sync::Arc, time::SystemTime};
use tower_layer::Layer;

/// Which storage service the requests go to; it decides what is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SharedKeyService {
    /// Blob storage.
    Blob,
    /// Queue storage; signed as blob storage is.
    Queue,
    /// Data Lake Storage (the `dfs` endpoint); signed as blob storage is.
    Dfs,
    /// File storage; signed as blob storage is.
    File,
    /// Table storage, which signs less: no lengths, no `x-ms-` headers, of the query only `comp`.
    Table,
}

impl SharedKeyService {
    pub(super) const fn scheme(self) -> Scheme {
        match self {
            Self::Blob | Self::Queue | Self::Dfs | Self::File => Scheme::Full,
            Self::Table => Scheme::Table,
        }
    }
}

/// Signs requests to one Azure Storage account with its key.
///
/// See the [module documentation](super) for the order in a stack and an example.
///
/// | setting | default | set by |
/// |---|---|---|
/// | `x-ms-date` | the system's clock | [`wall_clock`](Self::wall_clock); always replaces a caller's |
/// | hosts | the account's | [`host`](Self::host) adds one |
/// | `x-ms-version` | `2021-12-02` | [`service_version`](Self::service_version); a caller's header wins |
#[derive(Clone)]
pub struct SharedKeyLayer {
    signer: Signer,
}

impl SharedKeyLayer {
    /// A layer that signs for `account`, always named as the primary is (without `-secondary`), with
    /// one of its two keys in Base64, as the portal shows it.
    ///
    /// The key itself is not kept, only what the signature is computed from, and it is never shown.
    ///
    /// # Errors
    ///
    /// When the account name is empty, names the secondary or holds anything but lower-case letters
    /// and digits, and when the key is empty or not Base64.
    pub fn new(
        account: impl Into<String>,
        key_base64: &str,
        service: SharedKeyService,
    ) -> Result<Self, SigningError> {
        Signer::new(account.into(), key_base64, service).map(|signer| Self { signer })
    }

    /// Reads dates from `clock` instead of the system's clock.
    ///
    /// ```
    /// # use tower_geo::shared_key::{SharedKeyLayer, SharedKeyService};
    /// use std::time::{Duration, SystemTime};
    ///
    /// # fn main() -> Result<(), tower_geo::signing::SigningError> {
    /// let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    /// let layer = SharedKeyLayer::new("contoso", "c2VjcmV0", SharedKeyService::Table)?
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

    /// Signs requests to `host` as well, which does not tell by its name that it is the account's: a
    /// custom domain, or a private endpoint. The port may be any.
    ///
    /// ```
    /// # use tower_geo::shared_key::{SharedKeyLayer, SharedKeyService};
    /// # fn main() -> Result<(), tower_geo::signing::SigningError> {
    /// let layer = SharedKeyLayer::new("contoso", "c2VjcmV0", SharedKeyService::Blob)?
    ///     .host("files.contoso.test")?;
    /// # drop(layer);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When it is no host name, or has a scheme, a port or a path.
    pub fn host(mut self, host: impl AsRef<str>) -> Result<Self, SigningError> {
        let hosts = self.signer.hosts.with(host.as_ref());
        self.signer.hosts = hosts.ok_or_else(SigningError::host)?;
        Ok(self)
    }

    /// Sends `version` as `x-ms-version` with requests that have none. It must be 2015-02-21 or
    /// later: before that date an empty body was signed differently.
    #[must_use]
    pub fn service_version(mut self, version: HeaderValue) -> Self {
        self.signer.version = version;
        self
    }
}

impl<S> Layer<S> for SharedKeyLayer {
    type Service = SharedKey<S>;

    fn layer(&self, inner: S) -> Self::Service {
        SharedKey::new(inner, self.signer.clone())
    }
}

impl fmt::Debug for SharedKeyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKeyLayer")
            .field("signer", &self.signer)
            .finish()
    }
}
