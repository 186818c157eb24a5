//! `ringlog topic`: make, look at, change and delete topics.

use clap::{Args, Subcommand};
use client::admin::{Admin, ConfigChange, ConfigOperation, ConfigResource, NewTopic};
use client::{ClientError, Topic};
use model::{ErrorCode, TopicId};
use serde_json::{Value, json};

use super::{pair, settle};
use crate::cli::output::{Table, print, print_json};
use crate::cli::{Connect, Failure};

#[derive(Debug, Subcommand)]
pub enum TopicCommand {
    /// Make topics.
    #[command(after_help = "Example:\n  ringlog topic create clicks --partitions 4 --config retention.ms=86400000")]
    Create(CreateArgs),
    /// List topics.
    #[command(after_help = "Example:\n  ringlog topic list")]
    List(ListArgs),
    /// Show partitions, leaders and replicas, and what is configured on the topic itself.
    #[command(after_help = "Example:\n  ringlog topic describe clicks")]
    Describe(DescribeArgs),
    /// Change the configuration of topics.
    #[command(after_help = "Example:\n  ringlog topic alter clicks --set retention.ms=3600000 --unset segment.bytes")]
    Alter(AlterArgs),
    /// Delete topics with all their records.
    #[command(after_help = "Example:\n  ringlog topic delete clicks")]
    Delete(DeleteArgs),
    /// Raise the number of partitions. Keys move to other partitions by it, and there is no way back.
    #[command(after_help = "Example:\n  ringlog topic add-partitions clicks --total 8")]
    AddPartitions(AddPartitionsArgs),
}

#[derive(Debug, Args)]
pub struct CreateArgs {
    #[command(flatten)]
    connect: Connect,
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// Partitions. Default: the broker's num.partitions.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    partitions: Option<i32>,
    /// Replicas of each partition. Default: the broker's default.replication.factor.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(i16).range(1..))]
    replication_factor: Option<i16>,
    /// A configuration of the topic; may be repeated.
    #[arg(short, long = "config", value_name = "KEY=VALUE", value_parser = pair)]
    configs: Vec<(String, String)>,
    /// Only say whether it could be done.
    #[arg(long)]
    validate_only: bool,
    /// A topic that is there already is no failure.
    #[arg(long)]
    if_not_exists: bool,
}

#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    connect: Connect,
    /// Internal topics too.
    #[arg(long)]
    internal: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct DescribeArgs {
    #[command(flatten)]
    connect: Connect,
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct AlterArgs {
    #[command(flatten)]
    connect: Connect,
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// Set a key; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Take a key back to what holds without it; may be repeated.
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// Only say whether it could be done.
    #[arg(long)]
    validate_only: bool,
}

#[derive(Debug, Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    connect: Connect,
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// A topic that is not there is no failure.
    #[arg(long)]
    if_exists: bool,
}

#[derive(Debug, Args)]
pub struct AddPartitionsArgs {
    #[command(flatten)]
    connect: Connect,
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// How many partitions there are afterwards.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    total: i32,
    /// Only say whether it could be done.
    #[arg(long)]
    validate_only: bool,
}

pub fn run(command: TopicCommand) -> Result<(), Failure> {
    match command {
        TopicCommand::Create(args) => args.connect.clone().run(move |client| create(Admin::new(client), args)),
        TopicCommand::List(args) => args.connect.clone().run(move |client| list(Admin::new(client), args)),
        TopicCommand::Describe(args) => args.connect.clone().run(move |client| describe(Admin::new(client), args)),
        TopicCommand::Alter(args) => args.connect.clone().run(move |client| alter(Admin::new(client), args)),
        TopicCommand::Delete(args) => args.connect.clone().run(move |client| delete(Admin::new(client), args)),
        TopicCommand::AddPartitions(args) => {
            args.connect.clone().run(move |client| add_partitions(Admin::new(client), args))
        }
    }
}

/// Leaves a number to the broker.
const BROKERS_CHOICE: i32 = -1;

