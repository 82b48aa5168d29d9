//! The stack over hyper's client (that of `hyper-util`), which needs no adapter: it is a tower
//! service. This page has what is to be known all the same.
//!
//! # The five lines
//!
//! ```
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::Layer;
//! use tower_geo::{Account, LocationMode};
//!
//! # fn run() -> Result<(), tower_geo::ConfigError> {
//! let account = Account::azure_storage("contoso")
//!     .location_mode(LocationMode::PrimaryThenSecondary)
//!     .build()?;
//! let client = Client::builder(TokioExecutor::new()).build_http::<Full<bytes::Bytes>>();
//! let blob = account.blob().layer().clone_bodies().layer(client); // a tower service, too
//! # drop(blob);
//! # Ok(())
//! # }
//! ```
//!
//! Turn on the feature `hyper-util` of `tower-geo`: then a name that does not exist and a failed
//! handshake are known as *surely not sent*.
//!
//! # How to build the client
//!
//! ```
//! use std::time::Duration;
//! # use http_body_util::Full;
//! # use hyper_util::client::legacy::{Client, connect::HttpConnector};
//! # use hyper_util::rt::{TokioExecutor, TokioTimer};
//!
//! # fn build() -> Client<HttpConnector, Full<bytes::Bytes>> {
//! let mut http = HttpConnector::new();
//! http.set_connect_timeout(Some(Duration::from_secs(5))); // none by default
//! http.enforce_http(false); // below a connector that does TLS
//! Client::builder(TokioExecutor::new())
//!     .retry_canceled_requests(false)              // one send is one send
//!     .pool_timer(TokioTimer::new())
//!     .pool_idle_timeout(Duration::from_secs(30))  // connections must not outlive a failover
//!     .build(http)
//! # }
//! ```
//!
//! # Order
//!
//! A signer may stand above the stack (one signature for an operation, good at every region) or
//! below it (one for each send): `tower_geo::shared_key::SharedKeyLayer`, with the feature
//! `shared-key` of `tower-geo`, or a layer of yours.
//!
//! # Credentials
//!
//! Whatever the request has. Shared Key, SAS and bearer tokens do not cover the host, so a redirected
//! request stays valid.
//!
//! # Bodies
//!
//! Say `clone_bodies()` where they are cheap to clone (`Full<Bytes>`), `buffer_bodies(cap)` where they
//! stream and up to `cap` bytes are to be kept for another send, and nothing where only requests
//! without a body are to be sent again. With `buffer_bodies`, also with a cap of 0, `attempt_timeout`
//! counts from the moment that the last byte was taken (T10).
//!
//! # In a server of axum
//!
//! Handlers call the stack as they would call the client: it is cheap to clone and can be part of the
//! router's state. Before the handlers, a
//! [`ReadOnlyGateLayer`](tower_geo::ReadOnlyGateLayer) of the same service that is told
//! [`on_server`](tower_geo::ReadOnlyGateLayer::on_server) answers a write with 503 while the service
//! is read-only.
//!
//! # Its own retries
//!
//! hyper sends a request again that a kept connection turns out not to have taken, on a new
//! connection, unseen by the stack. That is safe. The switch is `retry_canceled_requests(false)`; the
//! stack then sees a connection that broke and decides: a read, and a write that does no harm twice,
//! is sent again, anything else ends with *unknown outcome*.
