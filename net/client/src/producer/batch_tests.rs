#![allow(clippy::unwrap_used)]

use model::batch::RecordIter;
use model::builder::BatchBuilder;
use model::{ProducerEpoch, ProducerId};
use proptest::prelude::*;

use super::*;

const STAMP: Stamp = Stamp { producer_id: 77, producer_epoch: 3, base_sequence: 1_000 };

fn record<'a>(timestamp_ms: i64, key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> RecordRef<'a> {
    RecordRef { key, value, headers: &[], timestamp_ms }
}

fn built(records: &[RecordRef<'_>]) -> Builder {
    let mut builder = Builder::new(BytesMut::new());
    for record in records {
        let (body_len, before) = (record.body_len(), builder.len());
        let expected = builder.record_len(record.timestamp_ms, body_len);
        builder.push(record, body_len);
        assert_eq!(builder.len(), before + expected, "the size is known before");
    }
    builder
}

fn sealed(builder: Builder, codec: Codec) -> Bytes {
    builder.seal(codec, &mut Vec::new()).0.stamp(STAMP)
}

#[test]
fn the_bytes_are_those_of_the_reference_builder() {
    let headers = [
        Header { key: Bytes::from_static(b"h"), value: Some(Bytes::from_static(b"v")) },
        Header { key: Bytes::from_static(b"h"), value: None },
    ];
    let long = vec![7u8; 300];
    let records = [
        record(1_000, Some(b"k"), Some(&long)),
        record(990, None, None),
        RecordRef { key: Some(b""), value: Some(b"x"), headers: &headers, timestamp_ms: 5_000 },
    ];
    let reference = BatchBuilder::new()
        .producer(ProducerId(77), ProducerEpoch(3), 1_000)
        .record(1_000, Some(b"k"), Some(&long))
        .record(990, None, None)
        .record_with_headers(5_000, Some(b""), Some(b"x"), &[(b"h", Some(b"v")), (b"h", None)])
        .finish();
    assert_eq!(&sealed(built(&records), Codec::None)[..], &reference[..]);
}

#[test]
fn every_codec_can_be_read_again() {
    let value = vec![b'a'; 4_000];
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let records: Vec<_> = (0..20).map(|i| record(i, None, Some(&value))).collect();
        let builder = built(&records);
        let plain = builder.buffer[HEADER_LEN..].to_vec();
        let bytes = sealed(builder, codec);
        let view = BatchView::parse(&bytes).unwrap();
        view.check_crc().unwrap();
        assert_eq!(view.header.codec().unwrap(), codec);
        assert_eq!(view.header.record_count, 20);
        let mut inflated = Vec::new();
        model::compression::inflate(codec, view.payload(), 1 << 20, &mut inflated).unwrap();
        assert_eq!(inflated, plain);
    }
}

#[test]
fn what_does_not_get_smaller_is_sent_as_it_is() {
    let bytes = sealed(built(&[record(0, None, Some(b"x"))]), Codec::Gzip);
    let view = BatchView::parse(&bytes).unwrap();
    assert_eq!(view.header.codec().unwrap(), Codec::None);
    assert_eq!(view.records().count(), 1);
}

#[test]
fn a_new_stamp_changes_the_stamp_and_the_crc_alone() {
    let first = sealed(built(&[record(0, Some(b"k"), Some(b"v"))]), Codec::None);
    let held = first.clone();
    let next = Stamp { producer_id: 78, producer_epoch: 0, base_sequence: 0 };
    let second = Sealed::again(first).stamp(next);
    let (old, new) = (BatchView::parse(&held).unwrap(), BatchView::parse(&second).unwrap());
    old.check_crc().unwrap();
    new.check_crc().unwrap();
    assert_eq!((old.header.producer_id.0, new.header.producer_id.0), (77, 78));
    assert_eq!(old.payload(), new.payload());
}

#[test]
fn sequences_wrap_to_zero() {
    assert_eq!(sequence_plus(i32::MAX, 1), 0);
    assert_eq!(sequence_plus(i32::MAX - 1, 3), 1);
    assert_eq!(Stamp { base_sequence: 5, ..STAMP }.next_sequence(10), 15);
}

