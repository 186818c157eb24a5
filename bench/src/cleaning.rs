//! What compaction costs its neighbours: the latency of a steady Produce load beside a topic that is cleaned all the time,
//! and beside the same writes to a topic that is not, by turns.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use hdrhistogram::Histogram;

use crate::broker::{Broker, Kind, Programs};
use crate::client::Client;
use crate::disk::Usage;
use crate::results::Spread;
use crate::soak_load::{Meter, Stream, Worker, produce};

/// Flags of `bench cleaning`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Rounds; each starts a broker for either side.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds that are measured in each.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Records a second of the load whose latency is measured, 500 bytes each, to 16 partitions.
    #[arg(long, default_value_t = 5_000)]
    rate: u32,
    /// Records a second of the neighbour, 1000 bytes each, to 4 partitions, one of 2000 keys each.
    #[arg(long, default_value_t = 10_000)]
    neighbour_rate: u32,
    /// The ringlog program.
    #[arg(long, default_value = "target/release/ringlog")]
    ringlog: PathBuf,
    /// Folder for the broker's data.
    #[arg(long, default_value = "/tmp/ringlog-bench-cleaning")]
    dir: PathBuf,
}

const LEAD_IN: Duration = Duration::from_secs(5);
const SETTINGS: &[&str] = &["log.cleaner.backoff.ms=100", "log.segment.delete.delay.ms=500"];
const SMALL_SEGMENTS: (&str, &str) = ("segment.bytes", "2097152");
/// Cleaned whenever a tenth is new.
const CLEANED: &[(&str, &str)] = &[SMALL_SEGMENTS, ("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.1")];
const PLAIN: &[(&str, &str)] = &[SMALL_SEGMENTS];
/// How much later an answer may be beside a cleaning.
const SLACK: f64 = 1.2;

/// One side of a round.
struct Side {
    latencies: Histogram<u64>,
    neighbour_mib: f64,
    cpu_seconds: f64,
}

pub fn run(options: &Options) -> Result<(), String> {
    let (mut plain, mut cleaned) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        for (configs, sides) in [(PLAIN, &mut plain), (CLEANED, &mut cleaned)] {
            let side = measure(options, configs)?;
            let name = if std::ptr::eq(configs, CLEANED) { "cleaned" } else { "plain" };
            eprintln!(
                "round {round}, {name}: p50 {} us, p99 {} us, neighbour {:.0} MiB on disk, {:.2} CPU s",
                side.latencies.value_at_quantile(0.5),
                side.latencies.value_at_quantile(0.99),
                side.neighbour_mib,
                side.cpu_seconds
            );
            sides.push(side);
        }
    }
    print(&plain, &cleaned)
}

fn measure(options: &Options, configs: &[(&str, &str)]) -> Result<Side, String> {
    let programs = Programs::ringlog(&options.ringlog);
    let _ = std::fs::remove_dir_all(&options.dir);
    let fail = |e: std::io::Error| e.to_string();
    let broker = Broker::start_with(Kind::Ringlog, &programs, &options.dir, SETTINGS)?;
    let main =
        Stream { topic: "measured", partitions: 16, records_per_second: options.rate, record_bytes: 500, keys: 0 };
    let neighbour = Stream {
        topic: "neighbour",
        partitions: 4,
        records_per_second: options.neighbour_rate,
        record_bytes: 1_000,
        keys: 2_000,
    };
    let mut client = Client::connect(broker.port).map_err(fail)?;
    client.create_topic(main.topic, main.partitions).map_err(fail)?;
    client.create_topic_with(neighbour.topic, neighbour.partitions, configs).map_err(fail)?;
    let stop = Arc::new(AtomicBool::new(false));
    let (meter, other) = (Meter::new(), Meter::new());
    let mut workers: Vec<Worker> = produce(broker.port, main, &meter, &stop).map_err(fail)?.into();
    workers.extend(produce(broker.port, neighbour, &other, &stop).map_err(fail)?);
    std::thread::sleep(LEAD_IN);
    drop(meter.take());
    let before = broker.cpu_seconds();
    std::thread::sleep(Duration::from_secs(options.seconds));
    let (latencies, _) = meter.take();
    let cpu_seconds = broker.cpu_seconds() - before;
    let neighbour_mib = neighbour_mib(&options.dir.join("data"), neighbour);
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.join().map_err(|_| "a worker panicked")?.map_err(fail)?;
    }
    drop(broker);
    let _ = std::fs::remove_dir_all(&options.dir);
    Ok(Side { latencies, neighbour_mib, cpu_seconds })
}

fn neighbour_mib(data: &Path, stream: Stream) -> f64 {
    (0..stream.partitions).map(|index| Usage::of(&data.join(format!("{}-{index}", stream.topic))).mib()).sum()
}

fn median(sides: &[Side], value: impl Fn(&Side) -> f64) -> f64 {
    Spread::of(&sides.iter().map(value).collect::<Vec<_>>()).map_or(0.0, |spread| spread.median)
}

fn print(plain: &[Side], cleaned: &[Side]) -> Result<(), String> {
    let of = |sides: &[Side], q| median(sides, |side| side.latencies.value_at_quantile(q) as f64 / 1e3);
    println!("| median of {} rounds | beside plain writes | beside a topic that is cleaned |", plain.len());
    println!("|---|---|---|");
    for (name, q) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
        println!("| produce {name}, ms | {:.2} | {:.2} |", of(plain, q), of(cleaned, q));
    }
    let row = |name: &str, value: fn(&Side) -> f64| {
        println!("| {name} | {:.1} | {:.1} |", median(plain, value), median(cleaned, value));
    };
    row("neighbour on disk at the end, MiB", |side| side.neighbour_mib);
    row("broker CPU seconds", |side| side.cpu_seconds);
    if median(cleaned, |s| s.neighbour_mib) > median(plain, |s| s.neighbour_mib) / 2.0 {
        return Err("nothing was cleaned: the comparison says nothing".to_owned());
    }
    if of(cleaned, 0.99) > of(plain, 0.99) * SLACK {
        return Err(format!("p99 beside a cleaning is {:.2} times the other", of(cleaned, 0.99) / of(plain, 0.99)));
    }
    Ok(())
}
