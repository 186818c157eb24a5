//! Idempotent producers that ask for an id, write one batch and are never seen again: what the broker remembers of them
//! has to stay bounded, and so has the start that reads it back.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use bytes::Bytes;
use clap::Args;
use model::builder::BatchBuilder;
use model::{ProducerEpoch, ProducerId};
use wire::generated::ProduceRequest;
use wire::generated::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use wire::generated::produce::{PartitionProduceData, TopicProduceData};
use wire::{Decode, Reader, Records};

use crate::broker::{Broker, Kind, Programs};
use crate::client::{Client, PRODUCE_VERSION, check_produced, invalid};
use crate::disk::Usage;

const INIT_VERSION: i16 = 1;
const TOPIC: &str = "once";
/// Producers whose ids are asked for before any answer is read, and that then write in one request.
const AT_ONCE: usize = 200;

/// Flags of `bench producers`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    #[arg(long, default_value_t = 1_000_000)]
    producers: usize,
    #[arg(long, default_value_t = 100)]
    partitions: i32,
    /// The ringlog program.
    #[arg(long, default_value = "target/release/ringlog")]
    ringlog: PathBuf,
    /// Folder for the broker's data.
    #[arg(long, default_value = "/tmp/ringlog-bench-producers")]
    dir: PathBuf,
}

pub fn run(options: &Options) -> Result<(), String> {
    let programs = Programs::ringlog(&options.ringlog);
    let _ = std::fs::remove_dir_all(&options.dir);
    let fail = |e: io::Error| e.to_string();
    let broker = Broker::start(Kind::Ringlog, &programs, &options.dir)?;
    let mut client = Client::connect(broker.port).map_err(fail)?;
    client.create_topic(TOPIC, options.partitions).map_err(fail)?;
    println!("| producers so far | resident MiB | disk MiB | s |\n|---|---|---|---|");
    let begun = Instant::now();
    let row = |broker: &Broker, name: String| {
        let disk = Usage::of(&options.dir.join("data")).mib();
        println!("| {name} | {:.1} | {disk:.0} | {:.0} |", broker.resident_mib(), begun.elapsed().as_secs_f64());
    };
    row(&broker, "0".to_owned());
    let tenth = (options.producers / 10).max(AT_ONCE);
    let (mut done, mut next_row) = (0, tenth);
    while done < options.producers {
        let some = AT_ONCE.min(options.producers - done);
        let ids = ids(&mut client, some).map_err(fail)?;
        write(&mut client, options.partitions, ids).map_err(fail)?;
        done += some;
        if done >= next_row {
            row(&broker, done.to_string());
            next_row += tenth;
        }
    }
    drop(client);
    drop(broker);
    for how in ["after kill -9", "after a clean stop"] {
        let broker = Broker::start(Kind::Ringlog, &programs, &options.dir)?;
        let answered = broker.started_in;
        let mut client = Client::connect(broker.port).map_err(fail)?;
        let ids = ids(&mut client, options.partitions as usize).map_err(fail)?;
        let first_write = Instant::now();
        write(&mut client, options.partitions, ids).map_err(fail)?;
        let written = answered + first_write.elapsed();
        row(
            &broker,
            format!("{how}: answers in {} ms, all written to in {} ms", answered.as_millis(), written.as_millis()),
        );
        drop(client);
        broker.stop()?;
    }
    let _ = std::fs::remove_dir_all(&options.dir);
    Ok(())
}

fn ids(client: &mut Client, count: usize) -> io::Result<VecDeque<ProducerId>> {
    let request = InitProducerIdRequest { transactional_id: None, transaction_timeout_ms: 1, ..Default::default() };
    for _ in 0..count {
        client.send(INIT_VERSION, &request)?;
    }
    let mut ids = VecDeque::with_capacity(count);
    for _ in 0..count {
        let answer = client.receive()?;
        let response = InitProducerIdResponse::decode(&mut Reader::new(&answer), INIT_VERSION).map_err(invalid)?;
        if response.error_code != 0 {
            return Err(invalid(format!("no producer id: error {}", response.error_code)));
        }
        ids.push_back(ProducerId(response.producer_id));
    }
    Ok(ids)
}

/// One batch of each producer, spread over the partitions; a request holds one batch for each at most.
fn write(client: &mut Client, partitions: i32, mut ids: VecDeque<ProducerId>) -> io::Result<()> {
    let mut requests = 0;
    while !ids.is_empty() {
        let mut data = Vec::new();
        for index in 0..partitions {
            let Some(id) = ids.pop_front() else { break };
            let batch = BatchBuilder::new().producer(id, ProducerEpoch(0), 0).record(1, None, Some(b"once"));
            data.push(PartitionProduceData { index, records: Records::from(Bytes::from(batch.finish())) });
        }
        let topic = TopicProduceData { name: TOPIC, topic_id: [0; 16], partition_data: data };
        let request = ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 30_000, topic_data: vec![topic] };
        client.send(PRODUCE_VERSION, &request)?;
        requests += 1;
    }
    for _ in 0..requests {
        check_produced(&client.receive()?)?;
    }
    Ok(())
}
