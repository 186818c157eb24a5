//! The figures of a run: their names in the results, their titles in tables and plots, and which way is better.
//!
//! One table, so that a figure cannot have two meanings. "GiB" and "byte" are those of record batches as they cross the
//! network (compressed where they are), of the measured window.

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    More,
    Less,
}

#[derive(Clone, Copy, Debug)]
pub struct Metric {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: &'static str,
    pub better: Better,
}

const fn metric(name: &'static str, title: &'static str, unit: &'static str, better: Better) -> Metric {
    Metric { name, title, unit, better }
}

use Better::{Less, More};

/// In the order in which tables show them.
pub const METRICS: &[Metric] = &[
    metric("produce_records_per_s", "produce", "records/s", More),
    metric("produce_mib_per_s", "produce", "MiB/s", More),
    metric("produce_p50_ms", "produce p50", "ms", Less),
    metric("produce_p99_ms", "produce p99", "ms", Less),
    metric("produce_p999_ms", "produce p99.9", "ms", Less),
    metric("produce_max_ms", "produce max", "ms", Less),
    metric("produce_cpu_s_per_gib", "produce, broker CPU", "s per GiB", Less),
    metric("produce_machine_s_per_gib", "produce, machine CPU without the client's", "s per GiB", Less),
    metric("produce_client_s_per_gib", "produce, client CPU", "s per GiB", Less),
    metric("produce_cpu_us_per_record", "produce, broker CPU", "µs per record", Less),
    metric("e2e_p50_ms", "end to end p50", "ms", Less),
    metric("e2e_p99_ms", "end to end p99", "ms", Less),
    metric("e2e_p999_ms", "end to end p99.9", "ms", Less),
    metric("e2e_max_ms", "end to end max", "ms", Less),
    metric("fetch_mib_per_s", "fetch", "MiB/s", More),
    metric("fetch_records_per_s", "fetch", "records/s", More),
    metric("fetch_cpu_s_per_gib", "fetch, broker CPU", "s per GiB", Less),
    metric("fetch_machine_s_per_gib", "fetch, machine CPU without the client's", "s per GiB", Less),
    metric("fetch_client_s_per_gib", "fetch, client CPU", "s per GiB", Less),
    metric("beside_reader_p50_ms", "produce p50 beside the reader", "ms", Less),
    metric("beside_reader_p99_ms", "produce p99 beside the reader", "ms", Less),
    metric("beside_reader_max_ms", "produce max beside the reader", "ms", Less),
    metric("cpu_percent", "broker CPU", "% of a core", Less),
    metric("resident_idle_mib", "resident memory, idle", "MiB", Less),
    metric("resident_mib", "resident memory", "MiB", Less),
    metric("resident_peak_mib", "resident memory, peak", "MiB", Less),
    metric("process_written_per_byte", "written by the process per byte produced", "bytes", Less),
    metric("device_written_per_byte", "written to the device per byte produced", "bytes", Less),
    metric("create_topic_ms", "topic made, with all its leaders", "ms", Less),
    metric("start_ms", "start to first answer, empty folder", "ms", Less),
    metric("restart_ms", "start to first answer after a clean stop", "ms", Less),
];

pub fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_end_with_their_unit() {
        for (place, metric) in METRICS.iter().enumerate() {
            assert!(METRICS[place + 1..].iter().all(|other| other.name != metric.name), "{}", metric.name);
            let ends = ["_s", "_ms", "_mib", "_gib", "_record", "_percent", "_byte"];
            assert!(ends.iter().any(|end| metric.name.ends_with(end)), "{}", metric.name);
        }
        assert!(find("nothing").is_none());
    }
}