type TimesAndValues = Vec<(i64, Vec<u8>)>;

fn values(pieces: Vec<Piece>) -> Vec<(u32, TimesAndValues)> {
    pieces
        .into_iter()
        .map(|piece| {
            let bytes = sealed(piece.builder, Codec::None);
            let view = BatchView::parse(&bytes).unwrap();
            view.check_crc().unwrap();
            let base = view.header.base_timestamp_ms;
            let records = view.records().map(|r| r.unwrap());
            (piece.first, records.map(|r| (base + r.timestamp_delta_ms, r.value.unwrap().to_vec())).collect())
        })
        .collect()
}

#[test]
fn a_split_keeps_order_times_and_bytes() {
    for codec in [Codec::None, Codec::Zstd] {
        let value = [b'x'; 100];
        let records: Vec<_> = (0..10).map(|i| record(50 + i, None, Some(&value[..90 + i as usize]))).collect();
        let bytes = sealed(built(&records), codec);
        let pieces = values(split(&bytes, 400, 1 << 20).unwrap());
        assert!(pieces.len() >= 3);
        let mut next = 0;
        for (first, records) in pieces {
            assert_eq!(first, next);
            for (timestamp_ms, value) in records {
                assert_eq!((timestamp_ms, value.len()), (50 + i64::from(next), 90 + next as usize));
                next += 1;
            }
        }
        assert_eq!(next, 10);
    }
}

#[test]
fn a_split_always_makes_progress_and_ends_at_one_record() {
    let two = sealed(built(&[record(0, None, Some(b"a")), record(0, None, Some(b"b"))]), Codec::None);
    assert_eq!(split(&two, usize::MAX, 1 << 20).unwrap().len(), 2);
    let one = sealed(built(&[record(0, None, Some(b"a"))]), Codec::None);
    assert!(split(&one, 10, 1 << 20).is_none());
    assert!(split(b"no batch", 10, 1 << 20).is_none());
}

#[test]
fn a_batch_moves_into_a_larger_buffer() {
    let mut builder = Builder::new(BytesMut::with_capacity(100));
    let record = record(9, Some(b"k"), Some(b"value"));
    builder.push(&record, record.body_len());
    let old = builder.move_to(BytesMut::with_capacity(1_000));
    assert!(old.is_empty() && old.capacity() >= 100);
    builder.push(&record, record.body_len());
    let bytes = sealed(builder, Codec::None);
    assert_eq!(BatchView::parse(&bytes).unwrap().records().count(), 2);
}

proptest! {
    #[test]
    fn lengths_are_exact(value in any::<i64>()) {
        let mut out = BytesMut::new();
        put_varlong(&mut out, value);
        let mut reference = Vec::new();
        varint::write_varlong(&mut reference, value);
        prop_assert_eq!(&out[..], &reference[..]);
        prop_assert_eq!(varlong_len(value), reference.len());
    }

    #[test]
    fn whatever_goes_in_comes_out(
        records in proptest::collection::vec(
            (0..i64::MAX / 4, proptest::option::of(proptest::collection::vec(any::<u8>(), 0..80)),
             proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200))), 1..40)
    ) {
        let refs: Vec<_> = records.iter().map(|(t, k, v)| record(*t, k.as_deref(), v.as_deref())).collect();
        let bytes = sealed(built(&refs), Codec::None);
        let view = BatchView::parse(&bytes).unwrap();
        view.check_crc().unwrap();
        let mut walk = RecordIter::new(view.payload(), view.header.record_count);
        for expected in &refs {
            let got = walk.next().unwrap().unwrap();
            prop_assert_eq!(view.header.base_timestamp_ms + got.timestamp_delta_ms, expected.timestamp_ms);
            prop_assert_eq!((got.key, got.value), (expected.key, expected.value));
        }
        prop_assert!(walk.rest().is_empty());
        prop_assert_eq!(view.header.max_timestamp_ms, records.iter().map(|r| r.0).max().unwrap());
    }
}
