//! Helpers: whoever watches a stack. A subscriber that keeps all that is told, and a reader that
//! collects metrics on this thread, so that it sees the paused clock.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{
    InstrumentKind, ManualReader, Pipeline, SdkMeterProvider, Temporality,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};

/// Keeps every event and span as a line: `LEVEL message field=value …`, the span in which it was
/// told in front.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    lines: Mutex<Vec<String>>,
    spans: Mutex<BTreeMap<u64, String>>,
    entered: Mutex<Vec<u64>>,
    last: AtomicU64,
}

impl Told {
    /// All lines of this crate's own so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lines.lock().unwrap().clone()
    }

    /// All lines with this in them.
    pub(crate) fn with(&self, part: &str) -> Vec<String> {
        let mut lines = self.lines();
        lines.retain(|line| line.contains(part));
        lines
    }

    fn push(&self, line: String) {
        self.0.lines.lock().unwrap().push(line);
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            write!(self.message, "{value:?}").unwrap();
        } else {
            write!(self.others, " {}={value:?}", field.name()).unwrap();
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        write!(self.others, " {}={value}", field.name()).unwrap();
    }
}

impl tracing::Subscriber for Told {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("tower_geo") || metadata.target() == "client"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.0.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields::default();
        span.record(&mut fields);
        let line = format!("{}{}", span.metadata().name(), fields.others);
        self.push(format!("SPAN {line}"));
        self.0.spans.lock().unwrap().insert(id, line);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.push(format!("SPAN {} later{}", span.into_u64(), fields.others));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let entered = self.0.entered.lock().unwrap().last().copied();
        let spans = self.0.spans.lock().unwrap();
        let span = entered.and_then(|id| spans.get(&id)).cloned();
        drop(spans);
        let span = span.map_or_else(String::new, |span| format!("[{span}] "));
        let level = event.metadata().level();
        self.push(format!("{span}{level} {}{}", fields.message, fields.others));
    }

    fn enter(&self, span: &Id) {
        self.0.entered.lock().unwrap().push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.entered.lock().unwrap().pop();
    }
}

/// A meter, and what was recorded with it.
#[derive(Debug)]
pub(crate) struct Metered {
    provider: SdkMeterProvider,
    reader: Reader,
}

#[derive(Clone, Debug)]
struct Reader(Arc<ManualReader>);

impl MetricReader for Reader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

impl Metered {
    pub(crate) fn new() -> Self {
        let reader = Reader(Arc::new(ManualReader::builder().build()));
        let provider = SdkMeterProvider::builder()
            .with_reader(reader.clone())
            .build();
        Self { provider, reader }
    }

    pub(crate) fn meter(&self) -> Meter {
        self.provider.meter("tower-geo")
    }

    /// All points of all metrics: `name{key=value,…}` with its value, or count and sum.
    pub(crate) fn points(&self) -> BTreeMap<String, (u64, f64)> {
        let mut all = ResourceMetrics::default();
        self.reader.collect(&mut all).unwrap();
        let mut points = BTreeMap::new();
        for metric in all.scope_metrics().flat_map(|scope| scope.metrics()) {
            let name = metric.name();
            match metric.data() {
                AggregatedMetrics::F64(data) => collect(name, data, |value| value, &mut points),
                AggregatedMetrics::U64(data) => {
                    collect(name, data, |value| value as f64, &mut points);
                }
                AggregatedMetrics::I64(data) => {
                    collect(name, data, |value| value as f64, &mut points);
                }
            }
        }
        points
    }

    /// The points of one metric, without its name and without the name of the service.
    pub(crate) fn of(&self, name: &str) -> Vec<(String, f64)> {
        let prefix = format!("{name}{{");
        self.points()
            .into_iter()
            .filter_map(|(point, (count, value))| {
                let keys = point
                    .strip_prefix(&prefix)?
                    .trim_end_matches('}')
                    .to_owned();
                let keys = keys.replace("tower_geo.", "").replace("service=blob,", "");
                let keys = keys
                    .replace(",service=blob", "")
                    .replace("service=blob", "");
                // Of a histogram the count is what most tests ask.
                let is_histogram = count > 0;
                Some((keys, if is_histogram { count as f64 } else { value }))
            })
            .collect()
    }
}

fn collect<T: Copy>(
    name: &str,
    data: &MetricData<T>,
    as_f64: fn(T) -> f64,
    points: &mut BTreeMap<String, (u64, f64)>,
) {
    match data {
        MetricData::Gauge(gauge) => {
            for point in gauge.data_points() {
                let key = key(name, point.attributes());
                points.insert(key, (0, as_f64(point.value())));
            }
        }
        MetricData::Sum(sum) => {
            for point in sum.data_points() {
                let key = key(name, point.attributes());
                points.insert(key, (0, as_f64(point.value())));
            }
        }
        MetricData::Histogram(histogram) => {
            for point in histogram.data_points() {
                let key = key(name, point.attributes());
                points.insert(key, (point.count(), as_f64(point.sum())));
            }
        }
        MetricData::ExponentialHistogram(_) => panic!("{name}: nobody asked for this"),
    }
}

fn key<'a>(name: &str, attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let mut words: Vec<_> = attributes
        .map(|pair| format!("{}={}", pair.key, pair.value))
        .collect();
    words.sort_unstable();
    format!("{name}{{{}}}", words.join(","))
}
