use std::error::Error as StdError;
use std::fmt;

use ::reqwest::{Body, Client, Request, Response};
use bytes::Bytes;
use tower_geo::{GeoService, GeoStack};
use tower_layer::Layer;
use tower_service::Service;

use super::body::ReqwestBodies;
use super::service::ReqwestService;
use crate::oneshot::oneshot;

/// All four layers over reqwest's client.
pub type GeoReqwest = GeoStack<ReqwestService, ReqwestBodies>;

/// Executes reqwest's requests through a stack, and gives reqwest's responses. See the
/// [module](super).
///
/// Clones are cheap and share the state of the service.
#[derive(Clone)]
pub struct GeoClient<S = GeoReqwest> {
    stack: S,
}

impl GeoClient {
    /// Puts all four layers of `service` over `client`.
    #[must_use]
    pub fn new(client: Client, service: &GeoService) -> Self {
        let layer = service.layer().body_policy(ReqwestBodies::default());
        Self::over(layer.layer(ReqwestService::new(client)))
    }
}

impl<S> GeoClient<S> {
    /// Executes with a stack of your own. The innermost service may be [`ReqwestService`] or any
    /// other.
    #[must_use]
    pub const fn over(stack: S) -> Self {
        Self { stack }
    }

    /// The stack.
    pub const fn get_ref(&self) -> &S {
        &self.stack
    }

    /// Executes a request.
    ///
    /// [`Served`](tower_geo::Served) is in [`extensions`](Response::extensions) of the response
    /// when it was redirected or sent more than once. reqwest's requests show no extensions, so a
    /// request with [`RequestOptions`](tower_geo::RequestOptions) goes through [`call`](Self::call).
    ///
    /// # Errors
    ///
    /// Those of the stack: [`geo_error`](crate::geo_error) finds a [`tower_geo::Error`] in it. An
    /// answer of the service, 503 or other, is none. A URL that is not an `http` URI cannot be sent
    /// and is reported by [`ExecuteError::Url`].
    ///
    /// # Cancellation
    ///
    /// Dropped, nothing runs on.
    pub async fn execute<B>(&self, request: Request) -> Result<Response, ExecuteError>
    where
        S: Service<http::Request<Body>, Response = http::Response<B>> + Clone,
        S::Error: Into<Box<dyn StdError + Send + Sync>>,
        B: http_body::Body<Data = Bytes> + Send + Sync + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let request = http::Request::try_from(request).map_err(ExecuteError::Url)?;
        let response = self
            .call(request)
            .await
            .map_err(|error| ExecuteError::Stack(error.into()))?;
        Ok(response.map(Body::wrap).into())
    }

    /// Executes a request, as types of the crate `http`, whose extensions can be set and seen.
    /// `response.map(reqwest::Body::wrap).into()` makes a response of reqwest of the answer.
    ///
    /// # Errors
    ///
    /// Those of the stack.
    pub async fn call<B>(&self, request: http::Request<Body>) -> Result<http::Response<B>, S::Error>
    where
        S: Service<http::Request<Body>, Response = http::Response<B>> + Clone,
    {
        oneshot(self.stack.clone(), request).await
    }
}

impl<S> fmt::Debug for GeoClient<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeoClient").finish_non_exhaustive()
    }
}

/// Why [`GeoClient::execute`] has no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExecuteError {
    /// The stack has none: a [`tower_geo::Error`], unless the stack is your own.
    Stack(Box<dyn StdError + Send + Sync>),
    /// The URL of the request is not one that can be sent; nothing was.
    Url(::reqwest::Error),
}

impl fmt::Display for ExecuteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stack(_) => "the request has no response",
            Self::Url(_) => "the url of the request cannot be sent",
        })
    }
}

impl StdError for ExecuteError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Stack(error) => Some(&**error),
            Self::Url(error) => Some(error),
        }
    }
}
