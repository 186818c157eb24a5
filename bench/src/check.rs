//! `bench check`: whether the load generator measures what other clients do. On one broker, each writes what the other reads, and
//! the counts have to agree; then both write at the same rate, and their latencies are shown beside each other.
//!
//! The other client is `ringlog perf`; with `--rdkafka PATH` also librdkafka's `rdkafka_performance`, and kcat where it is
//! installed. All of them decode what comes back by themselves.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde_json::Value;
use wire::Decode;
use wire::generated::list_offsets::{ListOffsetsPartition, ListOffsetsTopic};
use wire::generated::{ListOffsetsRequest, ListOffsetsResponse};

use crate::broker::{Broker, Kind, Programs};
use crate::client::{Client, invalid};
use crate::drive::{Shared, drive};
use crate::reader::{Plan, Reader};
use crate::table::number;
use crate::traffic::{self, Field};
use crate::workload::{Consume, Workload};

const PARTITIONS: i32 = 8;
const RECORD_BYTES: usize = 500;

/// Flags of `bench check`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Records that the others write.
    #[arg(long, default_value_t = 200_000)]
    records: u64,
    /// Records a second where latencies are compared.
    #[arg(long, default_value_t = 20_000)]
    rate: u64,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// librdkafka's rdkafka_performance.
    #[arg(long, value_name = "PATH")]
    rdkafka: Option<PathBuf>,
    /// The ringlog program.
    #[arg(long, default_value = "target/release/ringlog")]
    ringlog: PathBuf,
    /// Folder for the broker's data.
    #[arg(long, default_value = "/tmp/ringlog-bench-check")]
    dir: PathBuf,
}

pub fn run(options: &Options) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(&options.dir);
    let broker = Broker::start(Kind::Ringlog, &Programs::ringlog(&options.ringlog), &options.dir)?;
    theirs(options, &broker)?;
    let flat_out = Workload {
        partitions: PARTITIONS,
        seconds: 2.0,
        warm_up_seconds: 0.5,
        consume: Consume::After,
        ..Workload::default()
    };
    ours(options, &broker, &flat_out)?;
    latencies(options, &broker)?;
    drop(broker);
    let _ = std::fs::remove_dir_all(&options.dir);
    Ok(())
}

fn said(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{command:?} does not start: {e}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `ringlog perf` with its answer.
fn perf(options: &Options, broker: &Broker, arguments: &[&str]) -> Result<Value, String> {
    let mut command = Command::new(&options.ringlog);
    command.arg("perf").args(arguments).args(["--json", "-b", &format!("127.0.0.1:{}", broker.port)]);
    serde_json::from_str(&said(&mut command)?).map_err(|e| format!("ringlog perf: {e}"))
}

fn agree(what: &str, wanted: u64, found: u64) -> Result<(), String> {
    println!("{what}: {wanted} went in, {found} came out");
    if wanted == found { Ok(()) } else { Err(format!("{what}: the counts differ")) }
}

/// What others wrote, read by us.
fn theirs(options: &Options, broker: &Broker) -> Result<(), String> {
    let records = options.records.to_string();
    let partitions = PARTITIONS.to_string();
    let written = perf(
        options,
        broker,
        &["produce", "theirs", "--create", &partitions, "--records", &records, "--duration", "120s"],
    )?;
    let written = written["records"].as_u64().unwrap_or(0);
    agree("ringlog perf to us", written, read(broker, "theirs")?)?;
    let Some(rdkafka) = &options.rdkafka else { return Ok(()) };
    let mut client = Client::connect(broker.port).map_err(|e| e.to_string())?;
    client.create_topic("rdkafka", PARTITIONS).map_err(|e| e.to_string())?;
    let size = RECORD_BYTES.to_string();
    let mut command = Command::new(rdkafka);
    command.args(["-P", "-t", "rdkafka", "-s", &size, "-c", &records, "-a", "-1"]);
    said(command.args(["-b", &format!("127.0.0.1:{}", broker.port)]))?;
    agree("rdkafka_performance to us", options.records, read(broker, "rdkafka")?)
}

/// Reads a topic to its end.
fn read(broker: &Broker, topic: &str) -> Result<u64, String> {
    let shared = Arc::new(Shared::default());
    let until = ends(broker, topic).map_err(|e| format!("ListOffsets: {e}"))?;
    let plan = Plan {
        port: broker.port,
        topic: topic.to_owned(),
        shared: shared.clone(),
        begun: Instant::now(),
        from: Arc::new(vec![0; PARTITIONS as usize]),
        until: Some(Arc::new(until)),
        notes_arrivals: false,
    };
    let mut readers = [Reader::connect(&plan, 0, 1).map_err(|e| e.to_string())?];
    drive(&mut readers, &shared).map_err(|e| e.to_string())?;
    Ok(readers[0].records)
}

/// Where each partition ends, as the broker says.
fn ends(broker: &Broker, topic: &str) -> io::Result<Vec<i64>> {
    const VERSION: i16 = 1;
    const END: i64 = -1;
    let partition = |partition_index| ListOffsetsPartition { partition_index, timestamp: END, ..Default::default() };
    let topics = vec![ListOffsetsTopic { name: topic, partitions: (0..PARTITIONS).map(partition).collect() }];
    let mut client = Client::connect(broker.port)?;
    client.send(VERSION, &ListOffsetsRequest { replica_id: -1, topics, ..Default::default() })?;
    let answer = client.receive()?;
    let response = ListOffsetsResponse::decode(&mut wire::Reader::new(&answer), VERSION).map_err(invalid)?;
    let mut ends = vec![0; PARTITIONS as usize];
    for partition in response.topics.iter().flat_map(|t| &t.partitions) {
        if partition.error_code != 0 {
            return Err(invalid(format!("error {}", partition.error_code)));
        }
        ends[partition.partition_index as usize] = partition.offset;
    }
    Ok(ends)
}

fn field<'a>(options: &'a Options, broker: &'a Broker, workload: &'a Workload) -> Field<'a> {
    Field { broker, kind: Kind::Ringlog, workload, cpus: &[], dir: &options.dir }
}

