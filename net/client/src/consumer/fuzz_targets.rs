//! Entry points for the fuzzer.

use bytes::Bytes;

use super::batches::{Aborted, BatchCursor, ReadOptions};
use crate::TopicPartition;

/// Fetched bytes to records: no panic, an end, and offsets that only go up. The first byte chooses how it is read.
pub fn fetched_records(data: &[u8]) {
    let Some((&how, data)) = data.split_first() else { return };
    let options = ReadOptions { check_crcs: how & 1 != 0, read_committed: how & 2 != 0 };
    let aborted = vec![Aborted { producer_id: i64::from(how >> 4), first_offset: 0 }];
    let position = i64::from(how >> 2 & 3);
    let partition = TopicPartition::new("t", 0);
    let mut by_record = BatchCursor::new(partition, Bytes::copy_from_slice(data), position, aborted, options);
    let mut by_batch = by_record.clone();
    let _ = by_record.end_offset();
    let mut least = position;
    while let Ok(Some(record)) = by_record.next_record() {
        assert!(record.offset >= least, "offsets go up");
        least = record.offset + 1;
        assert!(by_record.next_offset() >= least, "the position is behind the record");
    }
    let mut before = by_batch.bytes_left();
    while let Ok(Some(batch)) = by_batch.next_batch() {
        assert!(batch.first_offset <= batch.last_offset, "a batch has a range");
        assert!(by_batch.bytes_left() < before, "every step reads something");
        before = by_batch.bytes_left();
    }
}
