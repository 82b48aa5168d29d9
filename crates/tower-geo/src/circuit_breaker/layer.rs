use tower_layer::Layer;

use super::CircuitBreaker;
use crate::service_handle::GeoService;

/// Applies [`CircuitBreaker`] to a client. See the [module](super).
#[derive(Clone, Debug)]
pub struct CircuitBreakerLayer {
    service: GeoService,
}

impl CircuitBreakerLayer {
    /// Counts in the circuits of this service.
    #[must_use]
    pub const fn new(service: GeoService) -> Self {
        Self { service }
    }
}

impl<S> Layer<S> for CircuitBreakerLayer {
    type Service = CircuitBreaker<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CircuitBreaker::new(inner, self.service.state())
    }
}
