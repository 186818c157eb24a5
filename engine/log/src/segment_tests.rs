#![allow(clippy::unwrap_used)]
use super::*;
use model::builder::BatchBuilder;

fn header(base: i64, count: i64, timestamp_ms: i64, value_len: usize) -> BatchHeader {
    let mut batch = BatchBuilder::new().base_offset(Offset(base));
    for _ in 0..count {
        batch = batch.record(timestamp_ms, None, Some(&vec![7; value_len]));
    }
    BatchHeader::parse(&batch.finish()).unwrap()
}

#[test]
fn entries_carry_the_last_offset_and_the_start_position() {
    let mut fill = Fill::empty(Offset(100));
    let first = header(100, 2, 50, 100);
    assert_eq!(fill.add(Offset(100), &first, 64), Some(None));
    let size = first.size() as i32;
    let entries = fill.add(Offset(100), &header(102, 3, 40, 10), 64).unwrap().unwrap();
    assert_eq!(entries.index, IndexEntry { relative: 4, position: size });
    // The largest timestamp so far is the first batch's, so its last offset is named.
    assert_eq!(entries.time, Some(TimeEntry { timestamp_ms: 50, relative: 1 }));
    assert_eq!(fill.final_time_entry(Offset(100)), None);
    fill.add(Offset(100), &header(105, 1, 60, 1), 1 << 20).unwrap();
    assert_eq!(fill.final_time_entry(Offset(100)), Some(TimeEntry { timestamp_ms: 60, relative: 5 }));
    assert_eq!(fill.first_timestamp_ms, 50);
    assert_eq!(fill.next_offset, Offset(106));
}

#[test]
fn without_timestamps_the_time_index_stays_empty() {
    let mut fill = Fill::empty(Offset(0));
    fill.add(Offset(0), &header(0, 1, -1, 10), 0).unwrap();
    let entries = fill.add(Offset(0), &header(1, 1, -1, 10), 0).unwrap().unwrap();
    assert_eq!(entries.time, None);
    assert_eq!(fill.final_time_entry(Offset(0)), None);
}

#[test]
fn offsets_beyond_the_index_do_not_fit() {
    let mut fill = Fill::empty(Offset(0));
    assert_eq!(fill.add(Offset(0), &header(i64::from(i32::MAX), 2, 1, 1), 0), None);
    assert_eq!(fill.size, 0);
}
