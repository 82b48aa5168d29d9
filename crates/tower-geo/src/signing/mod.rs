//! What the layers that sign have in common: `shared_key` for Azure Storage, `cosmos_key` for
//! Azure Cosmos DB (features `shared-key` and `cosmos-key`).
//!
//! A layer that cannot be built says [`SigningError`]; a service that signs ends with
//! [`SigningServiceError`], whose source is a [`SigningError`] or the inner service's error. The
//! geo layers know a [`SigningError`] wherever it lies in the chain of a client's error: the
//! operation ends with *config*, and no region is held responsible.

mod date;
mod error;
mod future;
mod hosts;
mod key;

pub(crate) use self::{
    date::{X_MS_DATE, X_MS_VERSION, http_date},
    hosts::{GivenHosts, host_of},
    key::AccountKey,
};
pub use self::{
    error::{SigningError, SigningServiceError},
    future::ResponseFuture,
};
