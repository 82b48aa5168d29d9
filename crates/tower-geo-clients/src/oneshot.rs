//! One call of a clone of a service.

#[cfg(any(feature = "object-store", feature = "azure-core", feature = "reqwest"))]
use std::future::poll_fn;

#[cfg(any(feature = "object-store", feature = "azure-core", feature = "reqwest"))]
use tower_service::Service;

/// Waits until the service is ready and calls it.
#[cfg(any(feature = "object-store", feature = "azure-core", feature = "reqwest"))]
pub(crate) async fn oneshot<S: Service<R>, R>(
    mut service: S,
    request: R,
) -> Result<S::Response, S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await?;
    service.call(request).await
}
