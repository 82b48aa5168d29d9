//! What was tried in one operation: every send, where it went and what became of it (E1).

use std::time::Duration;

use http::StatusCode;

use crate::fault::Fault;
use crate::region::RegionId;
use crate::verdict::Verdict;

/// Why a send was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendKind {
    /// The first of its operation.
    First,
    /// The first to its region, after another region has failed.
    FallOver,
    /// A return to a region.
    Retry,
    /// Beside the first, which had not answered yet (H1).
    Hedge,
    /// For the rest of a body that broke off (R9): an operation of its own, so it is in no trail.
    Resume,
}

impl SendKind {
    /// The word for it in trails and drills.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::FallOver => "fall-over",
            Self::Retry => "retry",
            Self::Hedge => "hedge",
            Self::Resume => "resume",
        }
    }
}

/// How a send ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// With an answer of the service.
    Answer(StatusCode),
    /// Without one.
    Fault(Fault),
    /// Given up, because another send had won (H2).
    Dropped,
}

/// One request that left for the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Send {
    /// Where it went.
    pub region: RegionId,
    /// Why it was made.
    pub kind: SendKind,
    /// Whether it was admitted to find out if the region is back (B4).
    pub probe: bool,
    /// How long the operation had waited just before.
    pub waited: Duration,
    /// When it left, counted from the first send of its operation.
    pub at: Duration,
    /// How long it took up to the head of the answer, or to the fault.
    pub took: Duration,
    /// How it ended.
    pub ending: Ending,
    /// What that meant.
    pub verdict: Verdict,
}

/// The sends of one operation, in order. Empty, without memory, until a send has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail(Vec<Send>);

impl Trail {
    /// The sends, in order.
    #[must_use]
    pub fn sends(&self) -> &[Send] {
        &self.0
    }

    /// Whether an earlier send of a write may have been applied, so that a later 404, 409 or 412
    /// may be its own doing (V2).
    #[must_use]
    pub fn may_have_been_applied(&self) -> bool {
        let earlier = self.0.split_last().map_or(&[][..], |(_, earlier)| earlier);
        earlier.iter().any(|send| send.verdict.may_be_applied())
    }

    /// Whether an earlier send may be the cause of this answer to a write (V2): 409 and 412, and
    /// 404 of a DELETE.
    pub(crate) fn may_explain(&self, status: StatusCode, is_delete: bool) -> bool {
        let suspicious = match status {
            StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => true,
            StatusCode::NOT_FOUND => is_delete,
            _ => false,
        };
        suspicious && self.may_have_been_applied()
    }

    /// Adds a send that has ended, in the order in which they left.
    pub(crate) fn push(&mut self, send: Send) {
        let later = self.0.iter().rposition(|other| other.at <= send.at);
        self.0.insert(later.map_or(0, |before| before + 1), send);
    }

    pub(crate) fn to_region(&self, region: RegionId) -> impl Iterator<Item = &Send> {
        self.0.iter().filter(move |send| send.region == region)
    }
}
