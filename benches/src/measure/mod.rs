//! How a row is measured.

pub(crate) mod allocations;
pub(crate) mod callgrind;
pub(crate) mod clock;
pub(crate) mod memory;
pub(crate) mod spread;
pub(crate) mod threads;
pub(crate) mod time;

use serde::{Deserialize, Serialize};

use crate::row::{Row, Work};
pub(crate) use spread::Spread;

/// What was found for a row. What does not apply is left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) row: String,
    pub(crate) who: String,
    /// Of one call, by callgrind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<u64>,
    /// Of one call, or what is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allocations: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<i64>,
    /// Of one call, thread CPU time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ns: Option<Spread>,
    /// Two threads at once against one; with the stack against without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<Spread>,
    /// Nanoseconds of a call on one thread, measured between the batches of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) one_thread_ns: Option<Spread>,
    /// Batches of two threads, and how many of them had both cores to themselves: only those count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batches: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) clean_batches: Option<u32>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) loopback: Option<crate::loopback::Figures>,
    #[serde(default)]
    pub(crate) about: String,
}

/// What to leave out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) instructions: bool,
    pub(crate) time: bool,
}

/// Measures one row, except for those that are measured together.
pub(crate) fn measure(row: &Row, want: Want, instructions: Option<u64>) -> Measured {
    let mut measured = Measured {
        row: row.name.to_owned(),
        who: row.who.to_owned(),
        about: row.about.to_owned(),
        instructions,
        ..Measured::default()
    };
    match row.work {
        Work::Calls(start) => {
            let mut call = start();
            (0..200).for_each(|_| call());
            measured.count(1_000, &mut call);
            if want.time {
                measured.ns = Some(time::repeated(&mut call));
            }
        }
        Work::Fresh(calls, start) => {
            measured.count(calls, &mut start());
            if want.time {
                measured.ns = Some(time::fresh(calls, start));
            }
        }
        Work::Threads(start) if want.time => {
            let found = threads::two_against_one(&start());
            measured.batches = Some(found.batches);
            measured.clean_batches = Some(found.clean);
            measured.one_thread_ns = found.one;
            measured.ns = found.two;
            measured.ratio = found.ratio;
        }
        Work::Memory(hold) => {
            let held = hold();
            measured.allocations = held.allocations;
            measured.bytes = Some(held.bytes);
        }
        Work::Threads(_) | Work::Loopback(_) => {}
    }
    measured
}

impl Measured {
    fn count(&mut self, calls: u32, call: &mut crate::row::Call) {
        let (allocations, bytes) = allocations::of_one(calls, call);
        self.allocations = Some(allocations);
        self.bytes = Some(bytes);
    }
}
