//! DescribeTopicPartitions (key 75, KIP-966): topics with their partitions, in pages.

use std::collections::BTreeSet;
use std::sync::Arc;

use metadata::{PartitionState, Topic};
use model::{ErrorCode, TopicId};
use wire::generated::describe_topic_partitions::{
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic, ResponseCursor,
};

use super::Context;
use super::admin::{TOPIC_OPERATIONS, names};
use crate::view::{View, is_internal};

pub async fn handle<'a>(
    context: &Context<'_>,
    request: DescribeTopicPartitionsRequest<'a>,
) -> DescribeTopicPartitionsResponse<'a> {
    let view = context.shard.view();
    let limit = usize::try_from(request.response_partition_limit).unwrap_or(0);
    let limit = limit.min(view.config.topics.describe_max_partitions).max(1);
    if check_cursor(&request).is_err() {
        let topics = request.topics.iter().map(|topic| missing(topic.name, ErrorCode::InvalidRequest));
        return DescribeTopicPartitionsResponse { throttle_time_ms: 0, topics: topics.collect(), next_cursor: None };
    }
    let mut page =
        Page { first: request.cursor.as_ref().map(|c| (c.topic_name, c.partition_index)), ..Page::new(limit) };
    let from = page.first.map_or("", |(topic, _)| topic);
    if request.topics.is_empty() {
        view.image.topics_from(from).all(|topic| page.put(&topic.name, Some(topic)));
    } else {
        let named: BTreeSet<&str> =
            request.topics.iter().map(|topic| topic.name).filter(|name| *name >= from).collect();
        named.into_iter().all(|name| page.put(name, find(&view, name)));
    }
    DescribeTopicPartitionsResponse { throttle_time_ms: 0, topics: page.topics, next_cursor: page.next }
}

fn find<'v>(view: &'v View, name: &str) -> Option<&'v Arc<Topic>> {
    view.image.topic_by_name(name)
}

/// A cursor continues a list: its topic is among those named, if any are.
fn check_cursor(request: &DescribeTopicPartitionsRequest<'_>) -> Result<(), ErrorCode> {
    let Some(cursor) = &request.cursor else { return Ok(()) };
    let named = request.topics.is_empty() || request.topics.iter().any(|topic| topic.name == cursor.topic_name);
    if named && cursor.partition_index >= 0 { Ok(()) } else { Err(ErrorCode::InvalidRequest) }
}

/// An answer while it is filled, topic by topic in the order of their names.
struct Page<'a> {
    /// Where the page begins.
    first: Option<(&'a str, i32)>,
    /// Partitions that still fit.
    left: usize,
    topics: Vec<DescribeTopicPartitionsResponseTopic<'a>>,
    /// Where the next page begins.
    next: Option<ResponseCursor<'a>>,
}

impl<'a> Page<'a> {
    fn new(limit: usize) -> Page<'a> {
        Page { first: None, left: limit, topics: Vec::new(), next: None }
    }

    /// Puts what fits of a topic; `false` when the page is full.
    fn put(&mut self, name: &str, topic: Option<&Arc<Topic>>) -> bool {
        if self.left == 0 {
            self.next = Some(ResponseCursor { topic_name: name.to_string().into(), partition_index: 0 });
            return false;
        }
        let Some(topic) = topic else {
            let code = match names::check(name) {
                Ok(()) => ErrorCode::UnknownTopicOrPartition,
                Err(refusal) => refusal.code,
            };
            let operations = TOPIC_OPERATIONS;
            self.topics.push(DescribeTopicPartitionsResponseTopic {
                topic_authorized_operations: operations,
                ..missing(name, code)
            });
            return true;
        };
        let begin = match self.first {
            Some((first, index)) if first == name => usize::try_from(index).unwrap_or(0),
            _ => 0,
        };
        let begin = begin.min(topic.partitions.len());
        let end = topic.partitions.len().min(begin.saturating_add(self.left));
        self.left -= end - begin;
        self.topics.push(describe(topic, begin, end));
        if end == topic.partitions.len() {
            return true;
        }
        self.next = Some(ResponseCursor { topic_name: name.to_string().into(), partition_index: end as i32 });
        false
    }
}

fn missing<'a>(name: &str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic<'a> {
    DescribeTopicPartitionsResponseTopic {
        error_code: code.code(),
        name: Some(name.to_string().into()),
        topic_id: TopicId::ZERO.0,
        is_internal: is_internal(name),
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}

fn describe<'a>(topic: &Topic, begin: usize, end: usize) -> DescribeTopicPartitionsResponseTopic<'a> {
    let partition = |(index, state): (usize, &PartitionState)| DescribeTopicPartitionsResponsePartition {
        error_code: if state.leader.0 < 0 { ErrorCode::LeaderNotAvailable.code() } else { 0 },
        partition_index: (begin + index) as i32,
        leader_id: state.leader.0,
        leader_epoch: state.leader_epoch.0,
        replica_nodes: state.replicas.iter().map(|node| node.0).collect(),
        isr_nodes: state.isr.iter().map(|node| node.0).collect(),
        eligible_leader_replicas: Some(Vec::new()),
        last_known_elr: Some(Vec::new()),
        offline_replicas: Vec::new(),
    };
    DescribeTopicPartitionsResponseTopic {
        error_code: 0,
        name: Some(topic.name.to_string().into()),
        topic_id: topic.id.0,
        is_internal: is_internal(&topic.name),
        partitions: topic.partitions[begin..end].iter().enumerate().map(partition).collect(),
        topic_authorized_operations: TOPIC_OPERATIONS,
    }
}

#[cfg(test)]
#[path = "75_describe_topic_partitions_tests.rs"]
mod tests;
