//! Damage of a partition: the order in which a walk expects batches, the survey of a place that looked damaged, and the
//! marks that come of it. One shard's, never borrowed over an await; a crash leaves nothing behind, since nothing is
//! written. Not on the way of a sound read but for [`PartitionLog::start_of`].

use std::sync::Arc;

use model::Offset;
use model::batch::HEADER_LEN;
use runtime::{DirectFile, spawn_blocking};

use super::PartitionLog;
use super::segments::SegmentRef;
use crate::damage::{Candidate, DamagedRange, Order, Walked, find_batch, walk};
use crate::error::LogError;
use crate::format::index::{self, IndexEntry};
use crate::format::names::FileKind;
use crate::limits::{DAMAGE_MARKS, DAMAGE_SEARCH_BYTES, SCAN_WINDOW};
use crate::segment::path;

/// Why a range at a segment's end is refused.
pub(crate) const RECORDS_MISSING: &str = "the records before the next segment are missing";

/// What a survey found where something had looked damaged.
enum Surveyed {
    /// The place is sound, or no batch begins there: an index or a read misled.
    Sound,
    Damaged(DamagedRange),
}

impl PartitionLog {
    /// Ranges that are refused, oldest first, as far as they were found since the start.
    pub fn damaged_ranges(&self) -> Vec<DamagedRange> {
        let log_start = self.log_start_offset();
        self.damage.borrow().iter().filter(|d| d.to_offset > log_start).cloned().collect()
    }

    pub(crate) fn damage_at(&self, offset: Offset) -> Option<DamagedRange> {
        self.damage.borrow().iter().find(|d| d.holds(offset)).cloned()
    }

    /// Where a walk goes on that met damage at `position`.
    pub(crate) fn damage_behind(&self, segment: SegmentRef, position: u64) -> Option<(u64, Offset)> {
        let marks = self.damage.borrow();
        let here =
            |d: &&DamagedRange| d.segment_base == segment.base_offset && d.position <= position && d.until > position;
        marks.iter().find(here).map(|d| (d.until, d.to_offset))
    }

    /// A truncation took what lies from `end` on.
    pub(crate) fn forget_damage_from(&self, end: Offset) {
        self.damage.borrow_mut().retain(|d| d.from_offset < end);
    }

    /// The order that a walk from a segment's first byte has to find.
    pub(crate) fn order_of(&self, segment: SegmentRef) -> Order {
        let state = self.state.borrow();
        let entries = state.epochs.entries();
        let first = entries.partition_point(|e| e.start_offset <= segment.base_offset).saturating_sub(1);
        let last = entries.partition_point(|e| e.start_offset < segment.next_offset).max(first);
        // With gaps a segment's base may lie before its first record, and an epoch may have begun between the two.
        let epochs: Arc<[_]> = if state.may_have_gaps() { Arc::new([]) } else { entries[first..last].into() };
        Order::begins(segment.base_offset, segment.next_offset, state.may_have_gaps(), epochs)
    }

    /// Position at which a walk for `offset` may start, and what it has to find there.
    pub(crate) async fn start_of(&self, segment: SegmentRef, offset: Offset) -> Result<(u64, Order), LogError> {
        if let Some(position) = self.place_of(segment, offset) {
            return Ok((position, self.order_of(segment).goes_on(offset)));
        }
        let entry = self.start_entry(segment, offset).await?;
        let order = self.order_of(segment);
        let (position, order) = match entry {
            Some(e) => (e.position as u64, order.ends(segment.base_offset.plus(i64::from(e.relative)))),
            None => (0, order),
        };
        let marks = self.damage.borrow();
        let behind = |d: &&DamagedRange| {
            d.segment_base == segment.base_offset && d.to_offset <= offset && d.until < segment.size
        };
        Ok(match marks.iter().filter(behind).max_by_key(|d| d.until).filter(|d| d.until > position) {
            Some(mark) => (mark.until, order.goes_on(mark.to_offset)),
            None => (position, order),
        })
    }

