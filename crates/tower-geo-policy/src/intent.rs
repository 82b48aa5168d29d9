//! What a request does: read, write or neither (rules I1 to I7).

/// What a request does, as far as redirecting and repeating it are concerned.
///
/// Providers make these; see [`Provider::intent`](crate::provider::Provider::intent).
///
/// ```
/// use tower_geo_policy::intent::Intent;
///
/// assert!(Intent::READ.is_redirectable());
/// assert!(Intent::WRITE_ONCE.is_write());
/// assert!(!Intent::WRITE_ONCE.is_harmless_to_repeat());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Intent(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Read,
    ReadAtWriter,
    ReadAtCopy,
    WriteHarmless,
    WriteOnce,
    Neutral,
}

impl Intent {
    /// A read that any region may answer.
    pub const READ: Self = Self(Kind::Read);
    /// A read that only the region that takes writes answers, such as a blob query (I3).
    pub const READ_AT_WRITER: Self = Self(Kind::ReadAtWriter);
    /// A read that only a copy answers, such as the statistics of a storage service (I5).
    pub const READ_AT_COPY: Self = Self(Kind::ReadAtCopy);
    /// A write that gives the same result when it arrives twice (V1).
    pub const WRITE_HARMLESS: Self = Self(Kind::WriteHarmless);
    /// A write that must not arrive twice (V1).
    pub const WRITE_ONCE: Self = Self(Kind::WriteOnce);
    /// Neither: sent to the writer once; never gated, redirected, retried, refused or counted.
    pub const NEUTRAL: Self = Self(Kind::Neutral);

    /// Whether this is a read, wherever it may go.
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(self.0, Kind::Read | Kind::ReadAtWriter | Kind::ReadAtCopy)
    }

    /// Whether this is a write. Writes are stopped by the read-only gate (G2).
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(self.0, Kind::WriteHarmless | Kind::WriteOnce)
    }

    /// Whether this is neither a read nor a write (I3).
    #[must_use]
    pub const fn is_neutral(self) -> bool {
        matches!(self.0, Kind::Neutral)
    }

    /// Whether another region may be asked instead.
    #[must_use]
    pub const fn is_redirectable(self) -> bool {
        matches!(self.0, Kind::Read)
    }

    /// Whether only a copy, never the writer, answers this read (I5).
    #[must_use]
    pub const fn is_for_copy(self) -> bool {
        matches!(self.0, Kind::ReadAtCopy)
    }

    /// Whether a second arrival changes nothing: true for every read, and for the writes of V1.
    #[must_use]
    pub const fn is_harmless_to_repeat(self) -> bool {
        matches!(
            self.0,
            Kind::Read | Kind::ReadAtWriter | Kind::ReadAtCopy | Kind::WriteHarmless
        )
    }
}

/// An [`Intent`] and the rule that it follows from, in words for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ruling {
    /// What the request does.
    pub intent: Intent,
    /// Why: one short sentence without a final dot, in lower case.
    pub why: &'static str,
}

impl Ruling {
    /// An intent and its reason.
    #[must_use]
    pub const fn new(intent: Intent, why: &'static str) -> Self {
        Self { intent, why }
    }
}
