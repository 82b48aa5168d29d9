//! Stacks that are put together at run time: any of our layers, and foreign ones between.

use http::{HeaderValue, Request, Response};
use tower::buffer::Buffer;
use tower::limit::ConcurrencyLimit;
use tower::timeout::Timeout;
use tower::util::{BoxCloneSyncService, MapErr, MapRequest};
use tower::{Layer, Service, ServiceExt};
use tower_geo::{
    BoxError, CircuitBreakerLayer, GeoRedirectLayer, GeoService, ReadOnlyGateLayer, RetryLayer,
};
use tower_geo_testkit::strict::ScriptBody;

use crate::support::{Body, secs};

/// A stack of any kind.
pub(crate) type Boxed = BoxCloneSyncService<Request<Body>, Response<ScriptBody>, BoxError>;

/// One layer of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Gate,
    Retry,
    Redirect,
    /// A redirect that only follows a retry above.
    Follow,
    Breaker,
    MapRequest,
    Buffer,
    Limit,
    Timeout,
}

pub(crate) const FOREIGN: [Part; 4] = [Part::MapRequest, Part::Buffer, Part::Limit, Part::Timeout];

impl Part {
    /// Puts this layer over a client.
    pub(crate) fn over(self, service: &GeoService, inner: Boxed) -> Boxed {
        let service = service.clone();
        match self {
            Self::Gate => boxed(ReadOnlyGateLayer::new(service).layer(inner)),
            Self::Retry => boxed(RetryLayer::new(service).clone_bodies().layer(inner)),
            Self::Redirect => boxed(GeoRedirectLayer::new(service).clone_bodies().layer(inner)),
            Self::Follow => boxed(GeoRedirectLayer::new(service).below_retry().layer(inner)),
            // What becomes of the body is not what is asked here.
            Self::Breaker => boxed(
                CircuitBreakerLayer::new(service)
                    .layer(inner)
                    .map_response(|response| response.map(|_| ScriptBody::new(""))),
            ),
            Self::MapRequest => boxed(MapRequest::new(inner, |mut request: Request<Body>| {
                let agent = HeaderValue::from_static("tests");
                request.headers_mut().insert("user-agent", agent);
                request
            })),
            Self::Buffer => boxed(Buffer::new(inner, 8)),
            Self::Limit => boxed(ConcurrencyLimit::new(inner, 2)),
            Self::Timeout => boxed(Timeout::new(inner, secs(5))),
        }
    }
}

/// The parts over a client, the outermost first.
pub(crate) fn stack<C>(service: &GeoService, parts: &[Part], client: C) -> Boxed
where
    C: Service<Request<Body>, Response = Response<ScriptBody>> + Clone + Send + Sync + 'static,
    C::Error: Into<BoxError>,
    C::Future: Send + 'static,
{
    parts
        .iter()
        .rfold(boxed(client), |inner, part| part.over(service, inner))
}

fn boxed<C>(client: C) -> Boxed
where
    C: Service<Request<Body>, Response = Response<ScriptBody>> + Clone + Send + Sync + 'static,
    C::Error: Into<BoxError>,
    C::Future: Send + 'static,
{
    BoxCloneSyncService::new(MapErr::new(client, Into::into))
}
