//! OffsetCommit (key 8): where a consumer is. What names no partition of today is answered here; the rest is one message
//! to the coordinator's shard, answered when durable.

use std::borrow::Cow;
use std::collections::BTreeMap;

use coordinator::{CommitPartition, CommitRequest, CommitTopic, Response};
use model::{ErrorCode, LeaderEpoch, Offset, TopicId};
use wire::TopicRef;
use wire::generated::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use super::Context;
use crate::groups::Need;
use crate::view::View;

const FIRST_WITH_TOPIC_IDS: i16 = 10;
/// Below it an unknown group is an illegal generation, which older clients know.
const FIRST_WITH_GROUP_ID_NOT_FOUND: i16 = 9;

pub async fn handle(context: &Context<'_>, request: OffsetCommitRequest<'_>) -> OffsetCommitResponse<'static> {
    let mut answer = Answer::default();
    let view = context.shard.view();
    let topics: Vec<CommitTopic> =
        request.topics.iter().filter_map(|topic| sort(&view, context.version, topic, &mut answer)).collect();
    drop(view);
    if !topics.is_empty() {
        commit(context, &request, topics, &mut answer).await;
    }
    OffsetCommitResponse { throttle_time_ms: 0, topics: answer.topics }
}

/// The partitions that exist; the others have their answer.
fn sort(view: &View, version: i16, asked: &OffsetCommitRequestTopic<'_>, answer: &mut Answer) -> Option<CommitTopic> {
    let by_id = version >= FIRST_WITH_TOPIC_IDS;
    let (reference, unknown) = if by_id {
        (TopicRef::Id(asked.topic_id), ErrorCode::UnknownTopicId)
    } else {
        (TopicRef::Name(asked.name), ErrorCode::UnknownTopicOrPartition)
    };
    let Some(topic) = view.topic(reference) else {
        for partition in &asked.partitions {
            answer.add(asked.name, TopicId(asked.topic_id), partition.partition_index, unknown);
        }
        return None;
    };
    let mut partitions = Vec::with_capacity(asked.partitions.len());
    for partition in &asked.partitions {
        let exists = usize::try_from(partition.partition_index).is_ok_and(|index| index < topic.partitions.len());
        if exists {
            partitions.push(to_commit(partition));
        } else {
            answer.add(&topic.name, topic.id, partition.partition_index, ErrorCode::UnknownTopicOrPartition);
        }
    }
    let wanted = !partitions.is_empty();
    wanted.then(|| CommitTopic { name: topic.name.to_string(), topic_id: topic.id, partitions })
}

fn to_commit(partition: &OffsetCommitRequestPartition<'_>) -> CommitPartition {
    CommitPartition {
        partition: partition.partition_index,
        offset: Offset(partition.committed_offset),
        leader_epoch: LeaderEpoch(partition.committed_leader_epoch),
        metadata: partition.committed_metadata.map(str::to_owned),
    }
}

async fn commit(
    context: &Context<'_>,
    request: &OffsetCommitRequest<'_>,
    topics: Vec<CommitTopic>,
    answer: &mut Answer,
) {
    let order: Vec<(String, TopicId, Vec<i32>)> = topics
        .iter()
        .map(|t| (t.name.clone(), t.topic_id, t.partitions.iter().map(|p| p.partition).collect()))
        .collect();
    let commit = CommitRequest {
        group_id: request.group_id.to_owned(),
        generation_id: request.generation_id_or_member_epoch,
        member_id: request.member_id.to_owned(),
        group_instance_id: request.group_instance_id.map(str::to_owned),
        retention_time_ms: request.retention_time_ms,
        topics,
    };
    let call = context.shard.with_group(request.group_id, Need::Topic, |driver| async move {
        driver.ask(|coordinator, now, ticket| coordinator.commit(now, ticket, commit)).await
    });
    let failed = match call.await {
        Ok(Response::Commit(results)) => {
            for topic in results {
                for (partition, error) in topic.partitions {
                    answer.add(&topic.name, topic.topic_id, partition, below_v9(context.version, error));
                }
            }
            return;
        }
        Ok(_) => ErrorCode::UnknownServerError,
        Err(unreached) => unreached.code(),
    };
    for (name, topic_id, partitions) in order {
        for partition in partitions {
            answer.add(&name, topic_id, partition, failed);
        }
    }
}

fn below_v9(version: i16, error: ErrorCode) -> ErrorCode {
    if version < FIRST_WITH_GROUP_ID_NOT_FOUND && error == ErrorCode::GroupIdNotFound {
        return ErrorCode::IllegalGeneration;
    }
    error
}

/// Answers by topic, in the order in which topics first got one: refusals first, as in Kafka.
#[derive(Default)]
struct Answer {
    topics: Vec<OffsetCommitResponseTopic<'static>>,
    places: BTreeMap<(String, TopicId), usize>,
}

impl Answer {
    fn add(&mut self, name: &str, topic_id: TopicId, partition_index: i32, error: ErrorCode) {
        let next = self.topics.len();
        let place = *self.places.entry((name.to_owned(), topic_id)).or_insert(next);
        if place == next {
            self.topics.push(OffsetCommitResponseTopic {
                name: Cow::Owned(name.to_owned()),
                topic_id: topic_id.0,
                partitions: Vec::new(),
            });
        }
        let partition = OffsetCommitResponsePartition { partition_index, error_code: error.code() };
        self.topics[place].partitions.push(partition);
    }
}
