//! The `bench` command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ringlog_bench::{compare, many};

#[derive(Debug, Parser)]
#[command(name = "bench", about = "Side-by-side runs against Apache Kafka")]
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
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Compare(options) => compare::run(&options),
        Command::Many(options) => many::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench: {sentence}");
            ExitCode::FAILURE
        }
    }
}
