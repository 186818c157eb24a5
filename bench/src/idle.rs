//! Idle consumers of thousands of partitions: what their long polls cost the broker, and whether anything grows.
//!
//! Each consumer has a fetch session and asks again as soon as its answer comes, as Kafka's clients do; nothing is ever
//! produced while it is measured, so every answer is an empty one at the end of `--wait-ms`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use wire::generated::fetch::{FetchPartition, FetchTopic};
use wire::generated::{FetchRequest, FetchResponse};
use wire::{Decode, Reader};

use crate::broker::{Broker, Kind, Programs};
use crate::client::{Client, FETCH_VERSION, Load, invalid};

/// Until idle partitions have given their memory back.
const SETTLE: Duration = Duration::from_secs(15);
const TOPIC: &str = "idle";

/// Flags of `bench idle`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Partitions, in one topic, one record in each.
    #[arg(long, default_value_t = 10_000)]
    partitions: i32,
    #[arg(long, default_value_t = 20)]
    consumers: i32,
    /// Every consumer reads every partition, instead of an equal share as in a group.
    #[arg(long)]
    all: bool,
    /// Requests name all their partitions each time, as librdkafka's do, instead of a session.
    #[arg(long)]
    without_session: bool,
    /// fetch.max.wait.ms; 500 is the default of Kafka's clients.
    #[arg(long, default_value_t = 500)]
    wait_ms: i32,
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// The ringlog program.
    #[arg(long, default_value = "target/release/ringlog")]
    ringlog: PathBuf,
    /// Folder for the broker's data.
    #[arg(long, default_value = "/tmp/ringlog-bench-idle")]
    dir: PathBuf,
}

pub fn run(options: &Options) -> Result<(), String> {
    let programs = Programs::ringlog(&options.ringlog);
    let _ = std::fs::remove_dir_all(&options.dir);
    let fail = |e: io::Error| e.to_string();
    let broker = Broker::start(Kind::Ringlog, &programs, &options.dir)?;
    let mut client = Client::connect(broker.port).map_err(fail)?;
    client.create_topic(TOPIC, options.partitions).map_err(fail)?;
    let load = Load { topic: TOPIC, partitions: options.partitions, record_bytes: 100, batch_bytes: 100, bytes: 1 };
    client.produce(&load).map_err(fail)?;
    drop(client);
    std::thread::sleep(SETTLE);
    println!("process {}, {} partitions", broker.pid(), options.partitions);
    let alone = watch(&broker, Duration::from_secs(20), 1, "without consumers");
    let stop = Arc::new(AtomicBool::new(false));
    let polls = Arc::new(AtomicU64::new(0));
    let consumers: Vec<_> = (0..options.consumers)
        .map(|number| {
            let mut consumer = Consumer::new(options, broker.port, number)?;
            let (stop, polls) = (stop.clone(), polls.clone());
            Ok(std::thread::spawn(move || consumer.poll_until(&stop, &polls)))
        })
        .collect::<io::Result<_>>()
        .map_err(fail)?;
    std::thread::sleep(Duration::from_secs(3));
    let with = watch(&broker, Duration::from_secs(60), options.minutes, "with consumers");
    stop.store(true, Ordering::Relaxed);
    for consumer in consumers {
        consumer.join().map_err(|_| "a consumer panicked")?.map_err(fail)?;
    }
    println!(
        "{} polls; {alone:.2} % of a core without consumers, {with:.2} % with them",
        polls.load(Ordering::Relaxed)
    );
    drop(broker);
    let _ = std::fs::remove_dir_all(&options.dir);
    Ok(())
}

/// Prints a line each `interval`; gives the mean in per cent of a core.
fn watch(broker: &Broker, interval: Duration, times: u32, what: &str) -> f64 {
    let (begun, first) = (Instant::now(), broker.cpu_seconds());
    let mut before = (begun, first);
    for number in 1..=times {
        std::thread::sleep(interval);
        let now = (Instant::now(), broker.cpu_seconds());
        let share = 100.0 * (now.1 - before.1) / (now.0 - before.0).as_secs_f64();
        println!(
            "{what} {number}: {share:.2} % of a core, {:.1} MiB resident, {} files open",
            broker.resident_mib(),
            broker.open_files()
        );
        before = now;
    }
    100.0 * (before.1 - first) / (before.0 - begun).as_secs_f64()
}

struct Consumer {
    client: Client,
    partitions: Vec<i32>,
    wait_ms: i32,
    with_session: bool,
    session: (i32, i32),
}

impl Consumer {
    fn new(options: &Options, port: u16, number: i32) -> io::Result<Consumer> {
        let ours = |partition: &i32| options.all || partition % options.consumers == number;
        Ok(Consumer {
            client: Client::connect(port)?,
            partitions: (0..options.partitions).filter(ours).collect(),
            wait_ms: options.wait_ms,
            with_session: !options.without_session,
            session: (0, if options.without_session { -1 } else { 0 }),
        })
    }

    fn poll_until(&mut self, stop: &AtomicBool, polls: &AtomicU64) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.poll()?;
            polls.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn poll(&mut self) -> io::Result<()> {
        let (session_id, session_epoch) = self.session;
        let known = session_id != 0;
        let partition = |&partition: &i32| FetchPartition {
            partition,
            // Behind the one record, so that there is nothing to read.
            fetch_offset: 1,
            partition_max_bytes: 1 << 20,
            ..FetchPartition::default()
        };
        let partitions: Vec<_> = self.partitions.iter().map(partition).collect();
        let topic = FetchTopic { topic: TOPIC, topic_id: [0; 16], partitions };
        let request = FetchRequest {
            max_wait_ms: self.wait_ms,
            min_bytes: 1,
            max_bytes: 50 << 20,
            session_id,
            session_epoch,
            topics: if known { Vec::new() } else { vec![topic] },
            ..FetchRequest::default()
        };
        self.client.send(FETCH_VERSION, &request)?;
        let answer = self.client.receive()?;
        let response = FetchResponse::decode(&mut Reader::new(&answer), FETCH_VERSION).map_err(invalid)?;
        let refused = response.responses.iter().flat_map(|t| &t.partitions).find(|p| p.error_code != 0);
        if response.error_code != 0 || refused.is_some() {
            return Err(invalid(format!("fetch failed: error {}", response.error_code)));
        }
        if self.with_session {
            let epoch = if response.session_id == 0 { 0 } else { session_epoch + 1 };
            self.session = (response.session_id, epoch);
        }
        Ok(())
    }
}
