//! Transitions as tracing events, for whoever has no listener of their own.

use tower_geo_policy::breaker::CircuitPhase;
use tower_geo_policy::events::{Event, EventKind, Listener, Usage};
use tower_geo_policy::gate::GateStatus;

/// A [`Listener`] that logs what happens to a service: circuits, gate, and copies that are set
/// aside.
///
/// What a service loses is a warning (a circuit opens, the gate closes, a copy is set aside), what
/// it gets back is information. Further sends are told by the layers themselves, at the level
/// *debug*, with a listener or without.
///
/// ```
/// use std::sync::Arc;
/// use tower_geo::{Account, LogEvents};
///
/// let account = Account::azure_storage("contoso")
///     .each(|service| service.listener(Arc::new(LogEvents::new())))
///     .build()?;
/// # Ok::<(), tower_geo::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LogEvents;

impl LogEvents {
    /// There is nothing to set.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

/// One event at one of two levels; a level is part of what is static in an event.
macro_rules! told {
    ($is_loss:expr, $($fields:tt)*) => {
        if $is_loss {
            tracing::warn!($($fields)*);
        } else {
            tracing::info!($($fields)*);
        }
    };
}

impl Listener for LogEvents {
    fn on_event(&self, event: &Event) {
        let service = &*event.service;
        match event.kind {
            EventKind::Breaker {
                region,
                circuit,
                from,
                to: CircuitPhase::Open,
                why,
                until,
                suspects,
                ..
            } => tracing::warn!(
                service,
                region = event.region_name(region),
                circuit = circuit.as_str(),
                from = from.as_str(),
                to = CircuitPhase::Open.as_str(),
                why = why.as_str(),
                wait = ?until.map(|until| until.since(event.at)),
                suspects,
                "a circuit has changed its state"
            ),
            EventKind::Breaker {
                region,
                circuit,
                from,
                to,
                why,
                ..
            } => tracing::info!(
                service,
                region = event.region_name(region),
                circuit = circuit.as_str(),
                from = from.as_str(),
                to = to.as_str(),
                why = why.as_str(),
                "a circuit has changed its state"
            ),
            EventKind::RampOver {
                region, circuit, ..
            } => tracing::info!(
                service,
                region = event.region_name(region),
                circuit = circuit.as_str(),
                "all reads are let back: the ramp is over"
            ),
            EventKind::Gate { to, why, .. } => told!(
                to == GateStatus::ReadOnly,
                service,
                to = to.as_str(),
                why = why.as_str(),
                "the read-only gate has changed its state"
            ),
            EventKind::Secondary { region, to, .. } => told!(
                to == Usage::SetAside,
                service,
                region = event.region_name(region),
                to = to.as_str(),
                "a copy is used differently"
            ),
            // Told where it is sent; kinds that this version does not know have no words here.
            _ => {}
        }
    }
}
