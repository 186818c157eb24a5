#![allow(clippy::unwrap_used)]

use wire::generated::create_topics::{CreatableReplicaAssignment, CreatableTopicConfig};

use super::super::admin::test_support::{cluster, view, with_topic};
use super::*;

fn topic(name: &str, num_partitions: i32, replication_factor: i16) -> CreatableTopic<'_> {
    CreatableTopic { name, num_partitions, replication_factor, ..CreatableTopic::default() }
}

fn existing() -> View {
    view(with_topic(&cluster(2), "old.one", 1, &[]))
}

fn code(topic: &CreatableTopic<'_>) -> ErrorCode {
    judge(&existing(), topic).map_or_else(|refusal| refusal.code, |_| ErrorCode::None)
}

#[test]
fn counts_have_defaults_and_bounds() {
    let new = judge(&existing(), &topic("new", -1, -1)).unwrap();
    assert_eq!(new.assignments, vec![vec![NodeId(1)]]);
    let new = judge(&existing(), &topic("new", 2, 2)).unwrap();
    assert_eq!(new.assignments, vec![vec![NodeId(1), NodeId(2)], vec![NodeId(2), NodeId(1)]]);
    for (partitions, replicas, expected) in [
        (0, 1, ErrorCode::InvalidPartitions),
        (-2, 1, ErrorCode::InvalidPartitions),
        (1, 0, ErrorCode::InvalidReplicationFactor),
        (1, -2, ErrorCode::InvalidReplicationFactor),
        (1, 3, ErrorCode::InvalidReplicationFactor),
    ] {
        assert_eq!(code(&topic("new", partitions, replicas)), expected, "{partitions} {replicas}");
    }
}

#[test]
fn names_are_judged() {
    assert_eq!(code(&topic("", 1, 1)), ErrorCode::InvalidTopicException);
    assert_eq!(code(&topic("a b", 1, 1)), ErrorCode::InvalidTopicException);
    assert_eq!(code(&topic("old.one", 1, 1)), ErrorCode::TopicAlreadyExists);
    for internal in ["__consumer_offsets", "__cluster_metadata"] {
        assert_eq!(code(&topic(internal, 1, 1)), ErrorCode::InvalidRequest);
    }
    let collides = |accepted: &[&str], name| check_collisions(&existing(), accepted, name).map_err(|r| r.code);
    assert_eq!(collides(&[], "old_one"), Err(ErrorCode::InvalidTopicException));
    assert_eq!(collides(&["q.c"], "q_c"), Err(ErrorCode::InvalidTopicException));
    assert_eq!(collides(&["q.c"], "q-c"), Ok(()));
}

#[test]
fn configurations_are_judged() {
    let with = |pairs: &[(&'static str, Option<&'static str>)]| {
        let configs = pairs.iter().map(|&(name, value)| CreatableTopicConfig { name, value }).collect();
        CreatableTopic { configs, ..topic("new", 1, 1) }
    };
    for bad in [("nonsense", Some("1")), ("retention.ms", Some("abc")), ("retention.ms", None), ("", Some("x"))] {
        assert_eq!(code(&with(&[bad])), ErrorCode::InvalidConfig, "{bad:?}");
    }
    assert_eq!(code(&with(&[("remote.storage.enable", Some("true"))])), ErrorCode::InvalidConfig);
    assert_eq!(code(&with(&[("compression.type", Some("gzip"))])), ErrorCode::InvalidConfig);
    let twice = judge(&existing(), &with(&[("retention.ms", Some("1")), ("retention.ms", Some("2"))])).unwrap();
    assert_eq!(twice.configs, [("retention.ms".to_string(), "2".to_string())]);
}

#[test]
fn a_hand_made_assignment_stands_alone() {
    let assigned = |num_partitions, replication_factor| {
        let assignments = vec![CreatableReplicaAssignment { partition_index: 0, broker_ids: vec![2] }];
        CreatableTopic { assignments, ..topic("new", num_partitions, replication_factor) }
    };
    assert_eq!(judge(&existing(), &assigned(-1, -1)).unwrap().assignments, vec![vec![NodeId(2)]]);
    for (partitions, replicas) in [(1, -1), (-1, 1), (1, 1)] {
        assert_eq!(code(&assigned(partitions, replicas)), ErrorCode::InvalidRequest);
    }
}

#[test]
fn a_name_given_twice_is_answered_once() {
    let topics = [topic("a", 1, 1), topic("b", 1, 1), topic("a", 2, 1)];
    let named: Vec<_> = once(&topics).into_iter().map(|(topic, repeated)| (topic.name, repeated)).collect();
    assert_eq!(named, [("a", true), ("b", false)]);
}

#[test]
fn partitions_are_counted_over_the_request() {
    let topics = [topic("a", -1, 1), topic("b", 6_000, 1), topic("c", -9, 1), topic("d", i32::MAX, 1)];
    assert_eq!(total_partitions(&existing(), &topics[..3]), 6_001);
    assert!(total_partitions(&existing(), &topics) > MAX_NEW_PARTITIONS);
}
