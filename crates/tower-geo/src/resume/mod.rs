//! What if a download breaks off in the middle? The rest is fetched, of the same version (R9).
//!
//! A stack repeats a request until there is the head of an answer; what the body does after that is
//! handed over as it is, also that it breaks off or gives nothing for `body_idle`. With this layer
//! above the stack, the rest is fetched with `Range` and, on the version that was begun, `If-Match`.
//! The caller sees one body. It has all bytes of one version, or ends with an error; two versions
//! are never joined.
//!
//! # When to use
//!
//! For large objects. A small one is as quickly read again, and each read that can be resumed costs
//! a copy of its head.
//!
//! # What is resumed
//!
//! The answer to a `GET` that is a read of this service, if all of this holds:
//!
//! | of | what | why |
//! |---|---|---|
//! | the request | its body can be sent again | see [`BodyPolicy`](crate::body::BodyPolicy); an empty one always can |
//! | | not signed over its headers: no `Authorization` but `Bearer` and `Basic` | the signature would be wrong; put the signer below |
//! | the answer | 200, or 206 with one `Content-Range` | |
//! | | a strong `ETag` | says which version it is |
//! | | its length is known | else it may have been unpacked below, and the bytes counted are others |
//! | | no `Content-Encoding`, no `x-ms-structured-body` | what was packed on the fly may be packed otherwise next time |
//!
//! All else passes untouched. The rest is joined if it comes as 206 with the same `ETag`, the wanted
//! range, and no encoding.
//!
//! # What it costs
//!
//! A resume waits and pays as a return to the region does whose body broke off: the wait of the
//! service's [`RetrySettings`](crate::RetrySettings), counted from the break, and 14 tokens of its
//! budget, which come back when the rest has arrived. After `max_retries` resumes in a row that gave
//! not a byte it ends. The request itself goes through the whole stack: it may fall over to another
//! region, whose answer counts if it is of the same version.
//!
//! # Order
//!
//! ```text
//! your code ─► Resume ─► signer ─► ReadOnlyGate ─► Retry ─► GeoRedirect ─► CircuitBreaker ─► client
//! ```
//!
//! Above everything of ours and above a signer; below what unpacks bodies.
//!
//! ```
//! use tower::ServiceBuilder;
//! use tower_geo::{Account, LocationMode, ResumeLayer};
//!
//! let account = Account::azure_storage("contoso")
//!     .location_mode(LocationMode::PrimaryThenSecondary)
//!     .build()?;
//! let films = ServiceBuilder::new()
//!     .layer(ResumeLayer::new(account.blob()))
//!     .layer(account.blob().layer())
//!     .service(my_client());
//! # fn my_client() {}
//! # Ok::<(), tower_geo::ConfigError>(())
//! ```
//!
//! # Errors
//!
//! Until the head those of the service below; its kind is lost if a foreign layer in between wraps
//! it. Then those of the body: [`VersionChanged`](crate::ErrorKind::VersionChanged) when the rest of
//! the version that was begun is no longer there: begin again. Else
//! [`Transport`](crate::ErrorKind::Transport), with what ended the attempts as its source.
//!
//! # What is told
//!
//! The trail is in the head, which has been handed over by then. So a resume is told by a `tracing`
//! event, to the listeners of the service as [`EventKind::Resend`](crate::EventKind::Resend), by
//! [`ResumeBody::resumes`], and to all that is below by the extension [`Resuming`] on its request.
//!
//! # Cancellation
//!
//! Nothing runs after the body is dropped. A resume that has no answer by then has spent its tokens.

mod body;
mod future;
mod layer;
mod rest;
mod service;

pub use body::ResumeBody;
pub use future::ResponseFuture;
pub use layer::ResumeLayer;
pub use rest::Resuming;
pub use service::Resume;
