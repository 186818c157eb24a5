//! Rounds of both brokers in turns, and the table of medians.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use crate::broker::{Broker, Kind, Programs};
use crate::client::{Client, Load, Moved};

const GIB: f64 = (1u64 << 30) as f64;

/// Flags of `bench compare`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Rounds; each starts both brokers afresh, in turns.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// MiB produced and fetched in each workload and round.
    #[arg(long, default_value_t = 1024)]
    mib: u64,
    /// The ringlog program.
    #[arg(long, default_value = "target/release/ringlog")]
    ringlog: PathBuf,
    /// Folder of Apache Kafka's packages (`tools/test prepare` fetches them).
    #[arg(long, default_value = ".cache/kafka-4.4.0")]
    kafka: PathBuf,
    /// Folder for the brokers' data; its disk is what is measured.
    #[arg(long, default_value = "/tmp/ringlog-bench")]
    dir: PathBuf,
    /// Only Ringlog.
    #[arg(long)]
    alone: bool,
}

/// Records of 500 bytes, acks=all.
const WORKLOADS: &[(&str, i32, usize)] = &[("firehose", 1, 1_000_000), ("clickstream", 64, 16_000)];
const RECORD_BYTES: usize = 500;

/// A row of the table, by broker.
type Samples = BTreeMap<(String, Kind), Vec<f64>>;

pub fn run(options: &Options) -> Result<(), String> {
    let programs = Programs { ringlog: options.ringlog.clone(), kafka_packages: options.kafka.clone() };
    let kinds: &[Kind] = if options.alone { &[Kind::Ringlog] } else { &[Kind::Ringlog, Kind::Kafka] };
    let mut samples = Samples::new();
    for round in 0..options.rounds {
        for &kind in kinds {
            eprintln!("round {} of {}: {}", round + 1, options.rounds, kind.name());
            measure(kind, &programs, options, &mut samples)?;
        }
    }
    print_table(kinds, &samples);
    Ok(())
}

fn measure(kind: Kind, programs: &Programs, options: &Options, samples: &mut Samples) -> Result<(), String> {
    let dir = options.dir.join(format!("{kind:?}"));
    let _ = std::fs::remove_dir_all(&dir);
    let broker = Broker::start(kind, programs, &dir)?;
    let mut note = |name: &str, value: f64| samples.entry((name.to_string(), kind)).or_default().push(value);
    note("start to first answer, ms", broker.started_in.as_secs_f64() * 1e3);
    note("resident memory idle, MiB", broker.resident_mib());
    let fail = |e: std::io::Error| format!("{}: {e}", kind.name());
    for &(name, partitions, batch_bytes) in WORKLOADS {
        let mut client = Client::connect(broker.port).map_err(fail)?;
        client.create_topic(name, partitions).map_err(fail)?;
        let load = Load { topic: name, partitions, record_bytes: RECORD_BYTES, batch_bytes, bytes: options.mib << 20 };
        let before = broker.cpu_seconds();
        let produced = client.produce(&load).map_err(fail)?;
        note(&format!("{name} produce, thousand records/s"), rate(&produced));
        note(&format!("{name} produce, CPU s per GiB"), per_gib(broker.cpu_seconds() - before, &produced));
        let before = broker.cpu_seconds();
        let fetched = client.fetch(&Load { bytes: produced.bytes, ..load }).map_err(fail)?;
        note(&format!("{name} fetch, MiB/s"), fetched.bytes as f64 / fetched.seconds / (1 << 20) as f64);
        note(&format!("{name} fetch, CPU s per GiB"), per_gib(broker.cpu_seconds() - before, &fetched));
        // More may be there: a warm-up request that only some partitions took.
        if fetched.records < produced.records {
            return Err(format!("{}: {} records went in, {} came out", kind.name(), produced.records, fetched.records));
        }
    }
    note("resident memory under load, MiB", broker.resident_mib());
    drop(broker);
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}

fn rate(moved: &Moved) -> f64 {
    moved.records as f64 / moved.seconds / 1e3
}

fn per_gib(cpu_seconds: f64, moved: &Moved) -> f64 {
    cpu_seconds / (moved.bytes as f64 / GIB)
}

fn print_table(kinds: &[Kind], samples: &Samples) {
    let names: Vec<&str> = kinds.iter().map(|k| k.name()).collect();
    println!("| median (min to max) | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(kinds.len()));
    let mut rows: Vec<&str> = samples.keys().map(|(name, _)| name.as_str()).collect();
    rows.dedup();
    for row in rows {
        let cells =
            kinds.iter().map(|&kind| samples.get(&(row.to_string(), kind)).map_or_else(String::new, |v| cell(v)));
        println!("| {row} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

fn cell(values: &[f64]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let text = |v: f64| if v >= 100.0 { format!("{v:.0}") } else { format!("{v:.2}") };
    match (sorted.first(), sorted.last()) {
        (Some(&min), Some(&max)) => format!("{} ({} to {})", text(sorted[sorted.len() / 2]), text(min), text(max)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_names_median_and_range() {
        assert_eq!(cell(&[3.0, 1.0, 200.0]), "3.00 (1.00 to 200)");
    }
}
