//! The list of segments. After a clean start closed segments are only counted; the folder is listed when one is needed.

use model::Offset;
use runtime::{SharedFile, fs};

use super::{PartitionLog, State};
use crate::compact::POINT_FILE;
use crate::error::LogError;
use crate::format::names::{FileKind, parse_file_name};
use crate::limits::SEGMENTS_MAX;
use crate::segment::{ClosedSegment, path};

/// A segment as a reader sees it at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentRef {
    pub base_offset: Offset,
    pub next_offset: Offset,
    /// Bytes that the file has.
    pub size: u64,
    pub open: bool,
}

impl SegmentRef {
    fn closed(segment: &ClosedSegment) -> SegmentRef {
        SegmentRef {
            base_offset: segment.base_offset,
            next_offset: segment.next_offset,
            size: segment.size,
            open: false,
        }
    }
}

impl State {
    pub fn first_open_base(&self) -> Offset {
        self.draining.front().unwrap_or(&self.active).base_offset
    }
}

impl PartitionLog {
    /// Lists the folder if that was not done yet.
    pub(crate) async fn load_segments(&self) -> Result<(), LogError> {
        loop {
            let before = {
                let mut state = self.state.borrow_mut();
                if state.closed.is_some() {
                    return Ok(());
                }
                if state.closed_count == 0 {
                    state.closed = Some(Vec::new());
                    return Ok(());
                }
                state.first_open_base()
            };
            let listing = fs::read_dir(self.dir()).await?;
            let mut state = self.state.borrow_mut();
            if state.closed.is_some() {
                return Ok(());
            }
            // A segment sealed meanwhile was perhaps listed with its preallocated length.
            if state.first_open_base() != before {
                continue;
            }
            let closed = closed_segments(&listing, before);
            if closed.len() > SEGMENTS_MAX {
                let why = format!("it holds more than {SEGMENTS_MAX} segments");
                return Err(LogError::BadFolder { path: self.dir().to_path_buf(), why });
            }
            state.closed_count = closed.len() as u32;
            state.closed_bytes = closed.iter().map(|s| s.size).sum();
            state.was_cleaned |= listing.iter().any(|entry| entry.name == POINT_FILE);
            state.closed = Some(closed);
            return Ok(());
        }
    }

    /// The segment that holds `offset`, which lies between log start and log end.
    pub(crate) async fn segment_of(&self, offset: Offset) -> Result<SegmentRef, LogError> {
        if let Some(open) = self.open_segment_of(offset) {
            return Ok(open);
        }
        self.load_segments().await?;
        let found = {
            let state = self.state.borrow();
            let closed = state.closed.as_deref().unwrap_or_default();
            let after = closed.partition_point(|s| s.base_offset <= offset);
            after.checked_sub(1).map(|i| SegmentRef::closed(&closed[i]))
        };
        match found.or_else(|| self.open_segment_of(offset)) {
            Some(segment) => Ok(segment),
            None => {
                self.mark_missing(offset);
                let why = format!("the segment that holds offset {offset} is missing");
                Err(LogError::BadFolder { path: self.dir().to_path_buf(), why })
            }
        }
    }

    fn open_segment_of(&self, offset: Offset) -> Option<SegmentRef> {
        let state = self.state.borrow();
        let segment = state.open_segments().filter(|s| s.base_offset <= offset).last()?;
        Some(SegmentRef {
            base_offset: segment.base_offset,
            next_offset: segment.fill.next_offset,
            size: segment.whole,
            open: true,
        })
    }

    pub(crate) fn closed_refs(&self) -> Vec<SegmentRef> {
        self.state.borrow().closed.iter().flatten().map(SegmentRef::closed).collect()
    }

    pub(crate) fn open_refs(&self) -> Vec<(SegmentRef, i64)> {
        let state = self.state.borrow();
        let open = state.open_segments().map(|s| {
            let segment =
                SegmentRef { base_offset: s.base_offset, next_offset: s.fill.next_offset, size: s.whole, open: true };
            (segment, s.fill.max_timestamp_ms)
        });
        open.collect()
    }

    pub(crate) fn with_closed<T>(&self, base: Offset, work: impl FnOnce(&mut ClosedSegment) -> T) -> Option<T> {
        let mut state = self.state.borrow_mut();
        let closed = state.closed.as_mut()?;
        let at = closed.binary_search_by_key(&base, |s| s.base_offset).ok()?;
        Some(work(&mut closed[at]))
    }

    /// A closed segment's file, for reads through the page cache.
    pub(crate) async fn shared_file(&self, base: Offset) -> Result<SharedFile, LogError> {
        let key = (self.id, base);
        if let Some(file) = self.shard.shared_files.get(key) {
            return Ok(file);
        }
        let cuts = self.cuts.get();
        let file = SharedFile::open(&path(self.dir(), base, FileKind::Log)).await?;
        if cuts == self.cuts.get() {
            self.shard.keep_shared_file(key, file.clone());
        }
        Ok(file)
    }
}

/// Closed segments of a listing: everything before the first open one.
pub(crate) fn closed_segments(listing: &[fs::Entry], first_open: Offset) -> Vec<ClosedSegment> {
    let mut closed: Vec<ClosedSegment> = Vec::new();
    for entry in listing.iter().filter(|e| !e.is_dir) {
        match parse_file_name(&entry.name) {
            Some((base_offset, FileKind::Log)) if base_offset < first_open => closed.push(ClosedSegment {
                base_offset,
                next_offset: first_open,
                size: entry.len,
                max_timestamp_ms: None,
                modified_ms: None,
            }),
            _ => {}
        }
    }
    closed.sort_by_key(|s| s.base_offset);
    for i in 1..closed.len() {
        closed[i - 1].next_offset = closed[i].base_offset;
    }
    closed
}
