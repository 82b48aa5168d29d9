//! Tower middleware that keeps an application working through the loss of a cloud region.

#[cfg(feature = "shared-key")]
pub mod shared_key;
