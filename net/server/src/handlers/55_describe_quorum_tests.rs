use model::NodeId;
use wire::generated::describe_quorum::{RequestPartitionData, RequestTopicData};

use super::*;

fn request<'a>(topics: &[(&'a str, &[i32])]) -> DescribeQuorumRequest<'a> {
    let partition = |&partition_index: &i32| RequestPartitionData { partition_index };
    let topic = |&(topic_name, indexes): &(&'a str, &[i32])| RequestTopicData {
        topic_name,
        partitions: indexes.iter().map(partition).collect(),
    };
    DescribeQuorumRequest { topics: topics.iter().map(topic).collect() }
}

#[test]
fn one_partition_has_a_quorum() {
    assert!(is_metadata_partition(&request(&[(CLUSTER_METADATA_TOPIC, &[0])])));
    for other in [
        &[][..],
        &[("foo", &[0][..])],
        &[(CLUSTER_METADATA_TOPIC, &[1])],
        &[(CLUSTER_METADATA_TOPIC, &[0, 1])],
        &[(CLUSTER_METADATA_TOPIC, &[0]), ("foo", &[0])],
    ] {
        assert!(!is_metadata_partition(&request(other)), "{other:?}");
    }
}

fn status() -> QuorumStatus {
    QuorumStatus {
        leader: Some(NodeId(1)),
        leader_epoch: 3,
        is_leader: true,
        high_watermark: 467,
        applied: 466,
        is_current_leader: true,
        voters: vec![
            VoterStatus { node: NodeId(1), log_end_offset: Some(467) },
            VoterStatus { node: NodeId(2), log_end_offset: None },
        ],
    }
}

#[test]
fn the_leader_describes_its_voters() {
    let described = describe(&status(), 1_000);
    assert_eq!((described.leader_id, described.leader_epoch, described.high_watermark), (1, 3, 467));
    let voters: Vec<_> =
        described.current_voters.iter().map(|v| (v.replica_id, v.log_end_offset, v.last_fetch_timestamp)).collect();
    assert_eq!(voters, [(1, 467, 1_000), (2, -1, -1)]);
}

#[test]
fn a_follower_does_not_pretend() {
    let follower = QuorumStatus { is_leader: false, ..status() };
    assert_eq!(describe(&follower, 0).error_code, ErrorCode::NotLeaderOrFollower.code());
}
