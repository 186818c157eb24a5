//! Our checkpoint: for each partition its log start, log end and a recovery point, so that a clean start reads this file
//! and no partition, and a start after a crash scans tails only. Little-endian, with version and CRC; a damaged file is
//! no file. Written aside, synced and renamed by its owner, never in place.

use model::{LeaderEpoch, Offset, PartitionIndex, PartitionKey, TopicId};

use super::epochs::EpochEntry;
use crate::limits::{CHECKPOINT_ENTRIES, CHECKPOINT_EPOCHS};
use crate::segment::Fill;

const MAGIC: &[u8; 8] = b"RLCHKPT\n";
const VERSION: u16 = 1;
const HEADER_LEN: usize = 8 + 2 + 8 + 4;
const CRC_LEN: usize = 4;
const MAX_TOPIC: usize = 249;
const NO_OFFSET: i64 = -1;

/// One partition. Everything below `fill.size` of segment `segment_base` (and every segment before it) was durable when
/// the entry was made, and so were the first `index_entries` and `time_entries` of that segment's index files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointEntry {
    pub key: PartitionKey,
    pub topic: String,
    pub log_start_offset: Offset,
    pub segment_base: Offset,
    /// What the segment held at the recovery point; its `next_offset` is the log end after a clean stop.
    pub fill: Fill,
    pub index_entries: u32,
    pub time_entries: u32,
    /// Closed segments before it, so that sizes are known without listing the folder.
    pub closed_count: u32,
    pub closed_bytes: u64,
    pub created_ms: i64,
    pub last_append_ms: i64,
    /// Newest producer snapshot at or below the recovery point.
    pub snapshot_at: Option<Offset>,
    /// The newest epochs; `None` when there are too many and `leader-epoch-checkpoint` has to be read.
    pub epochs: Option<Vec<EpochEntry>>,
}

impl CheckpointEntry {
    /// Whether the partition ever had a folder: one without records before it has none.
    pub fn has_data(&self) -> bool {
        self.closed_count > 0 || self.fill.size > 0 || self.segment_base.0 > 0
    }
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Random number of the start that wrote it.
    pub incarnation: u64,
    pub entries: Vec<CheckpointEntry>,
}

fn put_fill(out: &mut Vec<u8>, fill: &Fill) {
    out.extend_from_slice(&fill.size.to_le_bytes());
    out.extend_from_slice(&fill.next_offset.0.to_le_bytes());
    out.extend_from_slice(&fill.max_timestamp_ms.to_le_bytes());
    out.extend_from_slice(&fill.max_timestamp_offset.0.to_le_bytes());
    out.extend_from_slice(&fill.first_timestamp_ms.to_le_bytes());
    out.extend_from_slice(&fill.unindexed_bytes.to_le_bytes());
    out.extend_from_slice(&fill.last_time_entry_ms.to_le_bytes());
}

fn put_entry(out: &mut Vec<u8>, entry: &CheckpointEntry) {
    out.extend_from_slice(&entry.key.topic_id.0);
    out.extend_from_slice(&entry.key.partition.0.to_le_bytes());
    out.extend_from_slice(&(entry.topic.len() as u16).to_le_bytes());
    out.extend_from_slice(entry.topic.as_bytes());
    out.extend_from_slice(&entry.log_start_offset.0.to_le_bytes());
    out.extend_from_slice(&entry.segment_base.0.to_le_bytes());
    put_fill(out, &entry.fill);
    out.extend_from_slice(&entry.index_entries.to_le_bytes());
    out.extend_from_slice(&entry.time_entries.to_le_bytes());
    out.extend_from_slice(&entry.closed_count.to_le_bytes());
    out.extend_from_slice(&entry.closed_bytes.to_le_bytes());
    out.extend_from_slice(&entry.created_ms.to_le_bytes());
    out.extend_from_slice(&entry.last_append_ms.to_le_bytes());
    out.extend_from_slice(&entry.snapshot_at.map_or(NO_OFFSET, |o| o.0).to_le_bytes());
    let epochs = entry.epochs.as_deref().filter(|e| e.len() <= CHECKPOINT_EPOCHS);
    out.extend_from_slice(&epochs.map_or(u16::MAX, |e| e.len() as u16).to_le_bytes());
    for epoch in epochs.unwrap_or_default() {
        out.extend_from_slice(&epoch.epoch.0.to_le_bytes());
        out.extend_from_slice(&epoch.start_offset.0.to_le_bytes());
    }
}

