//! Figures of a load: a line every second on stderr, a table or JSON at the end.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use client::producer::{BatchOutcome, Fate, UNTAGGED};
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::cli::Failure;
use crate::cli::output::{Table, print, print_json};

/// Longest latency that is told apart, in microseconds; anything longer counts as this.
const MAX_LATENCY_US: u64 = 600_000_000;
/// Significant digits of latencies.
const DIGITS: u8 = 3;
const INTERVAL: Duration = Duration::from_secs(1);
/// Clock ticks a second in `/proc`, the same on every Linux of today.
const TICKS: f64 = 100.0;
const GIB: f64 = (1u64 << 30) as f64;
const MIB: f64 = (1u64 << 20) as f64;

#[derive(Debug)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    pub fn new() -> Latencies {
        match Histogram::new_with_bounds(1, MAX_LATENCY_US, DIGITS) {
            Ok(histogram) => Latencies(histogram),
            Err(_) => unreachable!("the bounds are constants that fit"),
        }
    }

    pub fn record_us(&mut self, us: u64) {
        self.0.saturating_record(us.max(1));
    }

    /// Notes how long the records of an acknowledged batch took, whose tags are the times they were meant to be sent at, in
    /// nanoseconds; gives its bytes. What was not acknowledged has no latency and counts for nothing.
    pub fn acknowledged(&mut self, outcome: &BatchOutcome, now_ns: u64) -> u64 {
        if !matches!(outcome.fate, Fate::Acknowledged { .. }) {
            return 0;
        }
        for meant_ns in outcome.tags.iter().filter(|&&tag| tag != UNTAGGED) {
            self.record_us(now_ns.saturating_sub(*meant_ns) / 1000);
        }
        outcome.bytes as u64
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    pub fn ms(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1e3
    }

    fn max_ms(&self) -> f64 {
        self.0.max() as f64 / 1e3
    }

    fn json(&self) -> Value {
        json!({
            "p50": self.ms(0.5), "p99": self.ms(0.99), "p99.9": self.ms(0.999), "max": self.max_ms(),
        })
    }
}

/// CPU seconds, user and system, of this process so far.
pub fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may hold anything; the numbers come behind it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS
}

/// Counts of a load while it runs.
#[derive(Debug)]
pub struct Meter {
    what: &'static str,
    begun: Instant,
    cpu_begun: f64,
    shown: Instant,
    shown_records: u64,
    shown_bytes: u64,
    is_terminal: bool,
}

