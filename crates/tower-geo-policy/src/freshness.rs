//! How old an answer from a copy may be (F2).

use std::time::SystemTime;

/// What is known about the age of an answer from a copy. It never says "newest".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Freshness {
    /// The object is older than the last synchronisation: all that was written before it is there.
    Consistent,
    /// The object is as new as the last synchronisation, or newer: what belongs to it may be missing.
    PossiblyInconsistent,
    /// The time of the object or of the last synchronisation is not known.
    Unknown,
}

impl Freshness {
    /// Compares the object's own time with the time of the last synchronisation (F2).
    ///
    /// Both have a resolution of a second, so equal times are *possibly inconsistent*.
    #[must_use]
    pub fn judge(object: Option<SystemTime>, last_sync: Option<SystemTime>) -> Self {
        match (object, last_sync) {
            (Some(object), Some(last_sync)) if object < last_sync => Self::Consistent,
            (Some(_), Some(_)) => Self::PossiblyInconsistent,
            _ => Self::Unknown,
        }
    }

    /// The word for it in drills.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::PossiblyInconsistent => "possibly-inconsistent",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// F2: earlier is consistent, equal or later possibly inconsistent, a missing time unknown.
    #[test]
    fn the_time_of_the_object_is_compared_with_the_last_synchronisation() {
        let second = |n| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(n));
        let sync = second(100);
        assert_eq!(Freshness::judge(second(99), sync), Freshness::Consistent);
        assert_eq!(
            Freshness::judge(sync, sync),
            Freshness::PossiblyInconsistent
        );
        assert_eq!(
            Freshness::judge(second(101), sync),
            Freshness::PossiblyInconsistent
        );
        assert_eq!(Freshness::judge(None, sync), Freshness::Unknown);
        assert_eq!(Freshness::judge(second(1), None), Freshness::Unknown);
    }
}
