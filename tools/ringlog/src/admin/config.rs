//! `ringlog config`: configurations of topics, brokers and groups.

use std::fmt;
use std::str::FromStr;

use clap::{Args, Subcommand};
use client::admin::{Admin, ConfigEntry, ConfigResource, ConfigSource};
use serde_json::{Value, json};

use super::topic::changes;
use super::{pair, settle};
use crate::cli::output::{Table, print, print_json};
use crate::cli::{Connect, Failure};

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show what is configured.
    #[command(
        after_help = "Example:\n  ringlog config get topic:clicks retention.ms segment.bytes\n  ringlog config get broker:1 --all"
    )]
    Get(GetArgs),
    /// Set keys.
    #[command(after_help = "Example:\n  ringlog config set topic:clicks retention.ms=3600000")]
    Set(SetArgs),
    /// Take keys back to what holds without them.
    #[command(after_help = "Example:\n  ringlog config unset topic:clicks retention.ms")]
    Unset(UnsetArgs),
}

/// Whose configuration, as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target(ConfigResource);

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let refuse = || format!("{text} names nobody; give topic:NAME, broker:ID, brokers (all of them) or group:NAME");
        Ok(Target(match text.split_once(':') {
            None if text == "brokers" => ConfigResource::AllBrokers,
            Some(("topic", name)) if !name.is_empty() => ConfigResource::Topic(name.to_owned()),
            Some(("group", name)) if !name.is_empty() => ConfigResource::Group(name.to_owned()),
            Some(("broker", id)) => ConfigResource::Broker(id.parse().map_err(|_| refuse())?),
            _ => return Err(refuse()),
        }))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ConfigResource::Topic(name) => write!(f, "topic:{name}"),
            ConfigResource::Group(name) => write!(f, "group:{name}"),
            ConfigResource::Broker(id) => write!(f, "broker:{id}"),
            ConfigResource::AllBrokers => write!(f, "brokers"),
        }
    }
}

#[derive(Debug, Args)]
pub struct GetArgs {
    #[command(flatten)]
    connect: Connect,
    /// topic:NAME, broker:ID, brokers or group:NAME.
    #[arg(value_name = "TARGET")]
    target: Target,
    /// Only these keys. Default: those that were set.
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// Every key, also those at their default.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct SetArgs {
    #[command(flatten)]
    connect: Connect,
    /// topic:NAME, broker:ID, brokers or group:NAME.
    #[arg(value_name = "TARGET")]
    target: Target,
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = pair)]
    pairs: Vec<(String, String)>,
    /// Only say whether it could be done.
    #[arg(long)]
    validate_only: bool,
}

#[derive(Debug, Args)]
pub struct UnsetArgs {
    #[command(flatten)]
    connect: Connect,
    /// topic:NAME, broker:ID, brokers or group:NAME.
    #[arg(value_name = "TARGET")]
    target: Target,
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    /// Only say whether it could be done.
    #[arg(long)]
    validate_only: bool,
}

pub fn run(command: ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Get(args) => args.connect.clone().run(move |client| get(Admin::new(client), args)),
        ConfigCommand::Set(args) => {
            let changed =
                move |client| alter(Admin::new(client), args.target, args.pairs, Vec::new(), args.validate_only);
            args.connect.run(changed)
        }
        ConfigCommand::Unset(args) => {
            let changed =
                move |client| alter(Admin::new(client), args.target, Vec::new(), args.keys, args.validate_only);
            args.connect.run(changed)
        }
    }
}

async fn alter(
    admin: Admin,
    target: Target,
    set: Vec<(String, String)>,
    unset: Vec<String>,
    validate_only: bool,
) -> Result<(), Failure> {
    let wanted = [(target.0.clone(), changes(&set, &unset)?)];
    let results = admin.incremental_alter_configs(&wanted, validate_only).await?;
    let results = results.into_iter().map(|(_, result)| (target.to_string(), result)).collect();
    let verb = if validate_only { "could be changed" } else { "changed" };
    settle(results, |name, ()| {
        let _ = print(&format!("{name} {verb}\n"));
    })
}

async fn get(admin: Admin, args: GetArgs) -> Result<(), Failure> {
    let mut all = Vec::new();
    for (_, result) in admin.describe_configs(std::slice::from_ref(&args.target.0), true).await? {
        all.extend(result?);
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(unknown) = args.keys.iter().find(|key| !all.iter().any(|entry| entry.name == **key)) {
        let hint = format!("ringlog config get {} --all", args.target);
        return Err(Failure::Refused(format!("{} has no key {unknown}; see: {hint}", args.target)));
    }
    let is_wanted = |entry: &ConfigEntry| {
        if args.keys.is_empty() { args.all || !is_default(entry) } else { args.keys.contains(&entry.name) }
    };
    all.retain(is_wanted);
    if args.json {
        return Ok(print_json(&all.iter().map(details).collect())?);
    }
    if all.is_empty() {
        eprintln!("everything is at its default; --all shows it");
        return Ok(());
    }
    let mut table = Table::new(&["key", "value", "set by", "may change"]);
    for entry in &all {
        let value = if entry.sensitive { "(hidden)" } else { entry.value.as_deref().unwrap_or("(none)") };
        let may_change = if entry.read_only { "at start only" } else { "any time" };
        table.row(vec![entry.name.clone(), value.to_owned(), source(entry.source).to_owned(), may_change.to_owned()]);
    }
    Ok(print(&table.render())?)
}

fn is_default(entry: &ConfigEntry) -> bool {
    entry.is_default || entry.source == ConfigSource::Default
}

fn source(source: ConfigSource) -> &'static str {
    match source {
        ConfigSource::Topic => "topic",
        ConfigSource::Broker => "broker, while running",
        ConfigSource::AllBrokers => "all brokers, while running",
        ConfigSource::Static => "broker's start",
        ConfigSource::Default => "default",
        ConfigSource::Group => "group",
        ConfigSource::Other(_) => "other",
    }
}

fn details(entry: &ConfigEntry) -> Value {
    json!({
        "key": entry.name, "value": entry.value, "source": source(entry.source), "default": is_default(entry),
        "read_only": entry.read_only, "sensitive": entry.sensitive, "documentation": entry.documentation,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_named_by_kind() {
        for text in ["topic:a", "topic:a:b", "broker:3", "brokers", "group:g"] {
            assert_eq!(text.parse::<Target>().map(|target| target.to_string()), Ok(text.to_owned()));
        }
        for text in ["topic:", "broker:x", "topics", "", "client:a"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
