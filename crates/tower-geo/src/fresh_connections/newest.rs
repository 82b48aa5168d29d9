use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::runtime;

/// The client that everybody is to use, and how another is made: shared by all clones of a service.
pub(super) struct Newest<S, F> {
    make: F,
    max_age: Option<Duration>,
    client: ArcSwap<Numbered<S>>,
    /// The number of the newest client, for whoever only wants to know whether it is still theirs.
    number: AtomicU64,
}

/// A client, how many came before it, and when it was made.
#[derive(Clone)]
pub(super) struct Numbered<S> {
    pub(super) client: S,
    pub(super) number: u64,
    pub(super) made: Instant,
}

impl<S: Clone, F> Newest<S, F> {
    pub(super) fn new(first: S, make: F, max_age: Option<Duration>) -> Self {
        let first = Numbered {
            client: first,
            number: 0,
            made: runtime::now(),
        };
        Self {
            make,
            max_age,
            client: ArcSwap::from_pointee(first),
            number: AtomicU64::new(0),
        }
    }

    /// The client to use instead of this one, if it is no longer the newest.
    #[inline]
    pub(super) fn instead_of(&self, used: u64) -> Option<Numbered<S>> {
        (self.number.load(Ordering::Acquire) != used).then(|| self.get())
    }

    pub(super) fn get(&self) -> Numbered<S> {
        Numbered::clone(&self.client.load())
    }

    pub(super) const fn make(&self) -> &F {
        &self.make
    }

    pub(super) const fn max_age(&self) -> Option<Duration> {
        self.max_age
    }

    /// Everybody uses this client from now on.
    pub(super) fn replace(&self, client: &S) {
        let made = runtime::now();
        let before = self.client.rcu(|newest| Numbered {
            client: client.clone(),
            number: newest.number + 1,
            made,
        });
        self.number.fetch_max(before.number + 1, Ordering::Release);
    }

    /// The same, unless another has replaced the one with this number in the meantime.
    pub(super) fn replace_if(&self, used: u64, client: impl FnOnce() -> S) {
        let newest = self.client.load();
        if newest.number != used {
            return;
        }
        let number = used + 1;
        let next = Arc::new(Numbered {
            client: client(),
            number,
            made: runtime::now(),
        });
        let found = self.client.compare_and_swap(&*newest, next);
        if Arc::ptr_eq(&found, &newest) {
            self.number.fetch_max(number, Ordering::Release);
        }
    }
}
