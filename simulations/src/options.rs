//! The command line.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use clap::{Parser, Subcommand, ValueEnum};

use crate::grid::OUTAGE;
use crate::outage::Outage;

/// A fleet meets an outage, in virtual time.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "tower-geo-simulations",
    after_help = "Exit codes: 0 everything holds, 1 something does not, 2 bad options, 3 it could \
                  not be played."
)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Every random choice follows from this number
    #[arg(long, global = true, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,

    /// How many fleets are played at once [default: as many as there are processors]
    #[arg(long, global = true, value_name = "NUMBER")]
    threads: Option<NonZeroUsize>,

    /// What is printed: text, or one JSON object
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

impl Options {
    pub(crate) fn threads(&self) -> usize {
        let threads = self.threads.or_else(|| available_parallelism().ok());
        threads.map_or(1, NonZeroUsize::get)
    }
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Plays the ten outages of the gallery, and measures the goals
    Table,
    /// Plays fleets of many kinds, each of which has to return to normal
    Grid {
        /// What goes wrong [default: hard-down and slow, one after the other]
        #[arg(long = "outage", value_name = "OUTAGE", value_enum)]
        outages: Vec<Outage>,

        /// How long it lasts
        #[arg(long, value_name = "SECONDS", default_value_t = OUTAGE.as_secs(), value_parser = clap::value_parser!(u64).range(20..=7200))]
        length: u64,

        /// Take the circuits and the budget away, to see what they are for
        #[arg(long)]
        bare: bool,

        /// How many of the worst points are shown as text
        #[arg(long, value_name = "NUMBER", default_value_t = 10)]
        worst: usize,
    },
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}
