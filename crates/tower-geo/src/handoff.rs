//! What a layer of ours hands to those below it with one send, when there is something to hand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::Extensions;
use tower_geo_policy::breaker::{Circuits, ProbeSlot};
use tower_geo_policy::operation::Plan;
use tower_geo_policy::region::{Destination, RegionId};

use crate::known::Known;
use crate::runtime::{State, service_id};

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
    /// What the destination belongs to.
    known: Known,
    slot: Mutex<Option<ProbeSlot>>,
    failure_given: Circuits,
    /// Whether Retry drives and a redirect below only follows; a gate's trial write is no order.
    from_driver: bool,
    carried_out: AtomicBool,
}

impl Handoff {
    /// The slot of a trial write (B4).
    pub(crate) fn of_gate(state: &State, slot: ProbeSlot) -> Self {
        Self(Arc::new(Inner {
            service: service_id(state),
            destination: None,
            known: Known::now(state),
            slot: Mutex::new(Some(slot)),
            failure_given: Circuits::NONE,
            from_driver: false,
            carried_out: AtomicBool::new(false),
        }))
    }

    /// What has to be handed on with a planned send; nothing for a plain first one.
    pub(crate) fn for_plan(state: &State, known: Known, plan: Plan) -> Option<Self> {
        let plain = !plan.directed && plan.slot.is_none() && plan.failure_given.is_empty();
        if plain {
            return None;
        }
        Some(Self(Arc::new(Inner {
            service: service_id(state),
            destination: plan.directed.then_some(plan.destination),
            known,
            slot: Mutex::new(plan.slot),
            failure_given: plan.failure_given,
            from_driver: true,
            carried_out: AtomicBool::new(false),
        })))
    }

    /// Whether a layer above drives the operation that this send belongs to.
    pub(crate) fn is_from_driver(&self) -> bool {
        self.0.from_driver
    }

    /// What was handed to this service with the request.
    pub(crate) fn of(extensions: &Extensions, state: &State) -> Option<Self> {
        let handoff: &Self = extensions.get()?;
        (handoff.0.service == service_id(state)).then(|| handoff.clone())
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

    /// The regions as the layer above knows them.
    pub(crate) fn known(&self) -> Known {
        self.0.known.clone()
    }

    pub(crate) fn region(&self) -> Option<RegionId> {
        self.destination().map(Destination::region)
    }

    pub(crate) fn failure_given(&self) -> Circuits {
        self.0.failure_given
    }

    /// The probe slot: the first who asks gets it.
    pub(crate) fn take_slot(&self) -> Option<ProbeSlot> {
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

    /// Whether the send went where the request says although it was directed elsewhere: there is
    /// no redirect below.
    pub(crate) fn has_stayed(&self) -> bool {
        self.0.destination.is_some() && !self.0.carried_out.load(Ordering::Relaxed)
    }
}
