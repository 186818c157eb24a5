//! Produce: what is refused, with which error, and that the connection lives on.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use ringlog_e2e::batch::{self, Batch, CONTROL, Codec};
use ringlog_e2e::raw::{Raw, old_header, sized};
use ringlog_e2e::requests::{Produce, api_versions, create_topic, fetch, fetch_batches, produce, refused, until};
use uuid::Uuid;

use crate::with_topic;

const CORRUPT_MESSAGE: i16 = 2;
const UNKNOWN_TOPIC: i16 = 3;
const MESSAGE_TOO_LARGE: i16 = 10;
const RECORD_LIST_TOO_LARGE: i16 = 18;
const INVALID_REQUIRED_ACKS: i16 = 21;
const UNSUPPORTED_COMPRESSION: i16 = 76;
const INVALID_RECORD: i16 = 87;
const UNKNOWN_TOPIC_ID: i16 = 100;

#[test]
fn malformed_batches_are_refused_and_nothing_is_appended() {
    let (_broker, mut raw) = with_topic(&[]);
    let good = Batch::of(&["a", "b"]);
    let cases = [
        ("a bad CRC", Batch { crc: Some(1), ..good.clone() }, CORRUPT_MESSAGE),
        ("magic 3", Batch { magic: 3, ..good.clone() }, CORRUPT_MESSAGE),
        ("too large a count", Batch { count: Some(3), ..good.clone() }, INVALID_RECORD),
        ("too small a count", Batch { count: Some(1), ..good.clone() }, INVALID_RECORD),
        ("a base offset", Batch { base_offset: 7, ..good.clone() }, INVALID_RECORD),
        ("no records", Batch { records: Vec::new(), ..good.clone() }, INVALID_RECORD),
        ("a control batch", Batch { attributes: CONTROL, ..good.clone() }, INVALID_RECORD),
    ];
    for (what, batch, expected) in cases {
        assert_eq!(refused(&mut raw, "t", &batch), expected, "{what}");
    }
    let two = [good.encode(), good.encode()].concat();
    assert_eq!(Produce::bytes("t", two.into()).code(&mut raw), INVALID_RECORD, "two batches in one partition");
    assert_eq!(fetch(&mut raw, "t", 0).high_watermark, 0);
    assert_eq!(produce(&mut raw, "t", &good), 0, "the connection lives");
}

/// A message of the formats before record batches.
fn old_message(magic: i8) -> Bytes {
    let mut message = BytesMut::new();
    message.put_i8(magic);
    message.put_i8(0);
    if magic == 1 {
        message.put_i64(1000);
    }
    message.put_i32(-1);
    message.put_i32(2);
    message.put_slice(b"hi");
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, &message) as u32;
    let mut out = BytesMut::new();
    out.put_i64(0);
    out.put_i32(message.len() as i32 + 4);
    out.put_u32(crc);
    out.put_slice(&message);
    out.freeze()
}

#[test]
fn the_formats_before_record_batches_are_refused() {
    let (_broker, mut raw) = with_topic(&[]);
    for magic in [0, 1] {
        assert_eq!(Produce::bytes("t", old_message(magic)).code(&mut raw), INVALID_RECORD, "magic {magic}");
    }
    assert_eq!(produce(&mut raw, "t", &Batch::of(&["a"])), 0);
}

#[test]
fn unknown_acks_topics_and_partitions() {
    let (_broker, mut raw) = with_topic(&[]);
    let good = Produce::new("t", &Batch::of(&["a"]));
    assert_eq!(Produce { acks: 2, ..good.clone() }.code(&mut raw), INVALID_REQUIRED_ACKS);
    assert_eq!(Produce { topic: "nowhere", ..good.clone() }.code(&mut raw), UNKNOWN_TOPIC);
    assert_eq!(Produce { partition: 1, ..good.clone() }.code(&mut raw), UNKNOWN_TOPIC);
    let by_id = Produce { version: 13, topic_id: Uuid::from_u128(0xdead), ..good.clone() };
    assert_eq!(by_id.code(&mut raw), UNKNOWN_TOPIC_ID);
    for acks in [1, -1] {
        assert_eq!(Produce { acks, ..good.clone() }.code(&mut raw), 0, "acks={acks}");
    }
}

#[test]
fn topic_ids_name_topics() {
    let (broker, _raw) = with_topic(&[]);
    let mut raw = Raw::connect(&broker);
    let topic_id = create_topic(&mut raw, "by-id", 1, &[]);
    let send = Produce { version: 13, topic_id, ..Produce::new("", &Batch::of(&["a"])) };
    assert_eq!(send.code(&mut raw), 0);
    assert_eq!(fetch(&mut raw, "by-id", 0).high_watermark, 1);
}

