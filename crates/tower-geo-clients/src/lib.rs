//! tower-geo under the clients that people use: `object_store`, the official Azure SDK, reqwest.
//!
//! Nobody writes requests to a storage account by hand. Here are the adapters that put tower
//! layers, those of [`tower_geo`] and any others, between such a client and its transport. Each is
//! behind a feature of its own, and none is on by default.
//!
//! | feature | client | layers over the client's own transport | any tower service as transport |
//! |---|---|---|---|
//! | `object-store` | `object_store` | `object_store::LayeredConnector` | `object_store::ServiceConnector` |
//! | `azure-core` | `azure_storage_blob`, `azure_storage_queue` and all others on `azure_core` | `azure_core::transport` | `azure_core::ServiceClient` |
//! | `reqwest` | reqwest | `reqwest::GeoClient` | `reqwest::ReqwestService` is one |
//!
//! What else there is, for clients without an adapter here:
//!
//! | client | how |
//! |---|---|
//! | hyper's (that of hyper-util) | it is a tower service: [`hyper`] says how to build it |
//! | OpenDAL | the example `under-opendal`: a transport of OpenDAL over any tower service (needs Rust 1.91) |
//! | the AWS SDK | the example `under-aws-s3`: gate, retry and circuit breaker, no redirect (needs Rust 1.94) |
//! | any other, in any language | the example `geo-proxy`: a reverse proxy with the stack in it; point the client's endpoint at it |
//! | one of your own | tell it by [`is_final`] what it must not repeat |
//!
//! # Order
//!
//! All three clients sign a request before it gets here, so the stack is *below the signer*: a
//! request that is sent again, or to the secondary, keeps its signature. Azure's credentials allow
//! that, because none of them covers the host: Shared Key signs the account and the path, a shared
//! access signature is in the query, a bearer token is a header. AWS signs the host; there a
//! redirect is not possible, see [`tower_geo::geo_redirect`].
//!
//! | client | credentials that work |
//! |---|---|
//! | `object_store` | Shared Key, SAS, bearer tokens of all its kinds |
//! | the Azure SDK | SAS, any `TokenCredential`; it has no Shared Key |
//! | reqwest, hyper | whatever the request has: Shared Key, SAS, bearer tokens; or a signer above or below the stack, such as that of the feature `shared-key` of `tower-geo` |
//! | OpenDAL | Shared Key, SAS, bearer tokens |
//! | the AWS SDK | SigV4, which covers the host: no redirect |
//! | through the proxy | Shared Key, SAS; bearer tokens as far as the client sends them over plain HTTP, which the Azure SDKs refuse: end TLS before the proxy |
//!
//! ```text
//! your code ─► client (builds, signs) ─► [adapter] ─► tower-geo's layers ─► [adapter] ─► transport
//! ```
//!
//! # The client's own retries
//!
//! A client that repeats what the stack has given up multiplies sends. Two things keep that in
//! bounds, and a switch of the client ends it:
//!
//! * An operation that the stack has ended is an error of a kind that the client does not repeat.
//!   So a refused write is *one* call, whatever the client is set to.
//! * An *answer* is handed over as it is, and most clients repeat a 503.
//!
//! | client | the switch | left on |
//! |---|---|---|
//! | `object_store` | `RetryConfig { max_retries, .. }`: 1 to 3, since 0 ends the resuming of bodies, too | an answer with a 5xx is 11 calls |
//! | the Azure SDK | `RetryOptions::none()` | an answer with a 5xx is up to 9 calls |
//! | reqwest | `.retry(reqwest::retry::never())` | only what the server refused to process is sent again, below the stack |
//! | hyper | `retry_canceled_requests(false)` | only what a kept connection turns out not to have taken is sent again, below the stack |
//! | OpenDAL | no `RetryLayer` | an answer with a 5xx is one call more for each retry |
//! | the AWS SDK | `RetryConfig::disabled()` | an answer with a 5xx is 3 calls |
//! | through the proxy | the client's own | a refusal is an answer there, and repeated: no region hears of it |
//!
//! # Errors
//!
//! The client's error has [`tower_geo::Error`] in its chain of sources: [`geo_error`] finds it.
//!
//! ```
//! # fn handle(error: &(dyn std::error::Error + 'static)) {
//! if let Some(ours) = tower_geo_clients::geo_error(error) {
//!     if ours.is_read_only() { /* keep the change, tell the user */ }
//! }
//! # }
//! ```
//!
//! # Bodies
//!
//! They are moved, never copied: the bytes that the client gives are those that the transport
//! sends, and the other way round. Sizes and streaming are kept; trailers, too, where the client
//! has any (the Azure SDK drops them).
//!
//! # What it costs
//!
//! Measured on two shared cores of a virtual machine with the examples `overhead` and `transfer` of
//! this crate; run them on yours. Microseconds per request, 4 KiB each way, over a transport in
//! memory (the last: over loopback):
//!
//! | client | without us | adapter | adapter and all four layers |
//! |---|---|---|---|
//! | `object_store` | 2.0 | 2.0 | 3.6 |
//! | `azure_core` | 0.7 | 5.2 | 7.5 |
//! | reqwest | 2.1 | 2.2 | 3.6 |
//! | reqwest, loopback | 31 | 33 | 39 |
//!
//! The peak of resident memory over 1 GiB up and 1 GiB down:
//!
//! | client | without us | with all four layers |
//! |---|---|---|
//! | `object_store` (parts of 5 MiB, four at once) | 28 MiB | 28 MiB |
//! | `azure_storage_blob` (its own parts; differs from run to run) | 120 to 133 MiB | 119 to 145 MiB |
//! | reqwest (one stream each way) | 8 MiB | 9 MiB |
//! | hyper (one stream each way) | 7 MiB | 8 MiB |
//! | the proxy, of which 4 MiB before the first request (its example `figures`) | | 8 MiB |

mod chain;
#[cfg(any(feature = "object-store", feature = "azure-core", feature = "reqwest"))]
mod oneshot;

#[cfg(feature = "azure-core")]
pub mod azure_core;
pub mod hyper;
#[cfg(feature = "object-store")]
pub mod object_store;
#[cfg(feature = "reqwest")]
pub mod reqwest;

pub use chain::{geo_error, is_final};
