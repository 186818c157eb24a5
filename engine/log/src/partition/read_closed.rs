//! Reads of closed segments. A lone reader is served by direct reads, as from an open segment. For a second one a window of
//! a few MiB is read ahead through the page cache on the pool thread and its CRCs are checked there; ranges so verified
//! leave by `sendfile`, for any number of lagging groups. Damage refuses the range that holds it and no other.

use bytes::Bytes;
use model::batch::HEADER_LEN;
use model::{BatchHeader, BatchView, Offset};
use runtime::SharedFile;

use super::PartitionLog;
use super::read::{ReadSlices, Slice};
use super::segments::SegmentRef;
use crate::error::LogError;
use crate::index_cache::VerifiedWindow;
use crate::limits::{MARK_BYTES, READ_AHEAD_MAX, READ_AHEAD_MIN};
use crate::scan::{ReadLimits, select};
use std::rc::Rc;

/// What came of checking a window.
#[derive(Debug)]
pub(crate) enum Checked {
    Window(VerifiedWindow),
    /// The wanted batch begins further on, or is larger than the window.
    Again {
        position: u64,
        len: usize,
    },
    Damaged {
        position: u64,
        why: String,
    },
}

/// Checks the batches in `bytes`, which begin at `position` of the file, from the one that holds `from`.
pub(crate) fn check_window(bytes: &[u8], position: u64, from: Offset) -> Checked {
    let mut at = 0;
    let mut window: Option<VerifiedWindow> = None;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= HEADER_LEN) {
        let here = position + at as u64;
        let header = match BatchHeader::parse(rest) {
            Ok(header) => header,
            Err(why) if window.is_none() => return Checked::Damaged { position: here, why: why.to_string() },
            Err(_) => break,
        };
        if window.is_none() && header.last_offset() < from {
            at += header.size();
            continue;
        }
        let Some(batch) = rest.get(..header.size()) else { break };
        let sound = BatchView::parse(batch).and_then(|batch| batch.check_crc());
        match (sound, &mut window) {
            (Err(why), None) => return Checked::Damaged { position: here, why: why.to_string() },
            (Err(_), Some(_)) => break,
            (Ok(()), None) => {
                let first_offset = from.min(header.base_offset);
                window = Some(VerifiedWindow {
                    end: here + header.size() as u64,
                    first_offset,
                    next_offset: header.next_offset(),
                    marks: vec![(first_offset, here)],
                });
            }
            (Ok(()), Some(window)) => {
                if window.marks.last().is_some_and(|(_, mark)| here - mark >= MARK_BYTES) {
                    window.marks.push((window.next_offset, here));
                }
                window.end = here + header.size() as u64;
                window.next_offset = header.next_offset();
            }
        }
        at += header.size();
    }
    match window {
        Some(window) => Checked::Window(window),
        None => {
            let len = bytes.get(at..).map(BatchHeader::parse).and_then(Result::ok).map_or(HEADER_LEN, |h| h.size());
            Checked::Again { position: position + at as u64, len }
        }
    }
}

impl PartitionLog {
    /// `None` when the segment has no batch at or after `from`.
    pub(crate) async fn read_closed(
        &self,
        segment: SegmentRef,
        from: Offset,
        limits: ReadLimits,
    ) -> Result<Option<ReadSlices>, LogError> {
        let known = self.known_window(segment, from);
        if known.is_none() && self.is_first_reader(from) {
            let read = self.read_direct(segment, from, limits).await?;
            if let Some(read) = &read {
                self.read_past_cache.set((self.read_past_cache.get().0, read.next_offset));
            }
            return Ok(read);
        }
        let file = self.shared_file(segment.base_offset).await?;
        let window = match known {
            Some(window) => window,
            None => match self.verify_window(&file, segment, from).await? {
                Some(window) => window,
                None => return Ok(None),
            },
        };
        self.cut_window(&file, segment.base_offset, &window, from, limits).await.map(Some)
    }

    /// Whether nobody read this offset lately. The first reader of a range reads it past the page cache, into memory that is
    /// used again; whoever comes to it after that brings it into the page cache for all who follow.
    fn is_first_reader(&self, from: Offset) -> bool {
        let (low, high) = self.read_past_cache.get();
        if from != high && !(low..high).contains(&from) {
            self.read_past_cache.set((from, from));
        }
        !(low..high).contains(&from)
    }

