use tower_layer::Layer;

use super::service::{AnswerUnavailable, FailFast, ReadOnlyGate};
use crate::service_handle::GeoService;

/// Applies [`ReadOnlyGate`] to a client, or to a server's routes. See the [module](super).
#[derive(Clone, Debug)]
pub struct ReadOnlyGateLayer<M = FailFast> {
    service: GeoService,
    manner: M,
}

impl ReadOnlyGateLayer {
    /// Refuses the writes of this service with an error.
    #[must_use]
    pub fn new(service: GeoService) -> Self {
        Self {
            service,
            manner: FailFast::default(),
        }
    }

    /// Refuses writes with a 503 answer instead, for the routes of a server whose writes end up in
    /// this service. It looks at the method and the path only, not at the authority (I8).
    #[must_use]
    pub fn on_server(self) -> ReadOnlyGateLayer<AnswerUnavailable> {
        ReadOnlyGateLayer {
            service: self.service,
            manner: AnswerUnavailable::default(),
        }
    }
}

impl<S, M: Clone> Layer<S> for ReadOnlyGateLayer<M> {
    type Service = ReadOnlyGate<S, M>;

    fn layer(&self, inner: S) -> Self::Service {
        ReadOnlyGate::new(inner, self.service.state(), self.manner.clone())
    }
}
