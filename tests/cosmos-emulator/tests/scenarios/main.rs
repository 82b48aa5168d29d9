//! The stack against the official in-memory emulator of a Cosmos DB account with several regions:
//! real sockets, real signatures, real time.
//!
//! What must come is waited for, with deadlines far beyond what it takes, so that a busy machine
//! changes nothing.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may panic, as tests do"
)]

mod peer;
mod peer_itself;
