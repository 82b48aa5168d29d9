//! The states that circuits and gates were in, from the events that changed them.

use crate::run::Report;
use crate::stage::Event;

/// A circuit or a gate of one service, and when it changed.
#[derive(Debug)]
pub(crate) struct Track {
    /// Such as `primary reads`, or `gate`.
    pub(crate) label: String,
    changes: Vec<(u64, Level)>,
}

/// How far from usual a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Closed; read-write; in use.
    Usual,
    /// Half open; on trial.
    Trying,
    /// Open; read-only; set aside.
    Stopped,
}

impl Level {
    fn of(state: &str) -> Self {
        match state {
            "open" | "read-only" | "set-aside" => Self::Stopped,
            "half-open" | "trial" => Self::Trying,
            _ => Self::Usual,
        }
    }
}

/// A set of states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) usual: bool,
    pub(crate) trying: bool,
    pub(crate) stopped: bool,
}

impl Levels {
    const fn add(&mut self, level: Level) {
        match level {
            Level::Usual => self.usual = true,
            Level::Trying => self.trying = true,
            Level::Stopped => self.stopped = true,
        }
    }
}

/// Everything of a service that changed at least once: circuits by region, then what was set
/// aside, then the gate.
pub(crate) fn tracks(report: &Report, service: usize) -> Vec<Track> {
    let mut tracks: Vec<((usize, usize, u8), Track)> = Vec::new();
    for record in &report.seen.events {
        if record.service != service {
            continue;
        }
        let region = record.region.unwrap_or(0);
        let regions = report
            .services
            .get(service)
            .map_or(&[][..], |info| &info.regions);
        let name = regions.get(region).map_or("", String::as_str);
        let (place, label, state) = match record.event {
            Event::Breaker { circuit, to, .. } => {
                let which = u8::from(circuit != "reads");
                ((0, region, which), format!("{name} {circuit}"), to)
            }
            Event::Secondary { to } => ((1, region, 0), "set aside".to_owned(), to),
            Event::Gate { to, .. } => ((2, 0, 0), "gate".to_owned(), to),
        };
        let change = (record.at_ms, Level::of(state));
        match tracks.iter_mut().find(|(other, _)| *other == place) {
            Some((_, track)) => track.changes.push(change),
            None => tracks.push((
                place,
                Track {
                    label,
                    changes: vec![change],
                },
            )),
        }
    }
    tracks.sort_by_key(|(place, _)| *place);
    tracks.into_iter().map(|(_, track)| track).collect()
}

impl Track {
    /// The states in an interval of time, the end excluded: one that lasted no time counts too.
    pub(crate) fn within(&self, from: u64, until: u64) -> Levels {
        let mut levels = Levels::default();
        let mut at_first = Level::Usual;
        let mut changed_at_once = false;
        for (at, level) in &self.changes {
            if *at < from {
                at_first = *level;
            } else if *at < until {
                changed_at_once |= *at == from;
                levels.add(*level);
            }
        }
        if !changed_at_once {
            levels.add(at_first);
        }
        levels
    }

    /// The stretches of time in which the state was not the usual one.
    pub(crate) fn stretches(&self, end: u64) -> Vec<(u64, u64, Level)> {
        let ends = self.changes.iter().skip(1).map(|(at, _)| *at).chain([end]);
        self.changes
            .iter()
            .zip(ends)
            .filter(|((from, level), until)| *level != Level::Usual && until > from)
            .map(|((from, level), until)| (*from, until, *level))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_of_time_has_all_its_states() {
        let track = Track {
            label: String::new(),
            changes: vec![
                (10, Level::Stopped),
                (20, Level::Trying),
                (25, Level::Usual),
                // A probe that is answered at once.
                (30, Level::Trying),
                (30, Level::Usual),
            ],
        };
        let shown = |from, until| {
            let Levels {
                usual,
                trying,
                stopped,
            } = track.within(from, until);
            [(usual, '-'), (trying, '?'), (stopped, '#')]
                .into_iter()
                .filter_map(|(there, sign)| there.then_some(sign))
                .collect::<String>()
        };
        assert_eq!(shown(0, 10), "-");
        assert_eq!(shown(0, 11), "-#");
        assert_eq!(shown(10, 20), "#");
        assert_eq!(shown(12, 15), "#");
        assert_eq!(shown(20, 30), "-?");
        assert_eq!(shown(26, 30), "-");
        assert_eq!(shown(30, 31), "-?");
        assert_eq!(shown(0, 40), "-?#");
        assert_eq!(
            track.stretches(40),
            [(10, 20, Level::Stopped), (20, 25, Level::Trying)]
        );
    }
}
