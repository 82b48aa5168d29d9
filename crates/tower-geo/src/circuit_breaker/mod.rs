//! Is a region trusted? Counts what becomes of every send and keeps sends from a region that fails.
//!
//! The innermost of the four layers. It reads the region off the request's authority, so it works
//! alone, below foreign layers, and below the other three.
//!
//! ```
//! use tower_geo::{Account, CircuitBreakerLayer};
//! use tower_layer::Layer;
//!
//! let account = Account::azure_storage("contoso").build()?;
//! let client = CircuitBreakerLayer::new(account.blob()).layer(my_client());
//! # fn my_client() {}
//! # Ok::<(), tower_geo::ConfigError>(())
//! ```
//!
//! # When it opens
//!
//! See [`BreakerSettings`](crate::BreakerSettings): 10 failures in a row, or 90 % of at least 20
//! calls in 2 minutes. Reads and writes have a circuit each. Answers that blame the caller (4xx)
//! and throttling open nothing.
//!
//! # Cancellation
//!
//! A dropped call gives back its probe slot. It counts as a failure only when the region had been
//! silent for `suspect_after` (B8). The outcome of a 2xx answer is settled when its body ends, breaks
//! off or is dropped (V4), so the response body is a [`SettleBody`](crate::body::SettleBody).
//!
//! # Errors
//!
//! [`ErrorKind::BreakerOpen`](crate::ErrorKind::BreakerOpen) when the region is not trusted; nothing
//! was sent then. A probe that hangs past `probe_deadline` ends with a time-out.

mod future;
mod layer;
mod pending;
mod service;

pub use future::ResponseFuture;
pub use layer::CircuitBreakerLayer;
pub use service::CircuitBreaker;

pub(crate) use pending::Pending;
