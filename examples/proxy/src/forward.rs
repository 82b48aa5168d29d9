//! From a request of a client to one of the service, and back.

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{
    CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{Method, StatusCode, Version};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;
use tower_geo::body::ReplayBody;
use tower_geo::{BoxError, GeoService, Served};
use tower_layer::Layer;
use tower_service::Service;

use crate::upload::Upload;
use crate::{problem, state};

/// The body that the proxy's client sends.
pub type Body = ReplayBody<Upload>;

/// The proxy of one service: forwards everything but `/-/geo` through `client`.
///
/// Up to `keep` bytes of each request body are kept while it is sent, so that a small write (a
/// message, an entity) can be sent again; a larger one streams through and is sent once.
pub fn router<C, B>(service: &GeoService, keep: usize, client: C) -> Router
where
    C: Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + Sync + 'static,
    C::Error: Into<BoxError>,
    C::Future: Send,
    B: http_body::Body<Data = axum::body::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let stack = service.layer().buffer_bodies(keep).layer(client);
    let stack = stack.map_response(|response| response.map(axum::body::Body::new));
    let proxy = Proxy {
        service: service.clone(),
        stack: BoxCloneSyncService::new(stack),
    };
    Router::new()
        .route("/-/geo", get(show_state))
        .fallback(forward)
        .with_state(proxy)
}

#[derive(Clone)]
struct Proxy {
    service: GeoService,
    stack: BoxCloneSyncService<http::Request<Upload>, Response, tower_geo::Error>,
}

async fn show_state(State(proxy): State<Proxy>) -> Response {
    state::response(&proxy.service)
}

async fn forward(State(proxy): State<Proxy>, mut request: Request) -> Response {
    if request.method() == Method::CONNECT {
        // It asks this proxy for a tunnel, and a storage account has none to offer.
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let Some(uri) = at_primary(&proxy.service, request.uri()) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    // The client of the proxy writes it anew, from the URI.
    headers.remove(HOST);
    // Answered here: the server says "continue" when the body is asked for, which is when there is
    // a connection to send it on. A refused upload is never begun.
    let waits = headers.remove(EXPECT).is_some();
    remove_hop_by_hop(headers);

    let request = request.map(|body| Upload::new(body, waits));
    match proxy.stack.oneshot(request).await {
        Ok(mut response) => {
            remove_hop_by_hop(response.headers_mut());
            tell_served(&mut response);
            response
        }
        Err(error) => problem::response(&error),
    }
}

/// The same path and query, byte for byte: they are signed.
fn at_primary(service: &GeoService, uri: &Uri) -> Option<Uri> {
    let regions = service.regions();
    let primary = regions.get(regions.writer())?.endpoint();
    let mut parts = http::uri::Parts::default();
    parts.scheme = Scheme::try_from(primary.scheme()).ok();
    parts.authority = Authority::try_from(primary.authority()).ok();
    parts.path_and_query = Some(match uri.path_and_query() {
        Some(target) => target.clone(),
        None => PathAndQuery::from_static("/"),
    });
    Uri::from_parts(parts).ok()
}

/// What is about one connection stays on it (RFC 9110, 7.6.1). Lengths are written anew from the
/// body.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [
        CONNECTION,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRANSFER_ENCODING,
        UPGRADE,
    ] {
        headers.remove(name);
    }
}

fn tell_served(response: &mut Response) {
    let Some(served) = Served::of(response.extensions()) else {
        return;
    };
    let region = HeaderValue::try_from(served.region_name());
    let sends = served.trail().sends().len();
    let headers = response.headers_mut();
    if let Ok(region) = region {
        headers.insert("x-geo-region", region);
    }
    headers.insert("x-geo-sends", sends.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_connection_stay_on_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Private"),
            ("connection", "x-other"),
            ("x-private", "1"),
            ("x-other", "2"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "timeout=5"),
            ("content-length", "7"),
            ("x-ms-date", "today"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        remove_hop_by_hop(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "x-ms-date"]);
    }

    #[test]
    fn target_is_kept_byte_for_byte() {
        let service = GeoService::azure_storage("https://contoso.blob.core.windows.net");
        let service = service.build().unwrap();
        for target in [
            "/photos/my%20cat%2bdog//x?sig=a%2Fb&comp=",
            "/",
            "/a;b=c?x=1?y",
        ] {
            let uri = at_primary(&service, &target.parse().unwrap()).unwrap();
            assert_eq!(
                uri.to_string(),
                format!("https://contoso.blob.core.windows.net{target}")
            );
        }
    }
}
