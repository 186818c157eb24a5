#![allow(clippy::unwrap_used)]

use model::builder::BatchBuilder;
use model::{Offset, ProducerEpoch, ProducerId};
use proptest::prelude::*;

use super::*;

const PLAIN: ReadOptions = ReadOptions { check_crcs: true, read_committed: false };
const COMMITTED: ReadOptions = ReadOptions { check_crcs: true, read_committed: true };

fn builder(base: i64, count: usize) -> BatchBuilder {
    let mut batch = BatchBuilder::new().base_offset(Offset(base));
    for index in 0..count {
        let value = format!("v{}", base + index as i64);
        batch = batch.record_with_headers(1000 + index as i64, Some(b"k"), Some(value.as_bytes()), &[(b"h", None)]);
    }
    batch
}

fn batch(base: i64, count: usize) -> Vec<u8> {
    builder(base, count).finish()
}

fn transactional(base: i64, producer: i64) -> Vec<u8> {
    builder(base, 2).attributes(0x10).producer(ProducerId(producer), ProducerEpoch(0), 0).finish()
}

fn marker(base: i64, producer: i64, kind: u8) -> Vec<u8> {
    BatchBuilder::new()
        .base_offset(Offset(base))
        .attributes(0x30)
        .producer(ProducerId(producer), ProducerEpoch(0), -1)
        .record(5, Some(&[0, 0, 0, kind]), Some(&[0; 6]))
        .finish()
}

fn cursor(data: Vec<u8>, position: i64, options: ReadOptions) -> BatchCursor {
    BatchCursor::new(TopicPartition::new("t", 3), data.into(), position, vec![], options)
}

fn offsets(cursor: &mut BatchCursor) -> Vec<i64> {
    std::iter::from_fn(|| cursor.next_record().unwrap()).map(|record| record.offset).collect()
}

#[test]
fn records_are_slices_of_the_frame() {
    let data = Bytes::from(batch(7, 2));
    let mut cursor = BatchCursor::new(TopicPartition::new("t", 3), data.clone(), 7, vec![], PLAIN);
    let record = cursor.next_record().unwrap().unwrap();
    assert_eq!((record.offset, record.timestamp_ms, &record.value.as_ref().unwrap()[..]), (7, 1000, &b"v7"[..]));
    assert_eq!(record.headers, vec![Header { key: Bytes::from_static(b"h"), value: None }]);
    let frame = data.as_ptr() as usize..data.as_ptr() as usize + data.len();
    assert!(frame.contains(&(record.value.unwrap().as_ptr() as usize)));
    assert_eq!(cursor.next_offset(), 8);
}

#[test]
fn every_codec_is_read() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let batch = builder(0, 5).attributes(codec as i16);
        let mut packed = Vec::new();
        compression::deflate(codec, batch.payload(), &mut packed).unwrap();
        let data = batch.finish_with_payload(&packed);
        assert_eq!(offsets(&mut cursor(data, 0, PLAIN)), [0, 1, 2, 3, 4], "{codec:?}");
    }
}

#[test]
fn records_below_the_position_are_skipped() {
    let data = [batch(0, 3), batch(3, 3)].concat();
    assert_eq!(offsets(&mut cursor(data.clone(), 4, PLAIN)), [4, 5]);
    let mut whole = cursor(data, 4, PLAIN);
    let summary = whole.next_batch().unwrap().unwrap();
    assert_eq!((summary.record_count, summary.first_offset, summary.last_offset), (2, 4, 5));
}

#[test]
fn a_cut_tail_is_no_error() {
    let mut data = batch(0, 2);
    let tail = batch(2, 2);
    for cut in [5, 20, 61, tail.len() - 1] {
        data.truncate(batch(0, 2).len());
        data.extend_from_slice(&tail[..cut]);
        let mut cursor = cursor(data.clone(), 0, PLAIN);
        assert_eq!(cursor.end_offset(), Some(2));
        assert_eq!(offsets(&mut cursor), [0, 1]);
    }
}

#[test]
fn only_a_cut_batch_is_told() {
    let mut data = batch(0, 2);
    data.pop();
    let mut cursor = cursor(data, 0, PLAIN);
    assert_eq!(cursor.end_offset(), None);
    assert!(cursor.next_record().unwrap_err().to_string().contains("no whole record batch"));
}

