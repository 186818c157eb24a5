//! Topics by the thousand (or partitions of one topic), made, written to and deleted, more than once: memory and files
//! have to return to where they were.
//!
//! Two rows are what the others are held against: that of a broker which has served one partition, and that after the first
//! round, which fills caches that stay. Memory is looked at each second of the quiet after a round: the least counts, as
//! what a broker gives back it may give back at any moment of it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use model::builder::BatchBuilder;
use wire::generated::create_topics::CreatableTopic;
use wire::generated::produce::{PartitionProduceData, TopicProduceData};
use wire::generated::{
    CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest, DeleteTopicsResponse, ProduceRequest,
};
use wire::{Decode, Reader, Records};

use crate::broker::{Broker, Kind, Programs};
use crate::client::{CREATE_VERSION, Client, PRODUCE_VERSION, check_produced, invalid};
use crate::disk::Usage;

const DELETE_VERSION: i16 = 3;
/// Topics, or partitions, of one request.
const AT_ONCE: usize = 250;
/// What the names of all topics here begin with.
const PREFIX: &str = "churn-";
/// Files of deleted topics go within this.
const GONE_LIMIT: Duration = Duration::from_secs(120);

/// Flags of `bench churn`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    #[arg(long, default_value_t = 10_000)]
    topics: usize,
    /// Of each topic.
    #[arg(long, default_value_t = 1)]
    partitions: i32,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of quiet after the files have gone.
    #[arg(long, default_value_t = 30)]
    quiet: u64,
    /// The ringlog program.
    #[arg(long, default_value = "target/release/ringlog")]
    ringlog: PathBuf,
    /// Folder for the broker's data.
    #[arg(long, default_value = "/tmp/ringlog-bench-churn")]
    dir: PathBuf,
}

pub fn run(options: &Options) -> Result<(), String> {
    let programs = Programs::ringlog(&options.ringlog);
    let _ = fs::remove_dir_all(&options.dir);
    let settings = ["log.segment.delete.delay.ms=1000"];
    let broker = Broker::start_with(Kind::Ringlog, &programs, &options.dir, &settings)?;
    let client = Client::connect(broker.port).map_err(|e| e.to_string())?;
    let mut churn = Churn { options, broker, client };
    println!("| | resident MiB | open files | files | folders | disk MiB | took s |\n|---|---|---|---|---|---|---|");
    churn.row("started", churn.broker.resident_mib(), Duration::ZERO);
    // What the first use of anything brings: journals, a connection's buffers, pages of code.
    let at_first = churn.come_and_go("one partition", 1, 1)?;
    let mut last = at_first;
    let mut first_round = None;
    for round in 1..=options.rounds {
        last = churn.come_and_go(&format!("round {round}"), options.topics, options.partitions)?;
        first_round.get_or_insert(last);
    }
    let grown = |from: f64| 100.0 * (last / from - 1.0);
    println!("\nresident memory: {:+.1} % against one partition's", grown(at_first));
    println!("resident memory: {:+.1} % against the first round's", grown(first_round.unwrap_or(last)));
    let Churn { broker, .. } = churn;
    drop(broker);
    let _ = fs::remove_dir_all(&options.dir);
    Ok(())
}

struct Churn<'a> {
    options: &'a Options,
    broker: Broker,
    client: Client,
}

