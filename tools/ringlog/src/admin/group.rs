//! `ringlog group`: members, offsets and lag of consumer groups.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use client::admin::{Admin, CommittedOffset, GroupDescription, NewOffset, OffsetSpec};
use client::{ClientError, TopicPartition};
use model::ErrorCode;
use serde_json::{Value, json};

use super::settle;
use crate::cli::output::{Table, print, print_json};
use crate::cli::{Connect, Failure};
use crate::records::placed::placed;
use crate::records::position::{POSITIONS, Position};

#[derive(Debug, Subcommand)]
pub enum GroupCommand {
    /// List groups.
    #[command(after_help = "Example:\n  ringlog group list")]
    List(ListArgs),
    /// Show a group's state, members and lag.
    #[command(after_help = "Example:\n  ringlog group describe dashboard")]
    Describe(OneArgs),
    /// Show a group's members and what each was given.
    #[command(after_help = "Example:\n  ringlog group members dashboard")]
    Members(OneArgs),
    /// Show how far a group is behind, by partition.
    #[command(after_help = "Example:\n  ringlog group lag dashboard")]
    Lag(OneArgs),
    /// Move the offsets of a group without members.
    #[command(after_help = "Example:\n  ringlog group seek dashboard --topic clicks --to earliest")]
    Seek(SeekArgs),
    /// Delete groups without members, with their offsets.
    #[command(after_help = "Example:\n  ringlog group delete dashboard")]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    connect: Connect,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct OneArgs {
    #[command(flatten)]
    connect: Connect,
    #[arg(value_name = "GROUP")]
    group: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct SeekArgs {
    #[command(flatten)]
    connect: Connect,
    #[arg(value_name = "GROUP")]
    group: String,
    /// A topic, or some of its partitions; may be repeated. Default: every topic that the group has offsets of.
    #[arg(short, long = "topic", value_name = "TOPIC[:PARTITION,...]", value_parser = topic_partitions)]
    topics: Vec<(String, Vec<i32>)>,
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true, help = POSITIONS)]
    to: Position,
    /// Only show where the offsets would go.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    connect: Connect,
    #[arg(required = true, value_name = "GROUP")]
    groups: Vec<String>,
}

/// `clicks` or `clicks:0,3`.
fn topic_partitions(text: &str) -> Result<(String, Vec<i32>), String> {
    let Some((topic, list)) = text.split_once(':') else { return Ok((text.to_owned(), Vec::new())) };
    let partition = |part: &str| part.parse::<i32>().ok().filter(|index| *index >= 0);
    let partitions: Option<Vec<i32>> = list.split(',').map(partition).collect();
    partitions
        .map(|partitions| (topic.to_owned(), partitions))
        .ok_or_else(|| format!("{list} is no list of partitions, for instance 0,3"))
}

pub fn run(command: GroupCommand) -> Result<(), Failure> {
    match command {
        GroupCommand::List(args) => args.connect.clone().run(move |client| list(Admin::new(client), args.json)),
        GroupCommand::Describe(args) => args.connect.clone().run(move |client| describe(Admin::new(client), args)),
        GroupCommand::Members(args) => args.connect.clone().run(move |client| members(Admin::new(client), args)),
        GroupCommand::Lag(args) => args.connect.clone().run(move |client| lag(Admin::new(client), args)),
        GroupCommand::Seek(args) => args.connect.clone().run(move |client| seek(Admin::new(client), args)),
        GroupCommand::Delete(args) => args.connect.clone().run(move |client| delete(Admin::new(client), args.groups)),
    }
}

async fn list(admin: Admin, as_json: bool) -> Result<(), Failure> {
    let groups = admin.list_groups().await?;
    if as_json {
        let one = |group: &client::admin::GroupListing| {
            json!({
                "group": group.group_id, "state": group.state, "type": group.group_type,
                "protocol_type": group.protocol_type, "coordinator": group.coordinator,
            })
        };
        return Ok(print_json(&groups.iter().map(one).collect())?);
    }
    let mut table = Table::new(&["group", "state", "type", "coordinator"]);
    for group in groups {
        table.row(vec![group.group_id, group.state, group.group_type, group.coordinator.to_string()]);
    }
    if table.is_empty() {
        eprintln!("no groups; one comes with: ringlog consume TOPIC --group NAME");
        return Ok(());
    }
    Ok(print(&table.render())?)
}

async fn one_group(admin: &Admin, name: &str) -> Result<GroupDescription, Failure> {
    let mut found = admin.describe_groups(&[name]).await?;
    let (_, group) = found.pop().ok_or_else(|| Failure::Failed(format!("the broker said nothing of group {name}")))?;
    match group {
        Err(error) if error.code() == Some(ErrorCode::GroupIdNotFound) => {
            Err(Failure::Refused(format!("group {name} does not exist; see: ringlog group list")))
        }
        other => Ok(other?),
    }
}

/// How far a group is, by partition: those it committed and those its members have.
#[derive(Debug, PartialEq, Eq)]
struct Progress {
    partition: TopicPartition,
    committed: Option<i64>,
    end: Option<i64>,
    member: Option<String>,
}

