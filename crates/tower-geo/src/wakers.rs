//! Tasks that wait for something which a change of the gate makes pointless to wait for (G2).

use std::sync::{Mutex, PoisonError};
use std::task::Waker;

/// More than this many are woken early, once for nothing, rather than kept.
const MOST: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Wakers(Mutex<Vec<Waker>>);

impl Wakers {
    /// Wakes this task at the next change. Called only by a task that has to wait anyway.
    pub(crate) fn register(&self, waker: &Waker) {
        let full = {
            let mut wakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if wakers.iter().any(|known| known.will_wake(waker)) {
                return;
            }
            let full = (wakers.len() == MOST).then(|| std::mem::take(&mut *wakers));
            wakers.push(waker.clone());
            full
        };
        full.into_iter().flatten().for_each(Waker::wake);
    }

    pub(crate) fn wake_all(&self) {
        let wakers = {
            let mut wakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}
