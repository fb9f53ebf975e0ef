//! Counters, and their text for OpenMetrics.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::Fault;
use crate::statistics::Statistics;

/// Upper bounds of the durations that are told apart, in seconds.
const SECONDS: &[f64] =
    &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Upper bounds of the numbers of requests in a batch.
const SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// What is counted of one model, over all its loads.
#[derive(Debug)]
pub struct Metrics {
    /// Requests that are waiting.
    pub queued: AtomicUsize,
    /// Requests that came.
    pub requests: AtomicU64,
    failures: Vec<AtomicU64>,
    /// How often it was loaded.
    pub loads: AtomicU64,
    /// From a request's head to its answer.
    pub total: Histogram,
    /// Until its batch began.
    pub waited: Histogram,
    /// The run of its batch.
    pub ran: Histogram,
    /// Requests in a batch.
    pub batch: Histogram,
    /// Requests that were padded, and those where that gave something else than they gave as they were.
    pub padded: AtomicU64,
    pub differed: AtomicU64,
    /// What Triton's statistics have.
    pub(crate) statistics: Statistics,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            queued: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            failures: Fault::all().map(|_| AtomicU64::new(0)).collect(),
            loads: AtomicU64::new(0),
            total: Histogram::new(SECONDS),
            waited: Histogram::new(SECONDS),
            ran: Histogram::new(SECONDS),
            batch: Histogram::new(SIZES),
            padded: AtomicU64::new(0),
            differed: AtomicU64::new(0),
            statistics: Statistics::default(),
        }
    }
}

impl Metrics {
    /// Counts a request that failed.
    pub fn failed(&self, fault: Fault) {
        if let Some(counter) = self.failures.get(usize::from(fault.to_byte())) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// How many values lie below each of some bounds.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than bounds.
    counts: Vec<AtomicU64>,
    /// In millionths.
    sum: AtomicU64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum: AtomicU64::new(0) }
    }

    /// Counts a value.
    pub fn record(&self, value: f64) {
        let place = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add((value * 1e6) as u64, Ordering::Relaxed);
    }

    /// Counts a duration.
    pub fn time(&self, duration: Duration) {
        self.record(duration.as_secs_f64());
    }

    fn write(&self, out: &mut String, name: &str, model: &str) {
        let mut below = 0;
        for (i, count) in self.counts.iter().enumerate() {
            below += count.load(Ordering::Relaxed);
            let bound = self.bounds.get(i).map_or_else(|| "+Inf".into(), f64::to_string);
            line(out, format_args!("{name}_bucket{{model=\"{model}\",le=\"{bound}\"}} {below}"));
        }
        let sum = self.sum.load(Ordering::Relaxed) as f64 / 1e6;
        line(out, format_args!("{name}_sum{{model=\"{model}\"}} {sum}"));
        line(out, format_args!("{name}_count{{model=\"{model}\"}} {below}"));
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Text in memory takes whatever is written.
    let _ = out.write_fmt(text);
    out.push('\n');
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    line(out, format_args!("# TYPE {name} {kind}\n# HELP {name} {help}"));
}

/// A histogram of a model's.
type Part = fn(&Metrics) -> &Histogram;

/// All counters. Models have names that need no escapes.
pub fn text(models: &[(String, Arc<Metrics>)], restarts: u64) -> String {
    let mut out = String::new();
    let mut counter = |name: &str, help: &str, value: &dyn Fn(&Metrics) -> u64| {
        head(&mut out, name, "counter", help);
        for (model, metrics) in models {
            line(&mut out, format_args!("{name}_total{{model=\"{model}\"}} {}", value(metrics)));
        }
    };
    counter("relaxide_requests", "Requests for inference.", &|m| m.requests.load(Ordering::Relaxed));
    counter("relaxide_loads", "How often the model was loaded.", &|m| m.loads.load(Ordering::Relaxed));
    counter("relaxide_padded", "Requests that were padded.", &|m| m.padded.load(Ordering::Relaxed));
    let differed = "Requests where padding gave something else, after which nothing was padded.";
    counter("relaxide_padding_differed", differed, &|m| m.differed.load(Ordering::Relaxed));
    head(&mut out, "relaxide_failures", "counter", "Requests that failed, by their fault.");
    for (model, metrics) in models {
        for (fault, count) in Fault::all().zip(&metrics.failures) {
            let (fault, count) = (fault.name(), count.load(Ordering::Relaxed));
            line(&mut out, format_args!("relaxide_failures_total{{model=\"{model}\",fault=\"{fault}\"}} {count}"));
        }
    }
    head(&mut out, "relaxide_queue", "gauge", "Requests that wait.");
    for (model, metrics) in models {
        let queued = metrics.queued.load(Ordering::Relaxed);
        line(&mut out, format_args!("relaxide_queue{{model=\"{model}\"}} {queued}"));
    }
    let histograms: [(&str, &str, Part); 4] = [
        ("relaxide_request_seconds", "From a request's head to its answer.", |m| &m.total),
        ("relaxide_wait_seconds", "From a request to the begin of its batch.", |m| &m.waited),
        ("relaxide_run_seconds", "The run of a batch.", |m| &m.ran),
        ("relaxide_batch_requests", "Requests in a batch.", |m| &m.batch),
    ];
    for (name, help, of) in histograms {
        head(&mut out, name, "histogram", help);
        models.iter().for_each(|(model, metrics)| of(metrics).write(&mut out, name, model));
    }
    head(&mut out, "relaxide_worker_restarts", "counter", "Workers that ended and were started again.");
    line(&mut out, format_args!("relaxide_worker_restarts_total {restarts}\n# EOF"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_add_up_and_the_text_ends() {
        let metrics = Metrics::default();
        metrics.requests.fetch_add(3, Ordering::Relaxed);
        metrics.failed(Fault::Overload);
        [0.0001, 0.003, 100.0].iter().for_each(|value| metrics.total.record(*value));
        let text = text(&[("mlp".into(), Arc::new(metrics))], 2);
        for wanted in [
            "relaxide_requests_total{model=\"mlp\"} 3\n",
            "relaxide_failures_total{model=\"mlp\",fault=\"overload\"} 1\n",
            "relaxide_request_seconds_bucket{model=\"mlp\",le=\"0.0001\"} 1\n",
            "relaxide_request_seconds_bucket{model=\"mlp\",le=\"0.005\"} 2\n",
            "relaxide_request_seconds_bucket{model=\"mlp\",le=\"+Inf\"} 3\n",
            "relaxide_request_seconds_count{model=\"mlp\"} 3\n",
            "relaxide_worker_restarts_total 2\n",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in:\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
