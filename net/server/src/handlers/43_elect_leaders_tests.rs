#![allow(clippy::unwrap_used)]

use model::LeaderEpoch;

use super::super::admin::test_support::{cluster, topic_id, view, with_topic};
use super::*;

fn state(leader: i32, isr: &[i32]) -> PartitionState {
    PartitionState {
        replicas: [NodeId(1), NodeId(2)].into(),
        isr: isr.iter().copied().map(NodeId).collect(),
        leader: NodeId(leader),
        leader_epoch: LeaderEpoch(3),
        partition_epoch: 7,
    }
}

#[test]
fn the_preferred_replica_leads_if_it_is_in_sync() {
    assert_eq!(preferred(&state(1, &[1, 2])), Err(ErrorCode::ElectionNotNeeded));
    assert_eq!(preferred(&state(2, &[1, 2])), Ok(NodeId(1)));
    assert_eq!(preferred(&state(2, &[2])), Err(ErrorCode::PreferredLeaderNotAvailable));
}

#[test]
fn anybody_leads_where_nobody_does() {
    assert_eq!(any(&state(2, &[2])), Err(ErrorCode::ElectionNotNeeded));
    assert_eq!(any(&state(-1, &[2])), Ok(NodeId(2)));
    assert_eq!(any(&state(-1, &[])), Ok(NodeId(1)));
}

fn codes(request: &ElectLeadersRequest<'_>) -> Vec<(String, Vec<(i32, ErrorCode)>)> {
    let view = view(with_topic(&cluster(1), "t", 2, &[]));
    let code =
        |(index, judged): (i32, Result<Command, Refusal>)| (index, judged.map_or_else(|r| r.code, |_| ErrorCode::None));
    judge_all(&view, request)
        .into_iter()
        .map(|(topic, judged)| (topic, judged.into_iter().map(code).collect()))
        .collect()
}

#[test]
fn each_partition_has_its_answer() {
    use wire::generated::elect_leaders::TopicPartitions;
    let named = |topic, partitions: &[i32]| TopicPartitions { topic, partitions: partitions.to_vec() };
    let mut request = ElectLeadersRequest {
        election_type: PREFERRED,
        topic_partitions: Some(vec![named("t", &[0, 9]), named("none", &[0])]),
        timeout_ms: 0,
    };
    let expected = vec![
        ("t".to_string(), vec![(0, ErrorCode::ElectionNotNeeded), (9, ErrorCode::UnknownTopicOrPartition)]),
        ("none".to_string(), vec![(0, ErrorCode::UnknownTopicOrPartition)]),
    ];
    assert_eq!(codes(&request), expected);
    request.election_type = 7;
    assert!(codes(&request).iter().flat_map(|(_, judged)| judged).all(|(_, code)| *code == ErrorCode::InvalidRequest));
    request.topic_partitions = None;
    request.election_type = UNCLEAN;
    let all = vec![("t".to_string(), vec![(0, ErrorCode::ElectionNotNeeded), (1, ErrorCode::ElectionNotNeeded)])];
    assert_eq!(codes(&request), all);
}

#[test]
fn an_election_names_the_epoch_it_saw() {
    let topic =
        Topic { id: topic_id("t"), name: "t".into(), partitions: vec![state(2, &[1, 2])], configs: Default::default() };
    let command = judge(Some(&topic), PREFERRED, "t", 0).unwrap();
    let expected = Command::ChangeLeader {
        id: topic_id("t"),
        partition: PartitionIndex(0),
        partition_epoch: 7,
        leader: NodeId(1),
        unclean: false,
    };
    assert_eq!(command, expected);
}
