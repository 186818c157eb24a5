//! Read: the fetch way. Batches come from the tail's chunks by reference, from closed segments as file ranges that were
//! verified, or, for what an open segment no longer has in memory, by direct reads whose memory is lent out. No byte of a
//! record is copied or encoded again, unless too much is on loan already.

use bytes::Bytes;
use model::{BatchHeader, BatchView, Offset};
use runtime::SharedFile;

use super::PartitionLog;
use super::damage::RECORDS_MISSING;
use super::places::Place;
use super::segments::SegmentRef;
use crate::damage::{Order, Walked, pass_over, walk};
use crate::error::LogError;
use crate::format::index;
use crate::limits::{BLOCK, DAMAGES_PER_READ, IO_MAX, MARK_BYTES, READ_PARTS};
use crate::scan::{ReadLimits, Selection, select};

/// Bytes that leave for a client.
#[derive(Clone, Debug)]
pub enum Slice {
    Bytes(Bytes),
    /// A verified range of a closed segment that lies in the page cache: for `sendfile`.
    File {
        file: SharedFile,
        position: u64,
        len: u64,
    },
}

impl Slice {
    pub fn len(&self) -> usize {
        match self {
            Slice::Bytes(bytes) => bytes.len(),
            Slice::File { len, .. } => *len as usize,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes themselves, wherever they are: for callers that look into batches.
    pub async fn load(&self) -> Result<Bytes, LogError> {
        match self {
            Slice::Bytes(bytes) => Ok(bytes.clone()),
            Slice::File { file, position, len } => {
                if let Some(bytes) = file.read_resident(*position, *len as usize) {
                    return Ok(Bytes::from(bytes));
                }
                // It left the page cache since it was verified.
                let bytes = file.read(*position, *len as usize).await?;
                let why = match first_unsound(&bytes) {
                    Some(why) => why,
                    None if bytes.len() as u64 == *len => return Ok(Bytes::from(bytes)),
                    None => "the file is shorter than its log".to_string(),
                };
                Err(LogError::Corrupt { path: file.path().to_path_buf(), position: *position, why })
            }
        }
    }
}

fn first_unsound(bytes: &[u8]) -> Option<String> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match BatchView::parse(rest).and_then(|batch| batch.check_crc().map(|()| batch.header.size())) {
            Ok(size) => rest = &rest[size..],
            Err(why) => return Some(why.to_string()),
        }
    }
    None
}

/// Whole batches, in order. Empty when there is nothing to return yet.
#[derive(Clone, Debug)]
pub struct ReadSlices {
    pub slices: Vec<Slice>,
    pub bytes: usize,
    /// First offset of the first batch (below the asked one when that lies within the batch).
    pub first_offset: Offset,
    /// Where the next read continues.
    pub next_offset: Offset,
    /// Where that stands in its segment's file, where the last part came by a direct read.
    pub(crate) end: Option<(Offset, u64)>,
}

impl ReadSlices {
    pub(crate) fn empty(at: Offset) -> ReadSlices {
        ReadSlices { slices: Vec::new(), bytes: 0, first_offset: at, next_offset: at, end: None }
    }

    pub(crate) fn one(slice: Slice, first_offset: Offset, next_offset: Offset) -> ReadSlices {
        ReadSlices { bytes: slice.len(), slices: vec![slice], first_offset, next_offset, end: None }
    }

    fn add(&mut self, part: ReadSlices) {
        if self.slices.is_empty() {
            self.first_offset = part.first_offset;
        }
        self.bytes += part.bytes;
        self.next_offset = part.next_offset;
        self.end = part.end;
        self.slices.extend(part.slices);
    }
}

impl PartitionLog {
    /// Whole batches from the one that holds `from`, below the bound and within the size.
    pub async fn read(&self, from: Offset, limits: ReadLimits) -> Result<ReadSlices, LogError> {
        self.check_range(from)?;
        let mut left = limits;
        left.upper_bound = left.upper_bound.min(self.readable_end());
        let mut out = ReadSlices::empty(from);
        // It goes on where a direct read ended.
        let mut is_next = false;
        for _ in 0..READ_PARTS {
            let at = out.next_offset;
            if !self.goes_on(at, left, out.bytes) {
                break;
            }
            let part = match self.read_tail(at, left) {
                Some(part) => Ok(part),
                None => match self.take_ahead(at, left).await {
                    Some(part) => {
                        is_next = true;
                        Ok(part)
                    }
                    None => {
                        is_next |= at == from && self.places.find(from).is_some();
                        self.read_disk(at, left).await
                    }
                },
            };
            let part = match part {
                Ok(part) => part,
                // What was found before the damage is still good.
                Err(_) if out.bytes > 0 => break,
                Err(error) => {
                    // Retention or a truncation may have taken the segment meanwhile.
                    self.check_range(from)?;
                    return Err(error);
                }
            };
            if part.next_offset == at {
                break;
            }
            if at != from && part.end.is_some() {
                self.places.pass(at);
            }
            left.max_bytes = left.max_bytes.saturating_sub(part.bytes);
            left.min_one_batch &= part.bytes == 0;
            out.add(part);
        }
        if is_next && out.end.is_some() && out.next_offset < left.upper_bound && self.is_on_disk_only(out.next_offset) {
            self.begin_ahead(out.next_offset, ReadLimits { upper_bound: left.upper_bound, ..limits });
        }
        Ok(out)
    }

