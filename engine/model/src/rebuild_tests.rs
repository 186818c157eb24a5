#![allow(clippy::unwrap_used)]
use super::*;
use crate::builder::BatchBuilder;
use crate::{Offset, ProducerEpoch, ProducerId};

fn three() -> Vec<u8> {
    let builder = BatchBuilder::new().base_offset(Offset(40)).producer(ProducerId(7), ProducerEpoch(1), 9);
    builder
        .record(1000, Some(b"a"), Some(b"1"))
        .record_with_headers(1005, Some(b"b"), None, &[(b"h", Some(b"v"))])
        .record(990, None, Some(b"3"))
        .finish()
}

#[test]
fn a_batch_copied_whole_is_the_same() {
    let bytes = three();
    let view = BatchView::parse(&bytes).unwrap();
    let mut out = vec![1, 2, 3];
    write_batch(&view.header, view.payload(), &mut out);
    assert_eq!(out[3..], bytes);
}

#[test]
fn some_records_keep_their_offsets_and_times() {
    let bytes = three();
    let view = BatchView::parse(&bytes).unwrap();
    let mut payload = Vec::new();
    let mut walk = RawRecords::of(&view);
    let (_, raw) = walk.by_ref().nth(1).unwrap().unwrap();
    payload.extend_from_slice(raw);
    assert!(walk.next().is_some() && walk.next().is_none() && walk.is_at_end());
    let mut out = Vec::new();
    write_batch(&BatchHeader { record_count: 1, max_timestamp_ms: 1005, ..view.header }, &payload, &mut out);
    let made = BatchView::parse(&out).unwrap();
    made.check_crc().unwrap();
    let record = made.records().next().unwrap().unwrap();
    assert_eq!((record.offset_delta, record.timestamp_delta_ms, record.key), (1, 5, Some(&b"b"[..])));
    assert_eq!((made.header.last_offset(), made.header.last_sequence()), (Offset(42), 11));
}

#[test]
fn an_emptied_batch_still_tells_offsets_and_sequences() {
    let bytes = three();
    let header = BatchView::parse(&bytes).unwrap().header;
    let mut out = Vec::new();
    write_batch(&emptied(&with_delete_horizon(&header, 5)), &[], &mut out);
    let made = BatchView::parse(&out).unwrap();
    made.check_crc().unwrap();
    assert_eq!((made.header.record_count, made.header.base_timestamp_ms, made.bytes.len()), (0, -1, HEADER_LEN));
    assert_eq!((made.header.last_offset(), made.header.last_sequence()), (Offset(42), 11));
    assert_eq!((made.header.max_timestamp_ms, made.header.has_delete_horizon()), (1005, false));
}

#[test]
fn a_delete_horizon_leaves_the_times_as_they_are() {
    let bytes = three();
    let view = BatchView::parse(&bytes).unwrap();
    let horizon_ms = 86_401_000;
    let mut payload = Vec::new();
    for record in RawRecords::of(&view) {
        move_timestamp(record.unwrap().1, view.header.base_timestamp_ms - horizon_ms, &mut payload).unwrap();
    }
    let mut out = Vec::new();
    write_batch(&with_delete_horizon(&view.header, horizon_ms), &payload, &mut out);
    let made = BatchView::parse(&out).unwrap();
    made.check_crc().unwrap();
    assert_eq!(delete_horizon_ms(&made.header), Some(horizon_ms));
    assert_eq!(delete_horizon_ms(&view.header), None);
    let times: Vec<i64> = made.records().map(|r| horizon_ms + r.unwrap().timestamp_delta_ms).collect();
    assert_eq!(times, [1000, 1005, 990]);
    let second = made.records().nth(1).unwrap().unwrap();
    assert_eq!(second.headers().collect::<Vec<_>>(), [(&b"h"[..], Some(&b"v"[..]))]);
}

#[test]
fn bytes_that_are_no_record_are_refused() {
    for bad in [&b""[..], b"\xff", b"\x08\x00", b"\x02"] {
        assert_eq!(move_timestamp(bad, 1, &mut Vec::new()), None);
    }
}