impl Meter {
    pub fn new(what: &'static str) -> Meter {
        let now = Instant::now();
        Meter {
            what,
            begun: now,
            cpu_begun: cpu_seconds(),
            shown: now,
            shown_records: 0,
            shown_bytes: 0,
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Shows a line if a second went by. `latencies` are of everything so far.
    pub fn tick(&mut self, records: u64, bytes: u64, latencies: Option<&Latencies>) {
        let now = Instant::now();
        let passed = now - self.shown;
        if passed < INTERVAL {
            return;
        }
        let seconds = passed.as_secs_f64();
        if self.is_terminal {
            let latency = latencies
                .filter(|l| l.count() > 0)
                .map_or_else(String::new, |l| format!(", p50 {:.2} ms, p99 {:.2} ms", l.ms(0.5), l.ms(0.99)));
            eprintln!(
                "{}: {:.0} records/s, {:.1} MiB/s{latency}",
                self.what,
                (records - self.shown_records) as f64 / seconds,
                (bytes - self.shown_bytes) as f64 / MIB / seconds,
            );
        }
        (self.shown, self.shown_records, self.shown_bytes) = (now, records, bytes);
    }

    pub fn end(self, records: u64, bytes: u64) -> Totals {
        let seconds = self.begun.elapsed().as_secs_f64();
        Totals { what: self.what, records, bytes, seconds, cpu_seconds: cpu_seconds() - self.cpu_begun }
    }
}

/// A load's figures.
#[derive(Debug)]
pub struct Totals {
    pub what: &'static str,
    pub records: u64,
    /// Of records as they were encoded.
    pub bytes: u64,
    pub seconds: f64,
    /// Of this client.
    pub cpu_seconds: f64,
}

impl Totals {
    fn cpu_per_gib(&self) -> f64 {
        self.cpu_seconds / (self.bytes as f64 / GIB).max(f64::MIN_POSITIVE)
    }

    /// Prints the table, or JSON. `latencies`: by name.
    pub fn print(&self, latencies: &[(&str, &Latencies)], as_json: bool) -> Result<(), Failure> {
        if as_json {
            let latencies: serde_json::Map<String, Value> =
                latencies.iter().map(|(name, latencies)| (format!("{name}_ms"), latencies.json())).collect();
            let mut value = json!({
                "records": self.records, "bytes": self.bytes, "seconds": self.seconds,
                "records_per_second": self.records as f64 / self.seconds,
                "mib_per_second": self.bytes as f64 / MIB / self.seconds,
                "client_cpu_seconds_per_gib": self.cpu_per_gib(),
            });
            if let Some(object) = value.as_object_mut() {
                object.extend(latencies);
            }
            return Ok(print_json(&value)?);
        }
        let mut table = Table::new(&[self.what, "seconds", "records/s", "MiB/s", "client CPU s/GiB"]);
        table.row(vec![
            format!("{} records", self.records),
            format!("{:.2}", self.seconds),
            format!("{:.0}", self.records as f64 / self.seconds),
            format!("{:.1}", self.bytes as f64 / MIB / self.seconds),
            format!("{:.2}", self.cpu_per_gib()),
        ]);
        let mut text = table.render();
        let shown: Vec<_> = latencies.iter().filter(|(_, latencies)| latencies.count() > 0).collect();
        if !shown.is_empty() {
            let mut table = Table::new(&["latency, ms", "p50", "p99", "p99.9", "max"]);
            for (name, latencies) in shown {
                let ms = |value: f64| format!("{value:.2}");
                table.row(vec![
                    (*name).to_owned(),
                    ms(latencies.ms(0.5)),
                    ms(latencies.ms(0.99)),
                    ms(latencies.ms(0.999)),
                    ms(latencies.max_ms()),
                ]);
            }
            text.push_str(&table.render());
        }
        Ok(print(&text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_milliseconds_and_nothing_is_dropped() {
        let mut latencies = Latencies::new();
        (1..=1000).for_each(|i| latencies.record_us(i * 1000));
        latencies.record_us(u64::MAX);
        latencies.record_us(0);
        assert_eq!(latencies.count(), 1002);
        assert!((latencies.ms(0.5) - 500.0).abs() < 2.0, "{}", latencies.ms(0.5));
        assert!(latencies.max_ms() >= 599_000.0);
    }

    #[test]
    fn only_what_was_acknowledged_has_a_latency() {
        let mut outcome = BatchOutcome {
            topic: "t".into(),
            partition: 0,
            fate: Fate::Acknowledged { base_offset: 0, log_append_time_ms: -1 },
            records: 2,
            bytes: 30,
            created_ms: 0,
            ended_ms: 1,
            tags: vec![1_000_000, UNTAGGED],
        };
        let mut latencies = Latencies::new();
        assert_eq!(latencies.acknowledged(&outcome, 3_000_000), 30);
        outcome.fate = Fate::PossiblySent(client::ClientError::Closed);
        assert_eq!(latencies.acknowledged(&outcome, 9_000_000), 0);
        assert_eq!((latencies.count(), latencies.max_ms().round()), (1, 2.0));
    }

    #[test]
    fn cpu_time_of_this_process_grows() {
        let before = cpu_seconds();
        let end = Instant::now() + Duration::from_millis(60);
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        assert!(cpu_seconds() > before);
    }
}
