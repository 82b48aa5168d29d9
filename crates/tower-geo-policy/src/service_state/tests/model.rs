//! A circuit against a naive oracle that keeps every outcome with its time.

use proptest::prelude::*;

use super::*;
use crate::breaker::{RateRule, Sent};

/// All times in milliseconds.
#[derive(Clone, Debug)]
enum Step {
    /// Time passes.
    Wait(u64),
    /// A read is asked for; if it is admitted it stays under way.
    Start,
    /// The n-th of those under way ends.
    Settle(usize, Ending),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Success,
    Failure,
    Nothing,
    Throttled,
}

const WINDOW: u64 = 10_000;
const OPEN_FOR: u64 = 3000;
const GAP: u64 = 120_000;

/// What is expected, by the letter of the rules.
struct Oracle {
    streak_limit: usize,
    probes_limit: usize,
    close_after: usize,
    phase: Phase,
    generation: u64,
    /// Of this generation while closed: when, and whether it failed.
    outcomes: Vec<(u64, bool)>,
    streak: Vec<u64>,
    wait: u64,
    closed_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Closed,
    Open { until: u64 },
    HalfOpen { out: usize, good: usize },
}

#[derive(Clone, Copy, Debug)]
struct Ticket {
    generation: u64,
    probe: bool,
}

impl Oracle {
    fn start(&mut self, now: u64) -> Option<Ticket> {
        match self.phase {
            Phase::Open { until } if now < until => return None,
            Phase::Open { .. } => {
                self.phase = Phase::HalfOpen { out: 0, good: 0 };
                self.generation += 1;
            }
            _ => {}
        }
        if let Phase::HalfOpen { out, good } = self.phase {
            if out == self.probes_limit {
                return None;
            }
            self.phase = Phase::HalfOpen { out: out + 1, good };
        }
        Some(Ticket {
            generation: self.generation,
            probe: self.phase != Phase::Closed,
        })
    }

    fn open(&mut self, now: u64) {
        let in_a_row =
            self.phase != Phase::Closed || (self.wait > 0 && now - self.closed_at < self.wait);
        self.wait = if in_a_row {
            (self.wait * 2).min(4 * OPEN_FOR)
        } else {
            OPEN_FOR
        };
        self.phase = Phase::Open {
            until: now + self.wait,
        };
        self.generation += 1;
    }

