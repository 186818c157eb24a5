//! ElectLeaders (key 43, KIP-183, KIP-460): makes the preferred replica lead, or any replica where nobody leads.

use metadata::{Command, PartitionState, Topic};
use model::{ErrorCode, NodeId, PartitionIndex};
use wire::generated::elect_leaders::{
    ElectLeadersRequest, ElectLeadersResponse, PartitionResult, ReplicaElectionResult,
};

use super::Context;
use super::admin::{Refusal, in_chunks};
use crate::view::View;

const PREFERRED: i8 = 0;
const UNCLEAN: i8 = 1;
/// First version with a code for the whole request.
const FIRST_WITH_ERROR_CODE: i16 = 1;

pub async fn handle<'a>(context: &Context<'_>, request: ElectLeadersRequest<'a>) -> ElectLeadersResponse<'a> {
    let view = context.shard.view();
    let judged = judge_all(&view, &request);
    drop(view);
    let known = matches!(request.election_type, PREFERRED | UNCLEAN);
    let all = request.topic_partitions.is_none();
    let mut results = Vec::with_capacity(judged.len());
    for (topic, partitions) in judged {
        let elected = in_chunks(partitions, |(partition, judged)| elect(context, partition, judged)).await;
        let wanted = |result: &PartitionResult<'_>| !all || result.error_code != ErrorCode::ElectionNotNeeded.code();
        let partition_result = elected.into_iter().filter(wanted).collect();
        results.push(ReplicaElectionResult { topic: topic.into(), partition_result });
    }
    let code =
        if known || context.version < FIRST_WITH_ERROR_CODE { ErrorCode::None } else { ErrorCode::InvalidRequest };
    ElectLeadersResponse { throttle_time_ms: 0, error_code: code.code(), replica_election_results: results }
}

/// A topic's partitions with the election each of them needs.
type Judged = Vec<(i32, Result<Command, Refusal>)>;

fn judge_all(view: &View, request: &ElectLeadersRequest<'_>) -> Vec<(String, Judged)> {
    let kind = request.election_type;
    match &request.topic_partitions {
        None => {
            let topic = |topic: &std::sync::Arc<Topic>| {
                let count = topic.partitions.len() as i32;
                (topic.name.to_string(), (0..count).map(|i| (i, judge(Some(topic), kind, &topic.name, i))).collect())
            };
            view.image.topics_by_name().map(topic).collect()
        }
        Some(named) => named
            .iter()
            .map(|named| {
                let topic = view.image.topic_by_name(named.topic).map(AsRef::as_ref);
                let one = |&index: &i32| (index, judge(topic, kind, named.topic, index));
                (named.topic.to_string(), named.partitions.iter().map(one).collect())
            })
            .collect(),
    }
}

fn judge(topic: Option<&Topic>, kind: i8, name: &str, index: i32) -> Result<Command, Refusal> {
    if !matches!(kind, PREFERRED | UNCLEAN) {
        return Err(Refusal::invalid_request(format!("Unknown election type {kind}")));
    }
    let unknown = |message| Refusal::new(ErrorCode::UnknownTopicOrPartition, message);
    let topic = topic.ok_or_else(|| unknown(format!("No such topic as {name}")))?;
    let state = topic
        .partition(PartitionIndex(index))
        .ok_or_else(|| unknown(format!("No such partition as {name}-{index}")))?;
    let leader = if kind == PREFERRED { preferred(state) } else { any(state) }?;
    Ok(Command::ChangeLeader {
        id: topic.id,
        partition: PartitionIndex(index),
        partition_epoch: state.partition_epoch,
        leader,
        unclean: kind == UNCLEAN,
    })
}

fn preferred(state: &PartitionState) -> Result<NodeId, ErrorCode> {
    let preferred = state.replicas.first().copied().unwrap_or(NodeId::NONE);
    if state.leader == preferred {
        return Err(ErrorCode::ElectionNotNeeded);
    }
    if state.isr.contains(&preferred) { Ok(preferred) } else { Err(ErrorCode::PreferredLeaderNotAvailable) }
}

/// Someone in sync if there is anyone, else whoever comes first.
fn any(state: &PartitionState) -> Result<NodeId, ErrorCode> {
    if state.leader != NodeId::NONE {
        return Err(ErrorCode::ElectionNotNeeded);
    }
    let in_sync = state.replicas.iter().find(|replica| state.isr.contains(replica));
    in_sync.or(state.replicas.first()).copied().ok_or(ErrorCode::EligibleLeadersNotAvailable)
}

async fn elect<'a>(context: &Context<'_>, partition_id: i32, judged: Result<Command, Refusal>) -> PartitionResult<'a> {
    let elected = match judged {
        Ok(command) => match context.shard.change(command).await {
            Ok(_) => Ok(()),
            Err(error) => Err(Refusal::new(error.code(), error.message())),
        },
        Err(refusal) => Err(refusal),
    };
    let (code, message) = match elected {
        Ok(()) => (ErrorCode::None, None),
        Err(refusal) => (refusal.code, Some(refusal.message.into())),
    };
    PartitionResult { partition_id, error_code: code.code(), error_message: message }
}

#[cfg(test)]
#[path = "43_elect_leaders_tests.rs"]
mod tests;
