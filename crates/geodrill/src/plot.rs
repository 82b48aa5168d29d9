//! The time line of a drill as a picture (SVG).
//!
//! One block per service: sends of each region (good answers below, bad ones on top), latency of
//! operations, and a bar for each circuit and the gate. The picture paints its own background and
//! carries a style sheet that turns it dark where the reader prefers that.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, Color, DrawingArea, DrawingBackend, IntoDrawingArea, IntoFont, PathElement,
    RGBColor, Rectangle, SVGBackend, Text, TextStyle,
};

use crate::format::Millis;
use crate::result::Summary;
use crate::run::Report;
use crate::states::{self, Level, Track};
use crate::timeline::Bucket;

/// Buckets in a picture: more than the eye can tell apart says nothing.
const BUCKETS: usize = 160;
const WIDTH: u32 = 960;
const HEADER: u32 = 66;
const TITLE: u32 = 30;
const PANEL: u32 = 92;
const TRACK: u32 = 20;
/// Between the last panel and the bars of circuits.
const GAP: u32 = 10;
const AXIS: u32 = 30;
const LEFT: u32 = 130;
const RIGHT: u32 = 20;

// Each colour is used for one thing, so that the style sheet can tell them apart; the dark ones
// are chosen for the same contrast. Good and bad differ in lightness too, not only in hue.
const BACKGROUND: RGBColor = RGBColor(255, 255, 254);
const INK: RGBColor = RGBColor(31, 35, 40);
const FAINT: RGBColor = RGBColor(101, 109, 118);
const GRID: RGBColor = RGBColor(222, 226, 230);
const GOOD: RGBColor = RGBColor(84, 155, 225);
const BAD: RGBColor = RGBColor(190, 30, 45);
const TRYING: RGBColor = RGBColor(212, 150, 20);
const LINE: RGBColor = RGBColor(26, 127, 100);

const DARK: [(RGBColor, &str); 8] = [
    (BACKGROUND, "#0d1117"),
    (INK, "#e6edf3"),
    (FAINT, "#9198a1"),
    (GRID, "#2a3038"),
    (GOOD, "#388bfd"),
    (BAD, "#ff7b72"),
    (TRYING, "#e3b341"),
    (LINE, "#56d4a8"),
];

type Failed = Box<dyn Error + Send + Sync>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws a report.
pub(crate) fn draw(report: &Report) -> Result<String, String> {
    let timeline = report.seen.timeline.within(BUCKETS);
    // The picture ends where the last thing happened, and where the last bucket does.
    let end = (timeline.len() as u64 * timeline.width_ms()).max(1);
    let blocks: Vec<Block<'_>> = report
        .services
        .iter()
        .enumerate()
        .map(|(index, info)| Block {
            name: &info.name,
            regions: report
                .shown(index)
                .into_iter()
                .map(|region| (region, info.regions[region].as_str()))
                .collect(),
            reads: report.account_reads(index),
            buckets: timeline.service(index),
            tracks: states::tracks(report, index),
            width_ms: timeline.width_ms(),
            end,
        })
        .collect();
    let height = HEADER + blocks.iter().map(Block::height).sum::<u32>();
    let mut svg = String::new();
    paint(&mut svg, height, report, &blocks).map_err(|error| error.to_string())?;
    Ok(with_styles(&svg))
}

