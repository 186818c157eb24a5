//! The sparse offset index: relative offset i32, position i32. An entry is a batch's **last** offset with its **start**
//! position, as Kafka writes it. On the fetch way: one binary search per read that the batch cache cannot answer.

use model::Offset;

/// Bytes of an entry in the file.
pub const ENTRY_LEN: usize = 8;

/// One entry. `relative` counts from the segment's base offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    pub relative: i32,
    pub position: i32,
}

impl IndexEntry {
    pub fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.relative.to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
    }

    /// One entry as it stands in the file, whatever it says.
    pub fn decode(bytes: &[u8]) -> Option<IndexEntry> {
        let relative = i32::from_be_bytes(bytes.get(0..4)?.try_into().ok()?);
        let position = i32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
        Some(IndexEntry { relative, position })
    }
}

pub fn encode(entries: &[IndexEntry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.len() * ENTRY_LEN);
    for entry in entries {
        entry.encode(&mut out);
    }
    out
}

/// Reads a whole file. `None` when it cannot be the index of a segment of `segment_len` bytes: the caller rebuilds it.
pub fn decode(bytes: &[u8], segment_len: u64) -> Option<Vec<IndexEntry>> {
    if !bytes.len().is_multiple_of(ENTRY_LEN) {
        return None;
    }
    let mut entries: Vec<IndexEntry> = Vec::with_capacity(bytes.len() / ENTRY_LEN);
    for chunk in bytes.chunks_exact(ENTRY_LEN) {
        let entry = IndexEntry::decode(chunk)?;
        let in_order = entries.last().is_none_or(|l| l.relative < entry.relative && l.position < entry.position);
        if !in_order || entry.relative < 0 || entry.position < 0 || entry.position as u64 >= segment_len {
            return None;
        }
        entries.push(entry);
    }
    Some(entries)
}

/// Position at which a scan for `offset` may start: that of the last entry whose offset is not beyond it.
pub fn position_before(entries: &[IndexEntry], base_offset: Offset, offset: Offset) -> u64 {
    entry_before(entries, base_offset, offset).map_or(0, |e| e.position as u64)
}

/// The last entry whose offset is not beyond `offset`.
pub fn entry_before(entries: &[IndexEntry], base_offset: Offset, offset: Offset) -> Option<IndexEntry> {
    let wanted = offset.0.saturating_sub(base_offset.0);
    let after = entries.partition_point(|e| i64::from(e.relative) <= wanted);
    after.checked_sub(1).map(|i| entries[i])
}

/// Offset relative to the segment, if it fits the format.
pub fn relative(base_offset: Offset, offset: Offset) -> Option<i32> {
    i32::try_from(offset.0.checked_sub(base_offset.0)?).ok().filter(|r| *r >= 0)
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
