//! The goals, each against what was measured.

use serde::Serialize;

use crate::measure::Measured;
use crate::measure::spread::round;
use crate::row::{FLOOR, OURS};

/// A goal and what became of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Goal {
    pub(crate) goal: &'static str,
    pub(crate) measured: f64,
    pub(crate) limit: f64,
    pub(crate) met: bool,
}

struct Ours<'a>(&'a [Measured]);

impl<'a> Ours<'a> {
    fn row(&self, name: &str) -> Option<&'a Measured> {
        let of_ours = |row: &&Measured| row.row == name && row.who == OURS;
        self.0.iter().find(of_ours)
    }

    fn instructions(&self, name: &str) -> Option<f64> {
        self.row(name)?.instructions.map(|count| count as f64)
    }

    fn allocations(&self, name: &str) -> Option<f64> {
        self.row(name)?.allocations.map(|count| count as f64)
    }

    fn bytes(&self, name: &str) -> Option<f64> {
        self.row(name)?.bytes.map(|count| count as f64)
    }

    fn ratio(&self, name: &str) -> Option<f64> {
        Some(self.row(name)?.ratio?.median)
    }

    /// Without the closure that every row is called through.
    fn alone(&self, name: &str) -> Option<f64> {
        let is_closure = |row: &&Measured| row.row == "floor/nothing" && row.who == FLOOR;
        let closure = self.0.iter().find(is_closure)?.instructions?;
        Some(self.instructions(name)? - closure as f64)
    }

    /// How much more instructions one row takes than another.
    fn beyond(&self, name: &str, bare: &str) -> Option<f64> {
        Some(self.instructions(name)? - self.instructions(bare)?)
    }

    fn allocations_beyond(&self, name: &str, bare: &str) -> Option<f64> {
        Some(self.allocations(name)? - self.allocations(bare)?)
    }
}

/// All goals whose rows were measured.
pub(crate) fn goals(rows: &[Measured]) -> Vec<Goal> {
    let ours = Ours(rows);
    let at_most = [
        (
            "breaker, closed: instructions to admit and settle",
            ours.alone("breaker/closed"),
            80.0,
        ),
        (
            "breaker, closed: allocations",
            ours.allocations("breaker/closed"),
            0.0,
        ),
        (
            "breaker, open: instructions of the check alone",
            ours.alone("breaker/open"),
            20.0,
        ),
        (
            "gate, a write refused: instructions of the check alone",
            ours.alone("gate/check"),
            20.0,
        ),
        (
            "gate, a write refused: allocations beyond the error's one",
            ours.allocations("gate/refused").map(|count| count - 1.0),
            0.0,
        ),
        (
            "four layers, trivial request: instructions beyond the client",
            ours.beyond("stack/trivial", "bare/trivial"),
            300.0,
        ),
        (
            "four layers, trivial request: allocations",
            ours.allocations("stack/trivial"),
            0.0,
        ),
        (
            "four layers, 8 headers: instructions beyond one clone of the request",
            ours.beyond("stack/request", "bare/request-cloned"),
            400.0,
        ),
        (
            "four layers, 8 headers: allocations beyond one clone of the request",
            ours.allocations_beyond("stack/request", "bare/request-cloned"),
            0.0,
        ),
        (
            "the same with a client that is Pending once: instructions",
            ours.beyond("stack/pending-once", "bare/pending-once"),
            400.0,
        ),
        (
            "the same with a client that is Pending once: allocations",
            ours.allocations_beyond("stack/pending-once", "bare/pending-once"),
            0.0,
        ),
        (
            "two threads on one breaker, against one: time of a call",
            ours.ratio("breaker/two-threads"),
            1.5,
        ),
        (
            "two threads on one stack, against one: time of a call",
            ours.ratio("stack/two-threads"),
            1.5,
        ),
        (
            "rate window, 1,000,000 calls against 10: instructions, relative difference",
            window(&ours),
            0.05,
        ),
        (
            "memory per region and stripe: bytes",
            ours.bytes("memory/region-and-stripe"),
            1024.0,
        ),
        (
            "memory, growth over 10,000,000 requests: bytes",
            ours.bytes("memory/growth"),
            0.0,
        ),
    ];
    let at_least = [
        (
            "hyper over HTTP/1.1, throughput with the stack against without",
            ours.ratio("hyper/stack"),
            0.97,
        ),
        (
            "hyper over HTTP/2, throughput with the stack against without",
            ours.ratio("hyper/stack-http2"),
            0.97,
        ),
    ];
    let goal = |goal, measured: f64, limit, met| Goal {
        goal,
        measured: round(measured, 3),
        limit,
        met,
    };
    let below = at_most.into_iter().filter_map(|(name, measured, limit)| {
        measured.map(|measured| goal(name, measured, limit, measured <= limit))
    });
    let above = at_least.into_iter().filter_map(|(name, measured, limit)| {
        measured.map(|measured| goal(name, measured, limit, measured >= limit))
    });
    below.chain(above).collect()
}

fn window(ours: &Ours<'_>) -> Option<f64> {
    let (few, many) = (
        ours.instructions("breaker/window-10")?,
        ours.instructions("breaker/window-1000000")?,
    );
    Some((many - few).abs() / few.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, instructions: u64, allocations: u64) -> Measured {
        Measured {
            row: name.to_owned(),
            who: OURS.to_owned(),
            instructions: Some(instructions),
            allocations: Some(allocations),
            ..Measured::default()
        }
    }

    #[test]
    fn goals_of_rows_that_were_not_measured_are_left_out() {
        assert!(goals(&[]).is_empty());
    }

    #[test]
    fn what_a_stack_adds_is_judged_not_what_its_client_takes() {
        let rows = [row("stack/trivial", 430, 0), row("bare/trivial", 140, 0)];
        let goals = goals(&rows);
        assert_eq!(goals.len(), 2);
        assert!(goals.iter().all(|goal| goal.met), "{goals:?}");
    }

    #[test]
    fn a_goal_that_is_missed_says_so() {
        let mut closure = row("floor/nothing", 7, 0);
        closure.who = FLOOR.to_owned();
        let goals = goals(&[row("breaker/closed", 88, 0), closure]);
        let met: Vec<_> = goals.iter().map(|goal| goal.met).collect();
        assert_eq!(met, [false, true]);
    }
}