    /// `opened` is what the circuit did; it may be right both ways when the last tenth of the
    /// window makes the difference.
    fn settle(&mut self, ticket: Ticket, ending: Ending, now: u64, opened: bool) {
        if ticket.generation != self.generation {
            return;
        }
        match (self.phase, ending) {
            (Phase::HalfOpen { out, good }, _) => {
                assert!(ticket.probe);
                match ending {
                    Ending::Success if good + 1 == self.close_after => {
                        self.phase = Phase::Closed;
                        self.generation += 1;
                        self.closed_at = now;
                        self.outcomes.clear();
                        self.streak.clear();
                    }
                    Ending::Success => {
                        self.phase = Phase::HalfOpen {
                            out: out - 1,
                            good: good + 1,
                        };
                    }
                    Ending::Nothing => self.phase = Phase::HalfOpen { out: out - 1, good },
                    Ending::Failure | Ending::Throttled => self.open(now),
                }
            }
            (Phase::Closed, Ending::Success) => {
                self.streak.clear();
                self.outcomes.push((now, false));
            }
            (Phase::Closed, Ending::Failure) => {
                if self.streak.last().is_some_and(|&last| now - last > GAP) {
                    self.streak.clear();
                }
                self.streak.push(now);
                self.outcomes.push((now, true));
                let by_streak = self.streak.len() >= self.streak_limit;
                let rate = |window: u64| {
                    let inside = self.outcomes.iter().filter(|(at, _)| now - at <= window);
                    let (all, bad) = inside.fold((0, 0), |(all, bad), &(_, failed)| {
                        (all + 1, bad + u64::from(failed))
                    });
                    all >= 10 && bad * 10 >= all * 6
                };
                // B3: give or take a tenth. Every boundary in between may be the real one, but
                // only those matter that divide the outcomes differently.
                let ages = self.outcomes.iter().map(|(at, _)| now - at);
                let boundaries = ages
                    .flat_map(|age| [age.saturating_sub(1), age])
                    .filter(|age| (WINDOW..=WINDOW + WINDOW / 10).contains(age))
                    .chain([WINDOW, WINDOW + WINDOW / 10]);
                let (mut some, mut all) = (false, true);
                for window in boundaries {
                    let reached = rate(window);
                    some |= reached;
                    all &= reached;
                }
                assert!(
                    !(by_streak || all) || opened,
                    "must be open at {now}: {} in a row, {:?}",
                    self.streak.len(),
                    self.outcomes
                );
                assert!(
                    by_streak || some || !opened,
                    "must not be open at {now}: {:?}",
                    self.outcomes
                );
                if opened {
                    self.open(now);
                }
            }
            (Phase::Closed, _) => {}
            (Phase::Open { .. }, _) => unreachable!("nothing is admitted while open"),
        }
    }
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        4 => Just(Ending::Success),
        6 => Just(Ending::Failure),
        1 => Just(Ending::Nothing),
        1 => Just(Ending::Throttled),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..800_u64).prop_map(Step::Wait),
        1 => (1..150_000_u64).prop_map(Step::Wait),
        8 => Just(Step::Start),
        8 => (0..8_usize, ending()).prop_map(|(n, e)| Step::Settle(n, e)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// B2 to B7: streaks, rates, waits, generations and slots are those of the oracle.
    #[test]
    fn a_circuit_does_what_the_oracle_says(
        steps in prop::collection::vec(step(), 1..250),
        streak in 3..12_u32,
        probes in 1..4_u32,
        close_after in 1..4_u32,
        begins in 0..100_000_u64,
    ) {
        let world = World::ungated(
            exact()
                .streak(streak)
                .rate(RateRule::new(0.6, Duration::from_millis(WINDOW), 10))
                .open_for(Duration::from_millis(OPEN_FOR))
                .max_open_for(Duration::from_millis(4 * OPEN_FOR))
                // Nothing is suspect here; silence has tests of its own.
                .suspect_after(secs(3600))
                .probes(probes)
                .close_after(close_after),
        );
        let mut oracle = Oracle {
            streak_limit: streak as usize,
            probes_limit: probes as usize,
            close_after: close_after as usize,
            phase: Phase::Closed,
            generation: 0,
            outcomes: Vec::new(),
            streak: Vec::new(),
            wait: 0,
            closed_at: 0,
        };
        let mut now = begins;
        let mut under_way: Vec<(Sent, Ticket)> = Vec::new();
        for step in steps {
            match step {
                Step::Wait(millis) => now += millis,
                Step::Start => {
                    let expected = oracle.start(now);
                    let sent = match world.state.admit(P, READS, ms(now)) {
                        Err(_) => None,
                        Ok(Admission::Plain) => world.state.send_started(P, READS, ms(now)),
                        Ok(Admission::Probe(slot)) => {
                            world.state.probe_started(slot, READS, Circuits::NONE, ms(now))
                        }
                    };
                    prop_assert_eq!(sent.map(|s| s.is_probe()), expected.map(|t| t.probe));
                    under_way.extend(sent.zip(expected));
                }
                Step::Settle(n, ending) => {
                    if under_way.is_empty() {
                        continue;
                    }
                    let (sent, ticket) = under_way.swap_remove(n % under_way.len());
                    let outcome = match ending {
                        Ending::Success => SUCCESS,
                        Ending::Failure => FAILURE,
                        Ending::Nothing => REFUSED,
                        Ending::Throttled => THROTTLED,
                    };
                    world.state.send_settled(sent, outcome, ms(now), || 1.0);
                    let opened = matches!(world.reads(now), Standing::Open { until: Some(_) });
                    oracle.settle(ticket, ending, now, opened);
                }
            }
            let state = world.state.circuit(P, READS, ms(now)).unwrap();
            let (phase, out, good) = match oracle.phase {
                Phase::Closed => ("closed", 0, 0),
                Phase::Open { .. } => ("open", 0, 0),
                Phase::HalfOpen { out, good } => ("half-open", out, good),
            };
            prop_assert_eq!(state.phase.as_str(), phase);
            prop_assert_eq!(state.probes as usize, out);
            prop_assert_eq!(state.good_probes as usize, good);
            prop_assert_eq!(u64::from(state.generation), oracle.generation);
            if let Phase::Open { until } = oracle.phase {
                prop_assert_eq!(state.until, Some(ms(until)));
            }
            if oracle.phase == Phase::Closed {
                prop_assert_eq!(state.streak as usize, oracle.streak.len());
                prop_assert_eq!(world.state.is_calm(), true);
            }
        }
    }
}
