//! What is noted of a run, by its judges: the wire, the callers, and the events of the layers.

use std::time::Duration;

use tower_geo::{Circuit, CircuitPhase};

use crate::region::Side;

/// Everything that happened. Times count from the start of the run.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// In order.
    pub(crate) sends: Vec<Send>,
    /// In the order in which they ended.
    pub(crate) operations: Vec<Operation>,
    /// In order.
    pub(crate) turns: Vec<Turn>,
}

/// A request that left for the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Send {
    pub(crate) at: Duration,
    pub(crate) client: u32,
    pub(crate) side: Side,
    /// Whether the region failed, or never answered.
    pub(crate) failed: bool,
}

/// A call into the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) at: Duration,
    pub(crate) client: u32,
    pub(crate) is_write: bool,
    /// Where it went first, as far as its caller can tell; the primary if nothing is said.
    pub(crate) first: Side,
    pub(crate) end: End,
}

/// What the caller of an operation got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// What was asked for.
    Good,
    /// 404 or a 503.
    BadAnswer,
    /// A refusal; nothing was sent.
    Refused,
    /// Another error.
    Failed,
    /// Nothing: the caller did not wait that long.
    Left,
}

/// A circuit of the primary changed its state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) at: Duration,
    pub(crate) client: u32,
    pub(crate) circuit: Circuit,
    pub(crate) to: CircuitPhase,
}
