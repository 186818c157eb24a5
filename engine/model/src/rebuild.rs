//! Batches made anew from what another batch holds, for compaction: the header of the original with some fields changed,
//! around records that are copied byte for byte. Offsets, sequence numbers and epochs stay what they were.
//!
//! Pure functions over bytes that were read from a disk: nothing here panics whatever they say.

use crate::batch::{BatchHeader, BatchView, CRC_FROM, HEADER_LEN, LOG_OVERHEAD, RecordIter, crc32c};
use crate::{BatchError, Record, varint};

const ATTR_CODEC: i16 = 0x07;
const ATTR_DELETE_HORIZON: i16 = 0x40;
/// Base timestamp of a batch without records.
const NO_TIMESTAMP: i64 = -1;

/// Writes a batch: `header` but for its length and CRC, which follow from `payload`.
pub fn write_batch(header: &BatchHeader, payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&header.base_offset.0.to_be_bytes());
    out.extend_from_slice(&((HEADER_LEN - LOG_OVERHEAD + payload.len()) as i32).to_be_bytes());
    out.extend_from_slice(&header.leader_epoch.0.to_be_bytes());
    out.push(header.magic as u8);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&header.attributes.to_be_bytes());
    out.extend_from_slice(&header.last_offset_delta.to_be_bytes());
    out.extend_from_slice(&header.base_timestamp_ms.to_be_bytes());
    out.extend_from_slice(&header.max_timestamp_ms.to_be_bytes());
    out.extend_from_slice(&header.producer_id.0.to_be_bytes());
    out.extend_from_slice(&header.producer_epoch.0.to_be_bytes());
    out.extend_from_slice(&header.base_sequence.to_be_bytes());
    out.extend_from_slice(&header.record_count.to_be_bytes());
    out.extend_from_slice(payload);
    let crc = crc32c(&out[start + CRC_FROM..]);
    out[start + 17..start + 21].copy_from_slice(&crc.to_be_bytes());
}

/// The header of the batch that is left when all its records went, as Kafka writes it: it still says how far the offsets
/// and the producer's sequence numbers got.
pub fn emptied(header: &BatchHeader) -> BatchHeader {
    BatchHeader {
        attributes: header.attributes & !(ATTR_CODEC | ATTR_DELETE_HORIZON),
        base_timestamp_ms: NO_TIMESTAMP,
        record_count: 0,
        ..*header
    }
}

/// The header with a delete horizon in place of its base timestamp (KIP-534). Its records' timestamps have to be moved by
/// as much ([`move_timestamp`]).
pub fn with_delete_horizon(header: &BatchHeader, horizon_ms: i64) -> BatchHeader {
    BatchHeader { attributes: header.attributes | ATTR_DELETE_HORIZON, base_timestamp_ms: horizon_ms, ..*header }
}

/// When the batch's tombstones may go, if a cleaning has said so.
pub fn delete_horizon_ms(header: &BatchHeader) -> Option<i64> {
    header.has_delete_horizon().then_some(header.base_timestamp_ms)
}

/// Copies one encoded record with its timestamp delta changed by `by_ms`. `None` when it is no record.
pub fn move_timestamp(record: &[u8], by_ms: i64, out: &mut Vec<u8>) -> Option<()> {
    let mut at = 0;
    let length = usize::try_from(varint::read_varint(record, &mut at)?).ok()?;
    let body = record.get(at..at.checked_add(length)?)?;
    let attributes = *body.first()?;
    let mut pos = 1;
    let delta_ms = varint::read_varlong(body, &mut pos)?;
    let mut stamp = Vec::with_capacity(varint::MAX_VARLONG_LEN);
    varint::write_varlong(&mut stamp, delta_ms.wrapping_add(by_ms));
    let rest = body.get(pos..)?;
    let length = i32::try_from(1 + stamp.len() + rest.len()).ok()?;
    varint::write_varint(out, length);
    out.push(attributes);
    out.extend_from_slice(&stamp);
    out.extend_from_slice(rest);
    Some(())
}

/// Walks records together with their bytes.
#[derive(Clone, Debug)]
pub struct RawRecords<'a> {
    records: RecordIter<'a>,
}

impl<'a> RawRecords<'a> {
    /// `section` is the inflated record section.
    pub fn new(section: &'a [u8], header: &BatchHeader) -> RawRecords<'a> {
        RawRecords { records: RecordIter::new(section, header.record_count) }
    }

    /// Of an uncompressed batch.
    pub fn of(batch: &BatchView<'a>) -> RawRecords<'a> {
        RawRecords { records: batch.records() }
    }

    /// Whether the walk used all bytes up.
    pub fn is_at_end(&self) -> bool {
        self.records.rest().is_empty()
    }
}

impl<'a> Iterator for RawRecords<'a> {
    type Item = Result<(Record<'a>, &'a [u8]), BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let before = self.records.rest();
        let record = self.records.next()?;
        let len = before.len() - self.records.rest().len();
        Some(record.map(|record| (record, &before[..len])))
    }
}

#[cfg(test)]
#[path = "rebuild_tests.rs"]
mod tests;
