//! A steady load for a long time, with segments that roll, retention that cuts and a compacted topic: whether latency,
//! memory, files and disk stay where they were. Writes a line of JSON a minute and a plot.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::broker::{Broker, Kind, Programs};
use crate::client::Client;
use crate::disk::Usage;
use crate::drive::histogram;
use crate::host::kernel;
use crate::plot::{Panel, Series, svg};
use crate::soak_load::{Meter, Stream, Worker, consume, produce};

const MINUTE: Duration = Duration::from_secs(60);
/// First writes make folders and files; they are not part of the comparison.
const LEAD_IN: Duration = Duration::from_secs(10);
/// Minutes at either end that are compared; a third of the run where that is shorter.
const COMPARED_MINUTES: usize = 5;
/// How much later the last minutes' p99 may be than the first's.
const LATENCY_SLACK: f64 = 1.2;
/// Memory counts as flat within a tenth, or this.
const MEMORY_SLACK_MIB: f64 = 16.0;
const COMPACTED_KEYS: u64 = 5_000;

/// Flags of `bench soak`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    #[arg(long, default_value_t = 30)]
    minutes: usize,
    /// Records a second to 16 partitions, 500 bytes each; a compacted topic gets a tenth of it besides.
    #[arg(long, default_value_t = 5_000)]
    rate: u32,
    /// The ringlog program.
    #[arg(long, default_value = "target/release/ringlog")]
    ringlog: PathBuf,
    /// Folder for the broker's data; its disk is what is measured.
    #[arg(long, default_value = "/tmp/ringlog-bench-soak")]
    dir: PathBuf,
    /// Results, as NAME.jsonl and NAME.svg.
    #[arg(long, default_value = "bench/results/soak")]
    out: PathBuf,
}

/// Segments of about half a minute; retention keeps four.
const SETTINGS: &[&str] = &["log.retention.check.interval.ms=5000", "log.segment.delete.delay.ms=1000"];
const ROLLING: &[(&str, &str)] = &[("segment.bytes", "4194304"), ("retention.bytes", "16777216")];
const COMPACTED: &[(&str, &str)] =
    &[("cleanup.policy", "compact"), ("segment.bytes", "1048576"), ("min.cleanable.dirty.ratio", "0.3")];

/// One minute.
struct Minute {
    latencies: Histogram<u64>,
    records: u64,
    compacted_latencies: Histogram<u64>,
    resident_mib: f64,
    open_files: usize,
    usage: Usage,
    cpu_percent: f64,
}

pub fn run(options: &Options) -> Result<(), String> {
    let programs = Programs::ringlog(&options.ringlog);
    let _ = std::fs::remove_dir_all(&options.dir);
    let fail = |e: std::io::Error| e.to_string();
    let broker = Broker::start_with(Kind::Ringlog, &programs, &options.dir, SETTINGS)?;
    let main = Stream { topic: "soak", partitions: 16, records_per_second: options.rate, record_bytes: 500, keys: 0 };
    let compacted = Stream {
        topic: "soak-compacted",
        partitions: 4,
        records_per_second: (options.rate / 10).max(1),
        record_bytes: 200,
        keys: COMPACTED_KEYS,
    };
    let mut client = Client::connect(broker.port).map_err(fail)?;
    client.create_topic_with(main.topic, main.partitions, ROLLING).map_err(fail)?;
    client.create_topic_with(compacted.topic, compacted.partitions, COMPACTED).map_err(fail)?;
    drop(client);
    let stop = Arc::new(AtomicBool::new(false));
    let meters = [Meter::new(), Meter::new()];
    let mut workers: Vec<Worker> = Vec::new();
    for (stream, meter) in [main, compacted].into_iter().zip(&meters) {
        workers.extend(produce(broker.port, stream, meter, &stop).map_err(fail)?);
        workers.push(consume(broker.port, stream, &stop).map_err(fail)?);
    }
    std::thread::sleep(LEAD_IN);
    let measured = watch(&broker, options, &meters, &workers);
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.join().map_err(|_| "a worker panicked")?.map_err(fail)?;
    }
    drop(broker);
    let _ = std::fs::remove_dir_all(&options.dir);
    report(options, &measured?)
}

fn watch(
    broker: &Broker,
    options: &Options,
    meters: &[Arc<Meter>; 2],
    workers: &[Worker],
) -> Result<Vec<Minute>, String> {
    let mut minutes = Vec::with_capacity(options.minutes);
    meters.iter().for_each(|meter| drop(meter.take()));
    let begun = Instant::now();
    let mut cpu = broker.cpu_seconds();
    for number in 1..=options.minutes {
        std::thread::sleep((begun + MINUTE * number as u32).saturating_duration_since(Instant::now()));
        if workers.iter().any(Worker::is_finished) {
            return Err(format!("the load ended in minute {number}"));
        }
        let (latencies, records) = meters[0].take();
        let (compacted_latencies, compacted_records) = meters[1].take();
        let now = broker.cpu_seconds();
        let minute = Minute {
            latencies,
            records: records + compacted_records,
            compacted_latencies,
            resident_mib: broker.resident_mib(),
            open_files: broker.open_files(),
            usage: Usage::of(&options.dir.join("data")),
            cpu_percent: (now - cpu) / MINUTE.as_secs_f64() * 100.0,
        };
        cpu = now;
        println!("minute {number}: {}", minute.line());
        minutes.push(minute);
    }
    Ok(minutes)
}

