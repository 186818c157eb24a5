use model::NodeId;
use wire::generated::create_partitions::CreatePartitionsAssignment;

use super::super::admin::test_support::{cluster, topic_id, view, with_topic};
use super::*;

fn asked(name: &str, count: i32, brokers: Option<&[i32]>) -> Result<Command, Refusal> {
    let view = view(with_topic(&with_topic(&cluster(2), "t", 3, &[]), "__consumer_offsets", 2, &[]));
    let assignment = |id: &i32| CreatePartitionsAssignment { broker_ids: vec![*id] };
    let assignments = brokers.map(|ids| ids.iter().map(assignment).collect());
    judge(&view, &CreatePartitionsTopic { name, count, assignments })
}

fn code(name: &str, count: i32, brokers: Option<&[i32]>) -> ErrorCode {
    asked(name, count, brokers).map_or_else(|refusal| refusal.code, |_| ErrorCode::None)
}

#[test]
fn new_partitions_follow_the_old_ones() {
    let added = |assignments| Command::AddPartitions { id: topic_id("t"), first: PartitionIndex(3), assignments };
    assert_eq!(asked("t", 5, None), Ok(added(vec![vec![NodeId(2)], vec![NodeId(1)]])));
    assert_eq!(asked("t", 4, Some(&[2])), Ok(added(vec![vec![NodeId(2)]])));
}

#[test]
fn the_number_only_grows() {
    for (count, message) in [
        (3, "Topic already has 3 partition(s)."),
        (2, "The topic t currently has 3 partition(s); 2 would not be an increase."),
        (-1, "The topic t currently has 3 partition(s); -1 would not be an increase."),
    ] {
        assert_eq!(asked("t", count, None), Err(Refusal::new(ErrorCode::InvalidPartitions, message)));
    }
    assert_eq!(code("t", 20_000, None), ErrorCode::PolicyViolation);
    assert_eq!(code("none", 5, None), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(code("__consumer_offsets", 5, None), ErrorCode::InvalidRequest);
}

#[test]
fn assignments_fit_the_growth() {
    for brokers in [&[1][..], &[1, 2, 1], &[], &[1, 9]] {
        assert_eq!(code("t", 5, Some(brokers)), ErrorCode::InvalidReplicaAssignment, "{brokers:?}");
    }
}
