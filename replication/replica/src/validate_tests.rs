#![allow(clippy::unwrap_used)]
use super::*;
use model::batch::{BatchView, HEADER_LEN};
use model::builder::BatchBuilder;
use model::config::BrokerConfig;
use model::{ProducerEpoch, ProducerId};

const NOW: i64 = 1_700_000_000_000;
const HOUR: i64 = 3_600_000;

fn config(pairs: &[(&str, &str)]) -> TopicConfig {
    TopicConfig::resolve(&BrokerConfig::default(), pairs.iter().copied()).unwrap()
}

fn check(bytes: &[u8], pairs: &[(&str, &str)]) -> Result<Checked, Refused> {
    validate(bytes, &config(pairs), NOW)
}

fn code(bytes: &[u8], pairs: &[(&str, &str)]) -> ErrorCode {
    check(bytes, pairs).unwrap_err().code
}

fn plain() -> Vec<u8> {
    BatchBuilder::new().record(NOW, Some(b"a"), Some(b"1")).record(NOW + 5, None, Some(b"2")).finish()
}

/// Recomputes the CRC after a test changed bytes under it.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = model::batch::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn compressed(codec: Codec, builder: BatchBuilder) -> Vec<u8> {
    let mut payload = Vec::new();
    compression::deflate(codec, builder.payload(), &mut payload).unwrap();
    builder.attributes(codec as i16).finish_with_payload(&payload)
}

#[test]
fn a_good_batch_passes_unchanged() {
    let checked = check(&plain(), &[]).unwrap();
    assert_eq!(checked.patch, TimestampPatch::Keep);
    assert_eq!(checked.max_timestamp_ms(), NOW + 5);
}

#[test]
fn each_malformed_batch_has_kafkas_code() {
    let good = plain();
    assert_eq!(code(b"", &[]), ErrorCode::InvalidRecord);
    let mut bad_crc = good.clone();
    bad_crc[HEADER_LEN + 3] ^= 1;
    assert_eq!(code(&bad_crc, &[]), ErrorCode::CorruptMessage);
    let mut two = good.clone();
    two.extend_from_slice(&good);
    assert_eq!(code(&two, &[]), ErrorCode::InvalidRecord);
    for (magic, expected) in
        [(0, ErrorCode::InvalidRecord), (1, ErrorCode::InvalidRecord), (3, ErrorCode::CorruptMessage)]
    {
        let mut other = good.clone();
        other[16] = magic;
        assert_eq!(code(&other, &[]), expected, "magic {magic}");
    }
    let off = BatchBuilder::new().base_offset(Offset(5)).record(NOW, None, None).finish();
    assert_eq!(code(&off, &[]), ErrorCode::InvalidRecord);
    let mut count = good.clone();
    count[57..61].copy_from_slice(&3i32.to_be_bytes());
    assert_eq!(code(&sealed(count), &[]), ErrorCode::InvalidRecord);
    let empty = BatchBuilder::new().finish();
    assert_eq!(code(&empty, &[]), ErrorCode::InvalidRecord);
    let control = BatchBuilder::new().attributes(0x20).record(NOW, None, None).finish();
    assert_eq!(code(&control, &[]), ErrorCode::InvalidRecord);
    let sequence = BatchBuilder::new().producer(ProducerId(1), ProducerEpoch(0), -1).record(NOW, None, None).finish();
    assert_eq!(code(&sequence, &[]), ErrorCode::InvalidRecord);
    for cut in 1..good.len() {
        assert!(check(&good[..cut], &[]).is_err(), "cut at {cut}");
    }
}

#[test]
fn size_limits_have_their_own_codes() {
    let big = BatchBuilder::new().record(NOW, None, Some(&[7; 20_000])).finish();
    assert_eq!(code(&big, &[("max.message.bytes", "10000")]), ErrorCode::MessageTooLarge);
    let huge = BatchBuilder::new().record(NOW, None, Some(&vec![7; 1_100_000])).finish();
    let pairs = [("max.message.bytes", "2000000"), ("segment.bytes", "1048576")];
    assert_eq!(code(&huge, &pairs), ErrorCode::RecordListTooLarge);
}

#[test]
fn timestamps_too_far_ahead_are_named_each() {
    let bytes = BatchBuilder::new()
        .record(NOW + HOUR + 1, None, None)
        .record(NOW, None, None)
        .record(NOW + 2 * HOUR, None, None)
        .finish();
    let refused = check(&bytes, &[]).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidTimestamp);
    assert_eq!(refused.records.iter().map(|r| r.0).collect::<Vec<_>>(), [0, 2]);
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let builder = BatchBuilder::new().record(NOW, None, None).record(NOW + 2 * HOUR, None, None);
        let refused = check(&compressed(codec, builder), &[]).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidTimestamp, "{codec:?}");
        assert_eq!(refused.records.iter().map(|r| r.0).collect::<Vec<_>>(), [1], "{codec:?}");
    }
}

#[test]
fn unknown_timestamps_are_accepted() {
    for timestamp in [-1, 0] {
        let bytes = BatchBuilder::new().record(timestamp, None, Some(b"x")).finish();
        assert!(check(&bytes, &[]).is_ok(), "{timestamp}");
    }
}

#[test]
fn a_wrong_max_timestamp_is_corrected() {
    let mut bytes = plain();
    bytes[35..43].copy_from_slice(&(NOW + 99).to_be_bytes());
    let checked = check(&sealed(bytes), &[]).unwrap();
    assert_eq!(checked.patch, TimestampPatch::MaxTimestamp(NOW + 5));
}

#[test]
fn log_append_time_replaces_any_timestamp() {
    let bytes = BatchBuilder::new().record(NOW + 100 * HOUR, None, None).finish();
    let checked = check(&bytes, &[("message.timestamp.type", "LogAppendTime")]).unwrap();
    assert_eq!(checked.patch, TimestampPatch::LogAppendTime(NOW));
    assert_eq!(checked.max_timestamp_ms(), NOW);
}

#[test]
fn compacted_topics_name_every_record_without_key() {
    let pairs = [("cleanup.policy", "compact")];
    let build = || BatchBuilder::new().record(NOW, None, None).record(NOW, Some(b"k"), None).record(NOW, None, None);
    let batches = [build().finish(), compressed(Codec::Lz4, build()), compressed(Codec::Zstd, build())];
    for bytes in batches {
        let refused = check(&bytes, &pairs).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidRecord);
        assert_eq!(refused.records.iter().map(|r| r.0).collect::<Vec<_>>(), [0, 2]);
    }
}

#[test]
fn compressed_records_are_walked_only_where_asked() {
    let builder = BatchBuilder::new().record(NOW, None, Some(b"x"));
    let garbage = builder.attributes(Codec::Lz4 as i16).finish_with_payload(b"not lz4 at all");
    assert!(BatchView::parse(&garbage).is_ok());
    assert!(check(&garbage, &[]).is_ok());
    let asked = [("ringlog.produce.validation", "records")];
    assert_eq!(code(&garbage, &asked), ErrorCode::CorruptMessage);
}
