//! Azure Cosmos DB: one account, many regions that come, go and change roles.
//!
//! ```
//! # use tower::ServiceBuilder;
//! # use tower_geo::{Account, ConfigError, GeoService};
//! # async fn run<C, S>(http_client: C, sign: S) -> Result<(), Box<dyn std::error::Error>>
//! # where
//! #     S: tower_layer::Layer<C, Service = C> + Clone,
//! #     C: tower_service::Service<http::Request<String>, Response = http::Response<String>>
//! #         + Clone + Send + Sync + 'static,
//! #     C::Future: Send,
//! #     C::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
//! # {
//! let docs: GeoService = Account::cosmos("https://contoso.documents.azure.com")
//!     .preferred(["West US", "East US"])
//!     .build()?;
//! // The signer is next to the client: every send is signed, wherever it is directed.
//! let signed = ServiceBuilder::new().layer(sign).service(http_client);
//! let reader = docs.spawn_account_reader(signed.clone())?;
//! let client = ServiceBuilder::new()
//!     .layer(docs.layer().clone_bodies())
//!     .service(signed);
//! // … requests name the account's own host; `client` sends each to the region that is its own.
//! # drop((reader, client));
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! | question | answer |
//! |---|---|
//! | where do requests go? | the account says which regions it has, the user which are preferred; the given host itself gets no data once they are known (C1, C2, C4) |
//! | who asks the account? | a [task](crate::GeoService::spawn_account_reader) with a client that signs, every 5 minutes and when something has changed (C3, F7) |
//! | what if a region refuses? | the account is read again, and the request goes to the new choice; later ones go there at once (C5) |
//! | what if a region does not answer? | reads move on, writes only when they surely were not applied, or may be; ten failures in a row open a circuit, which marks the region (C7, C8) |
//! | what if the writer has gone? | the write waits for the account read and follows the new writer (C8) |
//!
//! Every request is [told](crate::Served) where its answer comes from, since it is directed. The
//! trail, budget, deadline, breaker, gate and hedge are those of every other service; what is
//! repeated when follows from the rules of Cosmos DB instead of the retry settings (C15).
//!
//! # Order
//!
//! ```text
//! your code ─► ReadOnlyGate ─► Retry ─► GeoRedirect ─► CircuitBreaker ─► signer ─► client
//! ```
//!
//! `docs.layer()` is the four in order. RetryLayer alone has nobody to direct its sends, so on an
//! account with discovery on it ends with *config* instead of sending data to the account's own host.
//!
//! # Signing
//!
//! The signer belongs next to the client (`cosmos_key`, with the feature `cosmos-key`, is one): every
//! send is signed anew, and so are the reader's, which come without any header. A signature does not
//! cover the host, so one that was made above the stack is good for its 15 minutes, but then the
//! reader needs a client that signs by itself.
//!
//! # A new connection
//!
//! A send that found no connection is repeated over a new one, before the region is left (C8). Pools
//! make one anyway; with a [`FreshConnectionsLayer`](crate::FreshConnectionsLayer) a client with a
//! resolver of its own does, too. A client of your own may look at [`Probe`](crate::Probe).
//!
//! # What it does not do
//!
//! This is the gateway protocol over HTTPS. Direct mode, Gateway V2 and the map of partitions are
//! out of scope, and with them breakers and failover per partition (C14). Nothing here creates
//! regions or fails an account over; it follows what the account does.
//!
//! # Maintenance, monitors, resuming
//!
//! [Maintenance](crate::Operator::begin_maintenance) keeps reads from the region that takes
//! writes. A [monitor](crate::GeoService::spawn_monitor) is for services whose regions stay, and a
//! [`ResumeLayer`](crate::ResumeLayer) passes answers of an account on as they are.

mod builder;
mod reader;
mod shared;
mod start;
mod view;

pub use self::builder::CosmosBuilder;
pub(crate) use self::shared::{Circuits, Shared};
pub(crate) use self::start::start;
pub use self::view::{CosmosAccount, CosmosRegion};

pub use tower_geo_policy::cosmos::AccountSettings;