fn ms(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    histogram.value_at_quantile(quantile) as f64 / 1_000.0
}

impl Minute {
    fn line(&self) -> String {
        let of = |q| ms(&self.latencies, q);
        format!(
            "{:.0} records/s, produce ms p50 {:.2} p99 {:.2} p99.9 {:.2} (compacted p99 {:.2}), {:.1} MiB resident, \
             {} open files, {} files of {:.0} MiB, {:.1} % of a core",
            self.records as f64 / MINUTE.as_secs_f64(),
            of(0.5),
            of(0.99),
            of(0.999),
            ms(&self.compacted_latencies, 0.99),
            self.resident_mib,
            self.open_files,
            self.usage.files,
            self.usage.mib(),
            self.cpu_percent
        )
    }

    fn json(&self, number: usize) -> Value {
        let rounded = |value: f64| (value * 1_000.0).round() / 1_000.0;
        let of = |histogram, q| rounded(ms(histogram, q));
        json!({
            "minute": number,
            "records_per_second": rounded(self.records as f64 / MINUTE.as_secs_f64()),
            "p50_ms": of(&self.latencies, 0.5), "p99_ms": of(&self.latencies, 0.99), "p999_ms": of(&self.latencies, 0.999),
            "max_ms": rounded(self.latencies.max() as f64 / 1_000.0),
            "compacted_p99_ms": of(&self.compacted_latencies, 0.99),
            "resident_mib": rounded(self.resident_mib), "open_files": self.open_files,
            "files": self.usage.files, "disk_mib": rounded(self.usage.mib()), "cpu_percent": rounded(self.cpu_percent),
        })
    }
}

/// What is compared: p99 in milliseconds and mean resident memory.
fn summary(minutes: &[Minute]) -> (f64, f64) {
    let mut all = histogram();
    for minute in minutes {
        all += &minute.latencies;
    }
    (ms(&all, 0.99), minutes.iter().map(|m| m.resident_mib).sum::<f64>() / minutes.len().max(1) as f64)
}

fn report(options: &Options, minutes: &[Minute]) -> Result<(), String> {
    let compared = COMPARED_MINUTES.min(minutes.len().div_ceil(3));
    let (first_p99, first_mib) = summary(&minutes[..compared]);
    let (last_p99, last_mib) = summary(&minutes[minutes.len() - compared..]);
    let latency_holds = last_p99 <= first_p99 * LATENCY_SLACK;
    let memory_holds = last_mib <= (first_mib * 1.1).max(first_mib + MEMORY_SLACK_MIB);
    let lines = minutes.iter().enumerate().map(|(at, minute)| minute.json(at + 1));
    let conditions = json!({
        "what": "soak", "minutes": options.minutes, "rate": options.rate, "acks": "all, after fdatasync",
        "cores": std::thread::available_parallelism().map_or(0, usize::from), "kernel": kernel(),
    });
    let end = json!({
        "compared_minutes": compared, "first_p99_ms": first_p99, "last_p99_ms": last_p99,
        "first_resident_mib": first_mib, "last_resident_mib": last_mib,
        "latency_holds": latency_holds, "memory_holds": memory_holds,
    });
    let all: Vec<Value> = std::iter::once(conditions).chain(lines).chain([end]).collect();
    write(&options.out.with_extension("jsonl"), &all.iter().map(|line| format!("{line}\n")).collect::<String>())?;
    write(&options.out.with_extension("svg"), &plot(options, minutes))?;
    println!(
        "first and last {compared} minutes: p99 {first_p99:.2} and {last_p99:.2} ms, resident {first_mib:.1} and {last_mib:.1} MiB"
    );
    match (latency_holds, memory_holds) {
        (true, true) => Ok(()),
        (false, _) => Err("p99 grew by more than a fifth".to_owned()),
        (true, false) => Err("memory grew".to_owned()),
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{}: {e}", path.display());
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(fail)?;
    }
    std::fs::File::create(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(fail)
}

fn plot(options: &Options, minutes: &[Minute]) -> String {
    let series = |name, value: fn(&Minute) -> f64| Series { name, values: minutes.iter().map(value).collect() };
    let panel = |title: &str, series| Panel { title: title.to_owned(), series };
    let panels = [
        panel(
            "produce latency, ms (acks=all after fdatasync, from the intended time)",
            vec![
                series("p50", |m| ms(&m.latencies, 0.5)),
                series("p99", |m| ms(&m.latencies, 0.99)),
                series("p99.9", |m| ms(&m.latencies, 0.999)),
            ],
        ),
        panel("resident memory, MiB", vec![series("broker", |m| m.resident_mib)]),
        panel("data folder, MiB", vec![series("on disk", |m| m.usage.mib())]),
        panel(
            "files",
            vec![series("in the folder", |m| m.usage.files as f64), series("open", |m| m.open_files as f64)],
        ),
    ];
    let times: Vec<f64> = (1..=minutes.len()).map(|minute| minute as f64).collect();
    svg(&format!("{} records/s for {} minutes", options.rate, options.minutes), "minutes", &times, &panels)
}
