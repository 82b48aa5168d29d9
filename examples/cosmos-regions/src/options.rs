//! The command line.

use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Removes a region of a Cosmos account, adds one, and moves its writer twice.
///
/// Plays an account with a global host and three regions on this machine, and reads and writes
/// steadily through a hyper client under tower-geo's layers while the account changes. Shows as it
/// happens which region answers what.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "cosmos-regions",
    after_help = "Exit codes: 0 every claim holds, 1 one does not, 2 bad options, 3 it could not be \
                  played.\n\nThe account is read every second here (default of the library: every 5 \
                  minutes, with up to 15 seconds of jitter), so that an added region is taken up \
                  within this demonstration. A send may take one second (10 s). All else is as in \
                  production."
)]
pub(crate) struct Options {
    /// How long the whole run takes; 8 to 600
    #[arg(long, value_name = "SECONDS", default_value = "12", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) duration: Duration,

    /// Operations per second, three reads to each write; 10 to 200
    #[arg(long, value_name = "NUMBER", default_value_t = 40, value_parser = clap::value_parser!(u32).range(10..=200))]
    pub(crate) rate: u32,

    /// What is printed: text as it happens, or one JSON object at the end
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// What happens as it happens, and a table at the end
    Text,
    /// One JSON object at the end, and nothing else on standard output
    Json,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| "must be a number of seconds, such as 12 or 9.5".to_owned())?;
    if !(8.0..=600.0).contains(&number) {
        return Err("must be 8 to 600 seconds".to_owned());
    }
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn senseless_options_are_refused_with_the_option_named() {
        for (option, value) in [
            ("--duration", "7.9"),
            ("--duration", "-1"),
            ("--duration", "nan"),
            ("--duration", "soon"),
            ("--rate", "9"),
            ("--rate", "201"),
            ("--format", "xml"),
        ] {
            let refused = Options::try_parse_from(["cosmos-regions", option, value]);
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(option), "{option} {value}: {refused}");
        }
    }
}
