//! What a segment is made of: how far it is filled, and its growing indexes. Both the append way and the scans at a
//! start feed batches through [`Fill::add`], so that a rebuilt index equals the one that was written.

use std::path::{Path, PathBuf};

use model::{BatchHeader, Offset};

use crate::format::index::{self, IndexEntry};
use crate::format::names::{FileKind, file_name};
use crate::format::time_index::TimeEntry;

/// No record has had a timestamp yet.
pub const NO_TIMESTAMP: i64 = -1;

/// How far a segment is filled, and what its batches said so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    pub size: u64,
    pub next_offset: Offset,
    pub max_timestamp_ms: i64,
    /// Last offset of the first batch with that timestamp.
    pub max_timestamp_offset: Offset,
    /// Largest timestamp of the first batch: what `segment.ms` counts from.
    pub first_timestamp_ms: i64,
    pub unindexed_bytes: u64,
    /// Timestamp of the newest time-index entry.
    pub last_time_entry_ms: i64,
}

/// Index entries that a batch gave rise to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewEntries {
    pub index: IndexEntry,
    pub time: Option<TimeEntry>,
}

impl Fill {
    pub fn empty(base_offset: Offset) -> Fill {
        Fill {
            size: 0,
            next_offset: base_offset,
            max_timestamp_ms: NO_TIMESTAMP,
            max_timestamp_offset: base_offset,
            first_timestamp_ms: NO_TIMESTAMP,
            unindexed_bytes: 0,
            last_time_entry_ms: NO_TIMESTAMP,
        }
    }

    /// Takes the batch that starts at `size`. `None` inside the result means no index entry is due. The outer `None`
    /// means that the batch's offsets do not fit the segment.
    pub fn add(&mut self, base_offset: Offset, header: &BatchHeader, interval: u64) -> Option<Option<NewEntries>> {
        let relative = index::relative(base_offset, header.last_offset())?;
        let position = i32::try_from(self.size).ok()?;
        // What compaction emptied keeps its timestamp for its producer's sake; no record of that time is there any more.
        let newer = header.max_timestamp_ms > self.max_timestamp_ms && header.record_count > 0;
        let max_relative = if newer { relative } else { index::relative(base_offset, self.max_timestamp_offset)? };
        if self.size == 0 {
            self.first_timestamp_ms = header.max_timestamp_ms;
        }
        if newer {
            self.max_timestamp_ms = header.max_timestamp_ms;
            self.max_timestamp_offset = header.last_offset();
        }
        let mut entries = None;
        if self.unindexed_bytes > interval {
            let due = self.max_timestamp_ms > self.last_time_entry_ms;
            let time = due.then_some(TimeEntry { timestamp_ms: self.max_timestamp_ms, relative: max_relative });
            entries = Some(NewEntries { index: IndexEntry { relative, position }, time });
            self.last_time_entry_ms = self.last_time_entry_ms.max(self.max_timestamp_ms);
            self.unindexed_bytes = 0;
        }
        self.size += header.size() as u64;
        self.unindexed_bytes += header.size() as u64;
        self.next_offset = header.next_offset();
        Some(entries)
    }

    /// The entry that closes the time index at a roll or a clean stop, if the index does not end with it already.
    pub fn final_time_entry(&self, base_offset: Offset) -> Option<TimeEntry> {
        if self.max_timestamp_ms <= self.last_time_entry_ms {
            return None;
        }
        let relative = index::relative(base_offset, self.max_timestamp_offset)?;
        Some(TimeEntry { timestamp_ms: self.max_timestamp_ms, relative })
    }
}

/// An index that grows: the first entries are in the file, the newest in memory.
#[derive(Clone, Debug)]
pub struct GrowingIndex<E> {
    pub in_file: u32,
    pub tail: Vec<E>,
}

impl<E: Copy> GrowingIndex<E> {
    pub fn new(in_file: u32) -> GrowingIndex<E> {
        GrowingIndex { in_file, tail: Vec::new() }
    }

    pub fn len(&self) -> u32 {
        self.in_file + self.tail.len() as u32
    }

    /// The first `count` entries of the tail are in the file now.
    pub fn flushed(&mut self, count: usize) {
        assert!(count <= self.tail.len(), "only what is in memory can reach the file");
        self.in_file += count as u32;
        if count == self.tail.len() {
            self.tail = Vec::new();
        } else {
            self.tail.drain(..count);
        }
    }
}

