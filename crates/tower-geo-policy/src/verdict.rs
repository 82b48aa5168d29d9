//! What an answer, or the lack of one, means: the vocabulary of the verdict table.

/// What became of one send.
///
/// Providers judge answers ([`Provider::verdict`](crate::provider::Provider::verdict)); faults
/// without an answer are judged where the transport is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// The service answered the question: 2xx, 3xx, 404, 409, 412, 416.
    Answered,
    /// The service answered that the request was wrong. It says nothing about the region, except
    /// that something `alive` answered, which is enough for a probe (B5).
    Refused {
        /// Whether the answer surely comes from the service itself (it carries a request id).
        alive: bool,
    },
    /// The service asks for patience; surely not applied.
    Throttled,
    /// The service failed; a write may have been applied.
    Transient,
    /// Another service failed on which the request depends (the source of a copy). Handled as
    /// [`Transient`](Self::Transient), but it says nothing about this region.
    TransientElsewhere,
    /// Surely not processed: no connection, no name, no TLS, refused by HTTP/2.
    Unreachable,
    /// Sent, and no whole answer: reset, time-out, a body that broke off.
    Ambiguous,
    /// Given up while it was under way, because another send of the operation had won (H2). What
    /// that says about the region is not for the verdict to tell (B8, H4).
    Dropped,
}

/// What a verdict says about the health of the region, for the circuits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Evidence {
    /// Ends a streak, counts as a call, settles a probe.
    Success,
    /// Settles a probe as a success and counts for nothing else.
    Alive,
    /// Counts for nothing; a probe gets its slot back undecided.
    Nothing,
    /// Fails a probe and counts for nothing else.
    FailsProbe,
    /// A failure of the circuit that the request used.
    Failure,
    /// A failure of reads and of writes (B1).
    FailureOfBoth,
}

impl Verdict {
    /// The word for it in events and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused { .. } => "refused",
            Self::Throttled => "throttled",
            Self::Transient => "transient",
            Self::TransientElsewhere => "transient-elsewhere",
            Self::Unreachable => "unreachable",
            Self::Ambiguous => "ambiguous",
            Self::Dropped => "dropped",
        }
    }

    /// What the circuits learn from this verdict.
    #[must_use]
    pub const fn evidence(self) -> Evidence {
        match self {
            Self::Answered => Evidence::Success,
            Self::Refused { alive: true } => Evidence::Alive,
            Self::Refused { alive: false } | Self::TransientElsewhere | Self::Dropped => {
                Evidence::Nothing
            }
            Self::Throttled => Evidence::FailsProbe,
            Self::Transient | Self::Ambiguous => Evidence::Failure,
            Self::Unreachable => Evidence::FailureOfBoth,
        }
    }

    /// Whether the answer is handed over as it is, to a read and to a write (but see R4).
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Answered | Self::Refused { .. })
    }

    /// Whether a write with this verdict was surely not applied, so that sending it again is
    /// safe whatever it is (V1).
    #[must_use]
    pub const fn surely_not_applied(self) -> bool {
        matches!(self, Self::Throttled | Self::Unreachable)
    }

    /// Whether a write with this verdict may have been applied although nobody said so (V1, V2).
    #[must_use]
    pub const fn may_be_applied(self) -> bool {
        matches!(
            self,
            Self::Transient | Self::TransientElsewhere | Self::Ambiguous
        )
    }
}

/// What the answer of a copy (not of the writer) to a read means (R4, R6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FromCopy {
    /// Nothing special: the verdict decides.
    Usual,
    /// Perhaps not replicated yet, or not allowed here: the copy is not used again in this
    /// operation and the writer decides (404, 412, 400, 401, 403).
    WriterDecides,
    /// The account cannot be read from this copy at all: it is set aside (R6).
    MayNotBeRead,
}
