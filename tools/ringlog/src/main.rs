//! The `ringlog` command. Each sub-command has its own file; this one reads the command line.
//!
//! Exit codes: 0 done, 1 it failed with a sentence on stderr, 2 the command line is wrong.

mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An event-streaming broker that speaks Kafka's protocol.
#[derive(Debug, Parser)]
#[command(name = "ringlog", version, about, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a broker. Without any flag it listens on 127.0.0.1:9092 and keeps its data in ./ringlog-data.
    #[command(long_about = serve::LONG_ABOUT, after_long_help = serve::after_help())]
    Serve(serve::ServeArgs),
    /// Print every configuration property as a Markdown reference.
    Properties,
}

fn main() -> ExitCode {
    // Before any thread exists: a stop signal waits for the main thread.
    runtime::signals::block();
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Properties => {
            print!("{}", model::config::reference_markdown());
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("ringlog: {sentence}");
            ExitCode::FAILURE
        }
    }
}
