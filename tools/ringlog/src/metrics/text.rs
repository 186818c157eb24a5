//! The page: a scrape in Prometheus' text format (0.0.4), by `prometheus-client`. Pure.
//!
//! Families of which nobody has a sample keep their two lines of description, so that a page is complete even if no shard
//! answered; those of single partitions are there only if they were asked for.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use runtime::histogram::{BOUNDS_NS, Latencies};
use server::metrics::{Query, ShardFigures};

use super::families::{FAMILIES, Family, Kind, Labels, NODE, Samples, Value};

pub use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

/// Before every name.
const PREFIX: &str = "ringlog";

/// What came of asking everyone.
#[derive(Debug)]
pub struct Scrape {
    pub node_id: i32,
    pub cluster_id: String,
    /// By shard; `None`: it did not answer.
    pub shards: Vec<Option<ShardFigures>>,
    /// Connections that were closed as soon as they were accepted.
    pub turned_away: u64,
    /// How long the shards took.
    pub took: Duration,
    pub query: Query,
}

pub fn page(scrape: Scrape) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(scrape));
    let mut text = String::new();
    match prometheus_text::encode(&mut text, &registry) {
        Ok(()) => text,
        Err(fmt::Error) => unreachable!("a string takes everything"),
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in NODE {
            let mut metric = describe(&mut encoder, family.kind, family.name, family.help)?;
            for (labels, value) in (family.samples)(self) {
                put(&mut metric, family.kind, &labels, value)?;
            }
        }
        for family in FAMILIES {
            self.family(&mut encoder, family)?;
        }
        Ok(())
    }
}

impl Scrape {
    fn answered(&self) -> impl Iterator<Item = &ShardFigures> {
        self.shards.iter().flatten()
    }

    fn family(&self, encoder: &mut DescriptorEncoder<'_>, family: &Family) -> fmt::Result {
        if matches!(family.samples, Samples::Rows(_)) && !self.query.partitions {
            return Ok(());
        }
        let kind = family.kind;
        let mut metric = describe(encoder, kind, family.name, family.help)?;
        for figures in self.answered() {
            let shard = || ("shard", figures.shard.to_string());
            match family.samples {
                Samples::One(value) => put(&mut metric, kind, &vec![shard()], value(figures))?,
                Samples::Many(samples) => {
                    for (mut labels, value) in samples(figures) {
                        labels.insert(0, shard());
                        put(&mut metric, kind, &labels, value)?;
                    }
                }
                Samples::Latencies(samples) => {
                    for (mut labels, latencies) in samples(figures) {
                        labels.insert(0, shard());
                        put_latencies(&mut metric, &labels, &latencies)?;
                    }
                }
                Samples::Folders(value) => {
                    for folder in &figures.folders {
                        let labels = vec![("folder", folder.path.display().to_string())];
                        value(folder).map_or(Ok(()), |value| put(&mut metric, kind, &labels, value))?;
                    }
                }
                Samples::Rows(value) => {
                    for row in &figures.rows {
                        let labels = vec![("topic", row.topic.to_string()), ("partition", row.partition.to_string())];
                        put(&mut metric, kind, &labels, value(row))?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn describe<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    kind: Kind,
    name: &'a str,
    help: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    let metric_type = match kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
    };
    encoder.encode_descriptor(name, help, None, metric_type)
}

fn put(metric: &mut MetricEncoder<'_>, kind: Kind, labels: &Labels, value: Value) -> fmt::Result {
    let mut one = metric.encode_family(labels)?;
    match (kind, value) {
        (Kind::Counter, Value::Int(value)) => one.encode_counter::<NoLabelSet, _, u64>(&value, None),
        (Kind::Counter, Value::Seconds(value)) => one.encode_counter::<NoLabelSet, _, f64>(&value, None),
        (Kind::Gauge, Value::Int(value)) => one.encode_gauge(&value),
        (Kind::Gauge, Value::Seconds(value)) => one.encode_gauge(&value),
        (Kind::Gauge, Value::Signed(value)) => one.encode_gauge(&value),
        (kind, value) => unreachable!("the table has no {value:?} in a {kind:?}"),
    }
}

fn put_latencies(metric: &mut MetricEncoder<'_>, labels: &Labels, latencies: &Latencies) -> fmt::Result {
    let bounds = BOUNDS_NS.iter().map(|ns| seconds(*ns)).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(latencies.counts).collect();
    let mut one = metric.encode_family(labels)?;
    one.encode_histogram::<NoLabelSet>(seconds(latencies.sum_ns), latencies.count(), &buckets, None)
}

/// Whole microseconds: what is finer is noise.
pub fn seconds(ns: u64) -> f64 {
    (ns / 1_000) as f64 / 1e6
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
