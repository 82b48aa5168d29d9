use tower_geo_policy::breaker::{Outcome, Sent};
use tower_geo_policy::tick::Tick;
use tower_geo_policy::verdict::{Evidence, Verdict};

use crate::error::Error;
use crate::runtime::{self, State, service_id};
use crate::scope;

/// A send whose outcome is not known yet. Dropped before, it counts as dropped by its caller.
pub(crate) struct Pending {
    state: State,
    sent: Option<Sent>,
}

impl Pending {
    #[inline]
    pub(crate) const fn new(state: State, sent: Option<Sent>) -> Self {
        Self { state, sent }
    }

    /// Settles the outcome, once: what comes later is ignored.
    pub(crate) fn settle(&mut self, verdict: Verdict) {
        if self.sent.is_some() {
            let now = self.state.tick(runtime::now());
            self.settle_at(verdict, now);
        }
    }

    /// The same for whoever knows the time.
    #[inline]
    pub(crate) fn settle_at(&mut self, verdict: Verdict, now: Tick) {
        if let Some(sent) = self.sent.take() {
            let outcome = outcome_of(verdict);
            settle(&self.state, sent, outcome, now);
        }
    }

    /// Nothing has left: the slot is given back, and nothing is counted.
    pub(crate) fn not_sent(&mut self, now: Tick) {
        if let Some(sent) = self.sent.take() {
            settle(&self.state, sent, Outcome::fault(Evidence::Nothing), now);
        }
    }

    /// The error of an answer, or the rest of one, that did not come in time.
    pub(crate) fn timed_out(&self, message: &'static str) -> Error {
        Error::timed_out(&self.state, message)
    }

    #[inline]
    pub(crate) const fn state(&self) -> &State {
        &self.state
    }

    /// The send, until it is settled.
    #[inline]
    pub(crate) const fn sent(&self) -> Option<&Sent> {
        self.sent.as_ref()
    }
}

impl Drop for Pending {
    #[inline]
    fn drop(&mut self) {
        let Some(sent) = self.sent.take() else {
            return;
        };
        let service = service_id(&self.state);
        let outcome = if scope::is_time_out(service) {
            Outcome::fault(Verdict::Ambiguous.evidence())
        } else if scope::is_outrun(service) {
            Outcome::Outrun
        } else {
            Outcome::Dropped
        };
        let now = self.state.tick(runtime::now());
        settle(&self.state, sent, outcome, now);
    }
}

#[inline]
fn settle(state: &State, sent: Sent, outcome: Outcome, now: Tick) {
    // Which circuits took it as a failure is seen again from the trail, by whoever sends on.
    let _ = state.send_settled(sent, outcome, now, || (state.extra().random)());
}

const fn outcome_of(verdict: Verdict) -> Outcome {
    let evidence = verdict.evidence();
    match verdict {
        Verdict::Unreachable | Verdict::Ambiguous => Outcome::fault(evidence),
        _ => Outcome::answer(evidence),
    }
}
