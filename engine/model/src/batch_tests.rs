#![allow(clippy::unwrap_used)]
use super::*;
use crate::builder::BatchBuilder;

fn sample() -> Vec<u8> {
    BatchBuilder::new()
        .producer(ProducerId(7), ProducerEpoch(1), 40)
        .record(1000, Some(b"k"), Some(b"v"))
        .record_with_headers(1005, None, Some(b""), &[(b"h", None), (b"h", Some(b"x"))])
        .record(999, Some(b""), None)
        .finish()
}

#[test]
fn a_built_batch_reads_back() {
    let bytes = sample();
    let view = BatchView::parse(&bytes).unwrap();
    view.check_crc().unwrap();
    assert_eq!(view.header.record_count, 3);
    assert_eq!(view.header.last_offset(), Offset(2));
    assert_eq!(view.header.max_timestamp_ms, 1005);
    assert_eq!(view.header.last_sequence(), 42);
    let mut walk = view.records();
    let records: Vec<_> = walk.by_ref().map(Result::unwrap).collect();
    assert!(walk.rest().is_empty());
    assert_eq!(records[0].key, Some(b"k".as_slice()));
    assert_eq!(records[1].key, None);
    assert_eq!(records[1].value, Some(b"".as_slice()));
    let headers: Vec<_> = records[1].headers().collect();
    assert_eq!(headers, vec![(b"h".as_slice(), None), (b"h".as_slice(), Some(b"x".as_slice()))]);
    assert_eq!(records[2].timestamp_delta_ms, -1);
    assert_eq!(records[2].value, None);
}

#[test]
fn every_cut_is_an_error() {
    let bytes = sample();
    for cut in 0..bytes.len() {
        assert_eq!(BatchView::parse(&bytes[..cut]).unwrap_err(), BatchError::Cut, "cut at {cut}");
    }
}

#[test]
fn every_flipped_bit_under_the_crc_is_found() {
    let bytes = sample();
    for at in CRC_FROM..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        assert!(matches!(BatchView::parse(&bad).unwrap().check_crc(), Err(BatchError::Crc { .. })), "byte {at}");
    }
}

#[test]
fn position_is_outside_the_crc() {
    let mut bytes = sample();
    patch_position(&mut bytes, Offset(1 << 40), LeaderEpoch(9));
    let view = BatchView::parse(&bytes).unwrap();
    view.check_crc().unwrap();
    assert_eq!(view.header.base_offset, Offset(1 << 40));
    assert_eq!(view.header.leader_epoch, LeaderEpoch(9));
}

#[test]
fn log_append_time_renews_the_crc() {
    let mut bytes = sample();
    patch_max_timestamp(&mut bytes, 77, true);
    let view = BatchView::parse(&bytes).unwrap();
    view.check_crc().unwrap();
    assert!(view.header.is_log_append_time());
    assert_eq!(view.header.max_timestamp_ms, 77);
    assert_eq!(view.header.base_timestamp_ms, 1000);
}

#[test]
fn crc_is_castagnoli() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}

#[test]
fn sequences_wrap_to_zero() {
    let bytes = BatchBuilder::new()
        .producer(ProducerId(1), ProducerEpoch(0), i32::MAX)
        .record(1, None, None)
        .record(1, None, None)
        .finish();
    assert_eq!(BatchHeader::parse(&bytes).unwrap().last_sequence(), 0);
}

#[test]
fn malformed_records_are_named() {
    let good = sample();
    let count = BatchHeader::parse(&good).unwrap().record_count;
    let payload = &good[HEADER_LEN..];
    for cut in 0..payload.len() {
        let failed = RecordIter::new(&payload[..cut], count).any(|r| r.is_err());
        assert!(failed, "cut at {cut}");
    }
}

#[test]
fn bad_headers_are_named() {
    let mut bytes = sample();
    bytes[MAGIC_AT] = 1;
    assert_eq!(BatchHeader::parse(&bytes), Err(BatchError::Magic(1)));
    let mut bytes = sample();
    bytes[8..12].copy_from_slice(&(-5i32).to_be_bytes());
    assert_eq!(BatchHeader::parse(&bytes), Err(BatchError::Length(-5)));
    assert_eq!(Codec::from_attributes(5), Err(BatchError::Codec(5)));
}