fn paint(
    svg: &mut String,
    height: u32,
    report: &Report,
    blocks: &[Block<'_>],
) -> Result<(), Failed> {
    let root = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
    root.fill(&BACKGROUND)?;
    let (header, mut rest) = root.split_vertically(HEADER);
    write_at(&header, &report.title(), (20, 14), &text(18, &INK))?;
    let summary = Summary::of(report);
    let line = format!(
        "{} operations in {}: {} succeeded, {} failed, {} refused, {} cancelled; {} sends per operation",
        summary.operations,
        Millis(report.end_ms).rough(),
        summary.succeeded,
        summary.failed,
        summary.refused,
        summary.cancelled,
        summary.amplification
    );
    write_at(&header, &line, (20, 40), &text(12, &FAINT))?;
    for block in blocks {
        let (mine, below) = rest.split_vertically(block.height());
        block.paint(&mine)?;
        rest = below;
    }
    root.present()?;
    Ok(())
}

fn text<'a>(size: u32, color: &RGBColor) -> TextStyle<'a> {
    ("sans-serif", size).into_font().color(color)
}

fn write_at(
    area: &Area<'_>,
    words: &str,
    at: (i32, i32),
    style: &TextStyle<'_>,
) -> Result<(), Failed> {
    area.draw(&Text::new(words.to_owned(), at, style.clone()))?;
    Ok(())
}

/// One service.
struct Block<'a> {
    name: &'a str,
    /// Those that are shown, with their numbers.
    regions: Vec<(usize, &'a str)>,
    /// When the account was asked, and whether it answered.
    reads: Vec<(u64, bool)>,
    buckets: &'a [Bucket],
    tracks: Vec<Track>,
    width_ms: u64,
    end: u64,
}

impl Block<'_> {
    fn height(&self) -> u32 {
        let panels = u32::try_from(self.regions.len() + 1).unwrap_or(u32::MAX);
        let reads = usize::from(!self.reads.is_empty());
        let tracks = u32::try_from(self.tracks.len() + reads).unwrap_or(u32::MAX);
        TITLE + panels * PANEL + GAP + tracks * TRACK + AXIS
    }

    fn paint(&self, area: &Area<'_>) -> Result<(), Failed> {
        let (title, mut rest) = area.split_vertically(TITLE);
        write_at(&title, self.name, (20, 8), &text(15, &INK))?;
        self.key(&title)?;
        let most = self
            .buckets
            .iter()
            .flat_map(|bucket| &bucket.regions)
            .map(|region| region.good + region.bad)
            .max()
            .unwrap_or(0);
        for (index, region) in &self.regions {
            let (panel, below) = rest.split_vertically(PANEL);
            self.sends(&panel, *index, region, most)?;
            rest = below;
        }
        let (panel, below) = rest.split_vertically(PANEL);
        self.latency(&panel)?;
        rest = below.split_vertically(GAP).1;
        if !self.reads.is_empty() {
            let (strip, below) = rest.split_vertically(TRACK);
            self.account_reads(&strip)?;
            rest = below;
        }
        for track in &self.tracks {
            let (strip, below) = rest.split_vertically(TRACK);
            self.track(&strip, track)?;
            rest = below;
        }
        self.axis(&rest)
    }

    /// What the colours mean.
    fn key(&self, area: &Area<'_>) -> Result<(), Failed> {
        let mut at = i32::try_from(LEFT).unwrap_or(0);
        for (color, words) in [
            (&GOOD, "answered"),
            (&BAD, "failed; open; read-only"),
            (&TRYING, "half open; trial"),
            (&LINE, "latency: mean, longest"),
        ] {
            area.draw(&Rectangle::new([(at, 11), (at + 11, 22)], color.filled()))?;
            write_at(area, words, (at + 17, 10), &text(12, &FAINT))?;
            at += 40 + 7 * i32::try_from(words.len()).unwrap_or(0);
        }
        Ok(())
    }

    fn sends(&self, area: &Area<'_>, index: usize, region: &str, most: u64) -> Result<(), Failed> {
        self.label(
            area,
            region,
            &format!("sends per {}", Millis(self.width_ms)),
        )?;
        let mut chart = ChartBuilder::on(area)
            .margin_top(14)
            .margin_right(RIGHT)
            .set_label_area_size(plotters::prelude::LabelAreaPosition::Left, LEFT)
            .build_cartesian_2d(0..self.end, 0..most.max(1))?;
        self.mesh(&mut chart, &|count: &u64| count.to_string())?;
        let bars = self.buckets.iter().enumerate().flat_map(|(at, bucket)| {
            let region = bucket.regions.get(index).copied().unwrap_or_default();
            let from = at as u64 * self.width_ms;
            let until = from + self.width_ms;
            [
                (region.good > 0)
                    .then(|| Rectangle::new([(from, 0), (until, region.good)], GOOD.filled())),
                (region.bad > 0).then(|| {
                    let top = region.good + region.bad;
                    Rectangle::new([(from, region.good), (until, top)], BAD.filled())
                }),
            ]
            .into_iter()
            .flatten()
        });
        chart.draw_series(bars)?;
        Ok(())
    }

    fn latency(&self, area: &Area<'_>) -> Result<(), Failed> {
        self.label(area, "latency", "of operations")?;
        let most = self
            .buckets
            .iter()
            .map(|bucket| bucket.latency_max)
            .max()
            .unwrap_or(0);
        let mut chart = ChartBuilder::on(area)
            .margin_top(14)
            .margin_right(RIGHT)
            .set_label_area_size(plotters::prelude::LabelAreaPosition::Left, LEFT)
            .build_cartesian_2d(0..self.end, 0..most.max(1))?;
        self.mesh(&mut chart, &|ms: &u64| format!("{ms} ms"))?;
        // A step for the mean, and a tick for the longest, so that one slow call is seen.
        let shapes = self.buckets.iter().enumerate().filter_map(|(at, bucket)| {
            let mean = bucket.latency_mean()?;
            let from = at as u64 * self.width_ms;
            Some((from, from + self.width_ms, mean, bucket.latency_max))
        });
        let means = shapes.clone().map(|(from, until, mean, _)| {
            Rectangle::new([(from, 0), (until, mean)], LINE.mix(0.35).filled())
        });
        chart.draw_series(means)?;
        let longest = shapes.map(|(from, until, _, longest)| {
            PathElement::new([(from, longest), (until, longest)], LINE.stroke_width(2))
        });
        chart.draw_series(longest)?;
        Ok(())
    }

    fn mesh<DB: DrawingBackend>(
        &self,
        chart: &mut plotters::chart::ChartContext<
            '_,
            DB,
            plotters::coord::cartesian::Cartesian2d<
                plotters::coord::types::RangedCoordu64,
                plotters::coord::types::RangedCoordu64,
            >,
        >,
        format: &dyn Fn(&u64) -> String,
    ) -> Result<(), Failed>
    where
        DB::ErrorType: 'static,
    {
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .y_labels(3)
            .y_label_formatter(format)
            .label_style(text(11, &FAINT))
            .axis_style(GRID)
            .light_line_style(BACKGROUND)
            .bold_line_style(GRID)
            .draw()?;
        Ok(())
    }

    /// What a panel shows, at its left.
    fn label(&self, area: &Area<'_>, name: &str, unit: &str) -> Result<(), Failed> {
        write_at(area, name, (20, 32), &text(12, &INK))?;
        write_at(area, unit, (20, 50), &text(10, &FAINT))
    }

    fn track(&self, area: &Area<'_>, track: &Track) -> Result<(), Failed> {
        write_at(area, &track.label, (20, 4), &text(12, &INK))?;
        let line = [(self.x(0), 10), (self.x(self.end), 10)];
        area.draw(&PathElement::new(line, GRID.stroke_width(2)))?;
        for (from, until, level) in track.stretches(self.end) {
            let color = match level {
                Level::Usual => &GRID,
                Level::Trying => &TRYING,
                Level::Stopped => &BAD,
            };
            // Half open can last no time at all; it is still to be seen.
            let (left, right) = (self.x(from), self.x(until).max(self.x(from) + 2));
            area.draw(&Rectangle::new([(left, 4), (right, 16)], color.filled()))?;
        }
        Ok(())
    }

    /// A mark for each time that the account was asked.
    fn account_reads(&self, area: &Area<'_>) -> Result<(), Failed> {
        write_at(area, "account reads", (20, 4), &text(12, &INK))?;
        let line = [(self.x(0), 10), (self.x(self.end), 10)];
        area.draw(&PathElement::new(line, GRID.stroke_width(2)))?;
        for (at, good) in &self.reads {
            let color = if *good { &GOOD } else { &BAD };
            let at = self.x(*at);
            area.draw(&Rectangle::new([(at, 4), (at + 3, 16)], color.filled()))?;
        }
        Ok(())
    }

    fn axis(&self, area: &Area<'_>) -> Result<(), Failed> {
        const MARKS: u64 = 8;
        let step = nice(self.end.div_ceil(MARKS));
        let mut at = 0;
        while at <= self.end {
            let x = self.x(at);
            area.draw(&PathElement::new([(x, 0), (x, 5)], FAINT.stroke_width(1)))?;
            write_at(area, &Millis(at).rough(), (x - 8, 8), &text(11, &FAINT))?;
            at += step;
        }
        Ok(())
    }

    /// Where an instant is, in pixels; the same as in the panels.
    fn x(&self, at: u64) -> i32 {
        let room = u64::from(WIDTH - LEFT - RIGHT);
        let x = u64::from(LEFT) + room * at.min(self.end) / self.end;
        i32::try_from(x).unwrap_or(i32::MAX)
    }
}

/// The least number that people count in and that is not below `ms`.
fn nice(ms: u64) -> u64 {
    const STEPS: [u64; 22] = [
        1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000,
        120_000, 300_000, 600_000, 1_200_000, 1_800_000, 3_600_000,
    ];
    STEPS
        .into_iter()
        .find(|step| *step >= ms)
        .unwrap_or_else(|| ms.next_multiple_of(3_600_000))
}

/// Adds the style sheet, the description, and a size that follows the page.
fn with_styles(svg: &str) -> String {
    let mut css = String::from("@media (prefers-color-scheme: dark) {");
    for (light, dark) in DARK {
        let RGBColor(red, green, blue) = light;
        let hex = format!("#{red:02X}{green:02X}{blue:02X}");
        for property in ["fill", "stroke"] {
            css.push_str(&format!(
                " [{property}=\"{hex}\"] {{ {property}: {dark}; }}"
            ));
        }
    }
    css.push_str(" }");
    match svg.find('>') {
        Some(end) => {
            let (head, tail) = svg.split_at(end + 1);
            format!("{head}\n<style>{css}</style>{tail}")
        }
        None => svg.to_owned(),
    }
}
