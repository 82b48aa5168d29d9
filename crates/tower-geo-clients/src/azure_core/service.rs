use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::azure_core::Error;
use ::azure_core::http::response::AsyncResponseBody;
use ::azure_core::http::{AsyncRawResponse, HttpClient};
use bytes::Bytes;
use futures::Stream;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tower_geo::NotSent;
use tower_service::Service;

use super::body::SdkBody;
use super::convert::{from_http, headers_to_http, status_to_http};
use super::error::from_sdk_error;

/// A transport of the SDK as a tower service: what
/// [`ServiceClient::layered`](super::ServiceClient::layered) puts layers over.
///
/// Always ready. Its errors are those of the SDK. A request that cannot be built, or has a method
/// that the SDK does not know (`OPTIONS`, …), is an error wrapped in [`NotSent`].
#[derive(Clone, Debug)]
pub struct SdkService {
    client: Arc<dyn HttpClient>,
}

impl SdkService {
    /// Sends with this transport.
    #[must_use]
    pub const fn new(client: Arc<dyn HttpClient>) -> Self {
        Self { client }
    }
}

impl Service<Request<SdkBody>> for SdkService {
    type Response = Response<SdkResponseBody>;
    type Error = Box<dyn StdError + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<SdkBody>) -> Self::Future {
        let client = Arc::clone(&self.client);
        Box::pin(async move {
            let request = from_http(request).map_err(NotSent::new)?;
            let response = client
                .execute_request(&request)
                .await
                .map_err(from_sdk_error)?;
            Ok(response_to_http(response)?)
        })
    }
}

fn response_to_http(theirs: AsyncRawResponse) -> Result<Response<SdkResponseBody>, Error> {
    let (status, headers, body) = theirs.deconstruct();
    let mut response = Response::new(SdkResponseBody { body: Some(body) });
    *response.status_mut() = status_to_http(status)?;
    *response.headers_mut() = headers_to_http(&headers)?;
    Ok(response)
}

/// The body of a response of the SDK's transport.
///
/// That transport tells no size; the header is there.
pub struct SdkResponseBody {
    /// `None` once it has ended: its stream must not be asked again.
    body: Option<AsyncResponseBody>,
}

impl fmt::Debug for SdkResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SdkResponseBody")
            .field("ended", &self.body.is_none())
            .finish()
    }
}

impl Body for SdkResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        match Pin::new(body).poll_next(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(bytes))) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Poll::Ready(Some(Err(error))) => {
                self.body = None;
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(None) => {
                self.body = None;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.body.is_none() {
            SizeHint::with_exact(0)
        } else {
            SizeHint::default()
        }
    }
}