#[test]
fn zstd_needs_version_seven() {
    let (_broker, mut raw) = with_topic(&[]);
    let send = Produce::new("t", &Batch::of(&["a"]).with_codec(Codec::Zstd));
    assert_eq!(Produce { version: 6, ..send.clone() }.code(&mut raw), UNSUPPORTED_COMPRESSION);
    assert_eq!(Produce { version: 7, ..send }.code(&mut raw), 0);
}

#[test]
fn batches_over_the_topics_limit_and_over_the_segment() {
    let (_broker, mut raw) = with_topic(&[("max.message.bytes", "2000")]);
    let configs = [("segment.bytes", "1048576"), ("max.message.bytes", "4000000")];
    create_topic(&mut raw, "small-segments", 1, &configs);
    assert_eq!(refused(&mut raw, "t", &Batch::of(&[&"x".repeat(3000)])), MESSAGE_TOO_LARGE);
    assert_eq!(refused(&mut raw, "small-segments", &Batch::of(&[&"x".repeat(1_500_000)])), RECORD_LIST_TOO_LARGE);
    assert_eq!(produce(&mut raw, "t", &Batch::of(&["x"])), 0, "the connection lives");
    assert_eq!(produce(&mut raw, "small-segments", &Batch::of(&["x"])), 0);
}

#[test]
fn compacted_topics_need_keys() {
    let (_broker, mut raw) = with_topic(&[("cleanup.policy", "compact")]);
    for codec in [Codec::None, Codec::Gzip, Codec::SnappyRaw, Codec::SnappyXerial, Codec::Zstd] {
        let mut batch = Batch::of(&["a", "b", "c"]).with_codec(codec);
        batch.records[0].key = None;
        batch.records[2].key = None;
        let answer = Produce::new("t", &batch).send(&mut raw);
        assert_eq!(answer.error_code, INVALID_RECORD, "{codec:?}");
        let indexes: Vec<i32> = answer.record_errors.iter().map(|error| error.batch_index).collect();
        assert_eq!(indexes, [0, 2], "{codec:?}");
    }
    assert_eq!(produce(&mut raw, "t", &Batch::of(&["keyed"])), 0);
}

#[test]
fn more_replicas_wanted_in_sync_than_there_are_does_not_stop_one_replica() {
    let (_broker, mut raw) = with_topic(&[("min.insync.replicas", "2")]);
    assert_eq!(produce(&mut raw, "t", &Batch::of(&["a"])), 0);
}

#[test]
fn without_acks_there_is_no_answer() {
    let (_broker, mut raw) = with_topic(&[]);
    let send = Produce { acks: 0, ..Produce::new("t", &Batch::of(&["a"])) };
    raw.send(send.version, &send.request());
    assert_eq!(raw.is_silent_for(Duration::from_millis(500)), Some(true));
    api_versions(&mut raw, 3);
    until("the record is there", || (fetch(&mut raw, "t", 0).high_watermark == 1).then_some(()));
}

#[test]
fn without_acks_an_error_ends_the_connection() {
    let (_broker, mut raw) = with_topic(&[]);
    let send = Produce { acks: 0, ..Produce::new("t", &Batch { crc: Some(1), ..Batch::of(&["a"]) }) };
    raw.send(send.version, &send.request());
    assert!(raw.is_closed_within(Duration::from_secs(5)));
}

#[test]
fn versions_before_three_end_the_connection() {
    let (broker, _raw) = with_topic(&[]);
    for version in 0..3 {
        let mut raw = Raw::connect(&broker);
        let mut request = old_header(0, version, 1);
        request.put_i16(-1);
        request.put_i32(1000);
        request.put_i32(0);
        raw.send_bytes(&sized(&request));
        assert!(raw.is_closed_within(Duration::from_secs(5)), "version {version}");
    }
}

#[test]
fn batches_are_stored_as_they_came_in_every_codec() {
    let (_broker, mut raw) = with_topic(&[]);
    for codec in [Codec::None, Codec::Gzip, Codec::SnappyXerial, Codec::SnappyRaw, Codec::Zstd] {
        let sent = Batch::of(&["one", "two", "three"]).with_codec(codec).encode();
        let answer = Produce::bytes("t", sent.clone()).send(&mut raw);
        assert_eq!(answer.error_code, 0, "{codec:?}");
        let stored = fetch_batches(&mut raw, "t", answer.base_offset).remove(0);
        let before = batch::read(sent).remove(0);
        assert_eq!(stored.payload, before.payload, "{codec:?}");
        assert_eq!((stored.base_offset, stored.crc_holds, stored.count), (answer.base_offset, true, 3), "{codec:?}");
        assert!(stored.leader_epoch >= 0, "{codec:?}");
    }
}
