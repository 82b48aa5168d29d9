//! Watching the gate, so that an application can tell its users (G6).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use tokio::sync::watch;
use tower_geo_policy::gate::{GateState, GateStatus};

use crate::service_handle::GeoService;

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
    pub fn get(&self) -> GateState {
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
    pub async fn changed(&mut self) -> GateState {
        loop {
            // Marked as seen before looking, so that a change after the look wakes us.
            self.changes.borrow_and_update();
            let state = self.get();
            if state.status != self.last {
                self.last = state.status;
                return state;
            }
            let wait = match state.until {
                Some(until) if state.status == GateStatus::ReadOnly => {
                    Some(self.service.state_ref().instant(until))
                }
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