impl Progress {
    fn lag(&self) -> Option<i64> {
        Some((self.end? - self.committed?).max(0))
    }
}

async fn progress(admin: &Admin, group: &GroupDescription) -> Result<Vec<Progress>, Failure> {
    let committed: BTreeMap<TopicPartition, CommittedOffset> =
        admin.committed_offsets(&group.group_id, None).await?.into_iter().collect();
    let mut owners: BTreeMap<TopicPartition, Option<String>> =
        committed.keys().map(|partition| (partition.clone(), None)).collect();
    for member in &group.members {
        for partition in &member.assignment {
            owners.insert(partition.clone(), Some(member.member_id.clone()));
        }
    }
    let wanted: Vec<_> = owners.keys().map(|partition| (partition.clone(), OffsetSpec::Latest)).collect();
    let mut ends = BTreeMap::new();
    for (partition, result) in admin.list_offsets(&wanted, false).await? {
        match result {
            Ok(end) => drop(ends.insert(partition, end.offset)),
            // The topic is gone, its commit not yet: its end is not known.
            Err(ClientError::UnknownTopic { .. }) => {}
            Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let one = |(partition, member): (TopicPartition, Option<String>)| Progress {
        committed: committed.get(&partition).map(|commit| commit.offset),
        end: ends.get(&partition).copied(),
        partition,
        member,
    };
    Ok(owners.into_iter().map(one).collect())
}

fn show(number: Option<i64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

fn lag_table(progress: &[Progress]) -> String {
    let mut table = Table::new(&["topic", "partition", "committed", "end", "lag", "member"]);
    for one in progress {
        table.row(vec![
            one.partition.topic.to_string(),
            one.partition.partition.to_string(),
            show(one.committed),
            show(one.end),
            show(one.lag()),
            one.member.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.render()
}

fn lag_json(progress: &[Progress]) -> Value {
    let one = |one: &Progress| {
        json!({
            "topic": &*one.partition.topic, "partition": one.partition.partition, "committed": one.committed,
            "end": one.end, "lag": one.lag(), "member": one.member,
        })
    };
    progress.iter().map(one).collect()
}

fn total_lag(progress: &[Progress]) -> i64 {
    progress.iter().filter_map(Progress::lag).sum()
}

async fn lag(admin: Admin, args: OneArgs) -> Result<(), Failure> {
    let group = one_group(&admin, &args.group).await?;
    let progress = progress(&admin, &group).await?;
    if args.json {
        return Ok(print_json(&lag_json(&progress))?);
    }
    if progress.is_empty() {
        eprintln!("group {} has committed nothing yet", args.group);
        return Ok(());
    }
    Ok(print(&format!("{}total lag {}\n", lag_table(&progress), total_lag(&progress)))?)
}

async fn describe(admin: Admin, args: OneArgs) -> Result<(), Failure> {
    let group = one_group(&admin, &args.group).await?;
    let progress = progress(&admin, &group).await?;
    if args.json {
        let mut value = group_json(&group);
        value["offsets"] = lag_json(&progress);
        value["total_lag"] = total_lag(&progress).into();
        return Ok(print_json(&value)?);
    }
    let assignor = if group.protocol.is_empty() { "none" } else { &group.protocol };
    let mut text = format!(
        "{}  {}, {} members, assignor {assignor}, coordinator {}, total lag {}\n",
        group.group_id,
        group.state,
        group.members.len(),
        group.coordinator,
        total_lag(&progress)
    );
    if !group.members.is_empty() {
        text.push_str(&members_table(&group));
    }
    if !progress.is_empty() {
        text.push_str(&lag_table(&progress));
    }
    Ok(print(&text)?)
}

async fn members(admin: Admin, args: OneArgs) -> Result<(), Failure> {
    let group = one_group(&admin, &args.group).await?;
    if args.json {
        return Ok(print_json(&group_json(&group)["members"])?);
    }
    if group.members.is_empty() {
        eprintln!("group {} has no members now ({})", group.group_id, group.state);
        return Ok(());
    }
    Ok(print(&members_table(&group))?)
}

fn members_table(group: &GroupDescription) -> String {
    let mut table = Table::new(&["member", "static id", "client", "host", "partitions"]);
    for member in &group.members {
        let mut topics: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for one in &member.assignment {
            topics.entry(&one.topic).or_default().push(one.partition.to_string());
        }
        let partitions: Vec<String> =
            topics.iter().map(|(topic, list)| format!("{topic}:{}", list.join(","))).collect();
        table.row(vec![
            member.member_id.clone(),
            member.group_instance_id.clone().unwrap_or_else(|| "-".to_owned()),
            member.client_id.clone(),
            member.host.clone(),
            if partitions.is_empty() { "-".to_owned() } else { partitions.join(" ") },
        ]);
    }
    table.render()
}

fn group_json(group: &GroupDescription) -> Value {
    let member = |member: &client::admin::MemberDescription| {
        let partition = |one: &TopicPartition| json!({ "topic": &*one.topic, "partition": one.partition });
        json!({
            "member": member.member_id, "static_id": member.group_instance_id, "client": member.client_id,
            "host": member.host, "topics": member.topics,
            "partitions": member.assignment.iter().map(partition).collect::<Vec<_>>(),
        })
    };
    json!({
        "group": group.group_id, "state": group.state, "protocol_type": group.protocol_type,
        "assignor": group.protocol, "coordinator": group.coordinator,
        "members": group.members.iter().map(member).collect::<Vec<_>>(),
    })
}

async fn seek(admin: Admin, args: SeekArgs) -> Result<(), Failure> {
    let committed: BTreeMap<TopicPartition, CommittedOffset> =
        admin.committed_offsets(&args.group, None).await?.into_iter().collect();
    let partitions = seek_partitions(&admin, &args, &committed).await?;
    let placed = placed(&admin, &partitions, args.to, false).await?;
    let targets: Vec<_> = placed.into_iter().map(|one| (one.partition, one.offset)).collect();
    if !args.dry_run {
        let offset = |(partition, offset): &(TopicPartition, i64)| NewOffset {
            partition: partition.clone(),
            offset: *offset,
            metadata: None,
        };
        let offsets: Vec<NewOffset> = targets.iter().map(offset).collect();
        let results =
            admin.alter_group_offsets(&args.group, &offsets).await.map_err(|error| in_use(error, &args.group))?;
        for (_, result) in results {
            result.map_err(|error| in_use(error, &args.group))?;
        }
    }
    if args.json {
        let one = |(partition, to): &(TopicPartition, i64)| {
            let from = committed.get(partition).map(|commit| commit.offset);
            json!({ "topic": &*partition.topic, "partition": partition.partition, "from": from, "to": to })
        };
        print_json(&targets.iter().map(one).collect())?;
    } else {
        let mut table = Table::new(&["topic", "partition", "from", "to"]);
        for (partition, to) in &targets {
            let from = show(committed.get(partition).map(|commit| commit.offset));
            table.row(vec![partition.topic.to_string(), partition.partition.to_string(), from, to.to_string()]);
        }
        print(&table.render())?;
    }
    Ok(())
}

/// A group with members refuses offsets of strangers, in words that help nobody.
fn in_use(error: ClientError, group: &str) -> Failure {
    match error.code() {
        Some(ErrorCode::UnknownMemberId | ErrorCode::RebalanceInProgress) => Failure::Refused(format!(
            "group {group} has members: stop them first (see them with: ringlog group members {group})"
        )),
        _ => error.into(),
    }
}

async fn seek_partitions(
    admin: &Admin,
    args: &SeekArgs,
    committed: &BTreeMap<TopicPartition, CommittedOffset>,
) -> Result<Vec<TopicPartition>, Failure> {
    if args.topics.is_empty() {
        if committed.is_empty() {
            return Err(Failure::Usage(format!("group {} has no offsets: say of which --topic", args.group)));
        }
        return Ok(committed.keys().cloned().collect());
    }
    let names: Vec<&str> = args.topics.iter().map(|(topic, _)| topic.as_str()).collect();
    let mut all = Vec::new();
    for ((_, topic), (_, listed)) in admin.describe_topics(&names).await?.into_iter().zip(&args.topics) {
        let topic = topic?;
        let count = topic.partitions.len() as i32;
        if let Some(missing) = listed.iter().find(|index| **index >= count) {
            return Err(Failure::Usage(format!("{} has no partition {missing}, it has {count}", topic.name)));
        }
        let listed = if listed.is_empty() { (0..count).collect() } else { listed.clone() };
        all.extend(listed.into_iter().map(|index| TopicPartition::new(&topic.name, index)));
    }
    all.sort();
    all.dedup();
    Ok(all)
}

async fn delete(admin: Admin, groups: Vec<String>) -> Result<(), Failure> {
    let names: Vec<&str> = groups.iter().map(String::as_str).collect();
    let mut text = String::new();
    let outcome =
        settle(admin.delete_groups(&names).await?, |name, ()| text.push_str(&format!("group {name} deleted\n")));
    print(&text)?;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_with_and_without_partitions() {
        assert_eq!(topic_partitions("clicks"), Ok(("clicks".to_owned(), vec![])));
        assert_eq!(topic_partitions("clicks:0,3"), Ok(("clicks".to_owned(), vec![0, 3])));
        assert!(topic_partitions("clicks:").is_err());
        assert!(topic_partitions("clicks:-1").is_err());
    }

    #[test]
    fn lag_needs_both_ends_and_is_never_negative() {
        let progress =
            |committed, end| Progress { partition: TopicPartition::new("t", 0), committed, end, member: None };
        assert_eq!(progress(Some(3), Some(10)).lag(), Some(7));
        assert_eq!(progress(Some(11), Some(10)).lag(), Some(0));
        assert_eq!(progress(None, Some(10)).lag(), None);
        assert_eq!(progress(Some(3), None).lag(), None);
    }
}
