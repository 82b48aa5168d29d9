//! Where does a send go? Directs reads to a copy when the primary fails, writes never.
//!
//! Below [`retry`](crate::retry) it carries out the region that it is told. Alone it drives the
//! operation itself: each region at most once, without waits.
//!
//! ```
//! use tower_geo::{Account, CircuitBreakerLayer, GeoRedirectLayer, LocationMode};
//! use tower_layer::Layer;
//!
//! let account = Account::azure_storage("contoso")
//!     .location_mode(LocationMode::PrimaryThenSecondary)
//!     .build()?;
//! let blob = account.blob();
//! let client = CircuitBreakerLayer::new(blob.clone()).layer(my_client());
//! let client = GeoRedirectLayer::new(blob).layer(client);
//! # fn my_client() {}
//! # Ok::<(), tower_geo::ConfigError>(())
//! ```
//!
//! # Order
//!
//! Below anything that signs the host, above anything that signs it anew. Azure's credentials
//! (Shared Key, SAS, bearer tokens) do not cover the host, so they survive a redirect.
//!
//! # What it changes
//!
//! The authority and the `Host` header; for endpoints with the account in the path the first
//! segment, too. Nothing else (R8). The next call starts at the mode's first region again.
//!
//! # Errors and cancellation
//!
//! As for [`retry`](crate::retry).

mod follow;
mod layer;
mod service;

pub use crate::driver::ResponseFuture;
pub use follow::{FollowFuture, FollowRedirect, FollowRedirectLayer};
pub use layer::GeoRedirectLayer;
pub use service::GeoRedirect;
