//! OffsetForLeaderEpoch (key 23): where a leader epoch ends, for consumers and followers that check whether they
//! diverged (KIP-101, KIP-320).

use std::rc::Rc;

use model::{ErrorCode, LeaderEpoch, Offset};
use replica::Replica;
use wire::TopicRef;
use wire::generated::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
};

use super::Context;
use super::admin::ask::ask_owners;

pub async fn handle<'a>(
    context: &Context<'_>,
    request: OffsetForLeaderEpochRequest<'a>,
) -> OffsetForLeaderEpochResponse<'a> {
    let view = context.shard.view();
    let mut questions = Vec::new();
    let mut places = Vec::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let mut partition = EpochEndOffset { partition: asked.partition, ..EpochEndOffset::default() };
            match view.locate(TopicRef::Name(topic.topic), asked.partition) {
                Some(located) => {
                    places.push((topics.len(), partitions.len()));
                    questions.push((located.key, asked.clone()));
                }
                None => partition.error_code = ErrorCode::UnknownTopicOrPartition.code(),
            }
            partitions.push(partition);
        }
        topics.push(OffsetForLeaderTopicResult { topic: topic.topic.into(), partitions });
    }
    drop(view);
    let results = ask_owners(context.shard, questions, epoch_end).await;
    for ((topic, partition), result) in places.into_iter().zip(results) {
        let partition = &mut topics[topic].partitions[partition];
        match result {
            Ok((epoch, end)) => (partition.leader_epoch, partition.end_offset) = (epoch.0, end.0),
            Err(code) => partition.error_code = code.code(),
        }
    }
    OffsetForLeaderEpochResponse { throttle_time_ms: 0, topics }
}

async fn epoch_end(replica: Rc<Replica>, asked: OffsetForLeaderPartition) -> Result<(LeaderEpoch, Offset), ErrorCode> {
    replica.check_epoch(asked.current_leader_epoch).map_err(|error| error.code())?;
    let ours = replica.leader_epoch().0;
    // An epoch that nobody led in yet, and "unknown", end nowhere.
    if !(0..=ours).contains(&asked.leader_epoch) {
        return Ok((LeaderEpoch::UNKNOWN, Offset(-1)));
    }
    Ok(replica.epoch_end(LeaderEpoch(asked.leader_epoch)))
}
