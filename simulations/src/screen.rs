//! Where words go: results to standard output, progress and complaints to standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

/// How often a log is told: after every so many parts.
const PARTS: usize = 10;

/// How far the grid is: a bar that moves when a person looks on, a line now and then otherwise.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    all: usize,
    done: AtomicUsize,
    missed: AtomicUsize,
}

impl Progress {
    pub(crate) fn new(all: usize) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(u64::try_from(all).unwrap_or(u64::MAX));
            // The template is ours, so it has no faults; without it the bar has its own.
            if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} {eta} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self {
            bar,
            all,
            done: AtomicUsize::new(0),
            missed: AtomicUsize::new(0),
        }
    }

    /// One more is done.
    pub(crate) fn done(&self, holds: bool) {
        let missed = self
            .missed
            .fetch_add(usize::from(!holds), Ordering::Relaxed);
        let missed = missed + usize::from(!holds);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.bar {
            Some(bar) => {
                if missed > 0 {
                    bar.set_message(format!("{missed} not back"));
                }
                bar.inc(1);
            }
            None if done.is_multiple_of(self.all.div_ceil(PARTS)) => {
                complain(&format!("{done} of {} points, {missed} not back", self.all));
            }
            None => {}
        }
    }

    /// Makes room for the result.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Lines on standard output. If nobody reads them any more, the exit code still tells.
pub(crate) fn print(lines: &str) {
    let _ = writeln!(io::stdout(), "{lines}");
}

/// Lines on standard error; the same holds.
pub(crate) fn complain(lines: &str) {
    let _ = writeln!(io::stderr(), "{lines}");
}
