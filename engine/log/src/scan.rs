//! Walks the bytes of a segment: the verdict where a log ends after a crash, the rebuild of indexes, and the choice of
//! batches that a fetch gets. Pure functions over windows of bytes; the callers read the windows.

use model::batch::{HEADER_LEN, LOG_OVERHEAD};
use model::{BatchHeader, BatchView, LeaderEpoch, Offset};

use crate::format::epochs::EpochEntry;
use crate::format::index::IndexEntry;
use crate::format::time_index::TimeEntry;
use crate::limits::MAX_BATCH;
use crate::segment::Fill;

/// Why a scan ended before the file did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The file ends here, at the end of a batch.
    FileEnd,
    /// Zeros: space that was preallocated and never written.
    Preallocated,
    /// A batch whose bytes are not all there.
    Cut,
    /// Not a batch, or one that fails its CRC.
    Damaged,
    /// The next batch holds an offset that the scan was to stay below.
    Stop,
    /// A batch whose offsets do not go on where the one before ended, with an older epoch, or beyond what a segment holds.
    OutOfOrder,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read a window of at least so many bytes from [`SegmentScan::position`].
    Need(usize),
    End(EndReason),
}

/// Scan of one segment from a recovery point. After the end, `fill.size` is where the log ends.
#[derive(Clone, Debug)]
pub struct SegmentScan {
    base_offset: Offset,
    interval: u64,
    check_crc: bool,
    gaps: bool,
    stop_before: Offset,
    last_epoch: LeaderEpoch,
    pub fill: Fill,
    pub index: Vec<IndexEntry>,
    pub time_index: Vec<TimeEntry>,
    /// First offset of every epoch that began within the scanned part.
    pub epochs: Vec<EpochEntry>,
}

impl SegmentScan {
    pub fn new(base_offset: Offset, from: Fill, last_epoch: LeaderEpoch, interval: u64) -> SegmentScan {
        SegmentScan {
            base_offset,
            interval,
            check_crc: true,
            gaps: false,
            stop_before: Offset(i64::MAX),
            last_epoch,
            fill: from,
            index: Vec::new(),
            time_index: Vec::new(),
            epochs: Vec::new(),
        }
    }

    /// For the rebuild of a closed segment's index: reading checks the CRC itself, so a damaged batch with a sound
    /// header does not hide what lies behind it.
    #[must_use]
    pub fn headers_only(mut self) -> SegmentScan {
        self.check_crc = false;
        self
    }

    /// Whether offsets may be missing between batches, as compaction leaves them. Otherwise a batch further on is one of an
    /// earlier life of the space, and the log ends before it.
    #[must_use]
    pub fn with_gaps(mut self, gaps: bool) -> SegmentScan {
        self.gaps = gaps;
        self
    }

    /// Ends before the batch that holds `offset` or a later one.
    #[must_use]
    pub fn stop_before(mut self, offset: Offset) -> SegmentScan {
        self.stop_before = offset;
        self
    }

    /// Takes the index entries and epochs of a scan of what lies before this one's start.
    pub fn put_before(&mut self, before: SegmentScan) {
        let SegmentScan { mut index, mut time_index, mut epochs, .. } = before;
        index.append(&mut self.index);
        time_index.append(&mut self.time_index);
        epochs.append(&mut self.epochs);
        (self.index, self.time_index, self.epochs) = (index, time_index, epochs);
    }

    pub fn base_offset(&self) -> Offset {
        self.base_offset
    }

    /// Where the next window has to begin.
    pub fn position(&self) -> u64 {
        self.fill.size
    }

