//! A tower service as OpenDAL calls it.

use std::fmt;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap};
use http::{Method, Request, Response, Uri};
use http_body::Body;
use opendal::{Buffer, Error, ErrorKind, HttpBody, HttpTransport};
use tower::{Service, ServiceExt};
use tower_geo::BoxError;
use tower_geo_clients::is_final;

use crate::body::{BufferBody, DataStream};

/// A tower service as a transport of OpenDAL. See the crate's page.
#[derive(Clone)]
pub struct GeoTransport<S> {
    service: S,
}

impl<S> GeoTransport<S> {
    /// Sends with clones of `service`.
    #[must_use]
    pub const fn new(service: S) -> Self {
        Self { service }
    }
}

// OpenDAL wants it, and the service is never pinned in here.
impl<S> Unpin for GeoTransport<S> {}

impl<S> fmt::Debug for GeoTransport<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeoTransport").finish_non_exhaustive()
    }
}

impl<S, B> HttpTransport for GeoTransport<S>
where
    S: Service<Request<BufferBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<BoxError>,
{
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let (is_head, uri) = (request.method() == Method::HEAD, public(request.uri()));
        let service = self.service.clone();
        let response = service.oneshot(request.map(BufferBody::from)).await;
        let (mut head, body) = response
            .map_err(|error| to_opendal(error.into()))?
            .into_parts();
        // OpenDAL shows it in its errors.
        head.extensions.insert(uri);
        let size = if is_head { None } else { length(&head.headers) };
        let body = HttpBody::new(DataStream::new(body), size);
        Ok(Response::from_parts(head, body))
    }
}

/// Without the query, which may be signed.
fn public(uri: &Uri) -> Uri {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = uri.path().parse().ok();
    Uri::from_parts(parts).unwrap_or_default()
}

/// How many bytes there have to be, of which OpenDAL makes sure.
fn length(headers: &HeaderMap) -> Option<u64> {
    if headers.contains_key(CONTENT_ENCODING) {
        return None;
    }
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Our error stays in the chain of sources. What the stack has ended is not to be repeated.
pub(crate) fn to_opendal(error: BoxError) -> Error {
    let temporary = !is_final(&*error);
    let told =
        Error::new(ErrorKind::Unexpected, "the request was not answered").set_source(Cause(error));
    if temporary {
        told.set_temporary()
    } else {
        told
    }
}

/// OpenDAL keeps an `anyhow::Error`, into which a boxed error does not go as it is.
#[derive(Debug)]
struct Cause(BoxError);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_not_shown() {
        let uri = public(
            &"https://contoso.test/photos/cat?sig=secret"
                .parse()
                .unwrap(),
        );
        assert_eq!(uri, "https://contoso.test/photos/cat");
    }

    #[test]
    fn what_nobody_has_decided_may_be_repeated() {
        let error = to_opendal(std::io::Error::other("reset").into());
        assert!(error.is_temporary());
    }
}
