//! tower-geo as the transport of OpenDAL.
//!
//! ```
//! use opendal::services::Azblob;
//! use opendal::{HttpTransporter, Operator};
//! use tower::{Layer, Service};
//! use tower_geo::{Account, BoxError, LocationMode};
//! use under_opendal::{BufferBody, GeoTransport};
//!
//! # fn open<C, B>(azblob: Azblob, hyper_client: C) -> Result<Operator, BoxError>
//! # where
//! #     C: Service<http::Request<BufferBody>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
//! #     C::Error: Into<BoxError>,
//! #     C::Future: Send,
//! #     B: http_body::Body<Data = bytes::Bytes> + Send + Sync + 'static,
//! #     B::Error: Into<BoxError>,
//! # {
//! let account = Account::azure_storage("contoso")
//!     .location_mode(LocationMode::PrimaryThenSecondary)
//!     .build()?;
//! let stack = account.blob().layer().clone_bodies().layer(hyper_client);
//! let operator = Operator::new(azblob)?;
//! let context = operator.base_context();
//! let context = context.with_http_transport(HttpTransporter::new(GeoTransport::new(stack)));
//! let operator = operator.with_context(context);
//! # Ok(operator)
//! # }
//! ```
//!
//! **Order.** OpenDAL signs and then calls the transport, so the stack is below the signer. Shared
//! Key, SAS and bearer tokens do not cover the host. Tokens that OpenDAL fetches go to other hosts,
//! through the same transport; the stack leaves those alone.
//!
//! **Its own retries.** There are none, unless you add OpenDAL's `RetryLayer`. It repeats what is
//! called *temporary*: here, what no layer of ours has decided, and every answer with a 5xx. So what
//! the stack has ended is one call, also under a `RetryLayer`; but a read that both regions answer
//! with 503 is multiplied by it. Leave it out: the stack repeats. A download that breaks off is not
//! resumed then, unless a [`ResumeLayer`](tower_geo::resume::ResumeLayer) stands above the stack.
//!
//! **Bodies** are moved. Those of requests are cheap to clone: say `clone_bodies()`.
//!
//! **Redirects.** OpenDAL expects a transport to follow HTTP redirects. Azure's storage answers
//! with none, so none is followed here.

mod body;
mod transport;

pub use body::BufferBody;
pub use transport::GeoTransport;
