//! Who wants to know that a gate has changed: those who watch, and those who wait below it.

use tokio::sync::watch;

use crate::wakers::Wakers;

#[derive(Debug)]
pub(crate) struct GateFollowers {
    changes: watch::Sender<u64>,
    /// Tasks that wait for the service below a gate, and are refused once the gate closes (G2).
    pub(crate) waiting: Wakers,
}

impl Default for GateFollowers {
    fn default() -> Self {
        Self {
            changes: watch::Sender::new(0),
            waiting: Wakers::default(),
        }
    }
}

impl GateFollowers {
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn tell(&self) {
        self.changes
            .send_modify(|changes| *changes = changes.wrapping_add(1));
        self.waiting.wake_all();
    }
}