    /// Takes up that a walk met damage at `position`, after it was looked at once more. `true` when the caller may try
    /// again: the range was marked and the caller can pass it by, or it is not damaged after all. `cuts` is the count of
    /// truncations when the segment was looked up.
    pub(crate) async fn meet_damage(
        &self,
        segment: SegmentRef,
        cuts: u64,
        position: u64,
        why: &str,
    ) -> Result<bool, LogError> {
        if cuts != self.cuts.get() || self.cutting.get() || !self.is_still(segment) {
            return Ok(true);
        }
        let surveyed = self.survey(segment, position, why).await?;
        if cuts != self.cuts.get() || self.cutting.get() || !self.is_still(segment) {
            return Ok(true);
        }
        match surveyed {
            Surveyed::Sound if segment.open => Ok(false),
            Surveyed::Sound => {
                self.shard.memory.forget_segment((self.id, segment.base_offset));
                self.rebuild_indexes(segment).await?;
                Ok(true)
            }
            // Not acknowledged yet: a write or sync that failed tells about it.
            Surveyed::Damaged(range) if range.from_offset >= self.durable_end() => Ok(false),
            // Bytes behind the last record of a segment that nothing asks for.
            Surveyed::Damaged(range) if range.from_offset >= segment.next_offset => Ok(false),
            Surveyed::Damaged(range) => {
                self.mark(range);
                Ok(true)
            }
        }
    }

    /// Whether the segment is what it was: neither cut nor removed nor rewritten meanwhile.
    pub(crate) fn is_still(&self, segment: SegmentRef) -> bool {
        let state = self.state.borrow();
        match segment.open {
            true => state.open_segment(segment.base_offset).is_some_and(|s| s.whole >= segment.size),
            false => {
                let closed = state.closed.as_deref().unwrap_or_default();
                // While a swap runs, files and list do not agree.
                self.is_unswapped()
                    && closed.iter().any(|s| s.base_offset == segment.base_offset && s.size == segment.size)
            }
        }
    }

    pub(crate) fn mark(&self, range: DamagedRange) {
        self.shard.damage.found(&path(self.dir(), range.segment_base, FileKind::Log), &range);
        let mut marks = self.damage.borrow_mut();
        // Found again, or more of it.
        marks.retain(|d| (d.segment_base, d.position) != (range.segment_base, range.position));
        if marks.len() >= DAMAGE_MARKS {
            // Too many to tell apart: the last one takes what follows.
            let Some(mut last) = marks.pop() else { return };
            last.from_offset = last.from_offset.min(range.from_offset);
            if last.to_offset < range.to_offset {
                (last.to_offset, last.until, last.segment_base) = (range.to_offset, range.until, range.segment_base);
            }
            marks.push(last);
            return;
        }
        marks.push(range);
        marks.sort_by_key(|d| d.from_offset);
    }

    /// The segment file of `offset` is gone: everything up to the next one is refused.
    pub(crate) fn mark_missing(&self, offset: Offset) {
        let first = self.closed_refs().first().map(|s| s.base_offset);
        let next = first.unwrap_or_else(|| self.state.borrow().first_open_base());
        if offset < next && self.damage_at(offset).is_none() {
            self.mark(DamagedRange {
                segment_base: offset,
                position: 0,
                until: 0,
                from_offset: self.log_start_offset().min(offset),
                to_offset: next,
                why: "the segment file is missing".into(),
            });
        }
    }

    /// Walks up to `position` from the index entry before it, and from there to the next sound batch.
    async fn survey(&self, segment: SegmentRef, position: u64, why: &str) -> Result<Surveyed, LogError> {
        let file = self.direct_file(segment.base_offset, false).await?;
        let entries = self.known_entries(segment).await;
        let mut met = Met::Lost;
        // An entry may itself mislead: then from the first byte.
        for entries in [&entries[..], &[]] {
            let (start, order) = self.place_before(segment, position, entries);
            met = self.walk_to(&file, segment, start, order, position).await?;
            if !matches!(met, Met::Lost) {
                break;
            }
        }
        let (place, from_offset, why) = match met {
            Met::Nothing | Met::Lost => return Ok(Surveyed::Sound),
            // Of the same place the first look's verdict, which the caller was told.
            Met::Damage { place, next, .. } if place == position => (place, next, why.to_string()),
            Met::Damage { place, next, why } => (place, next, why),
        };
        let behind = self.next_sound(&file, segment, place, from_offset).await?;
        let (until, to_offset) = behind.unwrap_or((segment.size, segment.next_offset));
        let to_offset = to_offset.max(from_offset.plus(1));
        let range =
            DamagedRange { segment_base: segment.base_offset, position: place, until, from_offset, to_offset, why };
        Ok(Surveyed::Damaged(range))
    }

    /// The last place before `position` that an entry or an earlier mark has.
    fn place_before(&self, segment: SegmentRef, position: u64, entries: &[IndexEntry]) -> (u64, Order) {
        let order = self.order_of(segment);
        let after = entries.partition_point(|e| (e.position as u64) < position);
        let entry = after.checked_sub(1).map(|i| entries[i]);
        let place = match entry {
            Some(e) => (e.position as u64, order.clone().ends(segment.base_offset.plus(i64::from(e.relative)))),
            None => (0, order.clone()),
        };
        let marks = self.damage.borrow();
        let before =
            |d: &&DamagedRange| d.segment_base == segment.base_offset && d.until <= position && d.until > place.0;
        marks.iter().filter(before).max_by_key(|d| d.until).map_or(place, |d| (d.until, order.goes_on(d.to_offset)))
    }

