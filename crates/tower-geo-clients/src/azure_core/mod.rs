//! Layers below the official Azure SDK: blobs, queues and every other client on `azure_core`.
//!
//! # The five lines
//!
//! ```
//! use azure_core::http::{ClientOptions, HttpClientOptions, RetryOptions, new_http_client};
//! use tower_geo::{Account, LocationMode};
//! use tower_geo_clients::azure_core::transport;
//!
//! # fn options() -> Result<ClientOptions, tower_geo::ConfigError> {
//! let account = Account::azure_storage("contoso")
//!     .location_mode(LocationMode::PrimaryThenSecondary)
//!     .build()?;
//! let http = new_http_client(Some(HttpClientOptions { automatic_decompression: false }));
//! let options = ClientOptions {
//!     transport: Some(transport(&account.blob(), http)),
//!     retry: RetryOptions::none(),
//!     ..ClientOptions::default()
//! };
//! # Ok(options)
//! # }
//! // BlobClientOptions { client_options: options, ..BlobClientOptions::default() }
//! ```
//!
//! [`transport`] puts all four layers over a transport of the SDK, whose time-outs and pool stay in
//! force. [`ServiceClient::layered`] does so with layers of your choice, and [`ServiceClient::new`]
//! makes any tower service the transport (without the feature `reqwest` of `azure_core`, too).
//! [`SdkService`] is the way back: a transport of the SDK as a tower service.
//!
//! The storage clients need a transport that does not decompress, or partitioned downloads break;
//! without options of yours they build such a one themselves.
//!
//! One transport belongs to one service: blobs, queues and tables each get theirs.
//!
//! # Order
//!
//! In the SDK's pipeline: your per-call policies, *retry*, credentials, your per-try policies,
//! logging, transport. So the stack is below the signer and below the SDK's retry, and sees each
//! of its tries as an operation of its own.
//!
//! # Credentials
//!
//! A SAS in the URL and a `TokenCredential`; the SDK has no Shared Key. Neither covers the host. A
//! token is refused by the SDK itself over plain http.
//!
//! # Bodies
//!
//! [`SdkBodies`] keeps bodies that are bytes, without a copy. Large uploads are cut into parts of
//! bytes by the SDK. A body that is a stream is sent once: if it would have to be sent again, and
//! nothing can have been applied or that does no harm, the error is of the kind `Io`, upon which the
//! SDK, if its retry is on, rewinds the stream and tries again.
//!
//! The stack does not see the upload: `attempt_timeout` counts from the send (T10).
//!
//! A large download is fetched in parts, which the SDK ties together by the ETag of the first. A
//! part that the secondary has in another version ends the download with 412; that is right, and
//! nothing of ours changes it.
//!
//! # Its own retries
//!
//! The switch is [`RetryOptions::none`](::azure_core::http::RetryOptions::none); without it the SDK
//! repeats for up to a minute, 8 times at most.
//!
//! | what the stack ends with | `ErrorKind` | repeated by the SDK |
//! |---|---|---|
//! | refused: read-only, circuit open, configuration | `Other` | no |
//! | given up: transport, deadline, unknown outcome | `Other` | no |
//! | a stream that would have to be sent again | `Io` | if its retry is on |
//! | an answer: 408, 429, 500, 502, 503, 504 | no error | if its retry is on |
//! | passed on for other hosts, or no layer that drives | `Connection`, `Io` | as without us |
//!
//! Left on, a read that both regions answer with 503 is sent up to `9 × (1 + max_retries of the
//! stack)` times in that minute. The stack notices, since the SDK keeps `x-ms-client-request-id`: it warns once, and such
//! repeats pay the full price of the budget (T8).
//!
//! # Cosmos
//!
//! `azure_data_cosmos` takes no transport; it has failover of its own. Speak to Cosmos through the
//! stack with hyper or reqwest.

mod body;
mod client;
mod convert;
mod error;
mod service;

pub use body::{SdkBodies, SdkBody};
pub use client::{ServiceClient, transport};
pub use service::{SdkResponseBody, SdkService};
