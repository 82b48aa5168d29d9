use tower_layer::Layer;

use super::{FollowRedirectLayer, GeoRedirect};
use crate::body::{Buffering, CloneBodies, EmptyBodies};
use crate::service_handle::GeoService;

/// Applies [`GeoRedirect`] to a client. See the [module](super).
///
/// `P` says how a body is sent again when no [`RetryLayer`](crate::RetryLayer) above does: see
/// [`BodyPolicy`](crate::body::BodyPolicy).
#[derive(Clone, Debug)]
pub struct GeoRedirectLayer<P = EmptyBodies> {
    service: GeoService,
    policy: P,
}

impl GeoRedirectLayer {
    /// Directs the sends of this service.
    #[must_use]
    pub fn new(service: GeoService) -> Self {
        service.set_has_redirect();
        Self {
            service,
            policy: EmptyBodies::default(),
        }
    }
}

impl<P> GeoRedirectLayer<P> {
    /// Sends bodies again by cloning them.
    #[must_use]
    pub fn clone_bodies(self) -> GeoRedirectLayer<CloneBodies> {
        self.body_policy(CloneBodies::default())
    }

    /// Keeps streaming bodies while they are sent, up to `cap` bytes each (T6).
    #[must_use]
    pub fn buffer_bodies(self, cap: usize) -> GeoRedirectLayer<Buffering> {
        self.body_policy(Buffering::up_to(cap))
    }

    /// Only carries out what a [`RetryLayer`](crate::RetryLayer) above decides: for any type of
    /// body, and the cheapest. Where no retry was made from the same
    /// [`GeoService`], the first call ends with [`ErrorKind::Config`](crate::ErrorKind::Config).
    #[must_use]
    pub fn below_retry(self) -> FollowRedirectLayer {
        FollowRedirectLayer::new(self.service)
    }

    /// Sends bodies again by this policy.
    #[must_use]
    pub fn body_policy<Q>(self, policy: Q) -> GeoRedirectLayer<Q> {
        GeoRedirectLayer {
            service: self.service,
            policy,
        }
    }
}

impl<S, P: Clone> Layer<S> for GeoRedirectLayer<P> {
    type Service = GeoRedirect<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        GeoRedirect::new(inner, self.service.state(), self.policy.clone())
    }
}
