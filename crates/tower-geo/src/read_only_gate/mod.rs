//! Are writes allowed? Refuses them at once while they cannot succeed.
//!
//! The outermost of the four layers. A refused write costs nothing: the service below is not even
//! asked whether it is ready, the body is not touched, nothing is sent (G2). Reads and neutral
//! requests pass.
//!
//! ```
//! use tower_geo::{Account, ReadOnlyGateLayer};
//! use tower_layer::Layer;
//!
//! let account = Account::azure_storage("contoso").build()?;
//! let client = ReadOnlyGateLayer::new(account.table()).layer(my_client());
//! account.table().operator().read_only(); // by hand
//! # fn my_client() {}
//! # Ok::<(), tower_geo::ConfigError>(())
//! ```
//!
//! # On a server
//!
//! The same layer in front of your own routes answers 503 with `Retry-After` and a problem body
//! (RFC 9457) instead of failing: [`ReadOnlyGateLayer::on_server`].
//!
//! # Errors
//!
//! [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly): since when, why, and when to come back.
//!
//! # Cancellation
//!
//! A dropped trial write gives its slot back.

mod body;
mod future;
mod layer;
mod refusal;
mod service;

pub use body::GateBody;
pub use future::{ResponseFuture, ServerFuture};
pub use layer::ReadOnlyGateLayer;
pub use service::{AnswerUnavailable, FailFast, ReadOnlyGate};
