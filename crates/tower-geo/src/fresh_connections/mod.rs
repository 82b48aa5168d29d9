//! Does a probe meet the region, or a connection of yesterday? New connections, where old ones
//! mislead (R12).
//!
//! When the provider fails an account over, the name of its primary moves to another region. The
//! connections that a client keeps in its pool do not move: they lead to where the name pointed when
//! they were made, for as long as that end keeps them open. So a probe over a pooled connection asks
//! the wrong machine whether the region is back, and a circuit that it closes lets everybody else go
//! there, too.
//!
//! This layer stands next to the client and is given a way to make a client like it, with no
//! connections yet:
//!
//! - **Probes** of an open circuit, and pings of a monitor while a circuit of the primary is open, go
//!   through a client that is made for them. It resolves the name anew.
//! - So does the second try of an operation that found no connection to a region of a Cosmos DB
//!   account (C8).
//! - A client whose probe was answered (by less than 500, other than 408 and 429) **replaces** the
//!   one in use before others are let in, so that no connection outlives the failover. What is under
//!   way ends where it is.
//! - With [`max_age`](FreshConnectionsLayer::max_age) the client is replaced at that age as well,
//!   trouble or not.
//!
//! # When to use
//!
//! Below every stack whose client keeps connections. Not where the client has none, or where it is
//! costly to make.
//!
//! # Order
//!
//! ```text
//! your code ─► ReadOnlyGate ─► Retry ─► GeoRedirect ─► CircuitBreaker ─► FreshConnections ─► client
//! ```
//!
//! Layers between this one and the client belong into what is made, too. Metrics of sends and signers
//! may stand above.
//!
//! ```
//! # fn client() -> impl Clone {}
//! use tower::ServiceBuilder;
//! use tower_geo::{Account, FreshConnectionsLayer};
//!
//! let account = Account::azure_storage("contoso").build()?;
//! let blob = ServiceBuilder::new()
//!     .layer(account.blob().layer().clone_bodies())
//!     .layer(FreshConnectionsLayer::new(client))
//!     .service(client());
//! # Ok::<(), tower_geo::ConfigError>(())
//! ```
//!
//! For hyper-util's client there is a factory, with the feature `hyper-util`: `HyperClients`.
//!
//! # How old may a connection be?
//!
//! | what | caps | how |
//! |---|---|---|
//! | `pool_idle_timeout` of hyper-util or reqwest | how long a connection is kept that nobody uses | needs a timer (`pool_timer`); one that is always busy lives on |
//! | this layer, at a probe | the age of every connection, after an outage | one new client for each probe that succeeds |
//! | [`max_age`](FreshConnectionsLayer::max_age) | the age of every connection, always | the client is replaced; a request under way keeps its connection until it ends |
//! | the service | the age of a connection | `Connection: close` or GOAWAY when the service says so; not yours to set |
//!
//! Neither hyper-util's client nor reqwest's can cap the age of a connection that is in use.
//! A custom resolver must not keep addresses for longer than DNS says.
//!
//! # What it costs
//!
//! A request that is no probe costs a branch, and the load of a number that is written only when the
//! client is replaced; with `max_age`, a look at the clock. Nothing is allocated. A probe costs a
//! connection and what making a client allocates.
//!
//! # Errors
//!
//! Those of the client, unchanged.
//!
//! # Cancellation
//!
//! A probe that is dropped drops its client and the connection with it.

mod future;
#[cfg(feature = "hyper-util")]
mod hyper_clients;
mod layer;
mod newest;
mod probe;
mod service;

pub use future::ResponseFuture;
#[cfg(feature = "hyper-util")]
pub use hyper_clients::HyperClients;
pub use layer::{FreshConnectionsLayer, MakeClient};
pub use probe::Probe;
pub use service::FreshConnections;
