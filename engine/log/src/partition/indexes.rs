//! Indexes at work: entries of open segments travel to their files in the background, lookups take memory first, then
//! the file's part. A missing or damaged index of a closed segment is built again from the segment's headers.

use std::rc::Rc;

use model::{LeaderEpoch, Offset};
use runtime::{fs, spawn};

use super::PartitionLog;
use super::segments::SegmentRef;
use crate::error::LogError;
use crate::format::index::{self, IndexEntry};
use crate::format::names::FileKind;
use crate::format::time_index::{self, TimeEntry};
use crate::limits::{INDEX_FILE_ENTRIES, MAX_SEGMENT, SCAN_WINDOW};
use crate::scan::{EndReason, SegmentScan, Step};
use crate::segment::{Fill, path};

const INDEX_FILE: usize = INDEX_FILE_ENTRIES * index::ENTRY_LEN;
const TIME_INDEX_FILE: usize = INDEX_FILE_ENTRIES * time_index::ENTRY_LEN;

impl PartitionLog {
    /// One writer of index files at a time.
    pub(crate) async fn lock_indexes(&self) {
        loop {
            let seen = self.settled.version();
            if !self.flushing.replace(true) {
                return;
            }
            self.settled.changed_since(seen).await;
        }
    }

    pub(crate) fn unlock_indexes(&self) {
        self.flushing.set(false);
        self.settled.notify();
    }

    /// Sends the active segment's entries to their files without waiting.
    pub(crate) fn flush_indexes_soon(&self) {
        let empty = self.state.borrow().active.index.tail.is_empty();
        if empty || self.flushing.get() || self.paused.get() > 0 {
            return;
        }
        let me = self.me();
        me.in_flight.set(me.in_flight.get() + 1);
        spawn("flush-indexes", async move {
            me.lock_indexes().await;
            // A failed flush leaves the entries in memory; sealing or a clean stop tries again and reports.
            let _ = me.flush_active_indexes(false).await;
            me.unlock_indexes();
            me.step_done();
        });
    }

    /// The caller holds the index lock.
    pub(crate) async fn flush_active_indexes(&self, sync: bool) -> Result<(), LogError> {
        if !self.folder_made.get() {
            return Ok(());
        }
        let (base, index, time_index) = {
            let state = self.state.borrow();
            (state.active.base_offset, state.active.index.clone(), state.active.time_index.clone())
        };
        if sync || !index.tail.is_empty() {
            let at = u64::from(index.in_file) * index::ENTRY_LEN as u64;
            let bytes = index::encode(&index.tail);
            fs::write_tail(&path(self.dir(), base, FileKind::Index), at, bytes, sync).await?;
        }
        if sync || !time_index.tail.is_empty() {
            let at = u64::from(time_index.in_file) * time_index::ENTRY_LEN as u64;
            let bytes = time_index::encode(&time_index.tail);
            fs::write_tail(&path(self.dir(), base, FileKind::TimeIndex), at, bytes, sync).await?;
        }
        if let Some(segment) = self.state.borrow_mut().open_segment_mut(base) {
            segment.index.flushed(index.tail.len());
            segment.time_index.flushed(time_index.tail.len());
        }
        Ok(())
    }

    /// The index entry at whose batch a scan for `offset` may start; `None` is the segment's first byte.
    pub(crate) async fn start_entry(
        &self,
        segment: SegmentRef,
        offset: Offset,
    ) -> Result<Option<IndexEntry>, LogError> {
        let base = segment.base_offset;
        if !segment.open {
            let entries = self.closed_index(segment).await?;
            return Ok(index::entry_before(&entries, base, offset));
        }
        let in_file = {
            let state = self.state.borrow();
            let Some(open) = state.open_segment(base) else { return Ok(None) };
            let wanted = offset.0 - base.0;
            let in_memory = open.index.tail.first().is_some_and(|e| i64::from(e.relative) <= wanted);
            if in_memory || open.index.in_file == 0 {
                return Ok(index::entry_before(&open.index.tail, base, offset));
            }
            open.index.in_file
        };
        let entries = self.open_index_part(segment, offset, in_file).await?;
        Ok(index::entry_before(&entries, base, offset))
    }

