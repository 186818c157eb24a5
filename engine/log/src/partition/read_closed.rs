//! Reads of closed segments. A lone reader is served by direct reads, as from an open segment. For a second one a window of
//! a few MiB is read ahead through the page cache on the pool thread and its CRCs are checked there; ranges so verified
//! leave by `sendfile`, for any number of lagging groups. Damage refuses the range that holds it and no other.
//!
//! A window is only worth what the page cache still holds of what was verified. The kernel reads nothing ahead of its own in
//! these files (`SharedFile`); our own reads that would bring pages back go past the page cache or end the belief in the
//! windows that share them; and no window is believed for longer than a minute, since a backup may read the file as well.

use bytes::Bytes;
use model::batch::HEADER_LEN;
use model::{BatchHeader, BatchView, Offset};
use runtime::{SharedFile, clock};

use super::PartitionLog;
use super::read::{ReadSlices, Slice};
use super::segments::SegmentRef;
use crate::damage::{Order, pass_over};
use crate::error::LogError;
use crate::index_cache::VerifiedWindow;
use crate::limits::{BLOCK, MARK_BYTES, WINDOW_MAX, WINDOW_MIN, WINDOW_TRUST_MS};
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
        order: Order,
    },
    Damaged {
        position: u64,
        why: String,
    },
}

/// Checks the batches in `bytes`, which begin at `position` of the file, from the one that holds `from`. All of them have
/// to be in order, those from there on sound.
pub(crate) fn check_window(bytes: &[u8], position: u64, from: Offset, mut order: Order) -> Checked {
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
            if let Err(why) = order.take(&header) {
                return Checked::Damaged { position: here, why };
            }
            at += header.size();
            continue;
        }
        let Some(batch) = rest.get(..header.size()) else {
            if window.is_none()
                && let Err(why) = order.clone().take(&header)
            {
                return Checked::Damaged { position: here, why };
            }
            break;
        };
        let sound = BatchView::parse(batch).and_then(|batch| batch.check_crc()).map_err(|why| why.to_string());
        match (sound.and_then(|()| order.take(&header)), &mut window) {
            (Err(why), None) => return Checked::Damaged { position: here, why },
            (Err(_), Some(_)) => break,
            (Ok(()), None) => {
                let first_offset = from.min(header.base_offset);
                window = Some(VerifiedWindow {
                    end: here + header.size() as u64,
                    first_offset,
                    next_offset: header.next_offset(),
                    verified_at_ms: clock::now_ms(),
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
            Checked::Again { position: position + at as u64, len, order }
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
        self.cut_window(&file, segment, &window, from, limits).await
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
        let believed_ms = clock::now_ms() - WINDOW_TRUST_MS;
        self.window_before(segment, from).filter(|w| from < w.next_offset && w.verified_at_ms > believed_ms)
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
        let goes_far = before.is_some() && !self.shard.device.is_written_to();
        let mut len = if goes_far { WINDOW_MAX } else { WINDOW_MIN };
        let (mut position, mut order) = match before {
            Some(window) => (window.end, self.order_of(segment).goes_on(window.next_offset)),
            None => self.start_of(segment, from).await?,
        };
        while position < segment.size {
            let len_now = len.min(segment.size - position);
            self.forget_windows_brought_back(file, segment, position, len_now);
            let expected = order.clone();
            let check =
                move |bytes: &[u8]| (bytes.len() as u64 == len_now, check_window(bytes, position, from, expected));
            let turn = self.shard.device.read_turn(len_now as usize).await;
            let (whole, checked) = file.look(position, len_now as usize, check).await?;
            drop(turn);
            match checked {
                Checked::Window(window) if cuts != self.cuts.get() => return Ok(Some(Rc::new(window))),
                Checked::Window(window) => {
                    let key = (self.id, segment.base_offset, window.first_offset);
                    let bytes = size_of::<VerifiedWindow>() + window.marks.len() * size_of::<(Offset, u64)>();
                    return Ok(Some(self.shard.memory.windows.insert(key, window, bytes)));
                }
                Checked::Damaged { position, why } => return Err(self.corrupt(segment.base_offset, position, why)),
                Checked::Again { position: next, len: need, order: behind } => {
                    let stuck = next == position && need as u64 <= len_now;
                    let beyond = next > segment.size || (next < segment.size && next + need as u64 > segment.size);
                    if !whole || stuck || beyond {
                        let why = format!("a batch of {need} bytes does not fit a segment of {}", segment.size);
                        return Err(self.corrupt(segment.base_offset, next.min(segment.size), why));
                    }
                    (position, order) = (next, behind);
                    len = len.max(need as u64);
                }
            }
        }
        Ok(None)
    }

    /// A read through the page cache brings pages back that had left it, and nobody verifies all of them: windows that share
    /// such pages are not believed any more. Pages that are there now stay what they were when they were verified.
    fn forget_windows_brought_back(&self, file: &SharedFile, segment: SegmentRef, position: u64, len: u64) {
        let (from, to) = (position / BLOCK * BLOCK, (position + len).next_multiple_of(BLOCK));
        let of_segment = |offset| (self.id, segment.base_offset, offset);
        let (low, high) = (of_segment(Offset(i64::MIN)), of_segment(Offset(i64::MAX)));
        self.shard.memory.windows.retain_in(low, high, |window| {
            let start = window.marks.first().map_or(window.end, |(_, start)| *start);
            let (shared_from, shared_to) = (start.max(from), window.end.min(to));
            shared_from >= shared_to || file.is_resident(shared_from, shared_to - shared_from)
        });
    }

    /// The part of a verified window that a reader gets: between two marks by file, otherwise a small copy. What left the
    /// page cache since is read past it: coming back it could be damaged, and would pass for verified.
    async fn cut_window(
        &self,
        file: &SharedFile,
        segment: SegmentRef,
        window: &VerifiedWindow,
        from: Offset,
        limits: ReadLimits,
    ) -> Result<Option<ReadSlices>, LogError> {
        let base = segment.base_offset;
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
            if file.is_resident(start, len) {
                let slice = Slice::File { file: file.clone(), position: start, len };
                return Ok(Some(ReadSlices::one(slice, from, next_offset)));
            }
        } else {
            let end = ends.clone().next().map_or(window.end, |(_, position)| position);
            if let Some(bytes) = file.read_resident(start, (end - start) as usize) {
                let order = self.order_of(segment).goes_on(mark_offset);
                return self.select_checked(base, start, &Bytes::from(bytes), from, limits, order).map(Some);
            }
        }
        self.shard.memory.windows.remove((self.id, base, window.first_offset));
        self.read_direct(segment, from, limits).await
    }

    /// Chooses from bytes that begin with a batch at `position`, and checks what it chose.
    fn select_checked(
        &self,
        base: Offset,
        position: u64,
        bytes: &Bytes,
        from: Offset,
        limits: ReadLimits,
        mut order: Order,
    ) -> Result<ReadSlices, LogError> {
        let found = select(bytes, from, limits);
        if found.start < found.end {
            return self.checked(base, position, bytes, found, &mut order);
        }
        pass_over(bytes, found.start, &mut order).map_err(|(at, why)| self.corrupt(base, position + at as u64, why))?;
        match found.broken_at {
            Some(at) => Err(self.corrupt(base, position + at as u64, "no batch begins here".into())),
            None => Ok(ReadSlices::empty(from)),
        }
    }
}
