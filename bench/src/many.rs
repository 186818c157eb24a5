//! Many partitions with one record each: what they cost on disk, in memory and in open files, and how long a start takes
//! after a clean stop and after kill -9.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use crate::broker::{Broker, Kind, Programs};
use crate::client::{Client, Load};
use crate::disk::Usage;

/// Flags of `bench many`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Partitions, in one topic.
    #[arg(long, default_value_t = 10_000)]
    partitions: i32,
    /// The ringlog program.
    #[arg(long, default_value = "target/release/ringlog")]
    ringlog: PathBuf,
    /// Folder for the broker's data.
    #[arg(long, default_value = "/tmp/ringlog-bench-many")]
    dir: PathBuf,
}

pub fn run(options: &Options) -> Result<(), String> {
    let programs = Programs::ringlog(&options.ringlog);
    let _ = std::fs::remove_dir_all(&options.dir);
    let fail = |e: std::io::Error| e.to_string();
    let broker = Broker::start(Kind::Ringlog, &programs, &options.dir)?;
    let idle_mib = broker.resident_mib();
    let mut client = Client::connect(broker.port).map_err(fail)?;
    client.create_topic("many", options.partitions).map_err(fail)?;
    let load = Load { topic: "many", partitions: options.partitions, record_bytes: 100, batch_bytes: 100, bytes: 1 };
    client.produce(&load).map_err(fail)?;
    // Idle partitions give their memory back.
    std::thread::sleep(Duration::from_secs(15));
    let row = |name: &str, value: String| println!("| {name} | {value} |");
    println!("| {} partitions, one record each | |\n|---|---|", options.partitions);
    row("disk", format!("{:.0} MiB", Usage::of(&options.dir).mib()));
    row("memory beyond an empty broker's", format!("{:.0} MiB", broker.resident_mib() - idle_mib));
    row("open files", broker.open_files().to_string());
    client.produce(&load).map_err(fail)?;
    drop(client);
    drop(broker);
    let broker = Broker::start(Kind::Ringlog, &programs, &options.dir)?;
    row("start to first answer after kill -9", format!("{} ms", broker.started_in.as_millis()));
    let begun = Instant::now();
    let mut client = Client::connect(broker.port).map_err(fail)?;
    let read = client.fetch(&Load { bytes: 2 * 169 * options.partitions as u64, ..load }).map_err(fail)?;
    row("until every partition was read after it", format!("{} ms", (broker.started_in + begun.elapsed()).as_millis()));
    row("records read back after it", read.records.to_string());
    drop(client);
    let stopped = broker.stop()?;
    row("clean stop", format!("{} ms", stopped.as_millis()));
    let broker = Broker::start(Kind::Ringlog, &programs, &options.dir)?;
    row("start to first answer after a clean stop", format!("{} ms", broker.started_in.as_millis()));
    drop(broker);
    let _ = std::fs::remove_dir_all(&options.dir);
    Ok(())
}