/// Encodes a file. Takes entries by reference, because the owner keeps them.
pub fn encode<'a>(incarnation: u64, entries: impl ExactSizeIterator<Item = &'a CheckpointEntry>) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_LEN + CRC_LEN + entries.len() * 192);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&incarnation.to_le_bytes());
    out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    for entry in entries {
        put_entry(&mut out, entry);
    }
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// An offset that is a position, never a sentinel.
    fn offset(&mut self) -> Option<Offset> {
        self.i64().filter(|o| *o >= 0).map(Offset)
    }

    fn text(&mut self) -> Option<String> {
        let len = usize::from(self.u16()?);
        if len > MAX_TOPIC {
            return None;
        }
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(head.to_vec()).ok()
    }

    fn fill(&mut self) -> Option<Fill> {
        Some(Fill {
            size: self.u64()?,
            next_offset: self.offset()?,
            max_timestamp_ms: self.i64()?,
            max_timestamp_offset: Offset(self.i64()?),
            first_timestamp_ms: self.i64()?,
            unindexed_bytes: self.u64()?,
            last_time_entry_ms: self.i64()?,
        })
    }

    fn epochs(&mut self) -> Option<Option<Vec<EpochEntry>>> {
        let count = self.u16()?;
        if count == u16::MAX {
            return Some(None);
        }
        if usize::from(count) > CHECKPOINT_EPOCHS {
            return None;
        }
        let mut epochs = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            epochs.push(EpochEntry { epoch: LeaderEpoch(self.i32()?), start_offset: self.offset()? });
        }
        Some(Some(epochs))
    }

    fn entry(&mut self) -> Option<CheckpointEntry> {
        let key = PartitionKey { topic_id: TopicId(self.array()?), partition: PartitionIndex(self.i32()?) };
        let entry = CheckpointEntry {
            key,
            topic: self.text()?,
            log_start_offset: self.offset()?,
            segment_base: self.offset()?,
            fill: self.fill()?,
            index_entries: self.u32()?,
            time_entries: self.u32()?,
            closed_count: self.u32()?,
            closed_bytes: self.u64()?,
            created_ms: self.i64()?,
            last_append_ms: self.i64()?,
            snapshot_at: Some(self.i64()?).filter(|o| *o >= 0).map(Offset),
            epochs: self.epochs()?,
        };
        (entry.segment_base <= entry.fill.next_offset).then_some(entry)
    }
}

/// The version, where it is newer than ours and the CRC says that it was written so. Magic, version and CRC stay where they
/// are in every version.
pub fn newer_version(bytes: &[u8]) -> Option<u32> {
    let (body, crc) = bytes.split_at(bytes.len().checked_sub(CRC_LEN)?);
    let mut reader = Reader(body);
    if reader.array::<8>()? != *MAGIC || crc32fast::hash(body).to_le_bytes() != crc {
        return None;
    }
    reader.u16().filter(|version| *version > VERSION).map(u32::from)
}

/// Reads a file. `None` when it is damaged, cut or of another version.
pub fn decode(bytes: &[u8]) -> Option<Checkpoint> {
    let body_len = bytes.len().checked_sub(CRC_LEN)?;
    let (body, crc) = bytes.split_at(body_len);
    if crc32fast::hash(body).to_le_bytes() != crc {
        return None;
    }
    let mut reader = Reader(body);
    if reader.array::<8>()? != *MAGIC || reader.u16()? != VERSION {
        return None;
    }
    let incarnation = reader.u64()?;
    let count = reader.u32()? as usize;
    if count > CHECKPOINT_ENTRIES || count > body.len() {
        return None;
    }
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(reader.entry()?);
    }
    reader.0.is_empty().then_some(Checkpoint { incarnation, entries })
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
