//! The tables, as text for people and as JSON for programs.

use serde::Serialize;
use tower_geo::BoxError;

use crate::figures::Figures;
use crate::fleet::Fleet;
use crate::goals::{self, Goal};
use crate::grid::{Judged, LIMIT};
use crate::options::Format;
use crate::outage::Outage;
use crate::parallel;

/// The figures of the gallery, and the goals.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    seed: u64,
    outages: Vec<Row>,
    goals: Vec<Goal>,
}

#[derive(Debug, Serialize)]
struct Row {
    outage: Outage,
    clients: u32,
    #[serde(flatten)]
    figures: Figures,
}

impl Table {
    /// Plays the gallery on so many threads, and then the goals.
    ///
    /// # Errors
    ///
    /// See [`Fleet::play`].
    pub(crate) fn play(seed: u64, threads: usize) -> Result<Self, BoxError> {
        let outages = parallel::map(&Outage::GALLERY, threads, |&outage| {
            let mut fleet = Fleet::of_gallery(outage);
            fleet.seed = seed;
            Ok(Row {
                outage,
                clients: fleet.clients,
                figures: Figures::of(&fleet)?,
            })
        })?;
        Ok(Self {
            seed,
            outages,
            goals: goals::all(seed)?,
        })
    }

    /// Whether every goal is reached.
    pub(crate) fn holds(&self) -> bool {
        self.goals.iter().all(|goal| goal.holds)
    }

    /// # Errors
    ///
    /// When a number cannot be written as JSON.
    pub(crate) fn show(&self, format: Format) -> Result<String, serde_json::Error> {
        match format {
            Format::Json => serde_json::to_string_pretty(self),
            Format::Text => Ok(self.as_text()),
        }
    }

    fn as_text(&self) -> String {
        let mut lines = Lines::with(&[
            "outage", "failed", "refused", "failed", "opened", "sends", "primary", "sends",
            "first", "last", "5 % to", "peak of", "goodput", "back",
        ]);
        lines.row([
            "", "reads", "writes", "writes", "after", "before", "after", "per op", "probe",
            "probe", "all", "primary", "during", "after",
        ]);
        for Row {
            outage, figures, ..
        } in &self.outages
        {
            lines.row([
                outage.name().to_owned(),
                figures.failed_reads.to_string(),
                figures.refused_writes.to_string(),
                figures.failed_writes.to_string(),
                time(figures.opened_after_s),
                maybe(figures.failed_sends_before.map(|sends| sends.to_string())),
                maybe(
                    figures
                        .primary_sends_after
                        .map(|sends| format!("{sends:.4}")),
                ),
                format!("{:.3}", figures.amplification),
                time(figures.first_probe_s),
                time(figures.last_probe_s),
                time(figures.return_s),
                format!("{:.2}", figures.primary_peak),
                share(figures.goodput_during),
                time(figures.back_s),
            ]);
        }
        let mut text = lines.align();
        text.push_str(LEGEND);
        for goal in &self.goals {
            let (mark, got) = match goal.got {
                Some(got) => (
                    if goal.holds { "ok" } else { "MISSED" },
                    format!("{got:.4}"),
                ),
                None => ("MISSED", "never".to_owned()),
            };
            let Goal {
                case,
                what,
                at_most,
                ..
            } = goal;
            text.push_str(&format!(
                "{mark:<7}{case}: {what}: {got} (at most {at_most})\n"
            ));
        }
        text
    }
}

const LEGEND: &str = "
Operations that began after the outage did, of all clients; -: it did not happen. Failed reads
include 404 of objects that are not there yet, refusals while no region answers, and callers that
left. Sends before: failed ones to the primary, of one client, until its circuit opened; primary
after: sends to the primary per operation from then on; sends per op: to both regions, during the
outage. Probes: from the end of the outage to the first send to the primary, of the first and of the
last client. Peak: the most that the primary got in a second afterwards, against the usual (where it
throttled, writes that have waited for it, too). Goodput during: against the usual; back
after: from the end until at least 95 % of it for good.

";

/// The points of the grid.
///
/// # Errors
///
/// When a number cannot be written as JSON.
pub(crate) fn show_grid(
    all: &[Judged],
    worst: usize,
    format: Format,
) -> Result<String, serde_json::Error> {
    if format == Format::Json {
        return serde_json::to_string_pretty(all);
    }
    let mut lines = Lines::with(&[
        "",
        "outage",
        "clients",
        "rate",
        "time-out",
        "retries",
        "hedge",
        "secondary",
        "during",
        "sends/op",
        "peak",
        "back",
    ]);
    for judged in all.iter().take(worst) {
        let point = &judged.point;
        lines.row([
            if judged.holds { "ok" } else { "NOT BACK" }.to_owned(),
            point.outage.name().to_owned(),
            point.clients.to_string(),
            format!("{}/s", point.rate),
            format!("{} s", point.time_out_s),
            point.retries.to_string(),
            maybe(point.hedge_ms.map(|hedge| format!("{hedge} ms"))),
            share(point.secondary),
            share(judged.goodput_during),
            format!("{:.2}", judged.amplification),
            format!("{:.2}", judged.primary_peak),
            time(judged.back_s),
        ]);
    }
    let back = all.iter().filter(|judged| judged.holds).count();
    Ok(format!(
        "{}\n{back} of {} points are back within {} s of the end of the outage",
        lines.align(),
        all.len(),
        LIMIT.as_secs(),
    ))
}

fn time(seconds: Option<f64>) -> String {
    maybe(seconds.map(|seconds| format!("{seconds:.1} s")))
}

fn share(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

fn maybe(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

/// Rows of words that stand below each other.
struct Lines(Vec<Vec<String>>);

impl Lines {
    fn with(head: &[&str]) -> Self {
        Self(vec![head.iter().map(|&word| word.to_owned()).collect()])
    }

    fn row<const N: usize>(&mut self, words: [impl Into<String>; N]) {
        self.0.push(words.into_iter().map(Into::into).collect());
    }

    /// The first column to the left, the others to the right.
    fn align(&self) -> String {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let words = self.0.iter().filter_map(|row| row.get(column));
            words.map(|word| word.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.0 {
            let mut line = String::new();
            for (column, (word, &width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    line.push_str(&format!("{word:<width$}"));
                } else {
                    line.push_str(&format!("  {word:>width$}"));
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
