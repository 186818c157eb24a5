//! OffsetFetch (key 9): what groups have committed. A read of the coordinator's memory; several groups from v8 on.

use std::borrow::Cow;

use coordinator::{FetchTopic, FetchedOffset, FetchedTopic};
use model::{ErrorCode, TopicId};
use runtime::sync::all;
use wire::generated::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};

use super::Context;
use crate::groups::Need;
use crate::groups::limits::GROUPS_AT_ONCE;
use crate::view::View;

const FIRST_WITH_GROUP_ERROR: i16 = 2;
const FIRST_WITH_GROUPS: i16 = 8;
const FIRST_WITH_TOPIC_IDS: i16 = 10;

pub async fn handle(context: &Context<'_>, request: OffsetFetchRequest<'_>) -> OffsetFetchResponse<'static> {
    if context.version < FIRST_WITH_GROUPS {
        return single(context, request).await;
    }
    let mut groups = Vec::with_capacity(request.groups.len());
    for some in request.groups.chunks(GROUPS_AT_ONCE) {
        groups.extend(all(some.iter().map(|group| fetch(context, group)).collect()).await);
    }
    OffsetFetchResponse { groups, ..OffsetFetchResponse::default() }
}

/// Below v8: one group, its answer at the top.
async fn single(context: &Context<'_>, request: OffsetFetchRequest<'_>) -> OffsetFetchResponse<'static> {
    let topics = request.topics.map(|topics| topics.into_iter().map(newer_topic).collect());
    let group = OffsetFetchRequestGroup { group_id: request.group_id, topics, ..Default::default() };
    let answer = fetch(context, &group).await;
    let mut response = OffsetFetchResponse { error_code: answer.error_code, ..OffsetFetchResponse::default() };
    response.topics = answer.topics.into_iter().map(older_topic).collect();
    if answer.error_code != 0 && context.version < FIRST_WITH_GROUP_ERROR {
        response.topics = failed_topics(group.topics.as_deref().unwrap_or_default(), answer.error_code)
            .into_iter()
            .map(older_topic)
            .collect();
    }
    response
}

fn newer_topic(topic: OffsetFetchRequestTopic<'_>) -> OffsetFetchRequestTopics<'_> {
    OffsetFetchRequestTopics { name: topic.name, topic_id: [0; 16], partition_indexes: topic.partition_indexes }
}

fn older_topic(topic: OffsetFetchResponseTopics<'static>) -> OffsetFetchResponseTopic<'static> {
    let partition = |p: OffsetFetchResponsePartitions<'static>| OffsetFetchResponsePartition {
        partition_index: p.partition_index,
        committed_offset: p.committed_offset,
        committed_leader_epoch: p.committed_leader_epoch,
        metadata: p.metadata,
        error_code: p.error_code,
    };
    OffsetFetchResponseTopic { name: topic.name, partitions: topic.partitions.into_iter().map(partition).collect() }
}

async fn fetch(context: &Context<'_>, group: &OffsetFetchRequestGroup<'_>) -> OffsetFetchResponseGroup<'static> {
    let mut response =
        OffsetFetchResponseGroup { group_id: Cow::Owned(group.group_id.to_owned()), ..Default::default() };
    let mut unknown = Vec::new();
    let wanted = group.topics.as_ref().map(|topics| {
        let view = context.shard.view();
        topics.iter().filter_map(|topic| wanted(&view, context.version, topic, &mut unknown)).collect::<Vec<_>>()
    });
    let (group_id, topics) = (group.group_id.to_owned(), wanted.clone());
    let call = context.shard.with_group(group.group_id, Need::Nothing, |driver| async move {
        driver.look(|coordinator, _| coordinator.fetch_offsets(&group_id, topics.as_deref()))?
    });
    let fetched = match call.await {
        Ok(fetched) => fetched,
        Err(unreached) => match unreached.code_or(ErrorCode::None) {
            ErrorCode::None => wanted.iter().flatten().map(nothing_committed).collect(),
            code => {
                response.error_code = code.code();
                return response;
            }
        },
    };
    let view = context.shard.view();
    let everything = wanted.is_none();
    response.topics = fetched.into_iter().filter_map(|t| answer(&view, context.version, everything, t)).collect();
    response.topics.extend(failed_topics(&unknown, ErrorCode::UnknownTopicId.code()));
    response
}

/// A topic as the coordinator knows it: by name, and by today's id, so that offsets of an older topic of that name stay
/// hidden. An id that nobody knows goes to `unknown`.
fn wanted<'a>(
    view: &View,
    version: i16,
    topic: &OffsetFetchRequestTopics<'a>,
    unknown: &mut Vec<OffsetFetchRequestTopics<'a>>,
) -> Option<FetchTopic> {
    let partitions = topic.partition_indexes.clone();
    if version < FIRST_WITH_TOPIC_IDS {
        let topic_id = view.image.topic_id(topic.name).unwrap_or(TopicId::ZERO);
        return Some(FetchTopic { name: topic.name.to_owned(), topic_id, partitions });
    }
    match view.image.topic(TopicId(topic.topic_id)) {
        Some(found) => Some(FetchTopic { name: found.name.to_string(), topic_id: found.id, partitions }),
        None => {
            unknown.push(topic.clone());
            None
        }
    }
}

fn nothing_committed(topic: &FetchTopic) -> FetchedTopic {
    let partition = |&partition: &i32| FetchedOffset {
        partition,
        offset: model::Offset(-1),
        leader_epoch: model::LeaderEpoch::UNKNOWN,
        metadata: String::new(),
    };
    let partitions = topic.partitions.iter().map(partition).collect();
    FetchedTopic { name: topic.name.clone(), topic_id: topic.topic_id, partitions }
}

/// With "all topics" asked for, offsets of topics that are gone are left out: their deletion is on its way to the log.
fn answer(
    view: &View,
    version: i16,
    everything: bool,
    topic: FetchedTopic,
) -> Option<OffsetFetchResponseTopics<'static>> {
    let mut topic_id = topic.topic_id;
    if everything {
        let current = view.image.topic_id(&topic.name);
        let gone = !topic_id.is_zero() && current != Some(topic_id);
        if gone || (version >= FIRST_WITH_TOPIC_IDS && current.is_none()) {
            return None;
        }
        topic_id = current.unwrap_or(topic_id);
    }
    let partition = |p: FetchedOffset| OffsetFetchResponsePartitions {
        partition_index: p.partition,
        committed_offset: p.offset.0,
        committed_leader_epoch: p.leader_epoch.0,
        metadata: Some(Cow::Owned(p.metadata)),
        error_code: 0,
    };
    Some(OffsetFetchResponseTopics {
        name: Cow::Owned(topic.name),
        topic_id: topic_id.0,
        partitions: topic.partitions.into_iter().map(partition).collect(),
    })
}

fn failed_topics(topics: &[OffsetFetchRequestTopics<'_>], error_code: i16) -> Vec<OffsetFetchResponseTopics<'static>> {
    let partition = |&partition_index: &i32| OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: -1,
        error_code,
        ..Default::default()
    };
    let topic = |t: &OffsetFetchRequestTopics<'_>| OffsetFetchResponseTopics {
        name: Cow::Owned(t.name.to_owned()),
        topic_id: t.topic_id,
        partitions: t.partition_indexes.iter().map(partition).collect(),
    };
    topics.iter().map(topic).collect()
}
