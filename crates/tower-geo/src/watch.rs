//! Watching the gate, so that an application can tell its users (G6).

use tokio::sync::watch;
use tower_geo_policy::gate::{GateState, GateStatus};

use crate::runtime;
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
        let changes = service.state_ref().extra().gate_changes.subscribe();
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
            let wait_is_over = async {
                match state.until {
                    Some(until) if state.status == GateStatus::ReadOnly => {
                        let at = self.service.state_ref().instant(until);
                        tokio::time::sleep_until(at.into()).await;
                    }
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = self.changes.changed() => {
                    if changed.is_err() {
                        // The sender lives in the service that we hold.
                        std::future::pending::<()>().await;
                    }
                }
                () = wait_is_over => {}
            }
        }
    }
}

/// Tells those who watch, and those who wait below a gate, that it has changed.
pub(crate) fn tell_gate_change(runtime: &runtime::Runtime) {
    runtime.gate_changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    runtime.gate_wakers.wake_all();
}
