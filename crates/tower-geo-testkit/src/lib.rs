//! What the tests and examples of tower-geo run against.
//!
//! | module | what it stands in for |
//! |---|---|
//! | [`store`] | an account with two regions: replication with a lag, a secondary that refuses writes |
//! | [`front`] | the network before a real server: forward, reset, freeze, TLS, a read-only secondary |
//! | [`azurite`] | the storage emulator, as a child process that can be killed, stopped and restarted |
//! | [`client`] | a hyper client to which every host name is on loopback |
//! | [`tls`] | certificates for production host names, by an authority that only the test trusts |
//! | [`strict`] | services, bodies and futures that notice when a layer breaks its contract |
//!
//! Servers listen on loopback, keep their port while they are down, and end when they are dropped.

pub mod azurite;
pub mod client;
pub mod front;
mod line;
mod side;
pub mod store;
pub mod strict;
pub mod tls;

pub use self::side::Side;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a test has failed with the lock held: its message matters, not ours.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
