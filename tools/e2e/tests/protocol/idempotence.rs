//! Idempotent producers: duplicates, gaps, epochs, the wrap of the sequence.

use std::ops::Range;

use ringlog_e2e::Broker;
use ringlog_e2e::batch::Batch;
use ringlog_e2e::broker::Kind;
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{Produce, delete_records, fetch, init_producer_id, produce, refused, until};

use crate::with_topic;

const OUT_OF_ORDER_SEQUENCE: i16 = 45;
const INVALID_PRODUCER_EPOCH: i16 = 47;
const INVALID_RECORD: i16 = 87;

/// A fresh producer id.
fn producer_id(raw: &mut Raw) -> i64 {
    let (code, id, epoch) = init_producer_id(raw, None);
    assert_eq!((code, epoch), (0, 0));
    id
}

#[test]
fn producer_ids_are_never_given_twice() {
    let (mut broker, mut raw) = with_topic(&[]);
    let mut ids: Vec<i64> = (0..5).map(|_| producer_id(&mut raw)).collect();
    ids.extend((0..5).map(|_| producer_id(&mut Raw::connect(&broker))));
    broker.kill();
    broker.start_again();
    let mut raw = Raw::connect(&broker);
    until("producer ids are given again", || (init_producer_id(&mut raw, None).0 == 0).then_some(()));
    ids.push(producer_id(&mut raw));
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
}

/// The batches of the next two tests: seven of two records each.
fn numbered(id: i64, at: i32) -> Batch {
    Batch::idempotent(id, 0, at * 2, 2)
}

fn produce_seven(raw: &mut Raw) -> i64 {
    let id = producer_id(raw);
    for at in 0..7 {
        assert_eq!(produce(raw, "t", &numbered(id, at)), i64::from(at) * 2);
    }
    id
}

/// Each of these batches, sent again, is answered with its first offset; older ones are out of order.
#[track_caller]
fn assert_remembered(raw: &mut Raw, id: i64, remembered: Range<i32>, when: &str) {
    until("the partition is led", || (fetch(raw, "t", 14).error_code == 0).then_some(()));
    for at in remembered {
        let answer = Produce::new("t", &numbered(id, at)).send(raw);
        assert_eq!((answer.error_code, answer.base_offset), (0, i64::from(at) * 2), "{when}: batch {at} again");
    }
    assert_eq!(refused(raw, "t", &numbered(id, 1)), OUT_OF_ORDER_SEQUENCE, "{when}: older than the last five");
    assert_eq!(fetch(raw, "t", 14).high_watermark, 14, "{when}: nothing was appended");
}

/// Kafka comes back with what its snapshot holds: the last batch alone. A client with five requests in flight needs all.
fn after_a_restart(broker: &Broker) -> Range<i32> {
    if broker.kind() == Kind::Kafka { 6..7 } else { 2..7 }
}

#[test]
fn a_duplicate_within_the_last_five_is_answered_with_its_first_offset() {
    let (mut broker, mut raw) = with_topic(&[]);
    let id = produce_seven(&mut raw);
    assert_remembered(&mut raw, id, 2..7, "at once");
    assert_eq!(delete_records(&mut raw, "t", 13), (0, 13));
    assert_remembered(&mut raw, id, 2..7, "after DeleteRecords");
    broker.restart();
    let mut raw = Raw::connect(&broker);
    assert_remembered(&mut raw, id, after_a_restart(&broker), "after a clean restart");
    assert_eq!(produce(&mut raw, "t", &numbered(id, 7)), 14, "the sequence goes on");
}

#[test]
fn the_last_five_are_remembered_after_kill_9() {
    let (mut broker, mut raw) = with_topic(&[]);
    let id = produce_seven(&mut raw);
    broker.kill();
    broker.start_again();
    let mut raw = Raw::connect(&broker);
    assert_remembered(&mut raw, id, after_a_restart(&broker), "after kill -9");
    assert_eq!(produce(&mut raw, "t", &numbered(id, 7)), 14, "the sequence goes on");
}

#[test]
fn gaps_and_overlaps_are_out_of_order() {
    let (_broker, mut raw) = with_topic(&[]);
    let id = producer_id(&mut raw);
    produce(&mut raw, "t", &Batch::idempotent(id, 0, 0, 4));
    for (sequence, count, what) in [(5, 1, "a gap"), (2, 4, "an overlap"), (1, 2, "a part"), (0, 5, "more than it was")]
    {
        assert_eq!(refused(&mut raw, "t", &Batch::idempotent(id, 0, sequence, count)), OUT_OF_ORDER_SEQUENCE, "{what}");
    }
    assert_eq!(produce(&mut raw, "t", &Batch::idempotent(id, 0, 4, 1)), 4);
}

#[test]
fn epochs_begin_at_zero_and_never_go_back() {
    let (_broker, mut raw) = with_topic(&[]);
    let id = producer_id(&mut raw);
    produce(&mut raw, "t", &Batch::idempotent(id, 0, 0, 1));
    assert_eq!(refused(&mut raw, "t", &Batch::idempotent(id, 1, 1, 1)), OUT_OF_ORDER_SEQUENCE);
    assert_eq!(produce(&mut raw, "t", &Batch::idempotent(id, 1, 0, 1)), 1);
    assert_eq!(refused(&mut raw, "t", &Batch::idempotent(id, 0, 1, 1)), INVALID_PRODUCER_EPOCH);
}

#[test]
fn an_unknown_producer_may_begin_anywhere_but_not_before_zero() {
    let (_broker, mut raw) = with_topic(&[]);
    let (first, second) = (producer_id(&mut raw), producer_id(&mut raw));
    assert_eq!(produce(&mut raw, "t", &Batch::idempotent(first, 0, 12_345, 1)), 0);
    assert_eq!(produce(&mut raw, "t", &Batch::idempotent(first, 0, 12_346, 1)), 1);
    assert_eq!(refused(&mut raw, "t", &Batch::idempotent(second, 0, -1, 1)), INVALID_RECORD);
}

#[test]
fn the_sequence_wraps_to_zero() {
    let (_broker, mut raw) = with_topic(&[]);
    let id = producer_id(&mut raw);
    assert_eq!(produce(&mut raw, "t", &Batch::idempotent(id, 0, i32::MAX - 1, 2)), 0);
    assert_eq!(produce(&mut raw, "t", &Batch::idempotent(id, 0, 0, 1)), 2);
    let within = producer_id(&mut raw);
    assert_eq!(produce(&mut raw, "t", &Batch::idempotent(within, 0, i32::MAX - 1, 4)), 3, "in the middle of a batch");
    assert_eq!(produce(&mut raw, "t", &Batch::idempotent(within, 0, 2, 1)), 7);
}

#[test]
fn sequences_of_different_partitions_are_independent() {
    let (_broker, mut raw) = with_topic(&[]);
    ringlog_e2e::requests::create_topic(&mut raw, "many", 4, &[]);
    let id = producer_id(&mut raw);
    for partition in 0..4 {
        for sequence in 0..3 {
            let send = Produce { partition, ..Produce::new("many", &Batch::idempotent(id, 0, sequence, 1)) };
            let answer = send.send(&mut raw);
            assert_eq!((answer.error_code, answer.base_offset), (0, i64::from(sequence)), "partition {partition}");
        }
    }
}
