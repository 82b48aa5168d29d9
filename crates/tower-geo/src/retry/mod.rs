//! When is a send repeated? Waits, falls over, hands over the best answer there is.
//!
//! Above [`geo_redirect`](crate::geo_redirect) it drives the whole operation: falling over to
//! another region is immediate, only a return to a region waits. Alone it stays in the region that
//! the request names.
//!
//! ```
//! use std::time::Duration;
//! use tower_geo::{Account, RetryLayer, RetrySettings};
//! use tower_layer::Layer;
//!
//! let account = Account::azure_storage("contoso")
//!     .retry(RetrySettings::new().max_retries(3).attempt_timeout(Duration::from_secs(4)))
//!     .build()?;
//! let client = RetryLayer::new(account.queue()).clone_bodies().layer(my_client());
//! # fn my_client() {}
//! # Ok::<(), tower_geo::ConfigError>(())
//! ```
//!
//! # When to turn another retry off
//!
//! Nested retries multiply: six sends of six sends are 36. Turn the client's own retries off, or
//! leave this layer out (T8).
//!
//! # Errors
//!
//! See [`ErrorKind`](crate::ErrorKind). An answer of the service is handed over, with one exception:
//! where the request had to be sent again and its body is gone, the error says so and the answer is
//! in its trail (T6).
//!
//! # Cancellation
//!
//! Nothing runs after a drop. What was held (answers, tokens not yet spent, probe slots) is given back.
//!
//! # Defaults
//!
//! See [`RetrySettings`](crate::RetrySettings).

mod layer;
mod service;

pub use crate::driver::ResponseFuture;
pub use layer::RetryLayer;
pub use service::Retry;