    /// Takes whole batches from `window`, which begins at [`Self::position`]. `left` is the length of the file behind
    /// that position, so that a batch longer than the file is told from one longer than the window.
    pub fn feed(&mut self, window: &[u8], left: u64) -> Step {
        let mut rest = window;
        let mut left = left;
        loop {
            if left == 0 {
                return Step::End(EndReason::FileEnd);
            }
            let size = match batch_size(rest, left) {
                Ok(size) => size,
                Err(step) => return step,
            };
            let Some(bytes) = rest.get(..size) else { return Step::Need(size) };
            if let Err(reason) = self.take(bytes) {
                return Step::End(reason);
            }
            rest = &rest[size..];
            left -= size as u64;
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), EndReason> {
        let batch = BatchView::parse(bytes).map_err(|_| EndReason::Damaged)?;
        if self.check_crc && batch.check_crc().is_err() {
            return Err(EndReason::Damaged);
        }
        let header = batch.header;
        let next = self.fill.next_offset;
        let in_order = (header.base_offset == next || (self.gaps && header.base_offset > next))
            && header.last_offset_delta >= 0
            && header.leader_epoch >= self.last_epoch;
        if !in_order {
            return Err(EndReason::OutOfOrder);
        }
        if header.last_offset() >= self.stop_before {
            return Err(EndReason::Stop);
        }
        let mut fill = self.fill;
        let entries = fill.add(self.base_offset, &header, self.interval).ok_or(EndReason::OutOfOrder)?;
        self.fill = fill;
        if let Some(entries) = entries {
            self.index.push(entries.index);
            self.time_index.extend(entries.time);
        }
        if header.leader_epoch > self.last_epoch {
            self.last_epoch = header.leader_epoch;
            self.epochs.push(EpochEntry { epoch: header.leader_epoch, start_offset: header.base_offset });
        }
        Ok(())
    }
}

/// Size of the batch at the start of `rest`, or what to do instead.
fn batch_size(rest: &[u8], left: u64) -> Result<usize, Step> {
    if left < HEADER_LEN as u64 {
        let zeros = rest.len() as u64 >= left && rest[..left as usize].iter().all(|b| *b == 0);
        return Err(Step::End(if zeros { EndReason::Preallocated } else { EndReason::Cut }));
    }
    let Some(head) = rest.get(..HEADER_LEN) else { return Err(Step::Need(HEADER_LEN)) };
    if head.iter().all(|b| *b == 0) {
        return Err(Step::End(EndReason::Preallocated));
    }
    let header = BatchHeader::parse(head).map_err(|_| Step::End(EndReason::Damaged))?;
    if header.size() > MAX_BATCH {
        return Err(Step::End(EndReason::Damaged));
    }
    if header.size() as u64 > left {
        return Err(Step::End(EndReason::Cut));
    }
    Ok(header.size())
}

/// What a read may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    pub max_bytes: usize,
    /// The first batch is returned whole even if it is larger than `max_bytes`.
    pub min_one_batch: bool,
    /// No batch that holds this offset or a later one is returned (high watermark, last stable offset).
    pub upper_bound: Offset,
}

/// Batches chosen from a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Range within the window; empty when nothing may be returned.
    pub start: usize,
    pub end: usize,
    pub first_offset: Offset,
    pub next_offset: Offset,
    /// Set when the window ends within the first wanted batch: its whole size, counted from `start`.
    pub need: Option<usize>,
    /// The walk met bytes that are no batch at this place.
    pub broken_at: Option<usize>,
}

/// Chooses whole batches from the one that holds `from` (or the next one, where compaction left a gap) until a limit.
/// `window` begins at a batch. Only headers are looked at.
pub fn select(window: &[u8], from: Offset, limits: ReadLimits) -> Selection {
    let mut out = Selection { start: 0, end: 0, first_offset: from, next_offset: from, need: None, broken_at: None };
    let mut at = 0;
    let mut found = false;
    let mut after = Offset(i64::MIN);
    while let Some(rest) = window.get(at..).filter(|r| r.len() >= LOG_OVERHEAD) {
        if rest.len() < HEADER_LEN {
            break;
        }
        let Ok(header) = BatchHeader::parse(rest) else {
            out.broken_at = Some(at);
            break;
        };
        if header.base_offset < after {
            // What a failed write or an earlier crash left behind the end of the log.
            out.broken_at = Some(at);
            break;
        }
        after = header.next_offset();
        let end = at + header.size();
        if header.last_offset() < from && !found {
            at = end;
            out.start = at;
            out.end = at;
            continue;
        }
        let fits = end - out.start <= limits.max_bytes || (!found && limits.min_one_batch);
        if header.last_offset() >= limits.upper_bound || !fits {
            return out;
        }
        if end > window.len() {
            break;
        }
        if !found {
            found = true;
            out.start = at;
            out.first_offset = header.base_offset;
        }
        out.end = end;
        out.next_offset = header.next_offset();
        at = end;
    }
    if !found && out.broken_at.is_none() {
        out.start = at;
        out.end = at;
        out.need = Some(size_at(window, at));
    }
    out
}

/// Bytes to read from `at` so that its batch is whole.
fn size_at(window: &[u8], at: usize) -> usize {
    match window.get(at..).map(BatchHeader::parse) {
        Some(Ok(header)) => header.size(),
        _ => HEADER_LEN,
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
