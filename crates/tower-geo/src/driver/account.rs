//! What only an operation on an account does: wait for the account, judge answers by sub-status,
//! and send what a region of an account has to be told.

use std::pin::Pin;

use http::{Request, Response};
use tokio::sync::futures::OwnedNotified;
use tower_geo_policy::cosmos::ALLOW_TENTATIVE_WRITES;
use tower_geo_policy::cosmos::operation::{Answer, AwaitAccount};
use tower_geo_policy::operation::{Fate, Finish};

use super::decider::Decider;
use super::sending::Driver;
use crate::fresh_connections::Probe;

/// A wait for the end of an account read. Made only while one is waited for, so it may be a box.
pub(super) type NextEnd = Pin<Box<OwnedNotified>>;

/// Gets a request ready that is about to leave. The copy that is kept of it stays as it is.
pub(super) fn prepare<B>(request: &mut Request<B>, tentative: bool, new_connection: bool) {
    if tentative {
        // C12.
        let (name, value) = ALLOW_TENTATIVE_WRITES;
        request.headers_mut().insert(name, value);
    }
    if new_connection {
        request.extensions_mut().insert(Probe::AFTER_NO_CONNECTION);
    }
}

/// What has come of a wait for the account before it began.
pub(super) enum Awaited {
    /// It begins.
    Waits,
    /// A read has ended meanwhile.
    News,
    /// Nobody reads the account.
    InVain(Finish),
}

impl<S, P, RB, PB> Driver<S, P, Response<RB>, PB> {
    /// Begins to wait for a read of the account.
    pub(super) fn await_account(&mut self, wait: &AwaitAccount) -> Awaited {
        let Decider::Account(operation) = &mut self.operation else {
            return Awaited::News;
        };
        let shared = operation.shared();
        // Before the look, so that what happens after it wakes us.
        let next_end = Box::pin(shared.next_end());
        if shared.account.reads_finished() > wait.finished {
            return Awaited::News;
        }
        if !shared.has_reader() {
            return Awaited::InVain(operation.give_account_up());
        }
        self.next_end = Some(next_end);
        Awaited::Waits
    }

    /// Takes an answer to an operation on an account; `Some` is the one to hand over.
    pub(super) fn account_answered(&mut self, response: Response<RB>) -> Option<Response<RB>> {
        let now = self.now();
        let Decider::Account(operation) = &mut self.operation else {
            return Some(response);
        };
        let wall_clock = &self.state.extra().wall_clock;
        let (status, headers) = (response.status(), response.headers());
        let answer = Answer::read(status, headers, || wall_clock());
        let region = operation.region();
        let is_usual = operation.trail().is_none();
        let fate = operation.with(&self.state, |it, context| {
            it.answered(context, &answer, now)
        });
        if fate == (Fate::Deliver { told: false }) {
            return Some(response);
        }
        let is_delivered = matches!(fate, Fate::Deliver { .. });
        if !(is_usual && is_delivered) {
            self.tell_end(status.as_str(), answer.meaning.for_trail());
        }
        if !is_delivered {
            self.limit_signature(now);
        }
        self.take(fate, region, response, now)
    }
}
