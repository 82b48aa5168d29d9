//! Where words go: a line that moves when a person looks on, plain lines otherwise.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::options::{Format, Options};
use crate::report::Counts;

/// How often the moving line is drawn anew, and how often a plain one is written.
const FRAME: Duration = Duration::from_millis(100);
const PLAIN_LINE: Duration = Duration::from_secs(1);

/// Shows what happens as it happens.
pub(crate) enum Screen {
    /// A moving line below the events.
    Terminal(ProgressBar),
    /// A plain line now and then.
    Lines,
    /// Nothing: the report says it all.
    Silent,
}

impl Screen {
    /// What fits the options and the place where standard output leads.
    pub(crate) fn new(options: &Options) -> Self {
        match options.format {
            Format::Json => Self::Silent,
            Format::Text if io::stdout().is_terminal() => {
                let target = ProgressDrawTarget::stdout();
                let length = u64::try_from(options.duration.as_millis()).unwrap_or(u64::MAX);
                let bar = ProgressBar::with_draw_target(Some(length), target);
                // The template is ours, so it has no faults; without it the bar has its own.
                if let Ok(style) = ProgressStyle::with_template("{bar:24} {wide_msg}") {
                    bar.set_style(style);
                }
                Self::Terminal(bar)
            }
            Format::Text => Self::Lines,
        }
    }

    /// How often to call [`progress`](Self::progress).
    pub(crate) const fn beat(&self) -> Duration {
        match self {
            Self::Terminal(_) => FRAME,
            Self::Lines | Self::Silent => PLAIN_LINE,
        }
    }

    /// Something happened.
    pub(crate) fn event(&self, at: Duration, what: &str) {
        let line = format!("{:>8.3} s  {what}", at.as_secs_f64());
        match self {
            Self::Terminal(bar) => bar.println(line),
            Self::Lines => print(&line),
            Self::Silent => {}
        }
    }

    /// How it stands: since the start on a moving line, since the last one on plain lines.
    pub(crate) fn progress(&self, at: Duration, all: &Counts, recent: &Counts) {
        match self {
            Self::Terminal(bar) => {
                bar.set_position(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
                bar.set_message(format!("{:>5.1} s  {all}", at.as_secs_f64()));
            }
            Self::Lines => print(&format!("{:>8.3} s    {recent}", at.as_secs_f64())),
            Self::Silent => {}
        }
    }

    /// Makes room for the report.
    pub(crate) fn finish(&self) {
        if let Self::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// A line on standard output. If nobody reads it any more, the exit code still tells.
pub(crate) fn print(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// A line on standard error; the same holds.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
