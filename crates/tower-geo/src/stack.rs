//! All four layers in the recommended order.

use tower_layer::Layer;

use crate::body::{Buffering, CloneBodies, EmptyBodies};
use crate::circuit_breaker::{CircuitBreaker, CircuitBreakerLayer};
use crate::geo_redirect::{FollowRedirect, GeoRedirectLayer};
use crate::read_only_gate::{ReadOnlyGate, ReadOnlyGateLayer};
use crate::retry::{Retry, RetryLayer};
use crate::service_handle::GeoService;

/// A client under all four layers.
pub type GeoStack<S, P = EmptyBodies> = ReadOnlyGate<Retry<FollowRedirect<CircuitBreaker<S>>, P>>;

/// All four layers in the order that works for most: what [`GeoService::layer`] gives.
///
/// ```text
/// your code ─► ReadOnlyGate ─► Retry ─► GeoRedirect ─► CircuitBreaker ─► client
///              may it write?   again?   where?         is it trusted?
/// ```
///
/// The gate is outermost, so that a write that cannot succeed costs nothing. Retry is above the
/// redirect, so that both work on one operation with one budget and one copy of the request. The
/// breaker is innermost, so that it sees every send and the region that it really goes to.
///
/// `P` says how the body of a request is sent again. By default only empty bodies are:
///
/// | call | for | |
/// |---|---|---|
/// | (nothing) | `Body + Default` | reads, and writes without a body |
/// | [`clone_bodies`](Self::clone_bodies) | `Clone`, such as `Full<Bytes>` | all writes that may be repeated |
/// | [`buffer_bodies`](Self::buffer_bodies) | any `Body` | the same, up to a cap |
///
/// ```
/// use tower::ServiceBuilder;
/// use tower_geo::{Account, LocationMode};
///
/// let account = Account::azure_storage("contoso")
///     .location_mode(LocationMode::PrimaryThenSecondary)
///     .build()?;
/// let client = ServiceBuilder::new()
///     .layer(account.blob().layer().clone_bodies())
///     .service(my_client());
/// # fn my_client() {}
/// # Ok::<(), tower_geo::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GeoLayer<P = EmptyBodies> {
    service: GeoService,
    policy: P,
}

impl GeoLayer {
    /// The stack of this service.
    #[must_use]
    pub fn new(service: GeoService) -> Self {
        Self {
            service,
            policy: EmptyBodies::default(),
        }
    }
}

impl<P> GeoLayer<P> {
    /// Sends bodies again by cloning them.
    #[must_use]
    pub fn clone_bodies(self) -> GeoLayer<CloneBodies> {
        self.body_policy(CloneBodies::default())
    }

    /// Keeps streaming bodies while they are sent, up to `cap` bytes each (T6). The client gets a
    /// [`ReplayBody`](crate::body::ReplayBody). With a cap of 0 nothing is kept, but a body of
    /// which nothing was taken is sent again, and `attempt_timeout` counts from the last byte (T10).
    #[must_use]
    pub fn buffer_bodies(self, cap: usize) -> GeoLayer<Buffering> {
        self.body_policy(Buffering::up_to(cap))
    }

    /// Sends bodies again by this policy.
    #[must_use]
    pub fn body_policy<Q>(self, policy: Q) -> GeoLayer<Q> {
        GeoLayer {
            service: self.service,
            policy,
        }
    }
}

impl<S, P: Clone> Layer<S> for GeoLayer<P> {
    type Service = GeoStack<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        let service = || self.service.clone();
        let inner = CircuitBreakerLayer::new(service()).layer(inner);
        let inner = GeoRedirectLayer::new(service()).below_retry().layer(inner);
        let inner = RetryLayer::new(service())
            .body_policy(self.policy.clone())
            .layer(inner);
        ReadOnlyGateLayer::new(service()).layer(inner)
    }
}
