//! Topics by the thousand, made, written to and deleted, more than once: memory and files have to return to where they
//! were after the first time (which fills caches that stay).

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
/// Topics of one request.
const AT_ONCE: usize = 250;
/// Files of deleted topics go within this.
const GONE_LIMIT: Duration = Duration::from_secs(120);
/// Until freed memory went back to the operating system.
const SETTLE: Duration = Duration::from_secs(15);

/// Flags of `bench churn`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Topics of one partition each.
    #[arg(long, default_value_t = 10_000)]
    topics: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The ringlog program.
    #[arg(long, default_value = "target/release/ringlog")]
    ringlog: PathBuf,
    /// Folder for the broker's data.
    #[arg(long, default_value = "/tmp/ringlog-bench-churn")]
    dir: PathBuf,
}

pub fn run(options: &Options) -> Result<(), String> {
    let programs = Programs::ringlog(&options.ringlog);
    let _ = std::fs::remove_dir_all(&options.dir);
    let settings = ["log.segment.delete.delay.ms=1000"];
    let broker = Broker::start_with(Kind::Ringlog, &programs, &options.dir, &settings)?;
    let fail = |e: io::Error| e.to_string();
    let mut client = Client::connect(broker.port).map_err(fail)?;
    println!("| | resident MiB | open files | files | folders | disk MiB | took s |\n|---|---|---|---|---|---|---|");
    let row = |name: &str, begun: Instant| {
        let usage = Usage::of(&options.dir.join("data"));
        println!(
            "| {name} | {:.1} | {} | {} | {} | {:.1} | {:.1} |",
            broker.resident_mib(),
            broker.open_files(),
            usage.files,
            usage.folders,
            usage.mib(),
            begun.elapsed().as_secs_f64()
        );
        usage.folders
    };
    let at_first = row("before", Instant::now());
    for round in 1..=options.rounds {
        let names: Vec<String> = (0..options.topics).map(|number| format!("churn-{number}")).collect();
        let begun = Instant::now();
        for some in names.chunks(AT_ONCE) {
            create(&mut client, some).map_err(fail)?;
            write(&mut client, some).map_err(fail)?;
        }
        row(&format!("round {round}: made and written to"), begun);
        let begun = Instant::now();
        for some in names.chunks(AT_ONCE) {
            delete(&mut client, some).map_err(fail)?;
        }
        while Usage::of(&options.dir.join("data")).folders > at_first {
            if begun.elapsed() > GONE_LIMIT {
                return Err("folders of deleted topics stay".to_owned());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        let gone = begun.elapsed();
        std::thread::sleep(SETTLE);
        row(&format!("round {round}: deleted"), Instant::now() - gone);
    }
    drop(broker);
    let _ = std::fs::remove_dir_all(&options.dir);
    Ok(())
}

fn create(client: &mut Client, names: &[String]) -> io::Result<()> {
    let mut topics = Vec::with_capacity(names.len());
    for name in names {
        topics.push(CreatableTopic { name, num_partitions: 1, replication_factor: 1, ..Default::default() });
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

fn write(client: &mut Client, names: &[String]) -> io::Result<()> {
    let batch: Bytes = BatchBuilder::new().record(1, None, Some(b"v")).finish().into();
    let data = || vec![PartitionProduceData { index: 0, records: Records::from(batch.clone()) }];
    let topic = |name| TopicProduceData { name, topic_id: [0; 16], partition_data: data() };
    let topics = names.iter().map(|name| topic(name.as_str())).collect();
    let request = ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 30_000, topic_data: topics };
    client.send(PRODUCE_VERSION, &request)?;
    let answer = client.receive()?;
    check_produced(&answer)
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