    fn window_before(&self, segment: SegmentRef, from: Offset) -> Option<Rc<VerifiedWindow>> {
        let low = (self.id, segment.base_offset, Offset(i64::MIN));
        self.shard.memory.windows.last_in(low, (self.id, segment.base_offset, from))
    }

    fn known_window(&self, segment: SegmentRef, from: Offset) -> Option<Rc<VerifiedWindow>> {
        self.window_before(segment, from).filter(|w| from < w.next_offset)
    }

    async fn verify_window(
        &self,
        file: &SharedFile,
        segment: SegmentRef,
        from: Offset,
    ) -> Result<Option<Rc<VerifiedWindow>>, LogError> {
        let cuts = self.cuts.get();
        let before = self.window_before(segment, from).filter(|w| w.next_offset == from);
        // A reader that goes on where the last window ended will want the rest too.
        let mut len = if before.is_some() { READ_AHEAD_MAX } else { READ_AHEAD_MIN };
        let mut position = match before {
            Some(window) => window.end,
            None => self.start_position(segment, from).await?,
        };
        while position < segment.size {
            let len_now = len.min(segment.size - position);
            let check = move |bytes: &[u8]| (bytes.len() as u64 == len_now, check_window(bytes, position, from));
            let (whole, checked) = file.look(position, len_now as usize, check).await?;
            match checked {
                Checked::Window(window) if cuts != self.cuts.get() => return Ok(Some(Rc::new(window))),
                Checked::Window(window) => {
                    let key = (self.id, segment.base_offset, window.first_offset);
                    let bytes = size_of::<VerifiedWindow>() + window.marks.len() * size_of::<(Offset, u64)>();
                    return Ok(Some(self.shard.memory.windows.insert(key, window, bytes)));
                }
                Checked::Damaged { position, why } => return Err(self.corrupt(segment.base_offset, position, why)),
                Checked::Again { position: next, len: need } => {
                    let stuck = next == position && need as u64 <= len_now;
                    let beyond = next > segment.size || (next < segment.size && next + need as u64 > segment.size);
                    if !whole || stuck || beyond {
                        let why = "the file is shorter than its log".to_string();
                        return Err(self.corrupt(segment.base_offset, position, why));
                    }
                    position = next;
                    len = len.max(need as u64);
                }
            }
        }
        Ok(None)
    }

    /// The part of a verified window that a reader gets: between two marks by file, otherwise a small copy.
    async fn cut_window(
        &self,
        file: &SharedFile,
        base: Offset,
        window: &VerifiedWindow,
        from: Offset,
        limits: ReadLimits,
    ) -> Result<ReadSlices, LogError> {
        let at = window.marks.partition_point(|(offset, _)| *offset <= from) - 1;
        let (mark_offset, start) = window.marks[at];
        let ends = window.marks[at + 1..].iter().copied().chain(std::iter::once((window.next_offset, window.end)));
        let fits = |&(offset, position): &(Offset, u64)| {
            position - start <= limits.max_bytes as u64 && offset <= limits.upper_bound
        };
        if mark_offset == from
            && let Some((next_offset, end)) = ends.clone().take_while(fits).last()
        {
            let len = end - start;
            if !file.is_resident(start, len) {
                // It left the page cache since it was verified, and may come back damaged: what comes is looked at, and the
                // next reader verifies the window anew.
                self.shard.memory.windows.remove((self.id, base, window.first_offset));
                let bytes = Bytes::from(file.read(start, len as usize).await?);
                return self.select_checked(base, start, &bytes, from, limits);
            }
            let slice = Slice::File { file: file.clone(), position: start, len };
            return Ok(ReadSlices::one(slice, from, next_offset));
        }
        let end = ends.clone().next().map_or(window.end, |(_, position)| position);
        let bytes = Bytes::from(file.read(start, (end - start) as usize).await?);
        self.select_checked(base, start, &bytes, from, limits)
    }

    /// Chooses from bytes that begin with a batch at `position`, and checks what it chose.
    fn select_checked(
        &self,
        base: Offset,
        position: u64,
        bytes: &Bytes,
        from: Offset,
        limits: ReadLimits,
    ) -> Result<ReadSlices, LogError> {
        let found = select(bytes, from, limits);
        if found.start < found.end {
            return self.checked(base, position, bytes, found);
        }
        match found.broken_at {
            Some(at) => Err(self.corrupt(base, position + at as u64, "no batch begins here".into())),
            None => Ok(ReadSlices::empty(from)),
        }
    }
}
