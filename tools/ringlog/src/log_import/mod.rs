//! `ringlog log import`: takes the partitions of a stopped Apache Kafka's data folder over into a stopped node's folders.
//!
//! [`source`] looks through Kafka's folder, reads every batch and refuses what cannot be taken over as it is; [`copy`]
//! makes durable copies (or hard links of what is never written again); `server::import` makes the topics and opens what
//! was copied. Kafka's folder is only read. Every refusal comes before anything is written.

mod copy;
mod source;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use model::config::BrokerConfig;
use server::import::{ImportTopic, Imported};

use self::source::{SourceTopic, Wanted};
use crate::cli::output;

pub const AFTER_HELP: &str = "\
Taken over are the records with their offsets, timestamps, codecs and producers, the log start, the leader epochs, the topic's
id and its number of partitions. Configurations are not in these files: give those that matter with --config, retention before
all, or old records go with the first look. Internal topics are left out; so are deleted, moving and stray partitions.
Both brokers have to be stopped. Kafka's folder is only read, and not to be used by Kafka any more after --link.

Example:
  ringlog log import ./kafka-data --data-dir ./ringlog-data --config retention.ms=-1 --dry-run";

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Data folder of Apache Kafka 4.4; more of them where it has several.
    #[arg(required = true, value_name = "KAFKA_DIR")]
    sources: Vec<PathBuf>,
    /// Data folder of this broker; repeated where it has several. Default: ./ringlog-data.
    #[arg(long, value_name = "DIR")]
    data_dir: Vec<PathBuf>,
    /// Only this topic; may be repeated. Default: all but internal ones.
    #[arg(long = "topic", value_name = "TOPIC")]
    topics: Vec<String>,
    /// Sets a property of the topics that are made; may be repeated.
    #[arg(long = "config", value_name = "KEY=VALUE")]
    configs: Vec<String>,
    /// Makes hard links where a file is never written again, instead of copies: faster, and takes no space.
    #[arg(long)]
    link: bool,
    /// Checks everything and imports nothing.
    #[arg(long)]
    dry_run: bool,
}

/// The error is a sentence.
pub fn run(args: &ImportArgs) -> Result<(), String> {
    let config = target_config(&args.data_dir)?;
    let wanted = Wanted { topics: &args.topics, ours: &config.node.log_dirs };
    let found = source::read(&args.sources, &wanted)?;
    found.notes.iter().for_each(|note| eprintln!("ringlog: {note}"));
    let configs: Vec<(String, String)> = args.configs.iter().map(|pair| parse(pair)).collect::<Result<_, _>>()?;
    let topics: Vec<ImportTopic> = found.topics.iter().map(|topic| topic.to_import(&configs)).collect();
    let sources = Arc::new(found.topics);
    let copy = (!args.dry_run).then(|| copy::of(sources.clone(), args.link));
    let imported = server::import::import(config, topics, copy).map_err(|error| error.to_string())?;
    let text = if args.dry_run { dry_text(&sources) } else { done_text(&imported) };
    output::print(&text).map_err(|error| error.to_string())
}

fn target_config(dirs: &[PathBuf]) -> Result<BrokerConfig, String> {
    let mut pairs = Vec::new();
    if !dirs.is_empty() {
        pairs.push(("log.dirs".to_string(), crate::serve::log_dirs(dirs)?));
    }
    BrokerConfig::from_pairs(pairs.iter().map(|(k, v)| (k.as_str(), v.as_str()))).map_err(|error| error.to_string())
}

fn parse(pair: &str) -> Result<(String, String), String> {
    let (key, value) = model::config::parse_pair(pair).map_err(|error| format!("--config {pair}: {error}"))?;
    Ok((key.to_string(), value.to_string()))
}

fn dry_text(topics: &[SourceTopic]) -> String {
    let mut out = String::new();
    let mut bytes = 0;
    for topic in topics {
        for (index, partition) in &topic.partitions {
            bytes += partition.bytes();
            out.push_str(&format!(
                "{}-{index}: up to offset {}, {} bytes\n",
                topic.name,
                partition.end,
                partition.bytes()
            ));
        }
    }
    let partitions: usize = topics.iter().map(|topic| topic.partitions.len()).sum();
    let (t, p) = (plural(topics.len(), "topic"), plural(partitions, "partition"));
    format!("{out}{t} with {p}, {bytes} bytes, could be imported; nothing was written\n")
}

fn done_text(imported: &[Imported]) -> String {
    let line = |one: &Imported| {
        let Imported { topic, partition, log_start_offset, log_end_offset, folder } = one;
        format!("{topic}-{partition}: offsets {log_start_offset} to {log_end_offset} in {}\n", folder.display())
    };
    let lines: String = imported.iter().map(line).collect();
    format!("{lines}{} imported\n", plural(imported.len(), "partition"))
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
