//! ListOffsets (key 2): offsets by time and by sentinel (KIP-79, KIP-734, KIP-405, KIP-1005). One message for each shard
//! that owns partitions of the request.

use std::collections::BTreeSet;
use std::rc::Rc;

use model::ErrorCode;
use replica::{Listed, OffsetQuery, Replica};
use wire::TopicRef;
use wire::generated::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
    ListOffsetsTopicResponse,
};

use super::Context;
use super::admin::ask::ask_owners;
use crate::view::View;

/// First version whose answers carry the leader epoch.
const FIRST_WITH_LEADER_EPOCH: i16 = 4;
/// Isolation levels are 0 and 1.
const MAX_ISOLATION_LEVEL: i8 = 1;

pub async fn handle<'a>(context: &Context<'_>, request: ListOffsetsRequest<'a>) -> ListOffsetsResponse<'a> {
    let repeated = repeated(&request);
    let view = context.shard.view();
    let mut questions = Vec::new();
    // Places in the answer, by question.
    let mut places = Vec::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    let mut answered = BTreeSet::new();
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let twice = repeated.contains(&(topic.name, asked.partition_index));
            if twice && !answered.insert((topic.name, asked.partition_index)) {
                continue;
            }
            let mut partition = refusal(asked.partition_index, ErrorCode::None);
            match judge(&view, context.version, &request, topic.name, asked, twice) {
                Ok(question) => {
                    places.push((topics.len(), partitions.len()));
                    questions.push(question);
                }
                Err(code) => partition = refusal(asked.partition_index, code),
            }
            partitions.push(partition);
        }
        topics.push(ListOffsetsTopicResponse { name: topic.name.into(), partitions });
    }
    drop(view);
    let results = ask_owners(context.shard, questions, list).await;
    for ((topic, partition), result) in places.into_iter().zip(results) {
        fill(&mut topics[topic].partitions[partition], result, context.version);
    }
    ListOffsetsResponse { throttle_time_ms: 0, topics }
}

/// What the owner is asked.
#[derive(Clone, Copy, Debug)]
struct Question {
    query: OffsetQuery,
    current_leader_epoch: i32,
}

async fn list(replica: Rc<Replica>, question: Question) -> Result<Listed, ErrorCode> {
    replica.check_epoch(question.current_leader_epoch).map_err(|error| error.code())?;
    replica.list_offset(question.query).await.map_err(|error| error.code())
}

fn repeated<'a>(request: &ListOffsetsRequest<'a>) -> BTreeSet<(&'a str, i32)> {
    let mut seen = BTreeSet::new();
    let all = request.topics.iter().flat_map(|t| t.partitions.iter().map(|p| (t.name, p.partition_index)));
    all.filter(|partition| !seen.insert(*partition)).collect()
}

fn judge(
    view: &View,
    version: i16,
    request: &ListOffsetsRequest<'_>,
    topic: &str,
    asked: &ListOffsetsPartition,
    twice: bool,
) -> Result<(model::PartitionKey, Question), ErrorCode> {
    if !(0..=MAX_ISOLATION_LEVEL).contains(&request.isolation_level) {
        return Err(ErrorCode::UnknownServerError);
    }
    if twice {
        return Err(ErrorCode::InvalidRequest);
    }
    let query = query(version, asked.timestamp).ok_or(ErrorCode::UnsupportedVersion)?;
    let located =
        view.locate(TopicRef::Name(topic), asked.partition_index).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    Ok((located.key, Question { query, current_leader_epoch: asked.current_leader_epoch }))
}

/// What a timestamp means in a version; `None` where it means nothing yet.
fn query(version: i16, timestamp: i64) -> Option<OffsetQuery> {
    let (since, query) = match timestamp {
        -1 => (1, OffsetQuery::Latest),
        -2 => (1, OffsetQuery::Earliest),
        -3 => (7, OffsetQuery::MaxTimestamp),
        -4 => (8, OffsetQuery::EarliestLocal),
        -5 => (9, OffsetQuery::Tiered),
        -6 => (11, OffsetQuery::Tiered),
        i64::MIN..=-7 => return None,
        time_ms => (1, OffsetQuery::At(time_ms)),
    };
    (version >= since).then_some(query)
}

fn refusal(partition_index: i32, code: ErrorCode) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse { partition_index, error_code: code.code(), ..ListOffsetsPartitionResponse::default() }
}

fn fill(partition: &mut ListOffsetsPartitionResponse, result: Result<Listed, ErrorCode>, version: i16) {
    match result {
        Ok(listed) => {
            partition.timestamp = listed.timestamp_ms;
            partition.offset = listed.offset.0;
            if version >= FIRST_WITH_LEADER_EPOCH {
                partition.leader_epoch = listed.leader_epoch.0;
            }
        }
        Err(code) => partition.error_code = code.code(),
    }
}

#[cfg(test)]
#[path = "02_list_offsets_tests.rs"]
mod tests;
