//! A lone Produce on a quiet node beside the least that its promise costs: a bare direct write and fdatasync of one block
//! on the same disk, by turns, so that both meet the same neighbours.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;

use crate::broker::{Broker, Kind, Programs};
use crate::client::{Client, Load};
use crate::drive::histogram;
use crate::limits_disk::{ALIGNMENT, Aligned, open, write_all};

/// Flags of `bench lone`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Produce requests, and as many bare writes.
    #[arg(long, default_value_t = 5_000)]
    count: u32,
    /// Bytes of each request's single record.
    #[arg(long, default_value_t = 1024)]
    record_bytes: usize,
    /// Milliseconds of quiet before each.
    #[arg(long, default_value_t = 2)]
    pause_ms: u64,
    /// The ringlog program.
    #[arg(long, default_value = "target/release/ringlog")]
    ringlog: PathBuf,
    /// A setting of the broker's, `key=value`; may be repeated.
    #[arg(long = "set")]
    settings: Vec<String>,
    /// Folder for the broker's data and the bare file.
    #[arg(long, default_value = "/tmp/ringlog-bench-lone")]
    dir: PathBuf,
}

/// Blocks of the bare file, written over and over as the journal's are.
const BLOCKS: u64 = 1024;
/// Requests before the first that counts: the journal takes over after some commits.
const WARM_UP: u32 = 300;

pub fn run(options: &Options) -> Result<(), String> {
    let programs = Programs::ringlog(&options.ringlog);
    let _ = std::fs::remove_dir_all(&options.dir);
    let settings: Vec<&str> = options.settings.iter().map(String::as_str).collect();
    let broker = Broker::start_with(Kind::Ringlog, &programs, &options.dir, &settings)?;
    let result = measure(options, broker.port).map_err(|e| e.to_string());
    drop(broker);
    let _ = std::fs::remove_dir_all(&options.dir);
    let (bare, produced) = result?;
    print(&bare, &produced);
    Ok(())
}

fn measure(options: &Options, port: u16) -> io::Result<(Histogram<u64>, Histogram<u64>)> {
    let mut bare = Bare::create(&options.dir)?;
    let mut client = Client::connect(port)?;
    client.create_topic("lone", 1)?;
    let load = Load {
        topic: "lone",
        partitions: 1,
        record_bytes: options.record_bytes,
        batch_bytes: options.record_bytes,
        bytes: 0,
    };
    let (request, _) = Client::produce_frame(&load)?;
    client.warm_up(&request)?;
    let (mut writes, mut requests) = (histogram(), histogram());
    for round in 0..WARM_UP + options.count {
        std::thread::sleep(Duration::from_millis(options.pause_ms));
        let begun = Instant::now();
        bare.write()?;
        let write = begun.elapsed();
        std::thread::sleep(Duration::from_millis(options.pause_ms));
        let begun = Instant::now();
        client.produce_once(&request)?;
        let produce = begun.elapsed();
        if round >= WARM_UP {
            writes.saturating_record(write.as_micros() as u64);
            requests.saturating_record(produce.as_micros() as u64);
        }
    }
    Ok((writes, requests))
}

/// A file whose blocks are there already, written directly.
struct Bare {
    file: File,
    block: Aligned,
    next: u64,
}

impl Bare {
    fn create(dir: &Path) -> io::Result<Bare> {
        let file = open(&dir.join("bare"))?;
        let mut block = Aligned::new(ALIGNMENT);
        write_all(&file, block.bytes(), BLOCKS * ALIGNMENT as u64, false)?;
        file.sync_all()?;
        Ok(Bare { file, block, next: 0 })
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all_at(self.block.bytes(), self.next % BLOCKS * ALIGNMENT as u64)?;
        self.next += 1;
        self.file.sync_data()
    }
}

fn print(bare: &Histogram<u64>, produced: &Histogram<u64>) {
    println!("| microseconds | p50 | p99 | p99.9 | max |\n|---|---|---|---|---|");
    let quantiles = [0.5, 0.99, 0.999, 1.0];
    for (name, histogram) in [("bare write and fdatasync", bare), ("lone produce, acks=all", produced)] {
        let cells: Vec<String> = quantiles.iter().map(|&q| histogram.value_at_quantile(q).to_string()).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    let ratio = |q| produced.value_at_quantile(q) as f64 / bare.value_at_quantile(q).max(1) as f64;
    let cells: Vec<String> = quantiles.iter().map(|&q| format!("{:.2}", ratio(q))).collect();
    println!("| ratio | {} |", cells.join(" | "));
}
