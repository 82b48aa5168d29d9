//! What goes wrong, where, and when: the outages of the drill gallery as triggers that begin and
//! end.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use crate::region::Side;

/// How long a throttled client is told to wait.
pub(crate) const TOLD_WAIT: Duration = Duration::from_secs(5);
/// Down for so long, up for so long, again and again.
const FLAP: (Duration, Duration) = (Duration::from_secs(12), Duration::from_secs(4));
/// When neither region answers, the secondary comes back so much sooner.
const SOONER: Duration = Duration::from_secs(10);

/// What a region does instead of its work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// Connections are refused; those that are open are reset as it begins.
    Down,
    /// Nothing is answered, not even what has been asked before.
    Silent,
    /// This share of the answers is a 503, after the work is done.
    Errors(f64),
    /// Work takes so many times as long.
    Slow(f64),
    /// Everybody is told to come back later ([`TOLD_WAIT`]).
    Throttled,
    /// New objects have not arrived yet.
    Lagging,
}

/// Trouble in one region for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spell {
    pub(crate) side: Side,
    pub(crate) from: Duration,
    pub(crate) until: Duration,
    pub(crate) trouble: Trouble,
}

/// An outage of the gallery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outage {
    /// The primary refuses every connection
    HardDown,
    /// The primary takes requests and never answers; callers leave after two seconds
    BlackHole,
    /// Half of the primary's answers are 503
    HalfOfItFails,
    /// The primary takes ten times as long
    Slow,
    /// The primary asks for patience
    Throttled,
    /// The primary fails for 12 s, works for 4 s, and again
    Flapping,
    /// The primary is down, and the secondary does not have the newest objects
    SecondaryLags,
    /// Neither region answers
    BothDown,
    /// The primary refuses every connection, and clients only write
    OnlyWrites,
    /// The primary comes back under the load of many clients, with little to spare
    RecoveryStampede,
}

impl Outage {
    /// All of them, in the order of the gallery.
    pub(crate) const GALLERY: [Self; 10] = [
        Self::HardDown,
        Self::BlackHole,
        Self::HalfOfItFails,
        Self::Slow,
        Self::Throttled,
        Self::Flapping,
        Self::SecondaryLags,
        Self::BothDown,
        Self::OnlyWrites,
        Self::RecoveryStampede,
    ];

    /// Its name in the gallery.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::HardDown => "hard-down",
            Self::BlackHole => "black-hole",
            Self::HalfOfItFails => "half-of-it-fails",
            Self::Slow => "slow",
            Self::Throttled => "throttled",
            Self::Flapping => "flapping",
            Self::SecondaryLags => "secondary-lags",
            Self::BothDown => "both-down",
            Self::OnlyWrites => "only-writes",
            Self::RecoveryStampede => "recovery-stampede",
        }
    }

    /// What happens between two moments.
    pub(crate) fn spells(self, from: Duration, until: Duration) -> Vec<Spell> {
        let at = |side, from, until, trouble| Spell {
            side,
            from,
            until,
            trouble,
        };
        let primary = |trouble| at(Side::Primary, from, until, trouble);
        match self {
            Self::HardDown | Self::OnlyWrites | Self::RecoveryStampede => {
                vec![primary(Trouble::Down)]
            }
            Self::BlackHole => vec![primary(Trouble::Silent)],
            Self::HalfOfItFails => vec![primary(Trouble::Errors(0.5))],
            Self::Slow => vec![primary(Trouble::Slow(10.0))],
            Self::Throttled => vec![primary(Trouble::Throttled)],
            Self::Flapping => {
                let (down, up) = FLAP;
                let mut spells = Vec::new();
                let mut next = from;
                while next < until {
                    let end = (next + down).min(until);
                    spells.push(at(Side::Primary, next, end, Trouble::Errors(1.0)));
                    next += down + up;
                }
                spells
            }
            Self::SecondaryLags => vec![
                primary(Trouble::Down),
                at(Side::Secondary, from, until, Trouble::Lagging),
            ],
            Self::BothDown => {
                let sooner = until.saturating_sub(SOONER).max(from);
                vec![
                    primary(Trouble::Down),
                    at(Side::Secondary, from, sooner, Trouble::Down),
                ]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn every_outage_begins_and_ends_when_it_should() {
        for outage in Outage::GALLERY {
            let spells = outage.spells(secs(20), secs(112));
            let first = spells.iter().map(|spell| spell.from).min().unwrap();
            let last = spells.iter().map(|spell| spell.until).max().unwrap();
            assert_eq!(first, secs(20), "{outage:?}");
            assert_eq!(last, secs(112), "{outage:?}");
            assert!(spells.iter().all(|spell| spell.from < spell.until));
        }
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for outage in Outage::GALLERY {
            let value = outage.to_possible_value().unwrap();
            assert_eq!(value.get_name(), outage.name());
        }
    }
}
