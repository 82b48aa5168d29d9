//! What can be told of the send under way (E3, T9).

use std::time::Duration;

use crate::events::Resend;
use crate::trail::SendKind;

use super::Operation;

impl Operation {
    /// Which send of the operation the one under way is, counted from 1; beside a hedge, the one
    /// that is spoken of.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        match self.current.kind {
            SendKind::First => 1,
            // Made while the first was under way.
            SendKind::Hedge => 2,
            SendKind::FallOver | SendKind::Retry => self.sends,
        }
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
        let kind = self.current.kind;
        if kind == SendKind::First {
            return None;
        }
        let last = self.trail().and_then(|trail| trail.sends().last());
        Some(Resend {
            region: self.current.region,
            kind,
            attempt: self.attempt(),
            waited: self.current.waited,
            after: last.map(|send| send.verdict),
        })
    }

    /// Whether a copy has answered, and was further behind than the caller takes (F3).
    #[must_use]
    pub fn met_a_stale_copy(&self) -> bool {
        self.past.as_ref().is_some_and(|past| past.too_old)
    }
}
