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
//! | how long does a server ask to be left alone? | [`retry_after`] |
//! | what comes next in this operation? | `operation` |

pub mod azure_storage;
pub mod breaker;
mod conditions;
pub mod config_error;
pub mod intent;
mod percent;
pub mod provider;
pub mod region;
pub mod retry_after;
pub mod static_service;
mod status_table;
pub mod verdict;
