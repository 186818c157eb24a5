//! `ringlog consume`: records of topics to stdout, alone or as a member of a group.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use client::admin::Admin;
use client::consumer::{
    AssignorKind, AutoOffsetReset, Consumer, ConsumerConfig, IsolationLevel, OffsetAndMetadata, Offsets,
    RebalanceListener,
};
use client::{Client, ClientError, ConsumerRecord, TopicPartition};
use model::ErrorCode;
use runtime::clock;
use runtime::sync::before;
use serde_json::{Map, Value, json};

use super::format::{LETTERS, OutputFormat};
use super::placed::{begin_at, placed};
use super::position::{POSITIONS, Position};
use crate::cli::interrupt::Interrupt;
use crate::cli::stdout::Stdout;
use crate::cli::{Connect, Failure};

/// How long one poll waits before Ctrl-C is looked at, in milliseconds.
const POLL_MS: i64 = 200;
/// Room for output before it grows.
const OUTPUT_BYTES: usize = 64 << 10;
/// Records that are written together.
const RECORDS_PER_WRITE: usize = 500;
/// How long a member waits to be let into its group: longer than a dead member's session holds it up, in milliseconds.
const JOIN_MS: i64 = 90_000;
/// How long the last commit may go through a rebalance, in milliseconds.
const REBALANCE_MS: i64 = 5_000;
/// How long a member of a group with `-e` stays although it was given no partition, in milliseconds.
const NO_PARTITION_MS: i64 = 10_000;
/// Milliseconds between two commits of a group's member.
const COMMIT_EVERY_MS: i64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
}

