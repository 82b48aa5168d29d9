//! Services, bodies and futures that notice when a layer breaks its contract.
//!
//! | type | notices |
//! |---|---|
//! | [`PanicsUnready`] | `call` without `poll_ready` before it, on this very clone |
//! | [`PendingTimes`] | a layer that gives up, or forgets its waker, when readiness takes a while |
//! | [`DropCounter`] | futures and bodies that are kept or lost |
//! | [`Script`] | what was sent where and when; it answers by host and method |

mod drops;
mod readiness;
mod script;
#[cfg(test)]
mod tests;

pub use self::{
    drops::{Counted, DropCounter},
    readiness::{PanicsUnready, PendingTimes},
    script::{Reply, Script, ScriptBody, ScriptService, Sent},
};
