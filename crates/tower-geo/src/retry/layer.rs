use tower_layer::Layer;

use super::Retry;
use crate::body::{Buffering, CloneBodies, EmptyBodies};
use crate::service_handle::GeoService;

/// Applies [`Retry`] to a client. See the [module](super).
///
/// `P` says how a body is sent again: see [`BodyPolicy`](crate::body::BodyPolicy).
#[derive(Clone, Debug)]
pub struct RetryLayer<P = EmptyBodies> {
    service: GeoService,
    policy: P,
}

impl RetryLayer {
    /// Repeats the sends of this service, those with an empty body.
    #[must_use]
    pub fn new(service: GeoService) -> Self {
        service.set_has_retry();
        Self {
            service,
            policy: EmptyBodies::default(),
        }
    }
}

impl<P> RetryLayer<P> {
    /// Sends bodies again by cloning them.
    #[must_use]
    pub fn clone_bodies(self) -> RetryLayer<CloneBodies> {
        self.body_policy(CloneBodies::default())
    }

    /// Keeps streaming bodies while they are sent, up to `cap` bytes each (T6). The service below
    /// gets a [`ReplayBody`](crate::body::ReplayBody).
    #[must_use]
    pub fn buffer_bodies(self, cap: usize) -> RetryLayer<Buffering> {
        self.body_policy(Buffering::up_to(cap))
    }

    /// Sends bodies again by this policy.
    #[must_use]
    pub fn body_policy<Q>(self, policy: Q) -> RetryLayer<Q> {
        RetryLayer {
            service: self.service,
            policy,
        }
    }
}

impl<S, P: Clone> Layer<S> for RetryLayer<P> {
    type Service = Retry<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry::new(inner, self.service.state(), self.policy.clone())
    }
}
