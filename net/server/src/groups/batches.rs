//! Records of a coordinator as batches for its partition's log.
//!
//! On the way of every commit: one small batch, built here and copied once more by the log.

use std::rc::Rc;

use coordinator::RecordBytes;
use model::builder::BatchBuilder;
use model::{ErrorCode, Offset};
use replica::Replica;

use super::limits::{BATCH_BYTES, MAX_RECORD_BYTES};

/// What a record may take besides its key and value: lengths, deltas, attributes.
const RECORD_OVERHEAD: usize = 32;

/// Cuts records into encoded batches of about [`BATCH_BYTES`], in order; a larger record has a batch to itself.
pub fn build(records: &[RecordBytes], wall_ms: i64) -> Result<Vec<Vec<u8>>, ErrorCode> {
    let mut batches = Vec::with_capacity(1);
    let mut batch = BatchBuilder::new();
    for (key, value) in records {
        let bytes = key.len() + value.as_ref().map_or(0, Vec::len) + RECORD_OVERHEAD;
        if bytes > MAX_RECORD_BYTES {
            return Err(ErrorCode::MessageTooLarge);
        }
        if !batch.is_empty() && batch.encoded_len() + bytes > BATCH_BYTES {
            batches.push(std::mem::take(&mut batch).finish());
        }
        batch.push(wall_ms, Some(key), value.as_deref(), &[]);
    }
    if !batch.is_empty() {
        batches.push(batch.finish());
    }
    Ok(batches)
}

/// Gives the records their place in the log. The end to wait for, or why (some of) them have none.
pub fn place(replica: &Rc<Replica>, records: &[RecordBytes], wall_ms: i64) -> Result<Offset, ErrorCode> {
    let mut next_offset = replica.log().log_end_offset();
    for batch in build(records, wall_ms)? {
        next_offset = replica.append_own(&batch).map_err(|error| error.code())?.next_offset;
    }
    Ok(next_offset)
}

#[cfg(test)]
#[path = "batches_tests.rs"]
mod tests;