    /// The part of an open segment's index that is in its file: cached as long as it reaches far enough.
    async fn open_index_part(
        &self,
        segment: SegmentRef,
        offset: Offset,
        in_file: u32,
    ) -> Result<Rc<Vec<IndexEntry>>, LogError> {
        let key = (self.id, segment.base_offset);
        let wanted = offset.0 - segment.base_offset.0;
        if let Some(cached) = self.shard.memory.indexes.get(key) {
            let reaches = cached.last().is_some_and(|e| i64::from(e.relative) >= wanted);
            if reaches || cached.len() >= in_file as usize {
                return Ok(cached);
            }
        }
        let cuts = self.cuts.get();
        let file = path(self.dir(), segment.base_offset, FileKind::Index);
        let mut bytes = fs::read_if_there(&file, INDEX_FILE).await?.unwrap_or_default();
        bytes.truncate(in_file as usize * index::ENTRY_LEN);
        // An unusable part only costs a longer scan; it is built anew when the segment closes.
        let entries = index::decode(&bytes, MAX_SEGMENT).unwrap_or_default();
        let len = bytes.len();
        // Sealed meanwhile: the key means the whole index now, which this is not.
        if cuts != self.cuts.get() || self.state.borrow().open_segment(segment.base_offset).is_none() {
            return Ok(Rc::new(entries));
        }
        Ok(self.shard.memory.indexes.insert(key, entries, len))
    }

    async fn closed_index(&self, segment: SegmentRef) -> Result<Rc<Vec<IndexEntry>>, LogError> {
        let key = (self.id, segment.base_offset);
        if let Some(cached) = self.shard.memory.indexes.get(key) {
            return Ok(cached);
        }
        let cuts = self.cuts.get();
        let file = path(self.dir(), segment.base_offset, FileKind::Index);
        let bytes = fs::read_if_there(&file, INDEX_FILE).await?;
        let entries = match bytes.and_then(|bytes| index::decode(&bytes, segment.size)) {
            Some(entries) => entries,
            None => self.rebuild_indexes(segment).await?.0,
        };
        if cuts != self.cuts.get() {
            return Ok(Rc::new(entries));
        }
        let len = entries.len() * index::ENTRY_LEN;
        Ok(self.shard.memory.indexes.insert(key, entries, len))
    }

    async fn closed_time_index(&self, segment: SegmentRef) -> Result<Rc<Vec<TimeEntry>>, LogError> {
        let key = (self.id, segment.base_offset);
        if let Some(cached) = self.shard.memory.time_indexes.get(key) {
            return Ok(cached);
        }
        let cuts = self.cuts.get();
        let file = path(self.dir(), segment.base_offset, FileKind::TimeIndex);
        let bytes = fs::read_if_there(&file, TIME_INDEX_FILE).await?;
        let last_relative = segment.next_offset.0 - segment.base_offset.0 - 1;
        let entries = match bytes.and_then(|bytes| time_index::decode(&bytes, last_relative)) {
            // A closed segment's index ends with its largest timestamp; none at all is normal only without timestamps.
            Some(entries) if !entries.is_empty() || segment.size == 0 => entries,
            _ => self.rebuild_indexes(segment).await?.1,
        };
        if cuts != self.cuts.get() {
            return Ok(Rc::new(entries));
        }
        let len = entries.len() * time_index::ENTRY_LEN;
        Ok(self.shard.memory.time_indexes.insert(key, entries, len))
    }

    /// Offset from which a scan for the first record at or after `timestamp_ms` may start.
    pub(crate) async fn time_start(&self, segment: SegmentRef, timestamp_ms: i64) -> Result<Offset, LogError> {
        let base = segment.base_offset;
        let at = |relative: i32| Offset(base.0 + i64::from(relative));
        if !segment.open {
            let entries = self.closed_time_index(segment).await?;
            return Ok(at(time_index::relative_before(&entries, timestamp_ms)));
        }
        let in_file = {
            let state = self.state.borrow();
            let Some(open) = state.open_segment(base) else { return Ok(base) };
            let in_memory = open.time_index.tail.first().is_some_and(|e| e.timestamp_ms <= timestamp_ms);
            if in_memory || open.time_index.in_file == 0 {
                return Ok(at(time_index::relative_before(&open.time_index.tail, timestamp_ms)));
            }
            open.time_index.in_file
        };
        let file = path(self.dir(), base, FileKind::TimeIndex);
        let mut bytes = fs::read_if_there(&file, TIME_INDEX_FILE).await?.unwrap_or_default();
        bytes.truncate(in_file as usize * time_index::ENTRY_LEN);
        let entries = time_index::decode(&bytes, i64::from(i32::MAX)).unwrap_or_default();
        Ok(at(time_index::relative_before(&entries, timestamp_ms)))
    }

