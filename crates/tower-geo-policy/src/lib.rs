//! The decisions behind `tower-geo`, and nothing else: no tokio, no tower, no clock, no
//! randomness, no I/O. `now` and random draws are arguments, so every decision can be tested
//! by calling a function.
//!
//! | question | module |
//! |---|---|
//! | is a request a read or a write, and may it be repeated? | [`intent`], [`azure_storage`] |
//! | what does an answer mean? | [`verdict`], [`azure_storage`] |
//! | which copies of the service are there, and how is a request directed to one? | [`region`], [`azure_storage`] |
//! | is a region trusted? | [`breaker`] |
//! | are writes taken? | [`gate`] |
//! | which services behave as one? | [`group`] |
//! | what do all users of a service share? | [`service_state`] |
//! | who is told what happened? | [`events`] |
//! | what comes next in this operation? | `operation` |

pub mod azure_storage;
pub mod breaker;
pub mod config_error;
pub mod events;
pub mod gate;
pub mod group;
pub mod intent;
pub mod provider;
pub mod region;
pub mod retry_after;
pub mod service_state;
pub mod static_service;
mod sync;
pub mod tick;
pub mod verdict;
