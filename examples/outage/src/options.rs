//! The command line.

use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, ValueEnum};

/// The shortest outage in which the circuits surely open, and the gate is seen to work.
const SHORTEST_OUTAGE: Duration = Duration::from_secs(2);
/// The shortest time around the outage: a third before it, the rest to return in.
const SHORTEST_REST: Duration = Duration::from_millis(4500);

/// What the emulator, one process for both regions, surely keeps up with.
const FASTEST_AZURITE: u32 = 100;

/// Loses a region, keeps reading, refuses writes, and comes back.
///
/// Starts an account with two regions on this machine, reads and writes steadily through a hyper
/// client under tower-geo's layers, takes the primary away, brings it back, and shows as it happens
/// what went where.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "outage",
    after_help = "Exit codes: 0 the story holds, 1 it does not, 2 bad options, 3 it could not be \
                  played.\n\nThe circuits of this demonstration are quick, so that it takes \
                  seconds: they open after 5 failures (default of the library: 10), are tried again \
                  after half a second, at most one (30 s, at most 5 min), and reads return in two \
                  steps of half a second (3 s each). A send may take one second (10 s)."
)]
pub(crate) struct Options {
    /// How the primary goes away
    #[arg(long, value_enum, default_value_t = Failure::Refuse)]
    pub(crate) failure: Failure,

    /// Run against the storage emulator Azurite instead of the embedded store; scripts/setup
    /// installs it
    #[arg(long)]
    pub(crate) azurite: bool,

    /// How long the whole run takes
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) duration: Duration,

    /// How long the primary is away; it goes after a third of the remaining time
    #[arg(long, value_name = "SECONDS", default_value = "6", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) outage: Duration,

    /// Operations per second, three reads to each write; 20 to 1000, with --azurite at most 100
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(20..=1000))]
    pub(crate) rate: u32,

    /// What is printed: text as it happens, or one JSON object at the end
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// How a region fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Failure {
    /// Connections are refused: the service is gone
    Refuse,
    /// Connections are accepted and reset: the service crashes again and again
    Reset,
    /// Connections are accepted and nothing is answered: a black hole
    Freeze,
}

impl Failure {
    /// The word for it on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Reset => "reset",
            Self::Freeze => "freeze",
        }
    }

    /// What it does, after "the primary is gone: ".
    pub(crate) const fn told(self) -> &'static str {
        match self {
            Self::Refuse => "connections are refused",
            Self::Reset => "connections are reset",
            Self::Freeze => "connections are accepted, nothing is answered",
        }
    }
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// What happens as it happens, and a table at the end
    Text,
    /// One JSON object at the end, and nothing else on standard output
    Json,
}

impl Options {
    /// When the primary goes away, from the start.
    pub(crate) fn goes_away_at(&self) -> Duration {
        self.duration.saturating_sub(self.outage) / 3
    }

    /// When it comes back.
    pub(crate) fn comes_back_at(&self) -> Duration {
        self.goes_away_at() + self.outage
    }

    /// Refuses times that leave no room for the story.
    ///
    /// # Errors
    ///
    /// Names the option and says what it must be.
    pub(crate) fn validate(&self) -> Result<(), clap::Error> {
        let problem = if self.outage < SHORTEST_OUTAGE {
            format!(
                "--outage must be at least {} seconds, so that the circuits open",
                SHORTEST_OUTAGE.as_secs_f64()
            )
        } else if self.duration < self.outage + SHORTEST_REST {
            format!(
                "--duration must be at least {} seconds longer than --outage, so that there is a \
                 before and an after",
                SHORTEST_REST.as_secs_f64()
            )
        } else if self.azurite && self.rate > FASTEST_AZURITE {
            format!(
                "--rate must be at most {FASTEST_AZURITE} with --azurite, which keeps up with no more"
            )
        } else {
            return Ok(());
        };
        Err(Self::command().error(ErrorKind::ValueValidation, problem))
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| "must be a number of seconds, such as 15 or 2.5".to_owned())?;
    if !(0.0..=3600.0).contains(&number) {
        return Err("must be 0 to 3600 seconds".to_owned());
    }
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
        let options = Options::try_parse_from([&["outage"], arguments].concat())?;
        options.validate()?;
        Ok(options)
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn defaults_leave_time_before_and_after() {
        let options = parse(&[]).unwrap();
        assert_eq!(options.goes_away_at(), Duration::from_secs(3));
        assert_eq!(options.comes_back_at(), Duration::from_secs(9));
    }

    #[test]
    fn senseless_options_are_refused_with_the_option_named() {
        for (arguments, named) in [
            (&["--outage", "1.9"][..], "--outage"),
            (&["--outage", "-1"], "--outage"),
            (&["--outage", "12"], "--duration"),
            (&["--duration", "nan"], "--duration"),
            (&["--duration", "inf"], "--duration"),
            (&["--duration", "soon"], "--duration"),
            (&["--duration", "3601"], "--duration"),
            (&["--rate", "0"], "--rate"),
            (&["--rate", "1001"], "--rate"),
            (&["--rate", "101", "--azurite"], "--rate"),
            (&["--failure", "explode"], "--failure"),
            (&["--format", "xml"], "--format"),
        ] {
            let refused = parse(arguments).unwrap_err().to_string();
            assert!(refused.contains(named), "{arguments:?}: {refused}");
        }
    }
}
