//! Whether a client above us repeats what we have just given up (T8).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::tick::Tick;

/// How many failed operations are remembered.
const REMEMBERED: usize = 64;
/// For how long.
const FOR: Duration = Duration::from_secs(60);

/// The request ids of operations that failed lately.
///
/// A retry of a client above multiplies ours. It cannot be forbidden, but it pays
/// ([`RETURN`](crate::budget::RETURN)) and is told once.
#[derive(Debug, Default)]
pub struct FailedIds {
    any: AtomicBool,
    ids: Mutex<VecDeque<(Tick, Box<[u8]>)>>,
}

impl FailedIds {
    /// Whether nothing is remembered: one load, for the healthy path.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    /// Remembers the id of an operation that has just failed. Ids longer than 128 bytes are not ours to keep.
    pub fn remember(&self, id: &[u8], now: Tick) {
        if id.is_empty() || id.len() > 128 {
            return;
        }
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() == REMEMBERED {
            ids.pop_front();
        }
        ids.push_back((now, id.into()));
        self.any.store(true, Ordering::Relaxed);
    }

    /// Whether an operation of this id failed within the last minute.
    #[must_use]
    pub fn contains(&self, id: &[u8], now: Tick) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        while ids.front().is_some_and(|(at, _)| now.since(*at) > FOR) {
            ids.pop_front();
        }
        if ids.is_empty() {
            self.any.store(false, Ordering::Relaxed);
        }
        ids.iter().any(|(_, known)| **known == *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> Tick {
        Tick::ZERO + Duration::from_secs(n)
    }

    /// T8: within the last minute.
    #[test]
    fn an_id_is_remembered_for_a_minute() {
        let failed = FailedIds::default();
        assert!(failed.is_empty());
        failed.remember(b"a", second(0));
        failed.remember(b"b", second(30));
        assert!(failed.contains(b"a", second(60)));
        assert!(!failed.contains(b"a", second(61)));
        assert!(failed.contains(b"b", second(61)));
        assert!(!failed.contains(b"c", second(61)));
        assert!(!failed.contains(b"b", second(91)));
        assert!(failed.is_empty(), "nothing is kept");
    }

    /// T8: the last 64 are remembered.
    #[test]
    fn the_oldest_of_too_many_is_forgotten() {
        let failed = FailedIds::default();
        for n in 0..=64_u8 {
            failed.remember(&[n], second(1));
        }
        assert!(!failed.contains(&[0], second(2)));
        assert!(failed.contains(&[1], second(2)));
        assert!(failed.contains(&[64], second(2)));
    }
}
