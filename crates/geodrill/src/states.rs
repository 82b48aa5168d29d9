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

/// How far from usual a state is; worse ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The worst state in an interval of time, the end excluded.
    pub(crate) fn worst(&self, from: u64, until: u64) -> Level {
        let before = self.changes.iter().rev().find(|(at, _)| *at <= from);
        let within = self
            .changes
            .iter()
            .filter(|(at, _)| *at > from && *at < until);
        before
            .into_iter()
            .chain(within)
            .map(|(_, level)| *level)
            .max()
            .unwrap_or(Level::Usual)
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
    fn a_stretch_of_time_shows_its_worst_state() {
        let track = Track {
            label: String::new(),
            changes: vec![
                (10, Level::Stopped),
                (20, Level::Trying),
                (25, Level::Usual),
            ],
        };
        assert_eq!(track.worst(0, 10), Level::Usual);
        assert_eq!(track.worst(0, 11), Level::Stopped);
        assert_eq!(track.worst(12, 15), Level::Stopped);
        assert_eq!(track.worst(20, 30), Level::Trying);
        assert_eq!(track.worst(25, 30), Level::Usual);
        assert_eq!(
            track.stretches(40),
            [(10, 20, Level::Stopped), (20, 25, Level::Trying)]
        );
    }
}
