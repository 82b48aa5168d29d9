//! The stack against the storage emulator: real sockets, real signatures, real time.
//!
//! Needs `scripts/setup`; without it every test here fails and says so. What must come is polled for,
//! with deadlines far beyond what it takes, so that a busy machine changes nothing.
//!
//! | file | what |
//! |---|---|
//! | `outage.rs` | blob, queue and table under production host names, behind fronts that break |
//! | `kill.rs` | two processes, one of which is killed |
//! | `account.rs` | the account and the clients that both use |

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may panic, as tests do"
)]

mod account;
mod kill;
mod outage;
