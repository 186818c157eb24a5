#![allow(clippy::unwrap_used)]

use super::*;
use coordinator::{CommitPartition, CommitRequest, CommitTopic, Effect, Now, RecordBytes, Ticket};
use model::builder::BatchBuilder;
use model::{LeaderEpoch, PartitionIndex, TopicId};

const TOPIC: TopicId = TopicId([5; 16]);

/// The records that a coordinator writes for a commit of these offsets of topic `t`, partition by partition.
fn commit_records(offsets: &[i64]) -> Vec<RecordBytes> {
    let mut coordinator = GroupCoordinator::new(CoordinatorConfig::default());
    coordinator.finish_loading(Now::default());
    let partition = |(partition, offset): (usize, &i64)| CommitPartition {
        partition: partition as i32,
        offset: Offset(*offset),
        leader_epoch: LeaderEpoch(1),
        metadata: None,
    };
    let partitions = offsets.iter().enumerate().map(partition).collect();
    let request = CommitRequest {
        group_id: "g".into(),
        generation_id: -1,
        member_id: String::new(),
        group_instance_id: None,
        retention_time_ms: -1,
        topics: vec![CommitTopic { name: "t".into(), topic_id: TOPIC, partitions }],
    };
    coordinator.commit(Now::default(), Ticket(1), request);
    match coordinator.poll_effect() {
        Some(Effect::Append { records, .. }) => records,
        other => panic!("a commit appends, not {other:?}"),
    }
}

fn builder(base_offset: i64, records: &[RecordBytes]) -> BatchBuilder {
    let mut batch = BatchBuilder::new().base_offset(Offset(base_offset));
    for (key, value) in records {
        batch.push(1_000, Some(key), value.as_deref(), &[]);
    }
    batch
}

fn replay() -> Replay {
    let key = PartitionKey { topic_id: TopicId([9; 16]), partition: PartitionIndex(0) };
    Replay::new(key, CoordinatorConfig::default())
}

fn offsets(mut replay: Replay) -> Vec<i64> {
    replay.coordinator.finish_loading(Now::default());
    let topics = replay.coordinator.fetch_offsets("g", None).unwrap();
    topics.iter().flat_map(|t| t.partitions.iter().map(|p| p.offset.0)).collect()
}

#[test]
fn batches_behind_each_other_are_replayed_in_order() {
    let mut bytes = builder(0, &commit_records(&[1, 2])).finish();
    bytes.extend(builder(2, &commit_records(&[7])).finish());
    let mut replay = replay();
    replay.batches(&bytes, Offset(0)).unwrap();
    assert_eq!(offsets(replay), [7, 2]);
}

#[test]
fn compressed_batches_are_inflated() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let batch = builder(0, &commit_records(&[11, 12])).attributes(codec as i16);
        let mut payload = Vec::new();
        compression::deflate(codec, batch.payload(), &mut payload).unwrap();
        let mut replay = replay();
        replay.batches(&batch.finish_with_payload(&payload), Offset(0)).unwrap();
        assert_eq!(offsets(replay), [11, 12], "{codec:?}");
    }
}

#[test]
fn control_batches_are_skipped() {
    const CONTROL: i16 = 0x20;
    let mut bytes = builder(0, &commit_records(&[1])).attributes(CONTROL).finish();
    bytes.extend(builder(1, &commit_records(&[2])).finish());
    let mut replay = replay();
    replay.batches(&bytes, Offset(0)).unwrap();
    assert_eq!((replay.left_out, offsets(replay)), (0, vec![2]));
}

#[test]
fn records_below_the_log_start_do_not_count() {
    let bytes = builder(0, &commit_records(&[1, 2])).finish();
    let mut replay = replay();
    replay.batches(&bytes, Offset(1)).unwrap();
    assert_eq!(offsets(replay), [2]);
}

#[test]
fn a_record_that_nobody_can_read_is_left_out() {
    let mut records = commit_records(&[1, 2]);
    records[0].1 = Some(vec![0, 4, 1]);
    let mut replay = replay();
    replay.batches(&builder(0, &records).finish(), Offset(0)).unwrap();
    assert_eq!(replay.left_out, 1);
    assert_eq!(offsets(replay), [2]);
}

#[test]
fn a_damaged_batch_fails_the_load() {
    let mut bytes = builder(0, &commit_records(&[1])).finish();
    *bytes.last_mut().unwrap() ^= 1;
    let error = replay().batches(&bytes, Offset(0)).unwrap_err();
    assert!(matches!(error, LoadError::Batch { offset: Offset(0), error: BatchError::Crc { .. } }), "{error}");
}
