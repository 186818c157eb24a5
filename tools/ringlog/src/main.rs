//! The `ringlog` command. Each sub-command has its own file or folder; this one reads the command line.

mod admin;
mod cli;
mod completion;
mod demo;
mod log_dump;
mod log_import;
mod metrics;
mod perf;
mod records;
mod serve;
mod tune;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::cli::Failure;
use crate::cli::failure::EXIT_CODES;

/// An event-streaming broker that speaks Kafka's protocol, and the tools to try, operate and load one.
#[derive(Debug, Parser)]
#[command(name = "ringlog", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a broker. Without any flag it listens on 127.0.0.1:9092 and keeps its data in ./ringlog-data.
    #[command(long_about = serve::LONG_ABOUT, after_long_help = serve::after_help())]
    Serve(serve::ServeArgs),
    /// Make, look at, change and delete topics.
    #[command(subcommand, after_help = "Example:\n  ringlog topic list")]
    Topic(admin::topic::TopicCommand),
    /// Write records from stdin or files to a topic.
    #[command(
        after_help = "Example:\n  ringlog topic create greetings --if-not-exists && echo hello | ringlog produce greetings"
    )]
    Produce(records::produce::ProduceArgs),
    /// Print the records of topics, alone or as a member of a group.
    #[command(after_help = "Example:\n  ringlog consume greetings --exit -f '%p %o %k %v\\n'")]
    Consume(records::consume::ConsumeArgs),
    /// Look at consumer groups, their members and lag; move their offsets.
    #[command(subcommand, after_help = "Example:\n  ringlog group list")]
    Group(admin::group::GroupCommand),
    /// Look at and change configurations of topics, brokers and groups.
    #[command(subcommand, after_help = "Example:\n  ringlog config get broker:1")]
    Config(admin::config::ConfigCommand),
    /// Look at the cluster.
    #[command(subcommand, after_help = "Example:\n  ringlog cluster info")]
    Cluster(admin::cluster::ClusterCommand),
    /// Put load on a cluster and measure.
    #[command(subcommand, after_help = "Example:\n  ringlog perf produce load --create 4 --duration 5s")]
    Perf(perf::PerfCommand),
    /// See the product work in a minute.
    #[command(subcommand, after_help = "Example:\n  ringlog demo clickstream --duration 20s")]
    Demo(demo::run::DemoCommand),
    /// Look at the files of a log.
    #[command(subcommand, after_help = log_dump::AFTER_HELP)]
    Log(log_dump::LogCommand),
    /// Judge, measure and tune this host for a broker.
    #[command(subcommand, after_help = tune::AFTER_HELP)]
    Tune(tune::TuneCommand),
    /// Print every configuration property as a Markdown reference.
    #[command(after_help = "Example:\n  ringlog properties")]
    Properties,
    /// Print a completion script for a shell.
    #[command(after_help = "Example:\n  ringlog completion bash")]
    Completion(completion::CompletionArgs),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("ringlog: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        // These say by their code that they found something.
        Command::Log(command) => return Ok(log_dump::run(&command)?),
        Command::Tune(command) => return Ok(tune::run(&command)?),
        Command::Serve(args) => {
            // Before any thread exists: a stop signal waits for the main thread.
            runtime::signals::block();
            serve::run(&args)?;
        }
        Command::Topic(command) => admin::topic::run(command)?,
        Command::Produce(args) => records::produce::run(args)?,
        Command::Consume(args) => records::consume::run(args)?,
        Command::Group(command) => admin::group::run(command)?,
        Command::Config(command) => admin::config::run(command)?,
        Command::Cluster(command) => admin::cluster::run(command)?,
        Command::Perf(command) => perf::run(command)?,
        Command::Demo(command) => demo::run::run(command)?,
        Command::Properties => cli::output::print(&model::config::reference_markdown())?,
        Command::Completion(args) => completion::run::<Cli>(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}
