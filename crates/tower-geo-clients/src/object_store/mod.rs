//! Layers below `object_store`: its stores for Azure, and for any other service that has copies.
//!
//! # The five lines
//!
//! ```
//! use object_store::{RetryConfig, azure::MicrosoftAzureBuilder, client::ReqwestConnector};
//! use tower_geo::{Account, LocationMode};
//! use tower_geo_clients::object_store::LayeredConnector;
//!
//! # fn open() -> Result<(), Box<dyn std::error::Error>> {
//! let account = Account::azure_storage("contoso")
//!     .location_mode(LocationMode::PrimaryThenSecondary)
//!     .build()?;
//! let layers = account.blob().layer().clone_bodies();
//! let geo = LayeredConnector::new(ReqwestConnector::default(), layers);
//! let store = MicrosoftAzureBuilder::from_env()
//!     .with_http_connector(geo)
//!     .with_retry(RetryConfig { max_retries: 2, ..RetryConfig::default() })
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! [`LayeredConnector`] puts layers over any connector of `object_store`, so your `ClientOptions`
//! (time-outs, proxy, root certificates, user agent) stay in force. [`ServiceConnector`] replaces
//! the transport by any tower service, hyper's client for instance; the `ClientOptions` mean
//! nothing then, and no reqwest is needed (the feature `azure-base` of `object_store`).
//!
//! # Order
//!
//! `object_store` signs, then calls the connector's client: the stack is below the signer. The
//! same client also fetches tokens (managed identity, Entra). Those go to other hosts, which the
//! stack leaves alone.
//!
//! # Credentials
//!
//! All that the store supports for Azure: Shared Key, SAS, bearer tokens (a client secret, managed
//! and workload identities, the Azure CLI). None of them covers the host.
//!
//! # Bodies
//!
//! Request bodies are bytes that are cheap to clone, so say `clone_bodies()`: every write that may
//! be repeated can be. A large object is uploaded in parts by `object_store`, each a request of its
//! own.
//!
//! The body's type is the client's, so the stack does not see the upload: `attempt_timeout` counts
//! from the send (T10). Allow for the largest part over the slowest line, or say `buffer_bodies(0)`
//! in place of `clone_bodies()` with a [`ServiceConnector`]: then it counts from the last byte, but
//! a write whose body was begun is left to `object_store` to send again.
//!
//! # Its own retries
//!
//! The switch is [`RetryConfig::max_retries`](::object_store::RetryConfig), 10 by default.
//!
//! | what the stack ends with | kind of the [`HttpError`](::object_store::client::HttpError) | repeated by `object_store` |
//! |---|---|---|
//! | refused: read-only, circuit open, configuration | `Unknown` | no |
//! | given up: transport, deadline, unknown outcome | `Unknown` | no |
//! | an answer: 5xx, 429, 408 | no error | `max_retries` times |
//! | a body that breaks off or stalls | `Interrupted`, `Timeout` | resumed where it broke off, `max_retries` times in all |
//! | a write that could be repeated, but whose body was not kept | `Interrupted` | `max_retries` times, if it counts as idempotent |
//! | passed on for other hosts, or no layer that drives | `Connect`, `Timeout`, `Interrupted` | as without us |
//!
//! Left at 10, a read that both regions answer with 503 is sent up to `11 × (1 + max_retries of the
//! stack)` times. Set to 0, the resuming of bodies goes, too. So take a small number: 1 to 3.
//!
//! # Other stores
//!
//! Google's and plain HTTP stores work with
//! [`GeoService::static_copies`](tower_geo::GeoService::static_copies) if your copies accept the
//! same credentials. S3's signature covers the host: use the retry, gate and breaker layers by
//! hand, without the redirect.

mod connector;
mod error;
mod service;

pub use connector::{LayeredConnector, ServiceConnector};
pub use service::HttpClientService;
