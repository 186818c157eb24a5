//! What came of a run: samples at the edges of its windows become figures.
//!
//! Owned by the run's thread. A figure that [`crate::metrics`] does not know is a programmer's error.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::drive::histogram;
use crate::end_to_end;
use crate::gauge::{Cpu, Spent};
use crate::reader::Reader;
use crate::results::Figures;
use crate::writer::Writer;

const GIB: f64 = (1u64 << 30) as f64;
pub const MIB: f64 = (1u64 << 20) as f64;

#[derive(Debug, Default)]
pub struct Outcome {
    pub figures: Figures,
    /// What was acknowledged beyond each partition's first record.
    pub produced_records: u64,
    pub produced_bytes: u64,
}

/// Counters (records and bytes) and CPU times at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub cpu: Cpu,
    pub produced: (u64, u64),
    pub fetched: (u64, u64),
}

/// Records and bytes of a span.
#[derive(Clone, Copy, Debug)]
pub struct Volume {
    pub records: f64,
    pub bytes: f64,
}

impl Outcome {
    pub fn note(&mut self, name: &str, value: f64) {
        assert!(crate::metrics::find(name).is_some(), "{name} is a figure that the table of figures has");
        self.figures.insert(name.to_owned(), value);
    }

    /// `resident`: MiB at the end of the window, and at most so far.
    pub fn window(&mut self, before: Sample, after: Sample, resident: (f64, f64)) {
        let spent = after.cpu.since(before.cpu);
        self.note("cpu_percent", spent.broker / spent.seconds * 100.0);
        self.note("resident_mib", resident.0);
        self.note("resident_peak_mib", resident.1);
        let between = |to: (u64, u64), from: (u64, u64)| Volume {
            records: (to.0 - from.0) as f64,
            bytes: (to.1 - from.1) as f64,
        };
        let produced = between(after.produced, before.produced);
        if produced.records > 0.0 {
            self.note("produce_cpu_us_per_record", spent.broker * 1e6 / produced.records);
            self.volume("produce", produced, spent);
        }
        let fetched = between(after.fetched, before.fetched);
        if fetched.records > 0.0 {
            self.note("fetch_records_per_s", fetched.records / spent.seconds);
            self.note("fetch_mib_per_s", fetched.bytes / MIB / spent.seconds);
        }
    }

    pub fn volume(&mut self, what: &str, volume: Volume, spent: Spent) {
        let gib = volume.bytes / GIB;
        for (name, value) in [
            ("records_per_s", volume.records / spent.seconds),
            ("mib_per_s", volume.bytes / MIB / spent.seconds),
            ("cpu_s_per_gib", spent.broker / gib),
            ("machine_s_per_gib", spent.machine_without_client / gib),
            ("client_s_per_gib", spent.client / gib),
        ] {
            self.note(&format!("{what}_{name}"), value);
        }
    }

    fn quantiles(&mut self, what: &str, latencies: &Histogram<u64>, quantiles: &[(&str, f64)]) {
        if latencies.is_empty() {
            return;
        }
        for (name, quantile) in quantiles {
            self.note(&format!("{what}_{name}_ms"), latencies.value_at_quantile(*quantile) as f64 / 1e3);
        }
    }

    pub fn latencies(&mut self, writers: &[Writer], beside_reader: bool) {
        let mut merged = [histogram(), histogram()];
        for writer in writers {
            for (sum, part) in merged.iter_mut().zip(&writer.latencies) {
                sum.add(part).expect("histograms of one shape add up");
            }
        }
        self.quantiles("produce", &merged[0], &[("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)]);
        if beside_reader {
            self.quantiles("beside_reader", &merged[1], &[("p50", 0.5), ("p99", 0.99), ("max", 1.0)]);
        }
    }

    pub fn end_to_end(&mut self, writers: &[Writer], readers: Vec<Reader>, window: (Duration, Duration)) {
        let sent: Vec<_> = writers.iter().flat_map(|w| &w.sent).copied().collect();
        let arrivals: Vec<_> = readers.into_iter().map(|r| r.arrivals).collect();
        let latencies = end_to_end::latencies(&sent, &arrivals, window);
        self.quantiles("e2e", &latencies, &[("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)]);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn sample(at: Instant, broker: f64, own: f64, produced: (u64, u64), fetched: (u64, u64)) -> Sample {
        Sample { cpu: Cpu { at, broker, machine: 2.0 * broker + own, own }, produced, fetched }
    }

    #[test]
    fn a_window_becomes_figures_of_a_second_and_of_a_gib() {
        let (begun, gib) = (Instant::now(), 1u64 << 30);
        let mut outcome = Outcome::default();
        let before = sample(begun, 1.0, 0.5, (100, 5), (7, 7));
        let after = sample(begun + Duration::from_secs(4), 3.0, 1.5, (2_000_100, 5 + 2 * gib), (7, 7));
        outcome.window(before, after, (10.0, 20.0));
        for (name, value) in [
            ("produce_records_per_s", 500_000.0),
            ("produce_mib_per_s", 512.0),
            ("produce_cpu_s_per_gib", 1.0),
            ("produce_machine_s_per_gib", 2.0),
            ("produce_client_s_per_gib", 0.5),
            ("produce_cpu_us_per_record", 1.0),
            ("cpu_percent", 50.0),
            ("resident_peak_mib", 20.0),
        ] {
            assert!((outcome.figures[name] - value).abs() < 1e-9, "{name}: {}", outcome.figures[name]);
        }
        assert!(!outcome.figures.contains_key("fetch_mib_per_s"));
    }
}