    /// Checks batches from `start` to the one at `position` and that one.
    async fn walk_to(
        &self,
        file: &DirectFile,
        segment: SegmentRef,
        start: u64,
        mut order: Order,
        position: u64,
    ) -> Result<Met, LogError> {
        let (mut at, mut window) = (start, SCAN_WINDOW);
        while at < position || (at == position && at < segment.size) {
            let len = window.min((segment.size - at) as usize);
            let bytes = file.read(at, len).await?;
            let mut walked = order.clone();
            let (result, behind) = pool(move || (walk(&bytes, &mut walked), walked)).await?;
            order = behind;
            // Where an entry stands it is not known which offset has to.
            let damage = |place, why| match order.next_offset() {
                Some(next) => Met::Damage { place, next, why },
                None => Met::Lost,
            };
            match result {
                Walked::Damaged { at: inside, .. } if at + inside as u64 > position => return Ok(Met::Nothing),
                Walked::Damaged { at: inside, why } => return Ok(damage(at + inside as u64, why)),
                Walked::Sound { bytes: 0, need } if need <= len || at + need as u64 > segment.size => {
                    return Ok(damage(at, "the file is shorter than its log".to_string()));
                }
                Walked::Sound { bytes, need } => {
                    at += bytes as u64;
                    window = need.max(SCAN_WINDOW);
                }
            }
        }
        Ok(match order.next_offset() {
            Some(next) if at == position && next < segment.next_offset => {
                Met::Damage { place: at, next, why: RECORDS_MISSING.to_string() }
            }
            _ => Met::Nothing,
        })
    }

    /// Position and first offset of the next sound batch behind damage at `place`, if there is one near enough.
    async fn next_sound(
        &self,
        file: &DirectFile,
        segment: SegmentRef,
        place: u64,
        damaged: Offset,
    ) -> Result<Option<(u64, Offset)>, LogError> {
        let (low, high) = (damaged.plus(1), segment.next_offset);
        let end = segment.size.min(place.saturating_add(DAMAGE_SEARCH_BYTES));
        let (mut at, mut crc_bytes) = (place + 1, DAMAGE_SEARCH_BYTES);
        let (mut len, mut exact) = (SCAN_WINDOW, false);
        while at < end && crc_bytes > 0 {
            let bytes = file.read(at, len.min((segment.size - at) as usize)).await?;
            let (got, order) = (bytes.len(), self.order_of(segment));
            let look = move || (find_batch(&bytes, exact, low, high, &order, &mut crc_bytes), crc_bytes);
            let (found, left) = pool(look).await?;
            let was_exact = exact;
            (crc_bytes, len, exact) = (left, SCAN_WINDOW, false);
            match found {
                Some(Candidate::Sound { at: inside, header }) => {
                    return Ok(Some((at + inside as u64, header.base_offset)));
                }
                // Read again with all of it.
                Some(Candidate::Longer { at: inside, size })
                    if size as u64 <= crc_bytes.min(segment.size - at - inside as u64) && size > got - inside =>
                {
                    at += inside as u64;
                    (len, exact) = (size, true);
                }
                Some(Candidate::Longer { at: inside, .. }) => at += inside as u64 + 1,
                None if got < HEADER_LEN => return Ok(None),
                None if was_exact => at += 1,
                None => at += (got + 1 - HEADER_LEN) as u64,
            }
        }
        Ok(None)
    }

    /// The index entries that are at hand, without building any.
    async fn known_entries(&self, segment: SegmentRef) -> Vec<IndexEntry> {
        if segment.open {
            let state = self.state.borrow();
            return state.open_segment(segment.base_offset).map(|s| s.index.tail.clone()).unwrap_or_default();
        }
        let file = path(self.dir(), segment.base_offset, FileKind::Index);
        let limit = crate::limits::INDEX_FILE_ENTRIES * index::ENTRY_LEN;
        let bytes = runtime::fs::read_if_there(&file, limit).await.ok().flatten();
        bytes.and_then(|bytes| index::decode(&bytes, segment.size)).unwrap_or_default()
    }
}

/// What a walk to a place met.
enum Met {
    /// Sound batches up to and over the place.
    Nothing,
    Damage {
        place: u64,
        next: Offset,
        why: String,
    },
    /// The batch that the walk began with is not what the index says.
    Lost,
}

async fn pool<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LogError> {
    spawn_blocking(work).await.map_err(|panic| LogError::Io(panic.to_string().into()))
}
