//! What all users of an account share, beside the decisions: who reads it, and who waits for that.

use std::error::Error as StdError;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tower_geo_policy::cosmos::AccountState;
use tower_geo_policy::events::{Event, Listener};

use crate::redact::Words;

pub(crate) struct Shared {
    pub(crate) account: AccountState,
    /// Tells a reader that somebody has asked for a read.
    asked: Arc<Notify>,
    /// Tells those who wait that a read has ended, or that nobody reads any more.
    ended: Arc<Notify>,
    readers: AtomicUsize,
    /// Why the last read of the account gave no document.
    unread: Mutex<Option<Cause>>,
}

/// Why the account could not be read; many operations may end with it.
type Cause = Arc<dyn StdError + Send + Sync>;

/// Why an operation has no topology, as the source of its error (C3).
#[derive(Clone)]
pub(crate) struct Unread(Cause);

impl fmt::Debug for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Words(&*self.0).fmt(f)
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Unread {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("account", &self.account)
            .field("readers", &self.readers)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(account: AccountState) -> Self {
        let asked = Arc::new(Notify::new());
        let wake = Arc::clone(&asked);
        // One reader is enough; if none is waiting, the next one that looks finds the wish.
        account.set_on_ask(move || wake.notify_one());
        Self {
            account,
            asked,
            ended: Arc::default(),
            readers: AtomicUsize::new(0),
            unread: Mutex::default(),
        }
    }

    /// Notes why a read gave no document; `None` when it gave one.
    pub(super) fn set_unread(&self, cause: Option<Cause>) {
        *self.unread.lock().unwrap_or_else(PoisonError::into_inner) = cause;
    }

    /// Why the last read of the account gave no document, if it gave none.
    pub(crate) fn unread(&self) -> Option<Unread> {
        let unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        unread.clone().map(Unread)
    }

    /// Whether somebody reads the account.
    pub(crate) fn has_reader(&self) -> bool {
        self.readers.load(Ordering::Acquire) > 0
    }

    /// Somebody reads the account from now on, for as long as the guard lives.
    pub(crate) fn reads(self: &Arc<Self>) -> Reading {
        self.readers.fetch_add(1, Ordering::AcqRel);
        Reading(Arc::clone(self))
    }

    /// A future that is ready when a read has ended after this call, or the last reader has gone.
    pub(crate) fn next_end(&self) -> OwnedNotified {
        Arc::clone(&self.ended).notified_owned()
    }

    pub(super) fn tell_end(&self) {
        self.ended.notify_waiters();
    }

    pub(super) async fn asked(&self) {
        self.asked.notified().await;
    }
}

/// Somebody reads the account.
#[derive(Debug)]
pub(crate) struct Reading(Arc<Shared>);

impl Reading {
    pub(super) fn shared(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::AcqRel);
        // A wish that this one has heard of is for another, and those who wait look for themselves.
        self.0.asked.notify_one();
        self.0.tell_end();
    }
}

/// Has the account told of circuits that open (C7).
#[derive(Debug)]
pub(crate) struct Circuits(pub(crate) Arc<Shared>);

impl Listener for Circuits {
    fn on_event(&self, event: &Event) {
        self.0.account.on_event(event);
    }
}