#[test]
fn a_bad_crc_names_the_place_and_stays_there() {
    let mut data = [batch(0, 2), batch(2, 2)].concat();
    *data.last_mut().unwrap() ^= 1;
    let mut cursor = cursor(data.clone(), 0, PLAIN);
    assert!(cursor.next_record().unwrap().is_some());
    assert!(cursor.next_record().unwrap().is_some());
    for _ in 0..2 {
        let text = cursor.next_record().unwrap_err().to_string();
        assert!(text.contains("partition 3 of t at offset 2") && text.contains("damaged"), "{text}");
    }
    assert_eq!(cursor.next_offset(), 2);
    let mut trusting = super::tests::cursor(data, 0, ReadOptions { check_crcs: false, ..PLAIN });
    assert!(trusting.next_batch().unwrap().is_some());
}

#[test]
fn damaged_compression_stays_there_too() {
    let data = builder(4, 2).attributes(Codec::Zstd as i16).finish_with_payload(b"no zstd");
    let mut cursor = cursor(data, 4, PLAIN);
    let first = cursor.next_record().unwrap_err();
    assert_eq!(cursor.next_record().unwrap_err(), first);
    assert!(first.to_string().contains("offset 4"));
}

#[test]
fn control_batches_move_the_position_only() {
    let data = [batch(0, 1), marker(1, 9, 1), batch(2, 1)].concat();
    let mut cursor = cursor(data, 0, PLAIN);
    assert_eq!(offsets(&mut cursor), [0, 2]);
    let mut last = super::tests::cursor(marker(5, 9, 1), 5, PLAIN);
    assert_eq!(last.next_record().unwrap(), None);
    assert_eq!(last.next_offset(), 6);
}

#[test]
fn aborted_transactions_are_filtered_when_committed_is_read() {
    let data =
        [transactional(0, 1), transactional(2, 2), marker(4, 1, 0), marker(5, 2, 1), transactional(6, 1)].concat();
    let aborted = vec![Aborted { producer_id: 1, first_offset: 0 }];
    let read = |options| {
        let tp = TopicPartition::new("t", 0);
        offsets(&mut BatchCursor::new(tp, data.clone().into(), 0, aborted.clone(), options))
    };
    assert_eq!(read(COMMITTED), [2, 3, 6, 7]);
    assert_eq!(read(PLAIN), [0, 1, 2, 3, 6, 7]);
}

#[test]
fn a_gap_from_compaction_moves_the_position_past_it() {
    let mut data = batch(10, 2);
    data[23..27].copy_from_slice(&9i32.to_be_bytes());
    let crc = model::batch::crc32c(&data[21..]);
    data[17..21].copy_from_slice(&crc.to_be_bytes());
    let mut cursor = cursor(data, 10, PLAIN);
    assert_eq!(offsets(&mut cursor), [10, 11]);
    assert_eq!(cursor.next_offset(), 20);
}

#[test]
fn hostile_headers_are_refused() {
    for (at, bytes) in [(23, (-1i32).to_be_bytes()), (57, 100i32.to_be_bytes()), (57, (-5i32).to_be_bytes())] {
        let mut data = batch(0, 2);
        data[at..at + 4].copy_from_slice(&bytes);
        assert!(cursor(data, 0, ReadOptions { check_crcs: false, ..PLAIN }).next_record().is_err());
    }
    let mut old = batch(0, 2);
    old[16] = 1;
    assert!(cursor(old, 0, PLAIN).next_record().unwrap_err().to_string().contains("format 1"));
    let mut far = batch(0, 2);
    far[0..8].copy_from_slice(&i64::MAX.to_be_bytes());
    assert!(cursor(far, 0, PLAIN).next_record().is_err());
}

#[test]
fn batches_after_records_take_up_the_rest() {
    let mut cursor = cursor([batch(0, 3), batch(3, 2)].concat(), 0, PLAIN);
    cursor.next_record().unwrap();
    let rest = cursor.next_batch().unwrap().unwrap();
    assert_eq!((rest.record_count, rest.first_offset, rest.last_offset), (2, 1, 2));
    assert_eq!(cursor.next_batch().unwrap().unwrap().record_count, 2);
    assert_eq!(cursor.next_batch().unwrap(), None);
    assert_eq!(cursor.bytes_left(), 0);
}

proptest! {
    #[test]
    fn any_bytes_end_without_panic(data in proptest::collection::vec(any::<u8>(), 0..300)) {
        crate::consumer::fuzz_targets::fetched_records(&data);
    }

    #[test]
    fn damaged_batches_end_without_panic(how in any::<u8>(), at in 0usize..200, to in any::<u8>()) {
        let mut data = [vec![how], batch(0, 3), transactional(3, 1), marker(5, 1, 0)].concat();
        let at = 1 + at % (data.len() - 1);
        data[at] = to;
        crate::consumer::fuzz_targets::fetched_records(&data);
    }
}