    /// Whether a read that has so many bytes goes on at `at`.
    pub(crate) fn goes_on(&self, at: Offset, left: ReadLimits, bytes: usize) -> bool {
        // A small rest is not worth another look at the disk.
        let is_worth_it = bytes == 0 || left.max_bytes >= MARK_BYTES as usize;
        at < left.upper_bound && (left.max_bytes > 0 || left.min_one_batch) && is_worth_it
    }

    /// Whether no part of it is in the tail's memory.
    pub(crate) fn is_on_disk_only(&self, offset: Offset) -> bool {
        self.state.borrow().tail.first_offset().is_none_or(|first| first > offset)
    }

    pub(crate) fn check_range(&self, from: Offset) -> Result<(), LogError> {
        if self.closed.get() && self.deleted.get() {
            return Err(LogError::Closed);
        }
        let (log_start_offset, log_end_offset) = (self.log_start_offset(), self.log_end_offset());
        if from < log_start_offset || from > log_end_offset {
            return Err(LogError::OffsetOutOfRange { asked: from, log_start_offset, log_end_offset });
        }
        Ok(())
    }

    /// After a failed write only what was durable is served.
    fn readable_end(&self) -> Offset {
        let failed = self.state.borrow().failed.is_some();
        if failed { self.durable_end() } else { self.log_end_offset() }
    }

    /// From the tail's chunks. `None` when they do not hold the offset.
    fn read_tail(&self, from: Offset, limits: ReadLimits) -> Option<ReadSlices> {
        let state = self.state.borrow();
        if state.tail.first_offset()? > from {
            return None;
        }
        let mut out = ReadSlices::empty(from);
        let mut left = limits;
        let first = state.tail.index_of(from);
        for chunk in state.tail.chunks.range(first..) {
            let mut skip = 0;
            if out.slices.is_empty()
                && let Some(open) = state.open_segment(chunk.segment_base)
            {
                let near = index::position_before(&open.index.tail, chunk.segment_base, from);
                skip = near.saturating_sub(chunk.start) as usize;
            }
            let bytes = &chunk.bytes()[skip..];
            let found = select(bytes, out.next_offset, left);
            if found.start < found.end {
                let at = chunk.start + skip as u64;
                let slice = Slice::Bytes(chunk.slice(at + found.start as u64, at + found.end as u64));
                out.add(ReadSlices::one(slice, found.first_offset, found.next_offset));
                left.max_bytes = left.max_bytes.saturating_sub(found.end - found.start);
                left.min_one_batch = false;
            }
            if found.end < bytes.len() || left.max_bytes == 0 {
                break;
            }
        }
        Some(out)
    }

    /// Once more when a cleaned segment took the place of the one that was read. Damage that is met is surveyed and marked;
    /// when it lies before what is asked for, the read passes it by.
    pub(crate) async fn read_disk(&self, from: Offset, limits: ReadLimits) -> Result<ReadSlices, LogError> {
        let mut tries = 0..DAMAGES_PER_READ;
        loop {
            if let Some(damage) = self.damage_at(from) {
                return Err(self.corrupt(damage.segment_base, damage.position, damage.why));
            }
            let (version, cuts) = (self.closed_version().await?, self.cuts.get());
            let segment = self.segment_of(from).await;
            let result = match &segment {
                Ok(segment) => self.read_segment(*segment, from, limits).await,
                Err(error) => Err(error.clone()),
            };
            if !self.is_closed_version(version) {
                continue;
            }
            let error = match result {
                Ok(part) => {
                    if let Some((segment_base, position)) = part.end {
                        let place = Place { segment_base, offset: part.next_offset, position, version, cuts };
                        self.places.note(place);
                    }
                    return Ok(part);
                }
                Err(error) => error,
            };
            let (Ok(segment), LogError::Corrupt { position, why, .. }) = (segment, &error) else { return Err(error) };
            // A segment that was cut meanwhile is looked at anew, as often as one that is damaged.
            if tries.next().is_none() || !self.meet_damage(segment, cuts, *position, why).await? {
                return Err(error);
            }
        }
    }

