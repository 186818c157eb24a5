#![allow(clippy::unwrap_used)]

use super::*;
use model::BatchView;

fn record(key: &str, value_len: Option<usize>) -> RecordBytes {
    (key.as_bytes().to_vec(), value_len.map(|n| vec![7; n]))
}

fn keys(batch: &[u8]) -> Vec<Vec<u8>> {
    let view = BatchView::parse(batch).unwrap();
    view.check_crc().unwrap();
    view.records().map(|r| r.unwrap().key.unwrap().to_vec()).collect()
}

#[test]
fn a_commit_is_one_batch_with_the_wall_clock() {
    let batches = build(&[record("a", Some(10)), record("b", None)], 1_234).unwrap();
    assert_eq!(batches.len(), 1);
    let view = BatchView::parse(&batches[0]).unwrap();
    assert_eq!(view.header.max_timestamp_ms, 1_234);
    assert_eq!(view.header.record_count, 2);
    let values: Vec<Option<usize>> = view.records().map(|r| r.unwrap().value.map(<[u8]>::len)).collect();
    assert_eq!(values, [Some(10), None]);
}

#[test]
fn many_records_are_cut_in_order_below_the_size() {
    let records: Vec<RecordBytes> = (0..30).map(|i| record(&format!("k{i:02}"), Some(100 << 10))).collect();
    let batches = build(&records, 1).unwrap();
    assert!(batches.len() > 1);
    assert!(batches.iter().all(|b| b.len() <= BATCH_BYTES));
    let seen: Vec<Vec<u8>> = batches.iter().flat_map(|b| keys(b)).collect();
    let sent: Vec<Vec<u8>> = records.into_iter().map(|(key, _)| key).collect();
    assert_eq!(seen, sent);
}

#[test]
fn a_large_record_has_a_batch_to_itself() {
    let records = [record("a", Some(1)), record("b", Some(2 << 20)), record("c", Some(1))];
    let batches = build(&records, 1).unwrap();
    assert_eq!(batches.iter().map(|b| keys(b).len()).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn a_record_beyond_the_bound_is_refused() {
    assert_eq!(build(&[record("a", Some(MAX_RECORD_BYTES))], 1), Err(ErrorCode::MessageTooLarge));
}
