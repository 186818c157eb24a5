//! The `.snapshot` file of a segment, in Apache Kafka's format: version, CRC-32C, then one entry for each batch.
//!
//! Kafka writes one entry for each producer (its last batch). Here each remembered batch has one, oldest first, so that
//! a retry of any of the last five still finds its answer after a restart; Kafka's own reader lets the last entry of a
//! producer win, which is what it would have written.

use std::fmt;
use std::rc::Rc;

use model::batch::crc32c;
use model::{Offset, ProducerEpoch, ProducerId};

use crate::limits::{BATCHES_PER_PRODUCER, PRODUCERS_PER_SHARD_MAX};
use crate::producer_states::ProducerStates;
use crate::producers::{BatchMemory, ProducerTable};

const VERSION: i16 = 1;
/// Version, CRC, entry count.
const HEADER_LEN: usize = 2 + 4 + 4;
const ENTRY_LEN: usize = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8;

/// Why a snapshot file is not used; the producers are then rebuilt from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    Cut,
    Version(i16),
    /// Written by a newer Ringlog or Apache Kafka; not damage.
    Newer(i16),
    Crc,
    Count(i32),
    Entry(usize),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Cut => write!(f, "the producer snapshot is cut short"),
            SnapshotError::Version(v) => write!(f, "producer snapshot version {v} is unknown"),
            SnapshotError::Newer(v) => {
                write!(f, "the producer snapshot has version {v}; this Ringlog knows versions up to {VERSION}")
            }
            SnapshotError::Crc => write!(f, "the producer snapshot's CRC is wrong"),
            SnapshotError::Count(n) => write!(f, "a producer snapshot of {n} entries does not fit its file"),
            SnapshotError::Entry(i) => write!(f, "entry {i} of the producer snapshot contradicts itself"),
        }
    }
}

impl std::error::Error for SnapshotError {}

pub fn encode(table: &ProducerTable) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_LEN + table.len() * ENTRY_LEN);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 8]);
    let mut count: i32 = 0;
    table.for_each(|id, entry| {
        for batch in &entry.batches {
            out.extend_from_slice(&id.0.to_be_bytes());
            out.extend_from_slice(&entry.epoch.0.to_be_bytes());
            out.extend_from_slice(&batch.last_sequence.to_be_bytes());
            out.extend_from_slice(&batch.last_offset.0.to_be_bytes());
            out.extend_from_slice(&((batch.last_offset.0 - batch.first_offset.0) as i32).to_be_bytes());
            out.extend_from_slice(&batch.timestamp_ms.to_be_bytes());
            out.extend_from_slice(&(-1i32).to_be_bytes()); // coordinator epoch: no transactions
            out.extend_from_slice(&(-1i64).to_be_bytes()); // first offset of an open transaction: none
            count += 1;
        }
    });
    out[6..10].copy_from_slice(&count.to_be_bytes());
    let crc = crc32c(&out[6..]);
    out[2..6].copy_from_slice(&crc.to_be_bytes());
    out
}

fn be<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

/// A table on its own, for tools.
pub fn decode(bytes: &[u8]) -> Result<ProducerTable, SnapshotError> {
    let table = ProducerTable::within(&Rc::new(ProducerStates::new(PRODUCERS_PER_SHARD_MAX)));
    decode_into(&table, bytes, 0)?;
    Ok(table)
}

/// Puts what a snapshot holds into an empty table; those that wrote last come last, so that the shard's bound, if it is
/// met, keeps them. Nothing is put where the file is refused.
pub fn decode_into(table: &ProducerTable, bytes: &[u8], now_ms: i64) -> Result<(), SnapshotError> {
    let entries = decode_entries(bytes)?;
    let mut producers: Vec<&[Entry]> = entries.chunk_by(|a, b| a.0 == b.0).collect();
    producers.sort_by_key(|batches| batches.last().map(|(_, _, memory)| memory.last_offset));
    for &(id, epoch, memory) in producers.into_iter().flatten() {
        table.restore(id, epoch, memory, now_ms);
    }
    Ok(())
}

type Entry = (ProducerId, ProducerEpoch, BatchMemory);

fn decode_entries(bytes: &[u8]) -> Result<Vec<Entry>, SnapshotError> {
    if bytes.len() < HEADER_LEN {
        return Err(SnapshotError::Cut);
    }
    let version = i16::from_be_bytes(be(bytes, 0));
    // The CRC leaves the version out: a wrong one with a right CRC is either newer or flipped, and neither is replaced.
    let whole = u32::from_be_bytes(be(bytes, 2)) == crc32c(&bytes[6..]);
    if version > VERSION && whole {
        return Err(SnapshotError::Newer(version));
    }
    if version != VERSION {
        return Err(SnapshotError::Version(version));
    }
    if !whole {
        return Err(SnapshotError::Crc);
    }
    let count = i32::from_be_bytes(be(bytes, 6));
    let entries = &bytes[HEADER_LEN..];
    let fits = usize::try_from(count)
        .is_ok_and(|n| n <= PRODUCERS_PER_SHARD_MAX * BATCHES_PER_PRODUCER && n * ENTRY_LEN == entries.len());
    if !fits {
        return Err(SnapshotError::Count(count));
    }
    let each = entries.chunks_exact(ENTRY_LEN).enumerate();
    each.map(|(index, entry)| decode_entry(entry).ok_or(SnapshotError::Entry(index))).collect()
}

fn decode_entry(entry: &[u8]) -> Option<Entry> {
    let last_sequence = i32::from_be_bytes(be(entry, 10));
    let last_offset = i64::from_be_bytes(be(entry, 14));
    let offset_delta = i32::from_be_bytes(be(entry, 22));
    if last_sequence < 0 || offset_delta < 0 || last_offset < i64::from(offset_delta) {
        return None;
    }
    // Sequence numbers wrap from 2147483647 to 0, that is, modulo 2^31.
    let first_sequence = (i64::from(last_sequence) - i64::from(offset_delta)).rem_euclid(1 << 31) as i32;
    let memory = BatchMemory {
        first_sequence,
        last_sequence,
        first_offset: Offset(last_offset - i64::from(offset_delta)),
        last_offset: Offset(last_offset),
        timestamp_ms: i64::from_be_bytes(be(entry, 26)),
    };
    Some((ProducerId(i64::from_be_bytes(be(entry, 0))), ProducerEpoch(i16::from_be_bytes(be(entry, 8))), memory))
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