async fn create(admin: Admin, args: CreateArgs) -> Result<(), Failure> {
    let topic = |name: &String| NewTopic {
        partitions: args.partitions.unwrap_or(BROKERS_CHOICE),
        replication_factor: args.replication_factor.unwrap_or(BROKERS_CHOICE as i16),
        configs: args.configs.clone(),
        ..NewTopic::new(name)
    };
    let topics: Vec<NewTopic> = args.topics.iter().map(topic).collect();
    let mut results = admin.create_topics(&topics, args.validate_only).await?;
    if args.if_not_exists {
        let exists = |error: &ClientError| error.code() == Some(ErrorCode::TopicAlreadyExists);
        results.retain(|(_, result)| !result.as_ref().is_err_and(exists));
    }
    let verb = if args.validate_only { "could be made" } else { "made" };
    let mut text = String::new();
    let outcome = settle(results, |name, made| {
        let shape = match (made.partitions, made.replication_factor) {
            (partitions, replicas) if partitions > 0 && replicas > 0 => {
                format!(", {} of {}", count(partitions as usize, "partition"), count(replicas as usize, "replica"))
            }
            _ => String::new(),
        };
        text.push_str(&format!("topic {name} {verb}{shape}\n"));
    });
    print(&text)?;
    outcome
}

/// Makes a topic unless it is there, and waits until its partitions have leaders. `None`: it has to be there.
pub async fn ensure(client: &client::Client, name: &str, partitions: Option<i32>) -> Result<(), Failure> {
    if let Some(partitions) = partitions {
        let topic = NewTopic { partitions, ..NewTopic::new(name) };
        for (_, result) in Admin::new(client.clone()).create_topics(&[topic], false).await? {
            match result {
                Err(error) if error.code() != Some(ErrorCode::TopicAlreadyExists) => return Err(error.into()),
                _ => {}
            }
        }
    }
    client.resolve(&[name]).await?;
    Ok(())
}

/// "1 partition", "4 partitions".
fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

async fn list(admin: Admin, args: ListArgs) -> Result<(), Failure> {
    let mut topics = admin.list_topics().await?;
    topics.retain(|topic| args.internal || !topic.is_internal);
    if args.json {
        return Ok(print_json(&Value::from(topics.iter().map(summary).collect::<Vec<_>>()))?);
    }
    let mut table = Table::new(&["topic", "partitions", "replicas", "id"]);
    for topic in &topics {
        let replicas = topic.partitions.first().map_or(0, |partition| partition.replicas.len());
        let (partitions, replicas) = (topic.partitions.len().to_string(), replicas.to_string());
        table.row(vec![topic.name.to_string(), partitions, replicas, TopicId(topic.id).to_string()]);
    }
    if table.is_empty() {
        eprintln!("no topics; make one with: ringlog topic create NAME");
        return Ok(());
    }
    Ok(print(&table.render())?)
}

fn summary(topic: &Topic) -> Value {
    json!({
        "topic": &*topic.name,
        "id": TopicId(topic.id).to_string(),
        "internal": topic.is_internal,
        "partitions": topic.partitions.len(),
        "replicas": topic.partitions.first().map_or(0, |partition| partition.replicas.len()),
    })
}

async fn describe(admin: Admin, args: DescribeArgs) -> Result<(), Failure> {
    let names: Vec<&str> = args.topics.iter().map(String::as_str).collect();
    let mut topics = Vec::new();
    let outcome = settle(admin.describe_topics(&names).await?, |_, topic| topics.push(topic));
    let resources: Vec<_> = topics.iter().map(|topic| ConfigResource::Topic(topic.name.to_string())).collect();
    let mut configs = Vec::new();
    for (_, entries) in admin.describe_configs(&resources, false).await? {
        let own = entries?.into_iter().filter(|entry| entry.source == client::admin::ConfigSource::Topic);
        configs.push(own.map(|entry| (entry.name, entry.value.unwrap_or_default())).collect::<Vec<_>>());
    }
    if args.json {
        let whole = topics.iter().zip(&configs).map(|(topic, own)| details(topic, own)).collect::<Vec<_>>();
        print_json(&Value::from(whole))?;
        return outcome;
    }
    for (topic, own) in topics.iter().zip(&configs) {
        print(&described(topic, own))?;
    }
    outcome
}

