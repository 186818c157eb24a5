//! The `bench` command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ringlog_bench::{churn, cleaning, compare, idle, lone, many, producers, soak};

#[derive(Debug, Parser)]
#[command(name = "bench", about = "Side-by-side runs against Apache Kafka, and what must stay small")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ringlog and Apache Kafka in turns, the same client and records; prints medians with min and max.
    Compare(compare::Options),
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
