//! A lone Produce on a quiet node beside the least that its promise costs: a bare direct write and fdatasync of one block
//! on the same disk, and beside the bare io_uring program, which adds a socket and two wakes to that. By turns, so that all meet
//! the same neighbours.

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
    let bench = std::env::current_exe().map_err(|e| format!("this program's own path: {e}"))?;
    let programs = Programs { bench, ..Programs::ringlog(&options.ringlog) };
    let _ = std::fs::remove_dir_all(&options.dir);
    let settings: Vec<&str> = options.settings.iter().map(String::as_str).collect();
    let broker = Broker::start_with(Kind::Ringlog, &programs, &options.dir.join("ringlog"), &settings)?;
    let bare = Broker::start_with(Kind::Bare, &programs, &options.dir.join("bare-server"), &["layout=ring"])?;
    let result = measure(options, [bare.port, broker.port]).map_err(|e| e.to_string());
    drop((broker, bare));
    let _ = std::fs::remove_dir_all(&options.dir);
    print(&result?);
    Ok(())
}

/// Latencies in microseconds, each with its name.
type Row = (&'static str, Histogram<u64>);

fn measure(options: &Options, ports: [u16; 2]) -> io::Result<Vec<Row>> {
    let mut file = BareFile::create(&options.dir)?;
    let [mut bare, mut ringlog] = [Lone::connect(options, ports[0])?, Lone::connect(options, ports[1])?];
    let names = ["bare write and fdatasync", "lone produce, bare io_uring", "lone produce, acks=all"];
    let mut rows: Vec<Row> = names.map(|name| (name, histogram())).into();
    for round in 0..WARM_UP + options.count {
        let mut steps: [&mut dyn FnMut() -> io::Result<()>; 3] =
            [&mut || file.write(), &mut || bare.produce(), &mut || ringlog.produce()];
        for (step, (_, histogram)) in steps.iter_mut().zip(&mut rows) {
            std::thread::sleep(Duration::from_millis(options.pause_ms));
            let begun = Instant::now();
            step()?;
            if round >= WARM_UP {
                histogram.saturating_record(begun.elapsed().as_micros() as u64);
            }
        }
    }
    Ok(rows)
}

/// A connection that sends one request at a time.
struct Lone {
    client: Client,
    request: Vec<u8>,
}

impl Lone {
    fn connect(options: &Options, port: u16) -> io::Result<Lone> {
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
        Ok(Lone { client, request })
    }

    fn produce(&mut self) -> io::Result<()> {
        self.client.produce_once(&self.request)
    }
}

/// A file whose blocks are there already, written directly.
struct BareFile {
    file: File,
    block: Aligned,
    next: u64,
}

impl BareFile {
    fn create(dir: &Path) -> io::Result<BareFile> {
        let file = open(&dir.join("bare-file"))?;
        let mut block = Aligned::new(ALIGNMENT);
        write_all(&file, block.bytes(), BLOCKS * ALIGNMENT as u64, false)?;
        file.sync_all()?;
        Ok(BareFile { file, block, next: 0 })
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all_at(self.block.bytes(), self.next % BLOCKS * ALIGNMENT as u64)?;
        self.next += 1;
        self.file.sync_data()
    }
}

fn print(rows: &[Row]) {
    println!("| microseconds | p50 | p99 | p99.9 | max |\n|---|---|---|---|---|");
    let quantiles = [0.5, 0.99, 0.999, 1.0];
    for (name, histogram) in rows {
        let cells: Vec<String> = quantiles.iter().map(|&q| histogram.value_at_quantile(q).to_string()).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    let least = &rows[0].1;
    for (name, histogram) in &rows[1..] {
        let ratio = |q| histogram.value_at_quantile(q) as f64 / least.value_at_quantile(q).max(1) as f64;
        let cells: Vec<String> = quantiles.iter().map(|&q| format!("{:.2}", ratio(q))).collect();
        println!("| {name}, times the bare write | {} |", cells.join(" | "));
    }
}
