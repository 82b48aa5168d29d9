//! Lose a region, keep reading, refuse writes, and come back: on real HTTP.
//!
//! ```text
//! cargo run --release -p outage                      # the embedded two-region store
//! cargo run --release -p outage -- --failure freeze  # the primary turns into a black hole
//! cargo run --release -p outage -- --azurite         # the storage emulator (scripts/setup installs it)
//! ```
//!
//! | question | file |
//! |---|---|
//! | how is a client made? | `client.rs` |
//! | what are the two regions, and how do they fail? | `world.rs` |
//! | what is read and written, and what became of it? | `load.rs` |
//! | what happens when? | `play.rs` |
//! | when does the story hold? | `story.rs` |
//! | what is shown? | `screen.rs`, `report.rs` |

mod client;
mod load;
mod options;
mod play;
mod report;
mod screen;
mod story;
mod world;

use std::process::ExitCode;

use clap::Parser as _;

use crate::options::{Format, Options};

/// The story does not hold.
const BROKEN: u8 = 1;
/// The story could not be played. (2 is for options that make no sense: clap's own.)
const NOT_PLAYED: u8 = 3;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    if let Err(problem) = options.validate() {
        problem.exit();
    }
    match play::play(&options).await {
        Ok(report) => {
            match options.format {
                Format::Text => screen::print(&report.to_text()),
                Format::Json => screen::print(&report.to_json()),
            }
            if report.holds() {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(BROKEN)
            }
        }
        Err(problem) => {
            screen::complain(&format!("outage: {problem}"));
            ExitCode::from(NOT_PLAYED)
        }
    }
}
