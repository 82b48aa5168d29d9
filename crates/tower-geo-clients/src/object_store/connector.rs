use std::error::Error as StdError;
use std::fmt;

use ::object_store::ClientOptions;
use ::object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use async_trait::async_trait;
use bytes::Bytes;
use http::Response;
use http_body::Body;
use http_body_util::BodyExt;
use tower_layer::Layer;
use tower_service::Service;

use super::error::to_http_error;
use super::service::HttpClientService;
use crate::oneshot::oneshot;

/// A connector that puts layers over the client of another connector. See the [module](super).
///
/// The inner connector gets the store's `ClientOptions` as ever. `L` layers an
/// [`HttpClientService`]; every client that is connected gets its own, and all share what the
/// layer shares: the state of a service, for those of [`tower_geo`].
///
/// # Errors
///
/// Connecting fails as the inner connector does.
#[derive(Clone)]
pub struct LayeredConnector<C, L> {
    inner: C,
    layer: L,
}

impl<C, L> LayeredConnector<C, L> {
    /// Puts `layer` over the clients of `inner`.
    #[must_use]
    pub const fn new(inner: C, layer: L) -> Self {
        Self { inner, layer }
    }
}

impl<C: fmt::Debug, L> fmt::Debug for LayeredConnector<C, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredConnector")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<C, L, B> HttpConnector for LayeredConnector<C, L>
where
    C: HttpConnector,
    L: Layer<HttpClientService> + Send + Sync + 'static,
    L::Service: Service<HttpRequest, Response = Response<B>> + Clone + Send + Sync + 'static,
    <L::Service as Service<HttpRequest>>::Error: Into<Box<dyn StdError + Send + Sync>>,
    <L::Service as Service<HttpRequest>>::Future: Send,
    B: Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    fn connect(&self, options: &ClientOptions) -> ::object_store::Result<HttpClient> {
        let client = HttpClientService::new(self.inner.connect(options)?);
        Ok(HttpClient::new(Transport(self.layer.layer(client))))
    }
}

/// A connector whose clients are clones of a tower service. See the [module](super).
///
/// The service takes `http::Request<HttpRequestBody>` of `object_store`, with an absolute URI. The
/// store's `ClientOptions` are not used, `allow_http` neither.
///
/// ```
/// use object_store::azure::MicrosoftAzureBuilder;
/// use object_store::client::HttpRequest;
/// use tower::{Layer, Service};
/// use tower_geo::Account;
/// use tower_geo_clients::object_store::ServiceConnector;
/// # use object_store::client::HttpResponseBody;
///
/// # fn build<C>(hyper_client: C) -> Result<(), Box<dyn std::error::Error>>
/// # where
/// #     C: Service<HttpRequest, Response = http::Response<HttpResponseBody>> + Clone + Send + Sync + 'static,
/// #     C::Error: Into<tower_geo::BoxError>,
/// #     C::Future: Send,
/// # {
/// let account = Account::azure_storage("contoso").build()?;
/// let stack = account.blob().layer().clone_bodies().layer(hyper_client);
/// let store = MicrosoftAzureBuilder::from_env()
///     .with_http_connector(ServiceConnector::new(stack))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ServiceConnector<S> {
    service: S,
}

impl<S> ServiceConnector<S> {
    /// Uses clones of `service` as clients.
    #[must_use]
    pub const fn new(service: S) -> Self {
        Self { service }
    }
}

impl<S> fmt::Debug for ServiceConnector<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceConnector").finish_non_exhaustive()
    }
}

impl<S, B> HttpConnector for ServiceConnector<S>
where
    S: Service<HttpRequest, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn StdError + Send + Sync>>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    fn connect(&self, _: &ClientOptions) -> ::object_store::Result<HttpClient> {
        Ok(HttpClient::new(Transport(self.service.clone())))
    }
}

/// A tower service as `object_store` calls it.
struct Transport<S>(S);

impl<S> fmt::Debug for Transport<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

#[async_trait]
impl<S, B> HttpService for Transport<S>
where
    S: Service<HttpRequest, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn StdError + Send + Sync>>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = oneshot(self.0.clone(), request)
            .await
            .map_err(|error| to_http_error(error.into()))?;
        Ok(response
            .map(|body| HttpResponseBody::new(body.map_err(|error| to_http_error(error.into())))))
    }
}
