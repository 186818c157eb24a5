//! The `bench` command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ringlog_bench::compare::{self, Options};

#[derive(Debug, Parser)]
#[command(name = "bench", about = "Side-by-side runs against Apache Kafka")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ringlog and Apache Kafka in turns, the same client and records; prints medians with min and max.
    Compare(Options),
}

fn main() -> ExitCode {
    let Command::Compare(options) = Cli::parse().command;
    match compare::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench: {sentence}");
            ExitCode::FAILURE
        }
    }
}
