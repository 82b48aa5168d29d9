use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::azure_core::http::{AsyncRawResponse, HttpClient, Request as TheirRequest, Transport};
use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;
use http::{Request, Response};
use http_body::Body;
use tower_geo::GeoService;
use tower_layer::Layer;
use tower_service::Service;

use super::body::{SdkBodies, SdkBody};
use super::convert::{headers_from_http, status_from_http, to_http};
use super::error::to_sdk_error;
use super::service::SdkService;
use crate::oneshot::oneshot;

/// Puts all four layers of a service over a transport of the SDK: for the field `transport` of
/// `ClientOptions`. See the [module](super).
#[must_use]
pub fn transport(service: &GeoService, inner: Arc<dyn HttpClient>) -> Transport {
    let layer = service.layer().body_policy(SdkBodies::default());
    Transport::new(Arc::new(ServiceClient::layered(inner, &layer)))
}

/// A tower service as a transport of the SDK. See the [module](super).
///
/// The service takes `http::Request<SdkBody>` with an absolute URI. It must not follow redirects or
/// decompress unless you want that.
///
/// ```
/// use std::sync::Arc;
/// use azure_core::http::{ClientOptions, RetryOptions, Transport};
/// use http::{Request, Response};
/// use tower::{Layer, Service};
/// use tower_geo_clients::azure_core::{SdkBodies, SdkBody, ServiceClient};
///
/// fn options<C, B>(account: &tower_geo::Account, hyper_client: C) -> ClientOptions
/// where
///     C: Service<Request<SdkBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
///     C::Error: Into<tower_geo::BoxError>,
///     C::Future: Send,
///     B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
///     B::Error: Into<tower_geo::BoxError>,
/// {
///     let layer = account.blob().layer().body_policy(SdkBodies::default());
///     let client = ServiceClient::new(layer.layer(hyper_client));
///     ClientOptions {
///         transport: Some(Transport::new(Arc::new(client))),
///         retry: RetryOptions::none(),
///         ..ClientOptions::default()
///     }
/// }
/// ```
#[derive(Clone)]
pub struct ServiceClient<S> {
    service: S,
}

impl<S> ServiceClient<S> {
    /// Sends with clones of `service`.
    #[must_use]
    pub const fn new(service: S) -> Self {
        Self { service }
    }

    /// Puts `layer` over a transport of the SDK.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use azure_core::http::{HttpClient, Transport};
    /// use tower_geo::{CircuitBreakerLayer, GeoService};
    /// use tower_geo_clients::azure_core::ServiceClient;
    ///
    /// fn breaker_only(blob: GeoService, inner: Arc<dyn HttpClient>) -> Transport {
    ///     Transport::new(Arc::new(ServiceClient::layered(inner, &CircuitBreakerLayer::new(blob))))
    /// }
    /// ```
    #[must_use]
    pub fn layered<L: Layer<SdkService, Service = S>>(
        inner: Arc<dyn HttpClient>,
        layer: &L,
    ) -> Self {
        Self::new(layer.layer(SdkService::new(inner)))
    }
}

impl<S> fmt::Debug for ServiceClient<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceClient").finish_non_exhaustive()
    }
}

#[async_trait]
impl<S, B> HttpClient for ServiceClient<S>
where
    S: Service<Request<SdkBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn StdError + Send + Sync>>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    async fn execute_request(
        &self,
        request: &TheirRequest,
    ) -> ::azure_core::Result<AsyncRawResponse> {
        let response = oneshot(self.service.clone(), to_http(request)?)
            .await
            .map_err(|error| to_sdk_error(error.into()))?;
        let (head, body) = response.into_parts();
        Ok(AsyncRawResponse::new(
            status_from_http(head.status),
            headers_from_http(&head.headers),
            Box::pin(DataStream {
                body: Some(Box::pin(body)),
            }),
        ))
    }
}

/// The data of a body, as the SDK reads it. It has no use for trailers.
struct DataStream<B> {
    /// `None` once it has ended.
    body: Option<Pin<Box<B>>>,
}

impl<B> Stream for DataStream<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Item = ::azure_core::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while let Some(body) = &mut self.body {
            match ready!(body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
                Some(Err(error)) => {
                    self.body = None;
                    return Poll::Ready(Some(Err(to_sdk_error(error.into()))));
                }
                None => self.body = None,
            }
        }
        Poll::Ready(None)
    }
}