/// A segment that takes no more appends: whole, synced and trimmed on disk.
#[derive(Clone, Copy, Debug)]
pub struct ClosedSegment {
    pub base_offset: Offset,
    pub next_offset: Offset,
    pub size: u64,
    /// Largest timestamp, once it was asked for.
    pub max_timestamp_ms: Option<i64>,
    /// When the last record was appended (the file's time), once it was asked for.
    pub modified_ms: Option<i64>,
}

/// A place in a segment between two batches, with what is known of the segment up to there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub fill: Fill,
    pub index_entries: u32,
    pub time_entries: u32,
}

/// The segment that is appended to, or one that was rolled and still drains to the disk.
#[derive(Clone, Debug)]
pub struct OpenSegment {
    pub base_offset: Offset,
    /// Everything appended.
    pub fill: Fill,
    /// Position up to which the file has it, and up to which it was synced.
    pub written: u64,
    pub durable: u64,
    /// Where the last batch ends of which the file has all: for whoever reads batches from the file.
    pub whole: u64,
    /// Up to which the journal was given bytes, or the file has them durably: the journal goes on from here.
    pub taken: u64,
    /// Up to which bytes are durable somewhere, in the file or in the journal.
    pub kept: Mark,
    /// Up to which bytes no longer count as unwritten.
    pub counted: u64,
    /// Length of the file on disk.
    pub allocated: u64,
    /// Next preallocation.
    pub preallocate: u64,
    /// Bytes behind the end may be on disk from before a crash: cut them durably before the next write.
    pub needs_cut: bool,
    /// Whether the file's name in the folder was synced.
    pub name_synced: bool,
    pub index: GrowingIndex<IndexEntry>,
    pub time_index: GrowingIndex<TimeEntry>,
    pub created_ms: i64,
    pub last_append_ms: i64,
    /// Subtracted from `segment.ms`, so that many partitions do not roll at once.
    pub jitter_ms: i64,
}

impl OpenSegment {
    /// A segment without a file yet.
    pub fn fresh(base_offset: Offset, now_ms: i64) -> OpenSegment {
        OpenSegment {
            base_offset,
            fill: Fill::empty(base_offset),
            written: 0,
            durable: 0,
            whole: 0,
            taken: 0,
            kept: Mark { fill: Fill::empty(base_offset), index_entries: 0, time_entries: 0 },
            counted: 0,
            allocated: 0,
            preallocate: crate::limits::PREALLOCATE_MIN,
            needs_cut: false,
            name_synced: false,
            index: GrowingIndex::new(0),
            time_index: GrowingIndex::new(0),
            created_ms: now_ms,
            last_append_ms: now_ms,
            jitter_ms: 0,
        }
    }

    /// Bytes up to this may leave memory: the file has them. What a failed partition's file may have lost is only in memory,
    /// and in the ring.
    pub fn evictable(&self, failed: bool) -> u64 {
        if failed { self.durable } else { self.written }
    }

    /// The journal has bytes durably that the file does not have.
    pub fn can_move(&self) -> bool {
        self.kept.fill.size > self.written
    }

    /// Bytes that rounds of the journal have and the file does not.
    pub fn pinned(&self) -> u64 {
        self.taken.saturating_sub(self.written)
    }

    pub fn is_written(&self) -> bool {
        self.written == self.fill.size
    }

    /// Where it ends now.
    pub fn mark(&self) -> Mark {
        Mark { fill: self.fill, index_entries: self.index.len(), time_entries: self.time_index.len() }
    }

    /// Everything in it is in its file, durably: as a start or a truncation finds it. After `fill` and the indexes are set.
    pub fn is_all_on_disk(&mut self) {
        let size = self.fill.size;
        (self.written, self.durable, self.taken, self.counted) = (size, size, size, size);
        self.whole = size;
        self.kept = self.mark();
    }

    /// Takes everything up to `position` off the unwritten bytes, once. Gives how many that were.
    pub fn count(&mut self, position: u64) -> u64 {
        let more = position.saturating_sub(self.counted);
        self.counted += more;
        more
    }

    /// Bytes that count as unwritten.
    pub fn uncounted(&self) -> u64 {
        self.fill.size - self.counted
    }
}

pub fn path(dir: &Path, base_offset: Offset, kind: FileKind) -> PathBuf {
    dir.join(file_name(base_offset, kind))
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
