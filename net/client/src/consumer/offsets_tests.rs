#![allow(clippy::unwrap_used)]

use wire::generated::list_offsets::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use wire::generated::offset_for_leader_epoch::{EpochEndOffset, OffsetForLeaderTopicResult};
use wire::{Encode, Writer};

use super::*;

fn tp(index: i32) -> TopicPartition {
    TopicPartition::new("t", index)
}

#[test]
fn questions_go_by_topic_and_encode_at_every_version() {
    let question = |index| Question { partition: tp(index), leader_epoch: 3, timestamp_ms: LATEST };
    let questions = [question(0), question(2)];
    let request = list_request(&questions, 1, 1000);
    assert_eq!((request.topics.len(), request.topics[0].partitions.len()), (1, 2));
    for version in LIST_VERSIONS {
        request.encode(&mut Writer::new(), version).unwrap();
    }
}

#[test]
fn an_offset_its_absence_and_an_error_are_told_apart() {
    let partition = |index, offset, error_code| ListOffsetsPartitionResponse {
        partition_index: index,
        offset,
        error_code,
        timestamp: 9,
        leader_epoch: 2,
    };
    let partitions = vec![partition(0, 5, 0), partition(1, -1, 0), partition(2, -1, 6)];
    let topic = ListOffsetsTopicResponse { name: "t".into(), partitions };
    let listed = list_outcome(&ListOffsetsResponse { topics: vec![topic], ..Default::default() });
    let found = OffsetAndTimestamp { offset: 5, timestamp_ms: 9, leader_epoch: 2 };
    assert_eq!(listed[&tp(0)], Ok(Some(found)));
    assert_eq!(listed[&tp(1)], Ok(None));
    let text = listed[&tp(2)].as_ref().unwrap_err().to_string();
    assert!(text.contains("partition 2 of t"), "{text}");
}

#[test]
fn epochs_are_asked_as_a_consumer_and_read_back() {
    let lookup = Lookup {
        partition: tp(1),
        generation: 1,
        leader: 4,
        leader_epoch: 7,
        kind: LookupKind::Validation { offset_epoch: 6 },
    };
    let lookups = [lookup];
    let request = epoch_request(&lookups);
    let asked = &request.topics[0].partitions[0];
    assert_eq!((request.replica_id, asked.current_leader_epoch, asked.leader_epoch), (-1, 7, 6));
    for version in EPOCH_VERSIONS {
        request.encode(&mut Writer::new(), version).unwrap();
    }
    let end = EpochEndOffset { partition: 1, leader_epoch: 5, end_offset: 40, error_code: 0 };
    let topic = OffsetForLeaderTopicResult { topic: "t".into(), partitions: vec![end] };
    let answer = OffsetForLeaderEpochResponse { topics: vec![topic], ..Default::default() };
    assert_eq!(epoch_outcome(&answer)[&tp(1)], Ok((5, 40)));
}
