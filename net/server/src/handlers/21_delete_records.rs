//! DeleteRecords (key 21, KIP-107): moves the log start of partitions, durably.

use std::collections::BTreeMap;
use std::rc::Rc;

use model::{ErrorCode, Offset, PartitionKey};
use replica::Replica;
use wire::TopicRef;
use wire::generated::delete_records::{
    DeleteRecordsPartitionResult, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopicResult,
};

use super::Context;
use super::admin::ask::ask_owners;
use crate::view::is_internal;

pub async fn handle<'a>(context: &Context<'_>, request: DeleteRecordsRequest<'a>) -> DeleteRecordsResponse<'a> {
    let view = context.shard.view();
    let mut questions = Vec::new();
    let mut places = Vec::new();
    // Questions by partition: of a partition that is named again the last offset counts, and it is answered once.
    let mut asked_before = BTreeMap::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let mut result = refusal(asked.partition_index, ErrorCode::None);
            match view.locate(TopicRef::Name(topic.name), asked.partition_index) {
                None => result = refusal(asked.partition_index, ErrorCode::UnknownTopicOrPartition),
                Some(_) if is_internal(topic.name) => {
                    result = refusal(asked.partition_index, ErrorCode::InvalidTopicException);
                }
                Some(located) => {
                    if let Some(&earlier) = asked_before.get(&located.key) {
                        let (_, offset): &mut (PartitionKey, i64) = &mut questions[earlier];
                        *offset = asked.offset;
                        continue;
                    }
                    asked_before.insert(located.key, questions.len());
                    places.push((topics.len(), partitions.len()));
                    questions.push((located.key, asked.offset));
                }
            }
            partitions.push(result);
        }
        topics.push(DeleteRecordsTopicResult { name: topic.name.into(), partitions });
    }
    drop(view);
    let results = ask_owners(context.shard, questions, delete).await;
    for ((topic, partition), result) in places.into_iter().zip(results) {
        let partition = &mut topics[topic].partitions[partition];
        match result {
            Ok(low_watermark) => partition.low_watermark = low_watermark.0,
            Err(code) => partition.error_code = code.code(),
        }
    }
    DeleteRecordsResponse { throttle_time_ms: 0, topics }
}

async fn delete(replica: Rc<Replica>, before: i64) -> Result<Offset, ErrorCode> {
    let policy = replica.config().cleanup_policy;
    // Consumers of a compacted topic rely on the last record of each key.
    if policy.compact && !policy.delete {
        return Err(ErrorCode::PolicyViolation);
    }
    replica.delete_records(before).await.map_err(|error| error.code())
}

fn refusal(partition_index: i32, code: ErrorCode) -> DeleteRecordsPartitionResult {
    DeleteRecordsPartitionResult { partition_index, low_watermark: -1, error_code: code.code() }
}
