//! A Cosmos account loses a region, gains one, and moves its writer twice: on real HTTP.
//!
//! ```text
//! cargo run -p cosmos-regions
//! cargo run -p cosmos-regions -- --format json
//! ```
//!
//! The account is played by four small servers on loopback, one for the global host and one for
//! each region; the host names lead there through a resolver of the client's own, so that a name
//! can be withdrawn as the service does when a region goes offline.
//!
//! | question | file |
//! |---|---|
//! | how is a client made? | `client.rs` |
//! | what does the account say, and what do its regions answer? | `account.rs` |
//! | how are they reached? | `hosts.rs` |
//! | what is read and written, and what became of it? | `load.rs` |
//! | what happens when? | `play.rs` |
//! | what is claimed, and does it hold? | `story.rs` |
//! | what is shown? | `report.rs` |

mod account;
mod client;
mod hosts;
mod load;
mod options;
mod play;
mod report;
mod story;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use crate::options::{Format, Options};

/// A claim does not hold.
const BROKEN: u8 = 1;
/// The story could not be played. (2 is for options that make no sense: clap's own.)
const NOT_PLAYED: u8 = 3;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    match play::play(&options).await {
        Ok(report) => {
            let text = match options.format {
                Format::Text => report.to_text(),
                Format::Json => report.to_json(),
            };
            print(&text);
            if report.holds() {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(BROKEN)
            }
        }
        Err(problem) => {
            // Nobody may be reading; the exit code still tells.
            let _ = writeln!(io::stderr(), "cosmos-regions: {problem}");
            ExitCode::from(NOT_PLAYED)
        }
    }
}

/// A line on standard output. If nobody reads it any more, the exit code still tells.
fn print(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