fn details(topic: &Topic, own: &[(String, String)]) -> Value {
    let mut value = summary(topic);
    let partition = |(index, one): (usize, &client::Partition)| {
        json!({
            "partition": index, "leader": one.leader, "leader_epoch": one.leader_epoch,
            "replicas": one.replicas, "isr": one.isr, "offline": one.offline,
        })
    };
    value["partitions"] = topic.partitions.iter().enumerate().map(partition).collect();
    value["configs"] = own.iter().map(|(key, text)| (key.clone(), Value::from(text.clone()))).collect();
    value
}

fn described(topic: &Topic, own: &[(String, String)]) -> String {
    let internal = if topic.is_internal { ", internal" } else { "" };
    let mut text =
        format!("{}  {}{internal}  id {}\n", topic.name, count(topic.partitions.len(), "partition"), TopicId(topic.id));
    for (key, value) in own {
        text.push_str(&format!("  {key}={value}\n"));
    }
    let mut table = Table::new(&["partition", "leader", "epoch", "replicas", "in sync", "offline"]);
    for (index, one) in topic.partitions.iter().enumerate() {
        let leader = if one.leader < 0 { "none".to_owned() } else { one.leader.to_string() };
        table.row(vec![
            index.to_string(),
            leader,
            one.leader_epoch.to_string(),
            numbers(&one.replicas),
            numbers(&one.isr),
            numbers(&one.offline),
        ]);
    }
    text + &table.render()
}

fn numbers(list: &[i32]) -> String {
    if list.is_empty() {
        return "-".to_owned();
    }
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

async fn alter(admin: Admin, args: AlterArgs) -> Result<(), Failure> {
    let changes = changes(&args.set, &args.unset)?;
    let wanted: Vec<_> =
        args.topics.iter().map(|name| (ConfigResource::Topic(name.clone()), changes.clone())).collect();
    let results = admin.incremental_alter_configs(&wanted, args.validate_only).await?;
    let verb = if args.validate_only { "could be changed" } else { "changed" };
    let names = results.into_iter().zip(&args.topics).map(|((_, result), name)| (name.clone(), result)).collect();
    let mut text = String::new();
    let outcome = settle(names, |name, ()| text.push_str(&format!("topic {name} {verb}\n")));
    print(&text)?;
    outcome
}

/// What `--set` and `--unset` ask for.
pub(super) fn changes(set: &[(String, String)], unset: &[String]) -> Result<Vec<ConfigChange>, Failure> {
    let set = set.iter().map(|(name, value)| (name, ConfigOperation::Set(value.clone())));
    let unset = unset.iter().map(|name| (name, ConfigOperation::Delete));
    let changes = set.chain(unset).map(|(name, operation)| ConfigChange { name: name.clone(), operation });
    let changes: Vec<ConfigChange> = changes.collect();
    if changes.is_empty() {
        return Err(Failure::Usage("nothing to change: give --set KEY=VALUE or --unset KEY".to_owned()));
    }
    Ok(changes)
}

async fn delete(admin: Admin, args: DeleteArgs) -> Result<(), Failure> {
    let names: Vec<&str> = args.topics.iter().map(String::as_str).collect();
    let mut results = admin.delete_topics(&names).await?;
    if args.if_exists {
        let is_missing = |error: &ClientError| {
            matches!(error, ClientError::UnknownTopic { .. })
                || error.code() == Some(ErrorCode::UnknownTopicOrPartition)
        };
        results.retain(|(_, result)| !result.as_ref().is_err_and(is_missing));
    }
    let mut text = String::new();
    let outcome = settle(results, |name, ()| text.push_str(&format!("topic {name} deleted\n")));
    print(&text)?;
    outcome
}

async fn add_partitions(admin: Admin, args: AddPartitionsArgs) -> Result<(), Failure> {
    let results = admin.create_partitions(&[(&args.topic, args.total)], args.validate_only).await?;
    let verb = if args.validate_only { "could have" } else { "has" };
    let mut text = String::new();
    let outcome = settle(results, |name, ()| {
        text.push_str(&format!("topic {name} {verb} {}\n", count(args.total as usize, "partition")));
    });
    print(&text)?;
    outcome
}
