//! The `bench` command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ringlog_bench::{bare, check, churn, cleaning, compare, idle, limits, lone, many, producers, soak, table};

#[derive(Debug, Parser)]
#[command(name = "bench", about = "Side-by-side runs against Apache Kafka, and what must stay small")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ringlog and its peers in turns, the same client and records: results, tables with medians, pictures.
    Compare(Box<compare::Options>),
    /// A bare io_uring program that takes the same load as a broker: the least that durable costs here.
    Bare(bare::Options),
    /// Tables from the newest results, as in the README.
    Table(table::Options),
    /// What the machine itself can do: its disk, and its loopback.
    Limits(limits::Options),
    /// Our load generator against other clients: the same counts, and latencies beside each other.
    Check(check::Options),
    /// What thousands of partitions cost, and how long a start takes with them.
    Many(many::Options),
    /// What idle consumers of thousands of partitions cost.
    Idle(idle::Options),
    /// One Produce at a time on a quiet node, beside a bare write and fdatasync.
    Lone(lone::Options),
    /// Latency of a steady load beside a topic that is cleaned all the time.
    Cleaning(cleaning::Options),
    /// Thousands of topics made and deleted: what stays behind.
    Churn(churn::Options),
    /// Idempotent producers that write once: what the broker remembers of them.
    Producers(producers::Options),
    /// A steady load for long: whether latency, memory and disk stay where they were.
    Soak(soak::Options),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Compare(options) => compare::run(&options),
        Command::Bare(options) => bare::run(&options),
        Command::Table(options) => table::run(&options),
        Command::Limits(options) => limits::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Many(options) => many::run(&options),
        Command::Idle(options) => idle::run(&options),
        Command::Lone(options) => lone::run(&options),
        Command::Cleaning(options) => cleaning::run(&options),
        Command::Churn(options) => churn::run(&options),
        Command::Producers(options) => producers::run(&options),
        Command::Soak(options) => soak::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench: {sentence}");
            ExitCode::FAILURE
        }
    }
}
