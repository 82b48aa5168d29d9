//! The stack against the official in-memory emulator of a Cosmos DB account with several regions:
//! real sockets, real signatures, real time.
//!
//! What must come is waited for, with deadlines far beyond what it takes, so that a busy machine
//! changes nothing. The judge is the account: which region got what, in which order.
//!
//! | file | what |
//! |---|---|
//! | `session_and_preference.rs` | where requests go while nothing fails |
//! | `membership.rs` | regions that leave and join |
//! | `writers.rs` | failovers, accounts with several writers |
//! | `outages.rs` | regions that are gone, silent, failing or busy |
//! | `account_reads.rs` | who reads the account, when, and from where |
//! | `random_changes.rs` | changes by chance, and what always holds |
//! | `peer_itself.rs` | that the account behaves as the service does |
//! | `peer/`, `app.rs` | the two sides of the wire |

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may panic, as tests do"
)]

mod app;
mod peer;

mod account_reads;
mod membership;
mod outages;
mod peer_itself;
mod random_changes;
mod session_and_preference;
mod writers;
