//! The send under way, and what can be told of it (E3, T9).

use std::time::Duration;

use crate::events::Resend;
use crate::region::RegionId;
use crate::tick::Tick;
use crate::trail::{Ending, Send, SendKind, Trail};
use crate::verdict::Verdict;

use super::Operation;

/// The send under way.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) region: RegionId,
    pub(crate) kind: SendKind,
    pub(crate) probe: bool,
    /// How many admissible regions had not been tried, this one included (T3).
    pub(crate) shares: u32,
    pub(crate) paid: u32,
    pub(crate) waited: Duration,
    pub(crate) at: Option<Tick>,
    pub(crate) cut_by_deadline: bool,
}

impl Current {
    /// A first send that has not left.
    #[inline]
    pub(crate) const fn first(region: RegionId, shares: u32) -> Self {
        Self {
            region,
            kind: SendKind::First,
            probe: false,
            shares,
            paid: 0,
            waited: Duration::ZERO,
            at: None,
            cut_by_deadline: false,
        }
    }

    /// A hedge that leaves now and was paid for (H1).
    pub(crate) const fn hedge(region: RegionId, paid: u32, now: Tick) -> Self {
        Self {
            kind: SendKind::Hedge,
            paid,
            at: Some(now),
            ..Self::first(region, 1)
        }
    }

    /// Which send it is, of an operation that has made so many.
    pub(crate) const fn attempt(&self, sends: u32) -> u32 {
        match self.kind {
            SendKind::First => 1,
            // Made while the first was under way.
            SendKind::Hedge => 2,
            SendKind::FallOver | SendKind::Retry | SendKind::Resume => sends,
        }
    }

    /// It as a listener is told of it; `None` for a first one.
    pub(crate) fn resend(&self, sends: u32, trail: Option<&Trail>) -> Option<Resend> {
        if self.kind == SendKind::First {
            return None;
        }
        let last = trail.and_then(|trail| trail.sends().last());
        Some(Resend {
            region: self.region,
            kind: self.kind,
            attempt: self.attempt(sends),
            waited: self.waited,
            after: last.map(|send| send.verdict),
        })
    }

    /// It as the trail keeps it, now that it has ended.
    pub(crate) fn ended(
        &self,
        started: Option<Tick>,
        ending: Ending,
        verdict: Verdict,
        now: Tick,
    ) -> Send {
        let started = started.unwrap_or(now);
        let at = self.at.unwrap_or(now);
        Send {
            region: self.region,
            kind: self.kind,
            probe: self.probe,
            waited: self.waited,
            at: at.since(started),
            took: now.since(at),
            ending,
            verdict,
        }
    }
}

impl Operation {
    /// Which send of the operation the one under way is, counted from 1; beside a hedge, the one
    /// that is spoken of.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.current.attempt(self.sends)
    }

    /// Why the send under way was made.
    #[must_use]
    pub const fn kind(&self) -> SendKind {
        self.current.kind
    }

    /// How long the operation had waited for the send under way.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.current.waited
    }

    /// The send under way as a listener is told of it (T9); `None` for the first of the operation.
    #[must_use]
    pub fn resend(&self) -> Option<Resend> {
        self.current.resend(self.sends, self.trail())
    }

    /// Whether a copy has answered, and was further behind than the caller takes (F3).
    #[must_use]
    pub fn met_a_stale_copy(&self) -> bool {
        self.past.as_ref().is_some_and(|past| past.too_old)
    }
}
