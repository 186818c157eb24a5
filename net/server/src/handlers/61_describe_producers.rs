//! DescribeProducers (key 61, KIP-664): the producers that partitions remember.

use std::rc::Rc;

use model::ErrorCode;
use replica::Replica;
use wire::TopicRef;
use wire::generated::describe_producers::{
    DescribeProducersRequest, DescribeProducersResponse, PartitionResponse, ProducerState, TopicResponse,
};

use super::Context;
use super::admin::ask::ask_owners;
use super::admin::{Refusal, names};

pub async fn handle<'a>(context: &Context<'_>, request: DescribeProducersRequest<'a>) -> DescribeProducersResponse<'a> {
    let view = context.shard.view();
    let mut questions = Vec::new();
    let mut places = Vec::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let whole = names::check(topic.name).and_then(|()| match view.image.topic_by_name(topic.name) {
            Some(_) => Ok(()),
            None => Err(Refusal::from(ErrorCode::UnknownTopicOrPartition)),
        });
        let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
        for &partition_index in &topic.partition_indexes {
            let mut partition = PartitionResponse { partition_index, error_message: None, ..Default::default() };
            match (&whole, view.locate(TopicRef::Name(topic.name), partition_index)) {
                (Err(refusal), _) => {
                    partition.error_code = refusal.code.code();
                    partition.error_message = Some(refusal.message.clone().into());
                }
                (Ok(()), None) => partition.error_code = ErrorCode::UnknownTopicOrPartition.code(),
                (Ok(()), Some(located)) => {
                    places.push((topics.len(), partitions.len()));
                    questions.push((located.key, ()));
                }
            }
            partitions.push(partition);
        }
        topics.push(TopicResponse { name: topic.name.into(), partitions });
    }
    drop(view);
    let results = ask_owners(context.shard, questions, |replica, ()| describe(replica)).await;
    for ((topic, partition), result) in places.into_iter().zip(results) {
        let partition = &mut topics[topic].partitions[partition];
        match result {
            Ok(producers) => partition.active_producers = producers,
            Err(code) => partition.error_code = code.code(),
        }
    }
    DescribeProducersResponse { throttle_time_ms: 0, topics }
}

async fn describe(replica: Rc<Replica>) -> Result<Vec<ProducerState>, ErrorCode> {
    Ok(replica.with_producers(|table| {
        let mut active = Vec::with_capacity(table.len());
        table.for_each(|id, entry| {
            let last = entry.batches.last();
            active.push(ProducerState {
                producer_id: id.0,
                producer_epoch: i32::from(entry.epoch.0),
                last_sequence: last.map_or(-1, |batch| batch.last_sequence),
                last_timestamp: last.map_or(-1, |batch| batch.timestamp_ms),
                // Without transactions there is no coordinator and nothing is open.
                coordinator_epoch: -1,
                current_txn_start_offset: -1,
            });
        });
        active
    }))
}
