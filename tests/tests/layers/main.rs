//! What the layers of tower-geo promise, against their public interface. The judge is a scripted
//! transport that notes host, method and time of every send.
//!
//! One question, one file; each test cites the rule that it guards.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which are to fail loudly"
)]

mod server_gate;
mod stacks;
mod support;
mod watching;

mod alone;
mod bodies;
mod budget_and_repeats;
mod cancellation;
mod contracts;
mod cosmos;
mod downloads;
mod events;
mod faults;
mod fresh_connections;
mod freshness;
mod gate;
mod hedging;
mod metrics;
mod order;
mod permits;
mod recovery;
mod resume;
mod secrets;
mod telemetry;
mod told;
mod writes_stay;
