//! The bodies of requests, when they may have to be sent again, and of responses, whose end is
//! the outcome of their send.

mod copy;
mod replay;
mod settle;

pub use copy::{BodyPolicy, Buffering, CloneBodies, EmptyBodies, Upload};
pub use replay::{BodyGone, ReplayBody};
pub use settle::SettleBody;
pub(crate) use settle::Settling;
