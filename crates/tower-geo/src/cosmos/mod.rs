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
//! The stack, then the signer, then the client. The layers direct each send after the caller made
//! the request, and a signature holds for one host and one minute.
//!
//! # Signing
//!
//! The signature covers method, path and date. It has to be made for each send, below
//! the stack. The reader's requests come without any header: its client signs them as it signs all
//! others.
//!
//! # A new connection
//!
//! A send that follows one which found no connection asks for one of its own: see
//! [`NewConnection`].
//!
//! # What it does not do
//!
//! This is the gateway protocol over HTTPS. Direct mode, Gateway V2 and the map of partitions are
//! out of scope, and with them breakers and failover per partition (C14). Nothing here creates
//! regions or fails an account over; it follows what the account does.
//!
//! # Maintenance, monitors, groups
//!
//! [Maintenance](crate::Operator::begin_maintenance) keeps reads from the region that takes
//! writes. A [monitor](crate::GeoService::spawn_monitor) is for services whose regions stay.

mod builder;
mod new_connection;
mod reader;
mod shared;
mod start;
mod view;

pub use self::builder::CosmosBuilder;
pub use self::new_connection::NewConnection;
pub(crate) use self::new_connection::prepare;
pub(crate) use self::shared::{Circuits, Shared};
pub(crate) use self::start::start;
pub use self::view::{CosmosAccount, CosmosRegion};

pub use tower_geo_policy::cosmos::AccountSettings;
