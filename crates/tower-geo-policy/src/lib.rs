//! The decisions behind `tower-geo`, and nothing else: no tokio, no tower, no clock, no
//! randomness, no I/O. `now` and random draws are arguments, so every decision can be tested
//! by calling a function.
//!
//! | question | module |
//! |---|---|
//! | is a request a read or a write, and may it be repeated? | [`intent`], [`azure_storage`], [`static_service`] |
//! | what does an answer mean, or its absence? | [`verdict`], [`fault`], [`azure_storage`] |
//! | which copies of the service are there, and how is a request directed to one? | [`region`], [`azure_storage`] |
//! | what comes next in this operation? | [`operation`] |
//! | how long is a wait? | [`backoff`], [`retry_after`], [`retry_settings`] |
//! | how many sends too many may there be? | [`budget`] |
//! | does a client above repeat what we gave up? | [`repeats`] |
//! | is a region trusted? | [`breaker`] |
//! | are writes taken? | [`gate`] |
//! | which services behave as one? | [`group`] |
//! | what do all users of a service share? | [`service_state`] |
//! | what does a client of a multi-region Cosmos account do? | `cosmos` (with the feature of that name) |
//! | who is told what happened? | [`events`], [`trail`] |
//! | how old may an answer of a copy be? | [`freshness`] |
//! | does a read see what was just written? | [`read_floor`] |

pub mod azure_storage;
pub mod backoff;
pub mod breaker;
pub mod budget;
mod conditions;
pub mod config_error;
#[cfg(feature = "cosmos")]
pub mod cosmos;
pub mod events;
pub mod fault;
pub mod freshness;
pub mod gate;
pub mod group;
pub mod intent;
pub mod operation;
mod percent;
pub mod provider;
pub mod read_floor;
pub mod region;
pub mod repeats;
pub mod retry_after;
pub mod retry_settings;
pub mod service_state;
pub mod static_service;
mod status_table;
mod sync;
pub mod tick;
pub mod trail;
pub mod verdict;
