//! A tower service as the SDK calls it.

use std::fmt;

use aws_sdk_s3::primitives::SdkBody;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_geo::{BoxError, CircuitBreakerLayer, GeoService, ReadOnlyGateLayer, RetryLayer};
use tower_geo_clients::is_final;

use crate::body::SdkBodies;

/// Puts the gate, the retry and the breaker of a service over `transport`, for the SDK's
/// `Config::http_client`.
pub fn http_client<C, B>(service: &GeoService, transport: C) -> SharedHttpClient
where
    C: Service<Request<SdkBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    C::Error: Into<BoxError>,
    C::Future: Send,
    B: Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<BoxError>,
{
    let stack = ServiceBuilder::new()
        .layer(ReadOnlyGateLayer::new(service.clone()))
        .layer(RetryLayer::new(service.clone()).body_policy(SdkBodies))
        .layer(CircuitBreakerLayer::new(service.clone()))
        .service(transport);
    over(stack)
}

/// A stack of your own as the SDK's transport.
pub fn over<S, B>(stack: S) -> SharedHttpClient
where
    S: Service<Request<SdkBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<BoxError>,
{
    let connector = SharedHttpConnector::new(Connector { stack });
    http_client_fn(move |_, _| connector.clone())
}

struct Connector<S> {
    stack: S,
}

impl<S> fmt::Debug for Connector<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl<S, B> HttpConnector for Connector<S>
where
    S: Service<Request<SdkBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<BoxError>,
{
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let stack = self.stack.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x();
            let request = request.map_err(|error| ConnectorError::user(error.into()))?;
            let response = stack.oneshot(request).await;
            let response = response.map_err(|error| to_sdk(error.into()))?;
            HttpResponse::try_from(response.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// Our error stays in the chain of sources. What the stack has ended is of a kind that the SDK does
/// not repeat.
fn to_sdk(error: BoxError) -> ConnectorError {
    if is_final(&*error) {
        ConnectorError::other(error, None)
    } else {
        ConnectorError::io(error)
    }
}
