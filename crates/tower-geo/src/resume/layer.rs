use tower_layer::Layer;

use super::Resume;
use crate::body::{CloneBodies, EmptyBodies};
use crate::service_handle::GeoService;

/// Resumes downloads that break off. See the [module](super).
///
/// `P` says how the body of a request is sent again; a download has none as a rule.
#[derive(Clone, Debug)]
pub struct ResumeLayer<P = EmptyBodies> {
    service: GeoService,
    policy: P,
}

impl ResumeLayer {
    /// Resumes the downloads of this service, those whose requests have an empty body.
    #[must_use]
    pub fn new(service: GeoService) -> Self {
        Self {
            service,
            policy: EmptyBodies::default(),
        }
    }
}

impl<P> ResumeLayer<P> {
    /// For bodies without a `Default`: clones them.
    #[must_use]
    pub fn clone_bodies(self) -> ResumeLayer<CloneBodies> {
        self.body_policy(CloneBodies::default())
    }

    /// Sends bodies again by this policy, which has to leave their type as it is.
    #[must_use]
    pub fn body_policy<Q>(self, policy: Q) -> ResumeLayer<Q> {
        ResumeLayer {
            service: self.service,
            policy,
        }
    }
}

impl<S, P: Clone> Layer<S> for ResumeLayer<P> {
    type Service = Resume<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        Resume::new(inner, self.service.state(), self.policy.clone())
    }
}
