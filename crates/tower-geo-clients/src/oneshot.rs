//! One call of a clone of a service.

use std::future::poll_fn;

use tower_service::Service;

/// Waits until the service is ready and calls it.
pub(crate) async fn oneshot<S: Service<R>, R>(
    mut service: S,
    request: R,
) -> Result<S::Response, S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await?;
    service.call(request).await
}
