//! DescribeQuorum (key 55, KIP-595, KIP-836): the metadata quorum as its leader sees it.

use metadata::{Image, QuorumStatus, VoterStatus};
use model::ErrorCode;
use runtime::clock;
use wire::generated::describe_quorum::{
    DescribeQuorumRequest, DescribeQuorumResponse, Listener, Node, ReplicaState, ResponsePartitionData,
    ResponseTopicData,
};

use super::Context;
use super::admin::names::CLUSTER_METADATA_TOPIC;

/// First version that says where voters listen.
const FIRST_WITH_NODES: i16 = 2;

pub async fn handle<'a>(context: &Context<'_>, request: DescribeQuorumRequest<'a>) -> DescribeQuorumResponse<'a> {
    let Some(status) = context.shard.quorum_status().await else {
        let code = ErrorCode::BrokerNotAvailable;
        let error_message = Some(code.sentence().into());
        return DescribeQuorumResponse { error_code: code.code(), error_message, ..Default::default() };
    };
    let known = is_metadata_partition(&request);
    let topics = request.topics.iter().map(|topic| ResponseTopicData {
        topic_name: topic.topic_name.into(),
        partitions: topic
            .partitions
            .iter()
            .map(|partition| match known {
                true => describe(&status, clock::wall_ms()),
                false => refusal(partition.partition_index, ErrorCode::UnknownTopicOrPartition),
            })
            .collect(),
    });
    let mut response = DescribeQuorumResponse { topics: topics.collect(), ..DescribeQuorumResponse::default() };
    if context.version >= FIRST_WITH_NODES && known {
        response.nodes = nodes(&context.shard.view().image, &status);
    }
    response
}

/// The one partition that has a quorum, and nothing beside it.
fn is_metadata_partition(request: &DescribeQuorumRequest<'_>) -> bool {
    match request.topics.as_slice() {
        [topic] => {
            let index = topic.partitions.as_slice();
            topic.topic_name == CLUSTER_METADATA_TOPIC && matches!(index, [only] if only.partition_index == 0)
        }
        _ => false,
    }
}

fn refusal<'a>(partition_index: i32, code: ErrorCode) -> ResponsePartitionData<'a> {
    ResponsePartitionData {
        partition_index,
        error_code: code.code(),
        error_message: Some(code.sentence().into()),
        ..ResponsePartitionData::default()
    }
}

fn describe<'a>(status: &QuorumStatus, wall_ms: i64) -> ResponsePartitionData<'a> {
    if !status.is_leader {
        return refusal(0, ErrorCode::NotLeaderOrFollower);
    }
    let offset = |offset: u64| i64::try_from(offset).unwrap_or(i64::MAX);
    let voter = |voter: &VoterStatus| {
        // The leader has what it has; when others last fetched is not known.
        let seen_ms = if Some(voter.node) == status.leader { wall_ms } else { -1 };
        ReplicaState {
            replica_id: voter.node.0,
            log_end_offset: voter.log_end_offset.map_or(-1, offset),
            last_fetch_timestamp: seen_ms,
            last_caught_up_timestamp: seen_ms,
            ..ReplicaState::default()
        }
    };
    ResponsePartitionData {
        leader_id: status.leader.map_or(-1, |leader| leader.0),
        leader_epoch: i32::try_from(status.leader_epoch).unwrap_or(i32::MAX),
        high_watermark: offset(status.high_watermark),
        current_voters: status.voters.iter().map(voter).collect(),
        ..ResponsePartitionData::default()
    }
}

fn nodes(image: &Image, status: &QuorumStatus) -> Vec<Node<'static>> {
    let node = |voter: &VoterStatus| {
        let listener = |broker: &std::sync::Arc<metadata::BrokerRegistration>| Listener {
            name: "PLAINTEXT".into(),
            host: broker.host.to_string().into(),
            port: broker.port,
        };
        Node { node_id: voter.node.0, listeners: image.broker(voter.node).map(listener).into_iter().collect() }
    };
    status.voters.iter().map(node).collect()
}

#[cfg(test)]
#[path = "55_describe_quorum_tests.rs"]
mod tests;
