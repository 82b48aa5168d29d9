//! Rehearse the outage of a region before it happens.
//!
//! `geodrill` is a command: `geodrill run drill.toml` plays a *drill*, a file that says which
//! services are called, how their regions behave and when, and which requests are made. It drives
//! the layers of [`tower_geo`], unchanged, over a scripted wire and a virtual clock. This library
//! is what the command is made of; it exports just what tests need.
//!
//! | question | file |
//! |---|---|
//! | what may a drill say, and what are the defaults? | `format/raw.rs`, `format/resolve/` |
//! | which of its keys are not supported yet? | `format/unsupported.rs` |
//! | which answer does a send get? | `script.rs`, and `transport.rs` for how |
//! | what do Cosmos accounts say of themselves? | `account.rs` |
//! | what happens first at one instant? | `run.rs`, `clock.rs` |
//! | how are the layers built and called? | `stack.rs`, and nowhere else |
//! | what is in the result? | `stage.rs`, `result.rs` |
//! | which regions are there, and which answers are good? | `names.rs`, `judge.rs` |
//! | when does an expectation hold? | `expect.rs` |
//! | how does it look? | `text.rs`, `plot.rs` |
//!
//! ```
//! let drill = r#"{"services": {"blob": {
//!     "provider": "azure-storage", "endpoint": "https://contoso.blob.core.windows.net",
//!     "retry": {"delay": "soon"}}}}"#;
//! let problem = geodrill::check(drill, geodrill::Syntax::Json).unwrap_err();
//! assert_eq!(problem.path(), "services.blob.retry.delay");
//! ```

mod account;
mod cli;
mod clock;
mod expect;
mod explain;
mod format;
mod judge;
mod names;
mod plot;
mod problem;
mod random;
mod result;
mod run;
mod script;
mod stack;
mod stage;
mod states;
mod store;
mod text;
mod timeline;
mod transport;

use std::ffi::OsString;
use std::io::Write;

pub use format::Syntax;
pub use problem::Problem;

/// Reads a drill without playing it.
///
/// # Errors
///
/// The first thing that makes the drill unusable, with the path of its key.
pub fn check(text: &str, syntax: Syntax) -> Result<(), Problem> {
    format::read(text, syntax).map(drop)
}

/// The command: arguments with the program's name first, where to write, and the exit code (0
/// everything holds, 1 an expectation does not, 2 a file or an argument is unusable).
///
/// What is written carries colours (ANSI); wrap the streams where they must not.
pub fn run_cli<A, S>(arguments: A, out: &mut dyn Write, err: &mut dyn Write) -> u8
where
    A: IntoIterator<Item = S>,
    S: Into<OsString> + Clone,
{
    cli::main(arguments, out, err)
}
