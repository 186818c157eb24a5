//! ListOffsets: by time, and the special timestamps with the versions that brought them.

use kafka_protocol::messages::ListOffsetsRequest;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use ringlog_e2e::batch::{Batch, Record};
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{self, create_topic, delete_records, list_offset, produce, topic_name, until};

use crate::with_topic;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;
const UNSUPPORTED_VERSION: i16 = 35;
const STAMPS: [i64; 8] = [2, 4, 6, 8, 100, 500, 200, 300];
/// (asked, offset, timestamp)
const ANSWERS: [(i64, i64, i64); 9] = [
    (0, 0, 2),
    (3, 1, 4),
    (8, 3, 8),
    (9, 4, 100),
    (250, 5, 500),
    (500, 5, 500),
    (501, -1, -1),
    (i64::MAX, -1, -1),
    (MAX_TIMESTAMP, 5, 500),
];

fn ask(raw: &mut Raw, topic: &str, timestamp: i64) -> (i16, i64, i64) {
    let answer = list_offset(raw, 10, topic, timestamp);
    (answer.error_code, answer.offset, answer.timestamp)
}

/// Version 11 looks like version 10, which is the last that the crate knows: only the number differs.
fn code_in_v11(raw: &mut Raw, topic: &str, timestamp: i64) -> (i16, i64) {
    let partition = ListOffsetsPartition::default().with_timestamp(timestamp).with_current_leader_epoch(-1);
    let topic = ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    let request = ListOffsetsRequest::default().with_replica_id((-1).into()).with_topics(vec![topic]);
    let mut frame = ringlog_e2e::raw::frame(77, 10, &request).to_vec();
    frame[7] = 11;
    raw.send_bytes(&frame);
    let (_, answer) = raw.receive::<ListOffsetsRequest>(10);
    let partition = &answer.topics[0].partitions[0];
    (partition.error_code, partition.offset)
}

fn assert_answers(raw: &mut Raw, topic: &str, when: &str) {
    for (asked, offset, timestamp) in ANSWERS {
        assert_eq!(ask(raw, topic, asked), (0, offset, timestamp), "{topic} {when}: asked for {asked}");
    }
    assert_eq!(ask(raw, topic, LATEST), (0, 8, -1), "{topic} {when}");
    assert_eq!(ask(raw, topic, EARLIEST), (0, 0, -1), "{topic} {when}");
}

#[test]
fn the_first_record_at_or_after_a_time_in_one_batch_in_several_and_over_segments() {
    let (mut broker, mut raw) = with_topic(&[]);
    let forever = [("retention.ms", "-1"), ("segment.bytes", "1048576")];
    for topic in ["one", "several", "segments"] {
        create_topic(&mut raw, topic, 1, &forever);
    }
    produce(&mut raw, "one", &Batch::stamped(&STAMPS));
    for stamps in STAMPS.chunks(3) {
        produce(&mut raw, "several", &Batch::stamped(stamps));
    }
    for stamp in STAMPS {
        // Two of these do not fit into one segment.
        let value = Some(vec![b'x'; 600_000]);
        let records = vec![Record { timestamp_delta: 0, key: None, value }];
        produce(&mut raw, "segments", &Batch { records, ..Batch::stamped(&[stamp]) });
    }
    for when in ["at once", "after a restart"] {
        for topic in ["one", "several", "segments"] {
            until("the partition is led", || (list_offset(&mut raw, 10, topic, LATEST).error_code == 0).then_some(()));
            assert_answers(&mut raw, topic, when);
        }
        broker.restart();
        raw = Raw::connect(&broker);
    }
}

#[test]
fn special_timestamps_on_an_empty_and_on_a_cut_log() {
    let (_broker, mut raw) = with_topic(&[("retention.ms", "-1")]);
    assert_eq!(ask(&mut raw, "t", MAX_TIMESTAMP), (0, -1, -1));
    assert_eq!(ask(&mut raw, "t", LATEST), (0, 0, -1));
    assert_eq!(ask(&mut raw, "t", EARLIEST), (0, 0, -1));
    assert_eq!(ask(&mut raw, "t", 5), (0, -1, -1));

    produce(&mut raw, "t", &Batch::stamped(&STAMPS));
    assert_eq!(delete_records(&mut raw, "t", 3), (0, 3));
    assert_eq!(ask(&mut raw, "t", EARLIEST), (0, 3, -1));
    assert_eq!(ask(&mut raw, "t", EARLIEST_LOCAL), (0, 3, -1));
    assert_eq!(ask(&mut raw, "t", LATEST_TIERED), (0, -1, -1));
    assert_eq!(code_in_v11(&mut raw, "t", EARLIEST_PENDING_UPLOAD), (0, -1));
}

#[test]
fn special_timestamps_are_refused_below_the_version_that_brought_them() {
    let (_broker, mut raw) = with_topic(&[]);
    produce(&mut raw, "t", &Batch::stamped(&[requests::now_ms()]));
    let refused =
        [(6, MAX_TIMESTAMP), (7, EARLIEST_LOCAL), (8, LATEST_TIERED), (10, EARLIEST_PENDING_UPLOAD), (10, -7)];
    for (version, timestamp) in refused {
        let answer = list_offset(&mut raw, version, "t", timestamp);
        assert_eq!(answer.error_code, UNSUPPORTED_VERSION, "{timestamp} in version {version}");
    }
    for (version, timestamp) in
        [(7, MAX_TIMESTAMP), (8, EARLIEST_LOCAL), (9, LATEST_TIERED), (1, EARLIEST), (1, LATEST)]
    {
        let answer = list_offset(&mut raw, version, "t", timestamp);
        assert_eq!(answer.error_code, 0, "{timestamp} in version {version}");
    }
    assert_eq!(code_in_v11(&mut raw, "t", -7).0, UNSUPPORTED_VERSION);
}
