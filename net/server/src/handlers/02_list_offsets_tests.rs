use wire::generated::list_offsets::ListOffsetsTopic;

use super::*;

#[test]
fn sentinels_mean_something_from_their_version_on() {
    let first = |timestamp| (1..=11).find(|version| query(*version, timestamp).is_some());
    let known = [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (0, 1), (5, 1), (i64::MAX, 1)];
    for (timestamp, since) in known {
        assert_eq!(first(timestamp), Some(since), "{timestamp}");
        assert!((since..=11).all(|version| query(version, timestamp).is_some()));
    }
    for unknown in [-7, -100, i64::MIN] {
        assert_eq!(first(unknown), None);
    }
    assert_eq!(query(1, 5), Some(OffsetQuery::At(5)));
}

#[test]
fn partitions_that_repeat_are_found_over_all_entries() {
    let partition = |partition_index| ListOffsetsPartition { partition_index, ..ListOffsetsPartition::default() };
    let topic =
        |name, indexes: &[i32]| ListOffsetsTopic { name, partitions: indexes.iter().copied().map(partition).collect() };
    let topics = vec![topic("a", &[0, 1]), topic("b", &[0]), topic("a", &[1, 2, 2])];
    let request = ListOffsetsRequest { topics, ..ListOffsetsRequest::default() };
    assert_eq!(repeated(&request).into_iter().collect::<Vec<_>>(), [("a", 1), ("a", 2)]);
}

#[test]
fn old_versions_get_no_leader_epoch() {
    let listed = Listed { timestamp_ms: 5, offset: model::Offset(7), leader_epoch: model::LeaderEpoch(3) };
    for (version, epoch) in [(3, -1), (4, 3)] {
        let mut partition = refusal(2, ErrorCode::None);
        fill(&mut partition, Ok(listed), version);
        let expected = ListOffsetsPartitionResponse {
            partition_index: 2,
            error_code: 0,
            timestamp: 5,
            offset: 7,
            leader_epoch: epoch,
        };
        assert_eq!(partition, expected);
    }
}
