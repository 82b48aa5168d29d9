//! Watching the gate, so that an application can tell its users (G6).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

use tokio::sync::watch;
use tower_geo_policy::gate::{GateStatus, ReadOnlyWhy};
use tower_geo_policy::tick::Tick;

use crate::runtime::State;
use crate::service_handle::GeoService;

/// Whether a service takes writes, to be shown to people (G6).
///
/// ```
/// # fn banner(service: &tower_geo::GeoService, now: std::time::Instant) {
/// let gate = service.gate();
/// if let Some(why) = gate.why {
///     println!("no writes for {:?}: {why}", now.duration_since(gate.since));
/// }
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GateView {
    /// Whether writes are taken.
    pub status: GateStatus,
    /// Why they are not; none while they are.
    pub why: Option<ReadOnlyWhy>,
    /// Since when.
    pub since: Instant,
    /// When to try again; none if that is not known, as when an operator decides, and none
    /// unless the status is *read-only*.
    pub until: Option<Instant>,
}

impl GateView {
    pub(crate) fn of(state: &State, now: Tick) -> Self {
        let gate = state.gate(now);
        Self {
            status: gate.status,
            why: gate.why,
            since: state.instant(gate.since),
            until: gate.until.map(|until| state.instant(until)),
        }
    }
}

/// Follows whether a service takes writes.
///
/// ```
/// # async fn follow(service: tower_geo::GeoService) {
/// let mut gate = service.watch_gate();
/// loop {
///     let state = gate.changed().await;
///     println!("{}: {}", service.name(), state.status);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct GateWatch {
    service: GeoService,
    changes: watch::Receiver<u64>,
    last: GateStatus,
}

impl GateWatch {
    pub(crate) fn new(service: GeoService) -> Self {
        let changes = service.state_ref().extra().gate_followers.subscribe();
        let last = service.gate().status;
        Self {
            service,
            changes,
            last,
        }
    }

    /// Whether writes are taken at this moment.
    #[must_use]
    pub fn get(&self) -> GateView {
        self.service.gate()
    }

    /// Waits until the status is another one, and returns the new state.
    ///
    /// A wait that is over turns *read-only* into *trial*, which means: try a write now. Nobody
    /// has to call the service for that.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost: a change that was not returned is returned by the next call.
    pub async fn changed(&mut self) -> GateView {
        loop {
            // Marked as seen before looking, so that a change after the look wakes us.
            self.changes.borrow_and_update();
            let state = self.get();
            if state.status != self.last {
                self.last = state.status;
                return state;
            }
            let wait = match state.status {
                GateStatus::ReadOnly => state.until,
                _ => None,
            };
            let mut changed = pin!(self.changes.changed());
            let mut wait_is_over = pin!(wait.map(|at| tokio::time::sleep_until(at.into())));
            poll_fn(|cx| {
                // The sender lives in the service that we hold, so there is no error.
                if changed.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
                match wait_is_over.as_mut().as_pin_mut() {
                    Some(wait) => wait.poll(cx),
                    None => Poll::Pending,
                }
            })
            .await;
        }
    }
}
