//! A fleet meets an outage, in virtual time.
//!
//! ```text
//! cargo run --release -p tower-geo-simulations -- table    # ten outages, and the goals
//! cargo run --release -p tower-geo-simulations -- grid     # does everything return to normal?
//! ```
//!
//! The layers are the real ones with the product's defaults, jitter and ramp included. What is
//! simulated is the rest: clients that know nothing of each other, regions that can do so much and
//! no more, and time.
//!
//! | question | file |
//! |---|---|
//! | what can a region do, and what becomes of a request? | `region.rs` |
//! | what goes wrong, and when? | `outage.rs` |
//! | what does a client ask for? | `client.rs` |
//! | what is a run made of? | `fleet.rs` |
//! | what is noted, and what does it come to? | `log.rs`, `figures.rs`, `goodput.rs` |
//! | what has to hold? | `goals.rs`, `grid.rs` |
//! | how are runs spread over processors? | `parallel.rs` |
//! | what is shown? | `table.rs`, `screen.rs` |

mod client;
mod figures;
mod fleet;
mod goals;
mod goodput;
mod grid;
mod log;
mod options;
mod outage;
mod parallel;
mod random;
mod region;
mod screen;
mod table;
mod wire;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use tower_geo::BoxError;

use crate::options::{Command, Options};

/// A goal is missed, or a point does not return to normal.
const MISSED: u8 = 1;
/// It could not be played. (2 is for options that make no sense: clap's own.)
const NOT_PLAYED: u8 = 3;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(MISSED),
        Err(problem) => {
            screen::complain(&format!("simulations: {problem}"));
            ExitCode::from(NOT_PLAYED)
        }
    }
}

/// Whether everything holds.
fn run(options: &Options) -> Result<bool, BoxError> {
    match &options.command {
        Command::Table => {
            let table = table::Table::play(options.seed, options.threads())?;
            screen::print(&table.show(options.format)?);
            Ok(table.holds())
        }
        Command::Grid {
            outages,
            length,
            bare,
            worst,
        } => {
            let common = grid::Common {
                seed: options.seed,
                length: Duration::from_secs(*length),
                bare: *bare,
            };
            let outages = if outages.is_empty() {
                &grid::USUAL_OUTAGES
            } else {
                outages.as_slice()
            };
            let points = grid::points(outages);
            let progress = screen::Progress::new(points.len());
            let done = |judged: &grid::Judged| progress.done(judged.holds);
            let all = grid::judge_all(&points, common, options.threads(), &done)?;
            progress.finish();
            screen::print(&table::show_grid(&all, *worst, options.format)?);
            Ok(all.iter().all(|judged| judged.holds))
        }
    }
}