    /// The largest timestamp of a closed segment.
    pub(crate) async fn max_timestamp_of(&self, segment: SegmentRef) -> Result<i64, LogError> {
        let known = self.with_closed(segment.base_offset, |s| s.max_timestamp_ms).flatten();
        if let Some(known) = known {
            return Ok(known);
        }
        let entries = self.closed_time_index(segment).await?;
        let found = entries.last().map_or(crate::segment::NO_TIMESTAMP, |e| e.timestamp_ms);
        self.with_closed(segment.base_offset, |s| s.max_timestamp_ms = Some(found));
        Ok(found)
    }

    /// Walks the headers of a closed segment and writes both indexes anew. Behind damage they do not go: then they are this
    /// walk's alone, and a file that knows more stays.
    pub(crate) async fn rebuild_indexes(
        &self,
        segment: SegmentRef,
    ) -> Result<(Vec<IndexEntry>, Vec<TimeEntry>), LogError> {
        let base = segment.base_offset;
        let interval = self.config().index_interval_bytes;
        // Past the page cache: what is only walked over must not pass for verified there.
        let file = self.direct_file(base, false).await?;
        let cuts = self.cuts.get();
        let scan = SegmentScan::new(base, Fill::empty(base), LeaderEpoch::UNKNOWN, interval);
        let mut scan = scan.headers_only().with_gaps(self.may_have_gaps());
        let mut window = SCAN_WINDOW;
        let whole = loop {
            let position = scan.position();
            let left = segment.size - position;
            let bytes = file.read(position, window.min(left as usize)).await?;
            match scan.feed(&bytes, left) {
                Step::Need(_) if bytes.len() < window.min(left as usize) => break false,
                Step::Need(len) => window = len.max(SCAN_WINDOW),
                Step::End(why) => break why == EndReason::FileEnd,
            }
        };
        let mut times = scan.time_index;
        times.extend(scan.fill.final_time_entry(base));
        if whole {
            // In a task of its own: a reader that goes away does not take the lock with it.
            let (me, index, time_index) = (self.me(), scan.index.clone(), times.clone());
            let stored =
                spawn("rebuilt-index", async move { me.store_rebuilt(segment, cuts, &index, &time_index).await });
            stored.join().await.unwrap_or(Err(LogError::Closed))?;
        }
        Ok((scan.index, times))
    }

    /// Writes the indexes of a closed segment, unless it was cut, removed or rewritten since they were made. Under the index
    /// lock: a truncation and an unlink wait for it, and one that came first is seen here.
    async fn store_rebuilt(
        &self,
        segment: SegmentRef,
        cuts: u64,
        index: &[IndexEntry],
        times: &[TimeEntry],
    ) -> Result<(), LogError> {
        self.home.prepare_write().await?;
        self.lock_indexes().await;
        let gone = self.cutting.get() || self.deleted.get() || cuts != self.cuts.get() || !self.is_still(segment);
        let stored = if gone { Ok(()) } else { self.store_indexes(segment.base_offset, index, times).await };
        self.unlock_indexes();
        stored
    }

    async fn store_indexes(&self, base: Offset, index: &[IndexEntry], times: &[TimeEntry]) -> Result<(), LogError> {
        let bytes = index::encode(index);
        fs::write_tail(&path(self.dir(), base, FileKind::Index), 0, bytes, true).await?;
        let bytes = time_index::encode(times);
        Ok(fs::write_tail(&path(self.dir(), base, FileKind::TimeIndex), 0, bytes, true).await?)
    }

    pub(crate) fn corrupt(&self, base: Offset, position: u64, why: String) -> LogError {
        LogError::Corrupt { path: path(self.dir(), base, FileKind::Log), position, why }
    }
}