/// What we wrote, read by others.
fn ours(options: &Options, broker: &Broker, workload: &Workload) -> Result<(), String> {
    let outcome = traffic::run(&field(options, broker, workload))?;
    // Each partition got one record first.
    let wanted = outcome.produced_records + PARTITIONS as u64;
    let read = perf(options, broker, &["consume", traffic::TOPIC])?;
    agree("us to ringlog perf", wanted, read["records"].as_u64().unwrap_or(0))?;
    if !on_path("kcat") {
        println!("us to kcat: kcat is not installed");
        return Ok(());
    }
    let mut kcat = Command::new("kcat");
    kcat.args(["-b", &format!("127.0.0.1:{}", broker.port), "-C", "-t", traffic::TOPIC]);
    let lines = said(kcat.args(["-o", "beginning", "-e", "-q", "-f", "%o\n"]))?.lines().count();
    agree("us to kcat", wanted, lines as u64)
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir: PathBuf| Path::new(&dir).join(program).exists()))
}

/// Both at the same rate, in batches of a millisecond's records.
fn latencies(options: &Options, broker: &Broker) -> Result<(), String> {
    let workload = Workload {
        partitions: PARTITIONS,
        partitions_per_request: 1,
        batch_bytes: (options.rate as usize / 1_000).max(1) * RECORD_BYTES,
        rate: options.rate,
        seconds: options.seconds,
        warm_up_seconds: 1.0,
        consume: Consume::None,
        ..Workload::default()
    };
    let ours = traffic::run_in(&field(options, broker, &workload), "latencies")?.figures;
    let duration = format!("{}s", options.seconds.ceil() as u64);
    let (rate, partitions) = (options.rate.to_string(), PARTITIONS.to_string());
    let theirs = perf(
        options,
        broker,
        &[
            "produce",
            "latencies-perf",
            "--create",
            &partitions,
            "--rate",
            &rate,
            "--duration",
            &duration,
            "--linger-ms",
            "1",
        ],
    )?;
    println!("latency until acknowledged at {rate} records/s, ms: p50, p99, p99.9");
    let of = |name: &str| number(ours.get(&format!("produce_{name}_ms")).copied().unwrap_or(f64::NAN));
    println!("  this client: {}, {}, {}", of("p50"), of("p99"), of("p999"));
    let figures = &theirs["until acknowledged_ms"];
    let of = |name: &str| number(figures[name].as_f64().unwrap_or(f64::NAN));
    println!("  ringlog perf, linger 1 ms included: {}, {}, {}", of("p50"), of("p99"), of("p99.9"));
    Ok(())
}
