//! Layers below reqwest's builders and responses, over reqwest's own transport.
//!
//! # The five lines
//!
//! ```
//! use tower_geo::{Account, LocationMode};
//! use tower_geo_clients::reqwest::GeoClient;
//!
//! # async fn run(signed_url: &str) -> Result<(), Box<dyn std::error::Error>> {
//! # let http = reqwest::Client::builder().build()?;
//! let account = Account::azure_storage("contoso")
//!     .location_mode(LocationMode::PrimaryThenSecondary)
//!     .build()?;
//! let geo = GeoClient::new(http.clone(), &account.blob());
//! let response: reqwest::Response = geo.execute(http.get(signed_url).build()?).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A library that wants a `reqwest::Client` cannot be given another transport: reqwest's
//! `connector_layer` sees connections, not requests. Point it at a reverse proxy with the stack in
//! it instead; `examples/proxy` is one.
//!
//! Below other layers, or with layers of your own in between, [`ReqwestService`] is reqwest's client as
//! a tower service over `http::Request`, and [`ReqwestBodies`] keeps reqwest's bodies for the case that
//! they have to be sent again:
//!
//! ```
//! use tower::{ServiceBuilder, limit::ConcurrencyLimitLayer};
//! use tower_geo_clients::reqwest::{GeoClient, ReqwestBodies, ReqwestService};
//! # fn run(http: reqwest::Client, account: tower_geo::Account) {
//! let stack = ServiceBuilder::new()
//!     .layer(account.blob().layer().body_policy(ReqwestBodies::default()))
//!     .layer(ConcurrencyLimitLayer::new(64))
//!     .service(ReqwestService::new(http));
//! let geo = GeoClient::over(stack);
//! # }
//! ```
//!
//! # How to build the client
//!
//! ```
//! # fn build() -> reqwest::Result<reqwest::Client> {
//! use std::time::Duration;
//!
//! reqwest::Client::builder()
//!     .redirect(reqwest::redirect::Policy::none()) // answers of the service, as they are
//!     .retry(reqwest::retry::never())              // below: one send is one send
//!     .connect_timeout(Duration::from_secs(5))     // none by default
//!     .pool_idle_timeout(Duration::from_secs(30))  // connections must not outlive a failover
//! #   .build()
//! # }
//! ```
//!
//! # Order
//!
//! What you add to the request (a SAS in the query, a bearer token, a `SharedKey` header that you
//! have computed) is there before the stack, so the stack is below the signer. `.timeout()` of one
//! request is kept and holds for each send.
//!
//! # Credentials
//!
//! Whatever you put in: Shared Key, SAS and bearer tokens do not cover the host.
//!
//! # Bodies
//!
//! Bytes, strings and forms are kept for another send without a copy. Streams (`Body::wrap_stream`,
//! `Body::wrap`, files, multipart) can be sent once; a write that would have to be repeated then
//! ends with [`ErrorKind::NotReplayable`](tower_geo::ErrorKind::NotReplayable).
//!
//! The stack does not see the upload: `attempt_timeout` counts from the send (T10).
//!
//! # Its own retries
//!
//! reqwest repeats only what the server has refused to process (HTTP/2 `REFUSED_STREAM`, a graceful
//! GOAWAY), below the stack: that is safe, and invisible to the budget. The switch is
//! `.retry(reqwest::retry::never())`. hyper's pool, inside, opens a new connection when a kept
//! one turns out to be closed before the request was taken. With a `retry` policy of your own that repeats
//! 5xx answers, each send of the stack becomes several, all to the same region.
//!
//! # Errors
//!
//! [`ExecuteError`] has [`tower_geo::Error`] in its chain, and below that reqwest's own.

mod body;
mod client;
mod service;

pub use body::{RequestBody, ReqwestBodies};
pub use client::{ExecuteError, GeoClient, GeoReqwest};
pub use service::{ReqwestService, SendFuture};
