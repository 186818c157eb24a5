//! `ringlog produce`: records from stdin or files to a topic.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use clap::{Args, ValueEnum};
use client::producer::{Acks, BatchOutcome, Fate, PartitionerKind, Producer, ProducerConfig, Refused};
use client::{Client, ClientError, Header, ProducerRecord};
use model::Codec;
use runtime::clock;

use super::format::{Input, InputFormat, LETTERS, Taken};
use super::source::Source;
use crate::cli::connect::request_timeout_ms;
use crate::cli::interrupt::Interrupt;
use crate::cli::progress::Progress;
use crate::cli::{Connect, Failure};

/// A record that has no end within so many bytes is refused rather than gathered for ever.
const MAX_INPUT_RECORD_BYTES: usize = 64 << 20;
/// Longest wait for room in the producer's memory before looking again, in milliseconds.
const ROOM_WAIT_MS: i64 = 1_000;
/// How late a paced record may be and still not push those behind it.
const CATCH_UP: Duration = Duration::from_millis(100);
/// Records between two turns for the task that sends them.
const RECORDS_PER_TURN: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CodecName {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl From<CodecName> for Codec {
    fn from(name: CodecName) -> Codec {
        match name {
            CodecName::None => Codec::None,
            CodecName::Gzip => Codec::Gzip,
            CodecName::Snappy => Codec::Snappy,
            CodecName::Lz4 => Codec::Lz4,
            CodecName::Zstd => Codec::Zstd,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AcksName {
    #[value(name = "0")]
    Zero,
    #[value(name = "1")]
    One,
    All,
}

impl From<AcksName> for Acks {
    fn from(name: AcksName) -> Acks {
        match name {
            AcksName::Zero => Acks::None,
            AcksName::One => Acks::Leader,
            AcksName::All => Acks::All,
        }
    }
}

/// What producing commands have in common.
#[derive(Clone, Debug, Args)]
pub struct ProducerArgs {
    /// Who must have a record before it counts: 0 nobody, 1 the leader, all the replicas in sync.
    #[arg(long, value_enum, default_value = "all")]
    pub acks: AcksName,
    /// Compression of batches.
    #[arg(short = 'z', long, value_enum, default_value = "none")]
    pub codec: CodecName,
    /// How long a record may wait for company, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(i64).range(0..=60_000))]
    pub linger_ms: i64,
    /// Size of a batch before compression, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 131_072, value_parser = clap::value_parser!(u32).range(0..=16_777_216))]
    pub batch_size: u32,
    /// Memory for records that are not acknowledged yet, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 67_108_864, value_parser = clap::value_parser!(u32).range(1_048_576..))]
    pub buffer_memory: u32,
    /// Let a retried batch be written twice rather than ask for a producer id; goes with acks 0 and 1 by itself.
    #[arg(long)]
    pub no_idempotence: bool,
    /// Spread records over the partitions one by one, whatever their keys.
    #[arg(long)]
    pub round_robin: bool,
}

impl ProducerArgs {
    pub fn config(&self, timeout_ms: i64) -> ProducerConfig {
        let acks: Acks = self.acks.into();
        let request_timeout_ms = request_timeout_ms(timeout_ms);
        ProducerConfig {
            acks,
            compression: self.codec.into(),
            linger_ms: self.linger_ms,
            batch_size: self.batch_size as usize,
            max_request_size: (self.batch_size as usize).max(1 << 20),
            buffer_memory: (self.buffer_memory as usize).max(2 * self.batch_size as usize),
            request_timeout_ms,
            delivery_timeout_ms: timeout_ms.max(self.linger_ms + request_timeout_ms),
            max_block_ms: timeout_ms,
            enable_idempotence: acks == Acks::All && !self.no_idempotence,
            partitioner: if self.round_robin { PartitionerKind::RoundRobin } else { PartitionerKind::Default },
            ..ProducerConfig::default()
        }
    }
}

#[derive(Debug, Args)]
pub struct ProduceArgs {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    producer: ProducerArgs,
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// Files to read, - for stdin. Default: stdin.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How a record looks in the input.
    #[arg(short, long, value_name = "FORMAT", default_value = "%v\\n", long_help = format!("How a record looks in the input; %k, %v and %h, each ended by what follows it:\n{LETTERS}"))]
    format: String,
    /// Short for --format '%k<DELIMITER>%v\n': the key is what stands before the delimiter.
    #[arg(short = 'K', long, value_name = "DELIMITER", conflicts_with = "format")]
    key_delimiter: Option<String>,
    /// The key of every record.
    #[arg(short, long, value_name = "KEY")]
    key: Option<String>,
    /// A header of every record; may be repeated.
    #[arg(short = 'H', long = "header", value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<Header>,
    /// The partition of every record. Default: by key, without one in turns.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    partition: Option<i32>,
    /// An empty value is null: deletes the key of a compacted topic.
    #[arg(short = 'Z', long)]
    null: bool,
    /// At most so many records in a second.
    #[arg(long, value_name = "RECORDS", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Say nothing when it went well.
    #[arg(short, long)]
    quiet: bool,
}

fn header(text: &str) -> Result<Header, String> {
    let (key, value) = text.split_once('=').ok_or("give name=value")?;
    Ok(Header { key: Bytes::copy_from_slice(key.as_bytes()), value: Some(Bytes::copy_from_slice(value.as_bytes())) })
}

pub fn run(args: ProduceArgs) -> Result<(), Failure> {
    let format = match &args.key_delimiter {
        Some(delimiter) => format!("%k{}%v\\n", delimiter.replace('%', "%%")),
        None => args.format.clone(),
    };
    let format = InputFormat::parse(&format).map_err(|error| Failure::Usage(error.to_string()))?;
    let interrupt = Interrupt::watch();
    args.connect.clone().run(move |client| produce(client, args, format, interrupt))
}

/// Counts what became of records.
#[derive(Debug, Default)]
pub struct Tally {
    pub acknowledged: u64,
    pub not_sent: u64,
    pub possibly_sent: u64,
    first_error: Option<ClientError>,
}

impl Tally {
    pub fn add(&mut self, outcome: &BatchOutcome) {
        let records = u64::from(outcome.records);
        let (count, error) = match &outcome.fate {
            Fate::Acknowledged { .. } => (&mut self.acknowledged, None),
            Fate::NotSent(error) => (&mut self.not_sent, Some(error)),
            Fate::PossiblySent(error) => (&mut self.possibly_sent, Some(error)),
        };
        *count += records;
        if let (None, Some(error)) = (&self.first_error, error) {
            // At once: with an endless input the end, and the whole count, may never come.
            eprintln!("ringlog: {records} records were not acknowledged: {error}");
            self.first_error = Some(error.clone());
        }
    }

    /// A failure if any record was not acknowledged.
    pub fn verdict(&self) -> Result<(), Failure> {
        let Some(error) = &self.first_error else { return Ok(()) };
        let text = format!(
            "{} records were acknowledged, {} were not sent, {} may have been; the first reason: {error}",
            self.acknowledged, self.not_sent, self.possibly_sent
        );
        Err(match Failure::from(error.clone()) {
            Failure::TimedOut(_) => Failure::TimedOut(text),
            Failure::NoBroker(_) => Failure::NoBroker(text),
            _ => Failure::Refused(text),
        })
    }
}

async fn produce(client: Client, args: ProduceArgs, format: InputFormat, interrupt: Interrupt) -> Result<(), Failure> {
    let cluster = client.resolve(&[&args.topic]).await?;
    let count = cluster.topic(&args.topic).map_or(0, |topic| topic.partitions.len());
    if let Some(missing) = args.partition.filter(|&partition| partition as usize >= count) {
        return Err(Failure::Usage(format!("{} has no partition {missing}, it has {count}", args.topic)));
    }
    let tally = Rc::new(RefCell::new(Tally::default()));
    let counted = tally.clone();
    let config = args.producer.config(args.connect.timeout_ms);
    let producer = Producer::with_outcomes(&client, config, move |outcome| counted.borrow_mut().add(outcome))?;
    let begun = Instant::now();
    let result = send_all(&producer, &args, &format, &interrupt).await;
    producer.close().await;
    let (records, bytes) = result?;
    tally.borrow().verdict()?;
    if !args.quiet {
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!("{records} records, {bytes} bytes in {seconds:.1} s");
    }
    if interrupt.is_asked() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Records and bytes that were sent.
async fn send_all(
    producer: &Producer,
    args: &ProduceArgs,
    format: &InputFormat,
    interrupt: &Interrupt,
) -> Result<(u64, u64), Failure> {
    let source = Source::start(args.files.clone())?;
    let mut buffer = BytesMut::new();
    let mut pace = Pace::new(args.rate);
    let mut progress = Progress::new("records", None);
    let (mut records, mut bytes) = (0, 0);
    let mut at_end = false;
    let topic: Rc<str> = args.topic.as_str().into();
    while !at_end && !interrupt.is_asked() {
        let look_again_ms = clock::now_ms() + ROOM_WAIT_MS;
        match runtime::sync::before(look_again_ms, source.next()).await {
            None => continue,
            Some(None) => at_end = true,
            Some(Some(read)) => buffer.extend_from_slice(&read?),
        }
        while !(interrupt.is_asked() || buffer.is_empty() && at_end) {
            let (input, len) = match format.take(&buffer, at_end) {
                Taken::Record(input, len) => (input, len),
                Taken::More if buffer.len() > MAX_INPUT_RECORD_BYTES => {
                    let text =
                        format!("record {} of the input has no end within {MAX_INPUT_RECORD_BYTES} bytes", records + 1);
                    return Err(Failure::Failed(text));
                }
                Taken::More => break,
                Taken::Unusable(reason) => {
                    return Err(Failure::Failed(format!("record {} of the input is unusable: {reason}", records + 1)));
                }
            };
            buffer.advance(len);
            pace.wait().await;
            send(producer, &record(args, &topic, input)).await?;
            records += 1;
            bytes += len as u64;
            progress.at(records);
            if records.is_multiple_of(RECORDS_PER_TURN) {
                runtime::task::yield_now().await;
            }
        }
    }
    Ok((records, bytes))
}

fn record(args: &ProduceArgs, topic: &Rc<str>, input: Input) -> ProducerRecord {
    let own = |(key, value): (Vec<u8>, Vec<u8>)| Header { key: key.into(), value: Some(value.into()) };
    let value = input.value.filter(|value| !(args.null && value.is_empty()));
    let fixed_key = || args.key.as_ref().map(|key| Bytes::copy_from_slice(key.as_bytes()));
    ProducerRecord {
        topic: topic.clone(),
        partition: args.partition,
        key: input.key.map(Bytes::from).or_else(fixed_key),
        value: value.map(Bytes::from),
        headers: args.headers.iter().cloned().chain(input.headers.into_iter().map(own)).collect(),
        timestamp_ms: None,
    }
}

/// Sends one record and waits while there is no room for it.
pub async fn send(producer: &Producer, record: &ProducerRecord) -> Result<(), Failure> {
    loop {
        match producer.send_counted(record, 0, clock::now_ms()) {
            Ok(()) => return Ok(()),
            Err(Refused::Full) => producer.room(clock::now_ms() + ROOM_WAIT_MS).await,
            // The way that waits for metadata, and says what is in the way.
            Err(_) => {
                producer.send(record.clone()).await?;
                return Ok(());
            }
        }
    }
}

/// Keeps to a rate by intended times, so that a late record does not push all behind it.
#[derive(Debug)]
pub struct Pace {
    interval: Option<Duration>,
    next: Instant,
}

impl Pace {
    pub fn new(per_second: Option<u32>) -> Pace {
        let interval = per_second.map(|rate| Duration::from_secs(1) / rate);
        Pace { interval, next: Instant::now() }
    }

    /// Waits for the next record's time.
    pub async fn wait(&mut self) {
        let Some(interval) = self.interval else { return };
        let now = Instant::now();
        if self.next > now {
            clock::sleep(self.next - now).await;
        }
        // Time in which there was nothing to send is not made up for.
        self.next = self.next.max(now.checked_sub(CATCH_UP).unwrap_or(now)) + interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(fate: Fate) -> BatchOutcome {
        BatchOutcome {
            topic: "t".into(),
            partition: 0,
            fate,
            records: 3,
            bytes: 30,
            created_ms: 0,
            ended_ms: 1,
            tags: Vec::new(),
        }
    }

    #[test]
    fn every_fate_is_counted_and_the_first_reason_kept() {
        let mut tally = Tally::default();
        tally.add(&outcome(Fate::Acknowledged { base_offset: 0, log_append_time_ms: -1 }));
        assert_eq!(tally.verdict(), Ok(()));
        tally.add(&outcome(Fate::PossiblySent(ClientError::TimedOut { what: "Produce", after_ms: 5 })));
        tally.add(&outcome(Fate::NotSent(ClientError::Closed)));
        let Err(Failure::TimedOut(text)) = tally.verdict() else { panic!("the first reason decides") };
        assert!(text.starts_with("3 records were acknowledged, 3 were not sent, 3 may have been"), "{text}");
    }

    #[test]
    fn acks_that_cannot_be_idempotent_turn_it_off() {
        let args = ProducerArgs {
            acks: AcksName::One,
            codec: CodecName::Zstd,
            linger_ms: 5,
            batch_size: 4 << 20,
            buffer_memory: 1 << 20,
            no_idempotence: false,
            round_robin: false,
        };
        let config = args.config(10_000);
        assert!(!config.enable_idempotence);
        assert_eq!(config.check(), Ok(()));
        assert!(ProducerArgs { acks: AcksName::All, ..args }.config(1).check().is_ok());
    }
}
