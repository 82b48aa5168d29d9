//! The decision maker, rule by rule. Whole outages are in the drills.

mod account;
mod hedging;
mod in_place;
mod limits;
mod moves;
mod properties;
mod refusals;

pub(super) use super::super::{AccountSettings, Cause, ReadStep};
pub(super) use super::bench::*;
pub(super) use super::*;
pub(super) use crate::budget::Budget;
pub(super) use crate::fault::Fault;
pub(super) use crate::operation::{Advice, Advised, Again, Failure, Planned};
pub(super) use crate::region::Endpoint;
