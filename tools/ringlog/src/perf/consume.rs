//! `ringlog perf consume`.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use client::admin::Admin;
use client::consumer::{AutoOffsetReset, Consumer, ConsumerConfig};
use client::{Client, TopicPartition};
use runtime::clock;

use super::report::Meter;
use crate::cli::interrupt::Interrupt;
use crate::cli::{Connect, Failure};
use crate::records::placed::{begin_at, placed};
use crate::records::position::Position;

const POLL_MS: i64 = 200;

#[derive(Debug, Args)]
pub struct ConsumeArgs {
    #[command(flatten)]
    connect: Connect,
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// Walk every record instead of counting them by their batches' headers.
    #[arg(long)]
    decode: bool,
    /// End after so long, if the end of the topic was not reached before.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// Most bytes of one answer.
    #[arg(long, value_name = "BYTES", default_value_t = 52_428_800, value_parser = clap::value_parser!(i32).range(1..))]
    fetch_max_bytes: i32,
    /// Most bytes of one partition in an answer.
    #[arg(long, value_name = "BYTES", default_value_t = 1_048_576, value_parser = clap::value_parser!(i32).range(1..))]
    max_partition_fetch_bytes: i32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: ConsumeArgs) -> Result<(), Failure> {
    let interrupt = Interrupt::watch();
    args.connect.clone().run(move |client| load(client, args, interrupt))
}

async fn load(client: Client, args: ConsumeArgs, interrupt: Interrupt) -> Result<(), Failure> {
    let cluster = client.resolve(&[&args.topic]).await?;
    let partitions = cluster.partitions_of(&args.topic);
    let placed = placed(&Admin::new(client.clone()), &partitions, Position::Earliest, false).await?;
    let config = ConsumerConfig {
        auto_offset_reset: AutoOffsetReset::Earliest,
        allow_auto_create_topics: false,
        fetch_max_bytes: args.fetch_max_bytes,
        max_partition_fetch_bytes: args.max_partition_fetch_bytes,
        ..ConsumerConfig::default()
    };
    let consumer = Consumer::new(&client, config)?;
    begin_at(&consumer, &placed)?;
    let mut left: BTreeMap<TopicPartition, i64> =
        placed.into_iter().filter(|one| one.offset < one.end).map(|one| (one.partition, one.end)).collect();
    let mut meter = Meter::new("consumed");
    let end_ms = clock::now_ms() + args.duration.as_millis() as i64;
    let (mut records, mut bytes) = (0, 0);
    while !left.is_empty() && clock::now_ms() < end_ms && !interrupt.is_asked() {
        for batches in consumer.poll_batches(POLL_MS).await? {
            bytes += batches.bytes as u64;
            if args.decode {
                for record in batches.iter() {
                    record?;
                    records += 1;
                }
            } else {
                records += batches.record_count;
            }
        }
        // By position: the last batches of a partition may hold nothing to count.
        let mut behind = BTreeMap::new();
        for (partition, end) in left {
            if consumer.position(&partition).await? < end {
                behind.insert(partition, end);
            }
        }
        left = behind;
        meter.tick(records, bytes, None);
    }
    if !left.is_empty() {
        eprintln!("ringlog: stopped before the end of {} partitions", left.len());
    }
    consumer.close().await;
    meter.end(records, bytes).print(&[], args.json)
}