impl From<Isolation> for IsolationLevel {
    fn from(isolation: Isolation) -> IsolationLevel {
        match isolation {
            Isolation::ReadUncommitted => IsolationLevel::ReadUncommitted,
            Isolation::ReadCommitted => IsolationLevel::ReadCommitted,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AssignorName {
    Range,
    RoundRobin,
    Sticky,
    CooperativeSticky,
}

impl From<AssignorName> for AssignorKind {
    fn from(name: AssignorName) -> AssignorKind {
        match name {
            AssignorName::Range => AssignorKind::Range,
            AssignorName::RoundRobin => AssignorKind::RoundRobin,
            AssignorName::Sticky => AssignorKind::Sticky,
            AssignorName::CooperativeSticky => AssignorKind::CooperativeSticky,
        }
    }
}

#[derive(Debug, Args)]
pub struct ConsumeArgs {
    #[command(flatten)]
    connect: Connect,
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// Where to begin. With --group only earliest and latest, for partitions without a committed offset.
    #[arg(short, long, value_name = "POSITION", default_value = "earliest", allow_hyphen_values = true, long_help = format!("Where to begin: {POSITIONS}. With --group only earliest and latest, for partitions without a committed offset."))]
    offset: Position,
    /// Only these partitions.
    #[arg(short, long, value_name = "N,...", value_delimiter = ',', conflicts_with = "group", value_parser = clap::value_parser!(i32).range(0..))]
    partition: Vec<i32>,
    /// Share the partitions with the other members of this group, and go on from its offsets.
    #[arg(short, long, value_name = "GROUP")]
    group: Option<String>,
    /// Name of this member, kept over restarts (static membership).
    #[arg(long, value_name = "ID", requires = "group")]
    instance_id: Option<String>,
    /// How a group shares partitions; the first that all members know.
    #[arg(long, value_enum, value_delimiter = ',', requires = "group", default_value = "cooperative-sticky,range")]
    assignor: Vec<AssignorName>,
    /// Exit once everything that was there is read.
    #[arg(short, long)]
    exit: bool,
    /// Exit after so many records.
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,
    /// How a record is printed.
    #[arg(short, long, value_name = "FORMAT", default_value = "%v\\n", long_help = format!("How a record is printed:\n{LETTERS}"))]
    format: String,
    /// Print a JSON object a line instead; bytes that are no UTF-8 as base64.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Whether records of transactions that are open or aborted are shown.
    #[arg(long, value_enum, default_value = "read-uncommitted")]
    isolation: Isolation,
}

enum Style {
    Format(OutputFormat),
    Json,
}

impl Style {
    fn write(&self, record: &ConsumerRecord, number: u64, out: &mut Vec<u8>) {
        match self {
            Style::Format(format) => format.write(record, number, out),
            Style::Json => {
                // A value in memory cannot fail to be written.
                let _ = serde_json::to_writer(&mut *out, &json_record(record));
                out.push(b'\n');
            }
        }
    }
}

pub fn run(args: ConsumeArgs) -> Result<(), Failure> {
    let style = if args.json {
        Style::Json
    } else {
        Style::Format(OutputFormat::parse(&args.format).map_err(|error| Failure::Usage(error.to_string()))?)
    };
    if args.group.is_some() && !matches!(args.offset, Position::Earliest | Position::Latest) {
        let hint = "a group goes on from its committed offsets; move them with: ringlog group seek";
        return Err(Failure::Usage(format!("--offset can only be earliest or latest with --group: {hint}")));
    }
    let interrupt = Interrupt::watch();
    args.connect.clone().run(move |client| consume(client, args, style, interrupt))
}

fn config(args: &ConsumeArgs) -> ConsumerConfig {
    ConsumerConfig {
        group_id: args.group.clone(),
        group_instance_id: args.instance_id.clone(),
        auto_offset_reset: if args.offset == Position::Latest {
            AutoOffsetReset::Latest
        } else {
            AutoOffsetReset::Earliest
        },
        isolation_level: args.isolation.into(),
        partition_assignors: args.assignor.iter().map(|&name| name.into()).collect(),
        allow_auto_create_topics: false,
        // Committed by hand, behind what was really printed.
        enable_auto_commit: false,
        ..ConsumerConfig::default()
    }
}

async fn consume(client: Client, args: ConsumeArgs, style: Style, interrupt: Interrupt) -> Result<(), Failure> {
    let names: Vec<&str> = args.topics.iter().map(String::as_str).collect();
    client.resolve(&names).await?;
    let consumer = Consumer::new(&client, config(&args))?;
    let (printed, has_joined) = (Rc::new(RefCell::new(Printed::default())), Rc::new(Cell::new(false)));
    let ends = if args.group.is_some() {
        let handover =
            Handover { consumer: consumer.clone(), printed: printed.clone(), has_joined: has_joined.clone() };
        consumer.subscribe(&names, Some(Box::new(handover)))?;
        BTreeMap::new()
    } else {
        begin(&client, &consumer, &args).await?
    };
    let now_ms = clock::now_ms();
    let mut reading = Reading {
        consumer: &consumer,
        args: &args,
        interrupt: &interrupt,
        printed,
        has_joined,
        ends,
        stdout: Stdout::start()?,
        begun_ms: now_ms,
        last_partition_ms: now_ms,
    };
    let result = reading.run(&style).await;
    consumer.close().await;
    match result {
        Err(Failure::Interrupted) if args.exit || args.count.is_some() => Err(Failure::Interrupted),
        // Without an end of its own, Ctrl-C is how it ends.
        Err(Failure::Interrupted) => Ok(()),
        other => other,
    }
}

/// Assigns the partitions and seeks; gives where each ends now.
async fn begin(
    client: &Client,
    consumer: &Consumer,
    args: &ConsumeArgs,
) -> Result<BTreeMap<TopicPartition, i64>, Failure> {
    let cluster = client.cluster();
    let mut partitions = Vec::new();
    for name in &args.topics {
        let count = cluster.topic(name).map_or(0, |topic| topic.partitions.len()) as i32;
        if let Some(missing) = args.partition.iter().find(|index| **index >= count) {
            return Err(Failure::Usage(format!("{name} has no partition {missing}, it has {count}")));
        }
        let wanted = if args.partition.is_empty() { (0..count).collect() } else { args.partition.clone() };
        partitions.extend(wanted.into_iter().map(|index| TopicPartition::new(name, index)));
    }
    partitions.sort();
    partitions.dedup();
    let admin = Admin::new(client.clone());
    // Behind an open transaction nothing is read.
    let is_committed = args.isolation == Isolation::ReadCommitted;
    let placed = placed(&admin, &partitions, args.offset, is_committed).await?;
    begin_at(consumer, &placed)?;
    Ok(placed.into_iter().map(|one| (one.partition, one.end)).collect())
}

/// What reading goes by.
struct Reading<'a> {
    consumer: &'a Consumer,
    args: &'a ConsumeArgs,
    interrupt: &'a Interrupt,
    printed: Rc<RefCell<Printed>>,
    /// The group gave this member its partitions, or that there is none for it.
    has_joined: Rc<Cell<bool>>,
    /// The offset behind the last record that `-e` wants, of each partition. A group's are noted when first seen.
    ends: BTreeMap<TopicPartition, i64>,
    stdout: Stdout,
    begun_ms: i64,
    last_partition_ms: i64,
}

impl Reading<'_> {
    async fn run(&mut self, style: &Style) -> Result<(), Failure> {
        let mut out = Vec::with_capacity(2 * OUTPUT_BYTES);
        let mut number = 0;
        loop {
            if self.interrupt.is_asked() {
                self.commit().await?;
                return Err(Failure::Interrupted);
            }
            let mut records = self.consumer.poll(POLL_MS).await?;
            let wanted = self.args.count.map_or(u64::MAX, |count| count - number);
            records.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
            let mut is_read = true;
            for part in records.chunks(RECORDS_PER_WRITE) {
                for record in part {
                    number += 1;
                    style.write(record, number, &mut out);
                }
                is_read = self.write_out(&mut out).await?;
                if !is_read {
                    break;
                }
                if self.args.group.is_some() {
                    self.printed.borrow_mut().add(part);
                }
            }
            if self.args.group.is_some() {
                self.printed.borrow_mut().commit_sometimes(self.consumer)?;
            }
            if !is_read || self.args.count == Some(number) || (self.args.exit && self.is_done().await?) {
                return self.commit().await;
            }
        }
    }

    /// `false`: nobody reads any more. A reader that pauses holds up nothing but this; Ctrl-C ends the wait.
    async fn write_out(&self, out: &mut Vec<u8>) -> Result<bool, Failure> {
        if out.is_empty() {
            return Ok(true);
        }
        self.stdout.write(out);
        let mut written = std::pin::pin!(self.stdout.written(out));
        loop {
            match before(clock::now_ms() + POLL_MS, written.as_mut()).await {
                Some(Ok(is_read)) => return Ok(is_read),
                Some(Err(error)) => return Err(Failure::Failed(format!("cannot write to stdout: {error}"))),
                None if self.interrupt.is_asked() => return Ok(false),
                None => {}
            }
        }
    }

    async fn commit(&self) -> Result<(), Failure> {
        let offsets = self.printed.borrow_mut().of_assigned(self.consumer);
        if offsets.is_empty() {
            return Ok(());
        }
        match self.consumer.commit_sync(Some(offsets)).await {
            // The group shares its partitions anew: taking part in that commits what has to go.
            Err(error) if error.code() == Some(ErrorCode::RebalanceInProgress) => {
                self.consumer.poll(REBALANCE_MS).await?;
                Ok(())
            }
            result => Ok(result?),
        }
    }

    /// Whether everything that `-e` wants was read.
    async fn is_done(&mut self) -> Result<bool, Failure> {
        if self.args.group.is_none() {
            return Ok(self.has_reached_ends().await?);
        }
        let now_ms = clock::now_ms();
        let assigned = self.consumer.assignment();
        if !assigned.is_empty() {
            self.last_partition_ms = now_ms;
            self.ends.retain(|partition, _| assigned.contains(partition));
            for partition in &assigned {
                if !self.ends.contains_key(partition)
                    && let Some(lag) = self.consumer.lag(partition)
                {
                    let end = self.consumer.position(partition).await? + lag;
                    self.ends.insert(partition.clone(), end);
                }
            }
            return Ok(self.ends.len() == assigned.len() && self.has_reached_ends().await?);
        }
        if self.has_joined.get() {
            return Ok(now_ms - self.last_partition_ms > NO_PARTITION_MS);
        }
        let waited_ms = now_ms - self.begun_ms;
        if waited_ms > JOIN_MS {
            let text = format!("the group did not let this member in within {waited_ms} ms; see: ringlog group list");
            return Err(Failure::TimedOut(text));
        }
        Ok(false)
    }

    async fn has_reached_ends(&self) -> Result<bool, ClientError> {
        for (partition, end) in &self.ends {
            if self.consumer.position(partition).await? < *end {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// How far a member of a group has printed its partitions. Only that is committed: of what was polled and not printed
/// nobody has seen anything.
#[derive(Debug, Default)]
struct Printed {
    offsets: Offsets,
    /// Something is not committed, or not for certain.
    is_behind: bool,
    committed_ms: i64,
}

impl Printed {
    fn add(&mut self, records: &[ConsumerRecord]) {
        let is_same = |a: &ConsumerRecord, b: &ConsumerRecord| a.partition == b.partition && a.topic == b.topic;
        for last in records.chunk_by(is_same).filter_map(|run| run.last()) {
            let partition = TopicPartition { topic: last.topic.clone(), partition: last.partition };
            let behind =
                OffsetAndMetadata { leader_epoch: last.leader_epoch, ..OffsetAndMetadata::new(last.offset + 1) };
            self.offsets.insert(partition, behind);
            self.is_behind = true;
        }
    }

    /// What went to another member is that one's to commit.
    fn of_assigned(&mut self, consumer: &Consumer) -> Offsets {
        let assigned = consumer.assignment();
        self.offsets.retain(|partition, _| assigned.contains(partition));
        self.offsets.clone()
    }

    fn commit_sometimes(&mut self, consumer: &Consumer) -> Result<(), Failure> {
        // A rebalance came between, or the coordinator moved: the next commit says it again.
        self.is_behind |= consumer.take_commit_error().is_some();
        let now_ms = clock::now_ms();
        if !self.is_behind || now_ms - self.committed_ms < COMMIT_EVERY_MS {
            return Ok(());
        }
        self.committed_ms = now_ms;
        let offsets = self.of_assigned(consumer);
        if !offsets.is_empty() {
            consumer.commit_async(Some(offsets))?;
        }
        self.is_behind = false;
        Ok(())
    }
}

/// Commits what was printed of partitions that go to another member, which would print it again otherwise.
struct Handover {
    consumer: Consumer,
    printed: Rc<RefCell<Printed>>,
    has_joined: Rc<Cell<bool>>,
}

impl RebalanceListener for Handover {
    fn revoked(&mut self, partitions: &[TopicPartition]) {
        let going: Offsets = {
            let mut printed = self.printed.borrow_mut();
            partitions.iter().filter_map(|partition| printed.offsets.remove_entry(partition)).collect()
        };
        if !going.is_empty()
            && let Err(error) = self.consumer.commit_async(Some(going))
        {
            eprintln!(
                "ringlog: committing offsets failed, some records will be printed by another member, too: {error}"
            );
        }
    }

    fn assigned(&mut self, _: &[TopicPartition]) {
        self.has_joined.set(true);
    }

    fn lost(&mut self, partitions: &[TopicPartition]) {
        // They are another member's already.
        self.printed.borrow_mut().offsets.retain(|partition, _| !partitions.contains(partition));
    }
}

/// Text where it is text, `{"base64": ..}` where not.
fn json_bytes(bytes: Option<&bytes::Bytes>) -> Value {
    match bytes {
        None => Value::Null,
        Some(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
        },
    }
}

fn json_record(record: &ConsumerRecord) -> Value {
    let header = |header: &client::Header| json!([json_bytes(Some(&header.key)), json_bytes(header.value.as_ref())]);
    let mut object = Map::new();
    object.insert("topic".into(), (*record.topic).into());
    object.insert("partition".into(), record.partition.into());
    object.insert("offset".into(), record.offset.into());
    object.insert("timestamp".into(), record.timestamp_ms.into());
    object.insert("key".into(), json_bytes(record.key.as_ref()));
    object.insert("value".into(), json_bytes(record.value.as_ref()));
    if !record.headers.is_empty() {
        object.insert("headers".into(), record.headers.iter().map(header).collect());
    }
    object.into()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use client::Header;

    use super::*;

    #[test]
    fn records_are_json_and_bytes_that_are_no_text_are_base64() {
        let record = ConsumerRecord {
            topic: "t".into(),
            partition: 1,
            offset: 2,
            leader_epoch: 0,
            timestamp_ms: 3,
            is_log_append_time: false,
            key: None,
            value: Some(Bytes::from_static(b"\xff\x00")),
            headers: vec![Header { key: Bytes::from_static(b"h"), value: None }],
        };
        let mut out = Vec::new();
        Style::Json.write(&record, 1, &mut out);
        let expected = json!({
            "topic": "t", "partition": 1, "offset": 2, "timestamp": 3, "key": null, "value": {"base64": "/wA="},
            "headers": [["h", null]],
        });
        assert_eq!(serde_json::from_slice::<Value>(&out).ok(), Some(expected));
        assert_eq!(out.last(), Some(&b'\n'));
    }
}
