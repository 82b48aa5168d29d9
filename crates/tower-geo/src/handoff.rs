//! What a layer of ours hands to those below it with one send, when there is something to hand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::Extensions;
use tower_geo_policy::operation::Given;
use tower_geo_policy::region::{Destination, RegionId};
use tower_geo_policy::service_state::ProbeSlot;

use crate::runtime::{Runtime, State};

/// In the extensions of a request whose send is directed elsewhere, holds a probe slot, or repeats
/// an earlier one. A healthy first send has none (E2).
///
/// It can be cloned with its request by a layer in between; the slot can be taken only once.
#[derive(Clone, Debug)]
pub(crate) struct Handoff(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: usize,
    destination: Option<Destination>,
    slot: Mutex<Option<ProbeSlot<Runtime>>>,
    failure_given: Given,
    carried_out: AtomicBool,
}

impl Handoff {
    pub(crate) fn new(
        state: &State,
        destination: Option<Destination>,
        slot: Option<ProbeSlot<Runtime>>,
        failure_given: Given,
    ) -> Self {
        Self(Arc::new(Inner {
            service: state.id(),
            destination,
            slot: Mutex::new(slot),
            failure_given,
            carried_out: AtomicBool::new(false),
        }))
    }

    /// What was handed to this service with the request.
    pub(crate) fn of(extensions: &Extensions, state: &State) -> Option<Self> {
        let handoff: &Self = extensions.get()?;
        (handoff.0.service == state.id()).then(|| handoff.clone())
    }

    /// The same, taken out: for the last who needs it.
    pub(crate) fn take(extensions: &mut Extensions, state: &State) -> Option<Self> {
        Self::of(extensions, state)?;
        extensions.remove()
    }

    /// The region that the send is directed to, if not to the one that the request names.
    pub(crate) fn destination(&self) -> Option<Destination> {
        self.0.destination
    }

    pub(crate) fn region(&self) -> Option<RegionId> {
        self.destination().map(Destination::region)
    }

    pub(crate) fn failure_given(&self) -> Given {
        self.0.failure_given
    }

    /// The probe slot: the first who asks gets it.
    pub(crate) fn take_slot(&self) -> Option<ProbeSlot<Runtime>> {
        self.0
            .slot
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// The redirect has changed the authority.
    pub(crate) fn set_carried_out(&self) {
        self.0.carried_out.store(true, Ordering::Relaxed);
    }

    pub(crate) fn was_carried_out(&self) -> bool {
        self.0.carried_out.load(Ordering::Relaxed)
    }
}
