//! `ringlog perf`: load by our own client, economical enough that the broker is what is measured.
//!
//! With a rate the load is an open loop: a record's latency counts from the time it was meant to be sent, so that a
//! broker that stalls is charged for every record that the stall delayed, not only for those it let through.

mod consume;
mod e2e;
pub mod open_loop;
mod produce;
pub mod report;

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::{Connect, Failure};

/// Records of a load that are made once and sent again and again.
const PAYLOADS: usize = 64;
/// Records between two turns for other tasks while there is room to send.
const RECORDS_PER_TURN: u64 = 256;

#[derive(Debug, Subcommand)]
pub enum PerfCommand {
    /// Write records and show throughput, latency until acknowledged, and what this client cost.
    #[command(after_help = "Example:\n  ringlog perf produce load --create 4 --duration 5s --rate 20000")]
    Produce(produce::ProduceArgs),
    /// Read a topic from its beginning to its end and show throughput.
    #[command(after_help = "Example:\n  ringlog perf consume load")]
    Consume(consume::ConsumeArgs),
    /// Write and read at the same time, and show the latency from one to the other.
    #[command(name = "e2e", after_help = "Example:\n  ringlog perf e2e load --create 1 --duration 5s --rate 1000")]
    EndToEnd(e2e::EndToEndArgs),
}

pub fn run(command: PerfCommand) -> Result<(), Failure> {
    match command {
        PerfCommand::Produce(args) => produce::run(args),
        PerfCommand::Consume(args) => consume::run(args),
        PerfCommand::EndToEnd(args) => e2e::run(args),
    }
}

/// What the writing loads have in common.
#[derive(Clone, Debug, Args)]
pub struct LoadArgs {
    #[command(flatten)]
    pub connect: Connect,
    #[command(flatten)]
    pub producer: crate::records::produce::ProducerArgs,
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Make the topic with so many partitions if it is not there.
    #[arg(long, value_name = "PARTITIONS", value_parser = clap::value_parser!(i32).range(1..=100_000))]
    pub create: Option<i32>,
    /// Size of a record's value, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 500, value_parser = clap::value_parser!(u32).range(8..=16_777_216))]
    pub record_size: u32,
    /// Different keys; 0: none, and a batch's worth of records to one partition, then the next.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub keys: u32,
    /// For how long, for instance 30s.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    pub duration: Duration,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Keys and values of a load: bytes that do not compress to nothing, the same in every run.
struct Payloads {
    values: Vec<bytes::Bytes>,
    keys: Vec<bytes::Bytes>,
}

impl Payloads {
    fn new(args: &LoadArgs) -> Payloads {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            // xorshift64: any sequence without a short pattern does.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut value = || -> bytes::Bytes { (0..args.record_size).map(|_| b'a' + (next() % 26) as u8).collect() };
        let values = (0..PAYLOADS).map(|_| value()).collect();
        let key = |number: u32| bytes::Bytes::from(format!("key-{number:08}"));
        Payloads { values, keys: (0..args.keys).map(key).collect() }
    }

    fn key(&self, number: u64) -> Option<bytes::Bytes> {
        // A stride without a common divisor with small counts, so that neighbours have different keys.
        let len = self.keys.len() as u64;
        (len > 0).then(|| self.keys[(number.wrapping_mul(2_654_435_761) % len) as usize].clone())
    }

    fn value(&self, number: u64) -> bytes::Bytes {
        self.values[(number % self.values.len() as u64) as usize].clone()
    }
}