impl Churn<'_> {
    /// One round; gives the least memory of its quiet end, MiB.
    fn come_and_go(&mut self, what: &str, topics: usize, partitions: i32) -> Result<f64, String> {
        let fail = |e: io::Error| e.to_string();
        let names: Vec<String> = (0..topics).map(|number| format!("{PREFIX}{number}")).collect();
        let begun = Instant::now();
        for some in names.chunks(AT_ONCE) {
            create(&mut self.client, some, partitions).map_err(fail)?;
            write(&mut self.client, some, partitions).map_err(fail)?;
        }
        self.row(&format!("{what}: made and written to"), self.broker.resident_mib(), begun.elapsed());
        let begun = Instant::now();
        for some in names.chunks(AT_ONCE) {
            delete(&mut self.client, some).map_err(fail)?;
        }
        let deleted = begun.elapsed();
        self.row(&format!("{what}: deleted"), self.broker.resident_mib(), deleted);
        while self.has_folders() {
            if begun.elapsed() > GONE_LIMIT {
                return Err("folders of deleted topics stay".to_owned());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        let gone = begun.elapsed();
        let least = self.least_memory();
        self.row(&format!("{what}: files gone, and quiet"), least, gone);
        Ok(least)
    }

    /// The least that is resident while nothing happens, MiB.
    fn least_memory(&self) -> f64 {
        let look = |_| {
            std::thread::sleep(Duration::from_secs(1));
            self.broker.resident_mib()
        };
        (0..self.options.quiet.max(1)).map(look).fold(f64::INFINITY, f64::min)
    }

    fn data(&self) -> PathBuf {
        self.options.dir.join("data")
    }

    /// Of partitions, deleted ones too until they are unlinked.
    fn has_folders(&self) -> bool {
        let Ok(list) = fs::read_dir(self.data()) else { return false };
        list.filter_map(Result::ok).any(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
    }

    fn row(&self, name: &str, resident_mib: f64, took: Duration) {
        let usage = Usage::of(&self.data());
        println!(
            "| {name} | {resident_mib:.1} | {} | {} | {} | {:.1} | {:.1} |",
            self.broker.open_files(),
            usage.files,
            usage.folders,
            usage.mib(),
            took.as_secs_f64()
        );
    }
}

fn create(client: &mut Client, names: &[String], partitions: i32) -> io::Result<()> {
    let mut topics = Vec::with_capacity(names.len());
    for name in names {
        topics.push(CreatableTopic { name, num_partitions: partitions, replication_factor: 1, ..Default::default() });
    }
    let request = CreateTopicsRequest { topics, timeout_ms: 30_000, ..Default::default() };
    client.send(CREATE_VERSION, &request)?;
    let answer = client.receive()?;
    let response = CreateTopicsResponse::decode(&mut Reader::new(&answer), CREATE_VERSION).map_err(invalid)?;
    match response.topics.iter().find(|t| t.error_code != 0) {
        Some(failed) => Err(invalid(format!("a topic was not made: error {}", failed.error_code))),
        None => Ok(()),
    }
}

/// A record to each partition, in requests of a bounded size.
fn write(client: &mut Client, names: &[String], partitions: i32) -> io::Result<()> {
    let batch: Bytes = BatchBuilder::new().record(1, None, Some(b"v")).finish().into();
    let all: Vec<(&str, i32)> =
        names.iter().flat_map(|name| (0..partitions).map(move |p| (name.as_str(), p))).collect();
    for some in all.chunks(AT_ONCE) {
        let data = |&(_, index): &(&str, i32)| PartitionProduceData { index, records: Records::from(batch.clone()) };
        let topics = some.chunk_by(|one, next| one.0 == next.0).map(|same| {
            let partition_data = same.iter().map(data).collect();
            TopicProduceData { name: same[0].0, topic_id: [0; 16], partition_data }
        });
        let topic_data = topics.collect();
        let request = ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 30_000, topic_data };
        client.send(PRODUCE_VERSION, &request)?;
        check_produced(&client.receive()?)?;
    }
    Ok(())
}

fn delete(client: &mut Client, names: &[String]) -> io::Result<()> {
    let topic_names = names.iter().map(String::as_str).collect();
    let request = DeleteTopicsRequest { topic_names, timeout_ms: 30_000, ..Default::default() };
    client.send(DELETE_VERSION, &request)?;
    let answer = client.receive()?;
    let response = DeleteTopicsResponse::decode(&mut Reader::new(&answer), DELETE_VERSION).map_err(invalid)?;
    match response.responses.iter().find(|t| t.error_code != 0) {
        Some(failed) => Err(invalid(format!("a topic was not deleted: error {}", failed.error_code))),
        None => Ok(()),
    }
}
