//! The atomics and the lock that the shared state is made of: the standard library's, or those of
//! loom when the crate is built with `--cfg loom` for `tests/loom.rs`.
//!
//! Reference counts stay the standard library's in both: what loom has to explore is how words,
//! buckets and slots change, not how handles are counted.

#[cfg(loom)]
pub(crate) use loom::sync::Mutex;
#[cfg(loom)]
pub(crate) use loom::sync::MutexGuard;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

#[cfg(not(loom))]
pub(crate) use std::sync::Mutex;
#[cfg(not(loom))]
pub(crate) use std::sync::MutexGuard;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

pub(crate) use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Locks, also after another thread panicked while it held the lock: what is behind our locks is
/// valid after every single step, so there is nothing to be afraid of.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}
