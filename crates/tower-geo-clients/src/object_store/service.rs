use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::object_store::client::{HttpClient, HttpRequest, HttpResponse};
use tower_service::Service;

use super::error::from_http_error;

/// A client of `object_store` as a tower service: what a [`LayeredConnector`](super::LayeredConnector)
/// puts its layers over.
///
/// Always ready. Its errors are [`HttpError`](::object_store::client::HttpError)s; that of a
/// time-out is in an `io::Error` that says so.
#[derive(Clone, Debug)]
pub struct HttpClientService {
    client: HttpClient,
}

impl HttpClientService {
    /// Calls `client`.
    #[must_use]
    pub const fn new(client: HttpClient) -> Self {
        Self { client }
    }
}

impl Service<HttpRequest> for HttpClientService {
    type Response = HttpResponse;
    type Error = Box<dyn StdError + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest) -> Self::Future {
        let client = self.client.clone();
        Box::pin(async move { client.execute(request).await.map_err(from_http_error) })
    }
}
