//! CreatePartitions (key 37): more partitions for topics that exist. Their number never falls.

use std::collections::{BTreeMap, BTreeSet};

use metadata::{Command, Rejection};
use model::{ErrorCode, PartitionIndex};
use wire::generated::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic, CreatePartitionsTopicResult,
};

use super::Context;
use super::admin::{MAX_NEW_PARTITIONS, Refusal, assignment, in_chunks, names};
use crate::cluster::ChangeError;
use crate::topics;
use crate::view::View;

pub async fn handle<'a>(context: &Context<'_>, request: CreatePartitionsRequest<'a>) -> CreatePartitionsResponse<'a> {
    let view = context.shard.view();
    let judged: Vec<_> = once(&request.topics)
        .into_iter()
        .map(|(topic, repeated)| match repeated {
            true => (topic.name, Err(Refusal::invalid_request("Duplicate topic name."))),
            false => (topic.name, judge(&view, topic)),
        })
        .collect();
    drop(view);
    let results = in_chunks(judged, |(name, judged)| async move {
        let grown = match judged {
            Ok(command) if !request.validate_only => grow(context, command).await,
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal),
        };
        answer(name, grown)
    })
    .await;
    CreatePartitionsResponse { throttle_time_ms: 0, results }
}

/// Topics at their first mention, and whether there is a second one.
fn once<'r, 'a>(topics: &'r [CreatePartitionsTopic<'a>]) -> Vec<(&'r CreatePartitionsTopic<'a>, bool)> {
    let mut mentions: BTreeMap<&str, usize> = BTreeMap::new();
    topics.iter().for_each(|topic| *mentions.entry(topic.name).or_default() += 1);
    let mut seen = BTreeSet::new();
    topics.iter().filter(|topic| seen.insert(topic.name)).map(|topic| (topic, mentions[topic.name] > 1)).collect()
}

fn judge(view: &View, asked: &CreatePartitionsTopic<'_>) -> Result<Command, Refusal> {
    let topic = view.image.topic_by_name(asked.name).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    names::check_not_reserved(asked.name, "Growing")?;
    let current = topic.partitions.len();
    let count = usize::try_from(asked.count).unwrap_or(0);
    let invalid = |message| Err(Refusal::new(ErrorCode::InvalidPartitions, message));
    if count == current {
        return invalid(format!("Topic already has {current} partition(s)."));
    }
    if count < current {
        return invalid(format!(
            "The topic {} currently has {current} partition(s); {} would not be an increase.",
            asked.name, asked.count
        ));
    }
    let additional = count - current;
    if additional > MAX_NEW_PARTITIONS {
        let message = "The request would create too many partitions at once.";
        return Err(Refusal::new(ErrorCode::PolicyViolation, message));
    }
    let replicas = topic.partitions.first().map_or(1, |partition| partition.replicas.len());
    let assignments = match &asked.assignments {
        Some(given) => {
            let given: Vec<&[i32]> = given.iter().map(|a| a.broker_ids.as_slice()).collect();
            assignment::of_added(&view.image, additional, replicas, &given)?
        }
        None => topics::assign(view, current, additional, replicas)?,
    };
    let first = PartitionIndex(i32::try_from(current).unwrap_or(i32::MAX));
    Ok(Command::AddPartitions { id: topic.id, first, assignments })
}

async fn grow(context: &Context<'_>, command: Command) -> Result<(), Refusal> {
    match context.shard.change(command).await {
        Ok(_) => Ok(()),
        Err(ChangeError::Rejected(Rejection::UnknownTopic)) => Err(ErrorCode::UnknownTopicOrPartition.into()),
        Err(error) => Err(Refusal::new(error.code(), error.message())),
    }
}

fn answer<'a>(name: &'a str, grown: Result<(), Refusal>) -> CreatePartitionsTopicResult<'a> {
    let (code, message) = match grown {
        Ok(()) => (ErrorCode::None, None),
        Err(refusal) if refusal.code == ErrorCode::UnknownTopicOrPartition => (refusal.code, None),
        Err(refusal) => (refusal.code, Some(refusal.message.into())),
    };
    CreatePartitionsTopicResult { name: name.into(), error_code: code.code(), error_message: message }
}

#[cfg(test)]
#[path = "37_create_partitions_tests.rs"]
mod tests;
