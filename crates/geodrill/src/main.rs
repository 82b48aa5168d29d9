//! Rehearse the outage of a region before it happens. See `geodrill --help`.

use std::io::BufWriter;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Both take the colours out where they do not go to a terminal.
    let mut out = BufWriter::new(anstream::stdout());
    let mut err = anstream::stderr();
    let code = geodrill::run_cli(std::env::args_os(), &mut out, &mut err);
    // A reader that has gone away is no failure of ours.
    let _ = std::io::Write::flush(&mut out);
    ExitCode::from(code)
}
