/// One of the two regions of a test account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an account has two regions; tests match on both"
)]
pub enum Side {
    /// The region that takes writes.
    Primary,
    /// The region that only has a copy.
    Secondary,
}

impl Side {
    /// Both, primary first.
    pub const BOTH: [Self; 2] = [Self::Primary, Self::Secondary];

    /// The other region.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Primary => Self::Secondary,
            Self::Secondary => Self::Primary,
        }
    }

    /// What an account name gets at its end in this region.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Primary => "",
            Self::Secondary => "-secondary",
        }
    }
}
