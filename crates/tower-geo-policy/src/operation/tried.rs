//! What follows from what was tried, whatever the rules of the service: B2, T6, V1, V2.

use std::time::Duration;

use http::StatusCode;

use super::{Failure, Finish};
use crate::breaker::{Circuit, Circuits};
use crate::intent::Intent;
use crate::region::RegionId;
use crate::tick::Tick;
use crate::trail::{Ending, SendKind, Trail};
use crate::verdict::{Evidence, Verdict};

impl Trail {
    pub(crate) fn has_tried(&self, region: RegionId) -> bool {
        self.to_region(region).next().is_some()
    }

    fn has_ambiguous(&self) -> bool {
        let mut sends = self.sends().iter();
        sends.any(|send| send.verdict == Verdict::Ambiguous)
    }

    /// The circuits of a region to which the operation has given its one failure (B2).
    pub(crate) fn failure_given(&self, region: RegionId, circuit: Circuit) -> Circuits {
        let mut given = Circuits::NONE;
        for send in self.to_region(region) {
            match send.verdict.evidence() {
                Evidence::FailureOfBoth => given = Circuits::BOTH,
                Evidence::Failure => given |= circuit.into(),
                _ => {}
            }
        }
        given
    }

    /// Whether an answer to a write may be the doing of an earlier send of this very write (V2).
    pub(crate) fn explains(&self, intent: Intent, status: StatusCode, is_delete: bool) -> bool {
        intent.is_write() && self.may_explain(status, is_delete)
    }

    /// T6: how it ends when a send was due and the body is gone.
    pub(crate) fn end_without_body(&self, intent: Intent) -> Failure {
        if intent.is_write() && self.has_ambiguous() {
            Failure::UnknownOutcome
        } else {
            Failure::NotReplayable
        }
    }

    /// V1: a write that may not be sent again, or has no send left, ends with its last answer, unless
    /// a later send was ambiguous.
    pub(crate) fn end_of_write(&self) -> Finish {
        let sends = self.sends();
        let is_answer = |ending| matches!(ending, Ending::Answer(_));
        let last_answer = sends.iter().rposition(|send| is_answer(send.ending));
        let later = last_answer.map_or(sends, |at| sends.get(at + 1..).unwrap_or_default());
        let later_ambiguous = later.iter().any(|send| send.verdict == Verdict::Ambiguous);
        match (last_answer, later_ambiguous) {
            (Some(_), false) => Finish::Answer,
            _ if self.has_ambiguous() => Finish::Failure(Failure::UnknownOutcome),
            _ => Finish::Failure(Failure::Transport),
        }
    }

    /// How long an operation that began then has waited since its last send ended.
    pub(crate) fn waited(&self, started: Option<Tick>, now: Tick) -> Duration {
        let last = self.sends().last().zip(started);
        last.map_or(Duration::ZERO, |(last, started)| {
            now.since(started + last.at + last.took)
        })
    }
}

impl SendKind {
    /// Why a send is made that is no hedge, after so many others of its operation.
    pub(crate) const fn after(sends: u32, tried: bool) -> Self {
        match (sends, tried) {
            (0, _) => Self::First,
            (_, false) => Self::FallOver,
            (_, true) => Self::Retry,
        }
    }
}
