//! Timestamps: which are refused, which are rewritten, and what retention makes of them.

use std::thread;
use std::time::Duration;

use ringlog_e2e::Broker;
use ringlog_e2e::batch::{Batch, Codec, LOG_APPEND_TIME};
use ringlog_e2e::broker::skip_on_kafka;
use ringlog_e2e::raw::Raw;
use ringlog_e2e::requests::{Produce, create_topic, fetch, fetch_batches, list_offset, now_ms, produce, until};

use crate::with_topic;

const INVALID_TIMESTAMP: i16 = 32;
const HOUR_MS: i64 = 3_600_000;
const EARLIEST: i64 = -2;

#[test]
fn too_far_ahead_is_refused_with_every_bad_index_and_nothing_is_appended() {
    let (_broker, mut raw) = with_topic(&[]);
    let now = now_ms();
    let stamps = [now, now + 2 * HOUR_MS, now, now + 3 * HOUR_MS];
    for codec in [Codec::None, Codec::Gzip] {
        let answer = Produce::new("t", &Batch::stamped(&stamps).with_codec(codec)).send(&mut raw);
        assert_eq!(answer.error_code, INVALID_TIMESTAMP, "{codec:?}");
        let indexes: Vec<i32> = answer.record_errors.iter().map(|error| error.batch_index).collect();
        assert_eq!(indexes, [1, 3], "{codec:?}");
    }
    assert_eq!(fetch(&mut raw, "t", 0).high_watermark, 0, "nothing was appended");
    produce(&mut raw, "t", &Batch::stamped(&[now + HOUR_MS / 2]));
}

#[test]
fn no_time_and_the_time_zero_are_accepted() {
    let (_broker, mut raw) = with_topic(&[("retention.ms", "-1")]);
    for (offset, stamp) in [-1, -2, 0].into_iter().enumerate() {
        assert_eq!(produce(&mut raw, "t", &Batch::stamped(&[stamp])), offset as i64, "stamped {stamp}");
    }
}

#[test]
fn log_append_time_rewrites_bit_greatest_time_and_crc() {
    let (_broker, mut raw) = with_topic(&[("message.timestamp.type", "LogAppendTime")]);
    let before = now_ms();
    for codec in [Codec::None, Codec::Gzip] {
        let answer = Produce::new("t", &Batch::stamped(&[1000, 2000]).with_codec(codec)).send(&mut raw);
        assert_eq!(answer.error_code, 0);
        assert!((before..before + 60_000).contains(&answer.log_append_time_ms), "{}", answer.log_append_time_ms);
        let batch = fetch_batches(&mut raw, "t", answer.base_offset).remove(0);
        assert!(batch.crc_holds, "{codec:?}");
        assert_eq!(batch.attributes, LOG_APPEND_TIME | codec as i16);
        assert_eq!((batch.base_timestamp, batch.max_timestamp), (1000, answer.log_append_time_ms), "{codec:?}");
    }
}

#[test]
fn a_wrong_greatest_timestamp_is_corrected_in_an_uncompressed_batch() {
    let (_broker, mut raw) = with_topic(&[("retention.ms", "-1")]);
    for wrong in [0, 1500, 9000] {
        let batch = Batch { max_timestamp: Some(wrong), ..Batch::stamped(&[1000, 3000, 2000]) };
        let offset = produce(&mut raw, "t", &batch);
        let stored = fetch_batches(&mut raw, "t", offset).remove(0);
        assert_eq!((stored.max_timestamp, stored.base_timestamp, stored.crc_holds), (3000, 1000, true), "{wrong} sent");
        assert_eq!(list_offset(&mut raw, 10, "t", -3).timestamp, 3000);
    }
}

fn with_frequent_retention() -> (Broker, Raw) {
    let broker = Broker::with(&[("log.retention.check.interval.ms", "300")]);
    let raw = Raw::connect(&broker);
    (broker, raw)
}

fn log_start(raw: &mut Raw, topic: &str) -> i64 {
    list_offset(raw, 10, topic, EARLIEST).offset
}

#[test]
fn retention_takes_records_stamped_in_seconds_or_zero_and_leaves_the_young() {
    let (_broker, mut raw) = with_frequent_retention();
    for topic in ["zero", "seconds", "young"] {
        create_topic(&mut raw, topic, 1, &[("retention.ms", "3600000")]);
    }
    produce(&mut raw, "young", &Batch::stamped(&[now_ms()]));
    produce(&mut raw, "zero", &Batch::stamped(&[0, 0]));
    produce(&mut raw, "seconds", &Batch::stamped(&[now_ms() / 1000, now_ms() / 1000]));
    until("the old records are gone", || (log_start(&mut raw, "zero") == 2).then_some(()));
    until("the old records are gone", || (log_start(&mut raw, "seconds") == 2).then_some(()));
    assert_eq!(log_start(&mut raw, "young"), 0);
    assert_eq!(produce(&mut raw, "zero", &Batch::stamped(&[now_ms()])), 2, "offsets go on");
}

#[test]
fn a_time_in_the_future_does_not_keep_records_for_ever() {
    if skip_on_kafka("Kafka keeps such a segment until its records' time has come") {
        return;
    }
    let (_broker, mut raw) = with_frequent_retention();
    let lenient = [("retention.ms", "1500"), ("message.timestamp.after.max.ms", "9223372036854775807")];
    create_topic(&mut raw, "future", 1, &lenient);
    produce(&mut raw, "future", &Batch::stamped(&[now_ms() + 1000 * HOUR_MS]));
    assert_eq!(log_start(&mut raw, "future"), 0, "not before its time");
    until("the record is gone", || (log_start(&mut raw, "future") == 1).then_some(()));
}

#[test]
fn compacted_topics_are_not_cut_by_time_or_size() {
    let (_broker, mut raw) = with_frequent_retention();
    let configs = [("cleanup.policy", "compact"), ("retention.ms", "100"), ("retention.bytes", "1")];
    create_topic(&mut raw, "compacted", 1, &configs);
    create_topic(&mut raw, "deleted", 1, &[("retention.ms", "100")]);
    produce(&mut raw, "compacted", &Batch::stamped(&[0, 0]));
    produce(&mut raw, "deleted", &Batch::stamped(&[0, 0]));
    until("a check has run", || (log_start(&mut raw, "deleted") == 2).then_some(()));
    thread::sleep(Duration::from_secs(1));
    assert_eq!(log_start(&mut raw, "compacted"), 0);
}