    async fn read_segment(
        &self,
        segment: SegmentRef,
        from: Offset,
        limits: ReadLimits,
    ) -> Result<ReadSlices, LogError> {
        let part = if segment.open {
            self.read_direct(segment, from, limits).await?
        } else {
            self.read_closed(segment, from, limits).await?
        };
        match part {
            Some(part) => Ok(part),
            None if segment.open => Ok(ReadSlices::empty(from)),
            // Compaction may leave no batch at a segment's end: the next segment has the next one.
            None if self.may_have_gaps() => Ok(ReadSlices::empty(segment.next_offset)),
            None => Err(self.corrupt(segment.base_offset, segment.size, RECORDS_MISSING.into())),
        }
    }

    /// A direct read of what a segment has on disk but not in memory. `None`: there is no such batch.
    pub(crate) async fn read_direct(
        &self,
        segment: SegmentRef,
        from: Offset,
        limits: ReadLimits,
    ) -> Result<Option<ReadSlices>, LogError> {
        let base = segment.base_offset;
        let (mut position, mut order) = self.start_of(segment, from).await?;
        let slack = self.config().index_interval_bytes.min(IO_MAX) as usize;
        let len = limits.max_bytes.saturating_add(slack);
        // Of a batch that did not fit.
        let mut needed = 0;
        while position < segment.size {
            let file = self.direct_file(base, false).await?;
            // One operation, from a block's beginning, unless a batch is larger.
            let one_operation = (self.shard.device.read_max(self.batch_read.get()) - position % BLOCK) as usize;
            let len_now = len.min(one_operation).max(needed).min((segment.size - position) as usize);
            let read = file.read_pooled(position, len_now, &self.shard.config.pool);
            let bytes = self.shard.device.read(len_now, read).await?;
            let found = select(&bytes, from, limits);
            if let Some(Ok(next)) = bytes.get(found.end..).map(BatchHeader::parse) {
                self.batch_read.set(next.size());
            }
            if found.start < found.end {
                return self.checked(base, position, &bytes, found, &mut order).map(Some);
            }
            self.pass_over(base, position, &bytes, found.start, &mut order)?;
            if let Some(broken) = found.broken_at {
                return Err(self.corrupt(base, position + broken as u64, "no batch begins here".into()));
            }
            let Some(need) = found.need else { return Ok(Some(ReadSlices::empty(from))) };
            // Only whole batches were written: a length that leads beyond the last one is damage.
            let left = segment.size - position;
            let start = found.start as u64;
            let beyond = start > left || (start < left && need as u64 > left - start);
            if beyond || (start == 0 && need <= len_now) {
                return Err(self.corrupt(
                    base,
                    position + start.min(left),
                    format!("a batch of {need} bytes does not fit the {} that are left", left - start.min(left)),
                ));
            }
            position += start;
            needed = need;
        }
        Ok(None)
    }

    /// Checks order and CRC of what was chosen, and the order of what stands before it; the batches before a damaged one
    /// are still good.
    pub(crate) fn checked(
        &self,
        base: Offset,
        position: u64,
        bytes: &Bytes,
        found: Selection,
        order: &mut Order,
    ) -> Result<ReadSlices, LogError> {
        self.pass_over(base, position, bytes, found.start, order)?;
        let chosen = &bytes[found.start..found.end];
        let whole = match walk(chosen, order) {
            Walked::Sound { bytes, .. } => bytes,
            Walked::Damaged { at: 0, why } => {
                return Err(self.corrupt(base, position + found.start as u64, why));
            }
            Walked::Damaged { at, .. } => at,
        };
        let slice = Slice::Bytes(bytes.slice(found.start..found.start + whole));
        let next_offset = order.next_offset().unwrap_or(found.next_offset);
        let end = Some((base, position + (found.start + whole) as u64));
        Ok(ReadSlices { end, ..ReadSlices::one(slice, found.first_offset, next_offset) })
    }

    /// Batches that a read does not want: their headers have to be in order, or what they say of offsets cannot be trusted.
    fn pass_over(
        &self,
        base: Offset,
        position: u64,
        bytes: &[u8],
        until: usize,
        order: &mut Order,
    ) -> Result<(), LogError> {
        pass_over(bytes, until, order).map_err(|(at, why)| self.corrupt(base, position + at as u64, why))
    }
}
