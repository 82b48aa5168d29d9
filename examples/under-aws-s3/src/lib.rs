//! tower-geo's gate, retry and circuit breaker as the transport of the AWS SDK.
//!
//! ```
//! use aws_sdk_s3::config::retry::RetryConfig;
//! use tower::Service;
//! use tower_geo::{BoxError, GeoService};
//! use under_aws_s3::SdkBody;
//!
//! # fn client<C, B>(config: aws_sdk_s3::config::Builder, hyper_client: C) -> Result<aws_sdk_s3::Client, BoxError>
//! # where
//! #     C: Service<http::Request<SdkBody>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
//! #     C::Error: Into<BoxError>,
//! #     C::Future: Send,
//! #     B: http_body::Body<Data = bytes::Bytes> + Send + Sync + 'static,
//! #     B::Error: Into<BoxError>,
//! # {
//! let photos = GeoService::static_copies("photos")
//!     .region("frankfurt", "https://photos.s3.eu-central-1.amazonaws.com")
//!     .build()?;
//! let config = config
//!     .http_client(under_aws_s3::http_client(&photos, hyper_client))
//!     .retry_config(RetryConfig::disabled())
//!     .build();
//! let client = aws_sdk_s3::Client::from_conf(config);
//! # Ok(client)
//! # }
//! ```
//!
//! **No redirect.** AWS's signature covers the host, and the SDK signs before it calls the
//! transport: a request that is sent to another host than it was signed for is refused
//! (`SignatureDoesNotMatch`). So one bucket is one service with one region, and the layers are those
//! that leave a request where it goes: [`ReadOnlyGateLayer`], [`RetryLayer`],
//! [`CircuitBreakerLayer`]. A second bucket in another region is a service and a client of its own,
//! and which of the two is read is up to you: ask
//! [`GeoService::gate`](tower_geo::GeoService::gate), or catch *breaker open*.
//!
//! **The host** of the service is the one that requests have, with the bucket's name in it unless
//! the client is told `force_path_style(true)`. Requests to other hosts (a token service) pass
//! untouched.
//!
//! **Its own retries.** `RetryConfig::standard()` is the default: three tries for answers with a
//! 5xx, throttling and broken connections. The switch is `RetryConfig::disabled()`. What the stack
//! has ended is one call, whatever the switch says; left on, an answer with a 503 is multiplied.
//!
//! **Bodies** that are in memory are kept without a copy and can be sent again, streams are sent
//! once. A download that breaks off is an error of the body.
//!
//! **Time-outs.** The SDK's connect and read time-outs are for its own transports. Here the
//! client's connect time-out and `attempt_timeout` of [`RetrySettings`](tower_geo::RetrySettings)
//! hold.

mod body;
mod connector;
pub mod server;

pub use aws_sdk_s3::primitives::SdkBody;
pub use body::SdkBodies;
pub use connector::{http_client, over};

#[cfg(doc)]
use tower_geo::{CircuitBreakerLayer, ReadOnlyGateLayer, RetryLayer};
