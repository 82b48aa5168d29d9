use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::reqwest::{Body, Client, Error, Request, Response, ResponseBuilderExt};
use tower_geo::{BoxError, NotSent};
use tower_service::Service;

/// reqwest's client as a tower service over `http::Request`. See the [module](super).
///
/// Always ready. The response keeps its URL: turned back into a [`Response`] of reqwest it says where
/// it came from.
///
/// # Errors
///
/// Always a [`reqwest::Error`](Error). One that says that the request could not be built (a URI that is
/// not absolute, `http` where only `https` is allowed) is wrapped in [`NotSent`]: the program is to
/// blame, and no region. The URL that it names has no query: a shared access signature does not get
/// into logs that print the chain of sources.
///
/// # Cancellation
///
/// As reqwest's own future: dropped, the request is given up.
#[derive(Clone, Debug)]
pub struct ReqwestService {
    client: Client,
}

impl ReqwestService {
    /// Sends with this client.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self { client }
    }
}

impl<B: Into<Body>> Service<http::Request<B>> for ReqwestService {
    type Response = http::Response<Body>;
    type Error = BoxError;
    type Future = SendFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> SendFuture {
        let sent = Request::try_from(request).map(|request| self.client.execute(request));
        SendFuture {
            inner: Box::pin(async move {
                let response = sent.map_err(blame)?.await.map_err(blame)?;
                Ok(with_url(response))
            }),
        }
    }
}

/// Response future of [`ReqwestService`].
pub struct SendFuture {
    inner: Pin<Box<dyn Future<Output = Result<http::Response<Body>, BoxError>> + Send>>,
}

impl fmt::Debug for SendFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFuture").finish_non_exhaustive()
    }
}

impl Future for SendFuture {
    type Output = Result<http::Response<Body>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.inner.as_mut().poll(cx)
    }
}

fn blame(mut error: Error) -> BoxError {
    if let Some(url) = error.url_mut() {
        url.set_query(None);
    }
    if error.is_builder() {
        NotSent::new(error).into()
    } else {
        error.into()
    }
}

/// The conversion loses the URL. reqwest looks for it in an extension of a private type, which
/// only its builder makes.
fn with_url(response: Response) -> http::Response<Body> {
    let url = response.url().clone();
    let mut response = http::Response::from(response);
    if let Ok(carrier) = http::Response::builder().url(url).body(()) {
        let (carrier, ()) = carrier.into_parts();
        response.extensions_mut().extend(carrier.extensions);
    }
    response
}
