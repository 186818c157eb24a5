//! Which part of a log a cleaning would look at, and whether it is worth it. Without input or output as long as the segments
//! are listed, the clean point is known and no lag is asked for: a shard asks all its compacted partitions every few
//! seconds.

use model::batch::HEADER_LEN;
use model::{BatchHeader, Offset};
use runtime::fs;

use super::point::{CleanPoint, POINT_FILE};
use crate::error::LogError;
use crate::format::names::FileKind;
use crate::limits::SMALL_FILE;
use crate::partition::PartitionLog;
use crate::partition::segments::SegmentRef;
use crate::segment::{NO_TIMESTAMP, path};

/// What a cleaning would find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleanable {
    pub clean_bytes: u64,
    pub dirty_bytes: u64,
    /// `max.compaction.lag.ms` or the delete horizon of a tombstone is over: the share of dirty bytes does not matter.
    pub is_due: bool,
}

impl Cleanable {
    /// Dirty bytes of all: what `min.cleanable.dirty.ratio` is compared with.
    pub fn dirty_ratio(&self) -> f64 {
        let all = self.clean_bytes + self.dirty_bytes;
        if all == 0 { 0.0 } else { self.dirty_bytes as f64 / all as f64 }
    }
}

/// Closed segments that may be cleaned, oldest first; dirty from `from` on.
pub(super) struct Section {
    pub segments: Vec<SegmentRef>,
    pub from: Offset,
}

impl Section {
    pub fn dirty(&self) -> impl Iterator<Item = SegmentRef> + '_ {
        self.segments.iter().copied().filter(|s| s.next_offset > self.from)
    }

    pub fn end(&self) -> Offset {
        self.segments.last().map_or(self.from, |s| s.next_offset)
    }
}

impl PartitionLog {
    /// What a cleaning would find now; `None` when there is nothing for one.
    pub async fn cleanable(&self, wall_now_ms: i64) -> Result<Option<Cleanable>, LogError> {
        if !self.config().compact || self.may_clean().is_err() || self.state.borrow().closed_count == 0 {
            return Ok(None);
        }
        let first = self.first_closed();
        match self.look_for_work(wall_now_ms).await {
            // Retention took what was looked at.
            Err(_) if first.is_some() && self.first_closed() != first => Ok(None),
            result => result,
        }
    }

    /// Changes when retention takes segments away, and not otherwise.
    pub(super) fn first_closed(&self) -> Option<Offset> {
        self.state.borrow().closed.as_ref().and_then(|closed| closed.first()).map(|s| s.base_offset)
    }

    async fn look_for_work(&self, wall_now_ms: i64) -> Result<Option<Cleanable>, LogError> {
        let section = self.section(wall_now_ms).await?;
        let dirty_bytes: u64 = section.dirty().map(|s| s.size).sum();
        let clean_bytes = section.segments.iter().map(|s| s.size).sum::<u64>() - dirty_bytes;
        let horizon_over =
            self.clean_point().await?.next_horizon_ms.is_some_and(|ms| wall_now_ms >= ms) && clean_bytes > 0;
        let is_due = horizon_over || self.is_over_max_lag(&section, wall_now_ms).await?;
        let found = Cleanable { clean_bytes, dirty_bytes, is_due };
        Ok((dirty_bytes > 0 || is_due).then_some(found))
    }

    /// As Kafka bounds it: never the active segment, nothing above the high watermark, nothing that holds a record younger
    /// than `min.compaction.lag.ms`. And nothing that the recovery point still lies in.
    pub(super) async fn section(&self, now_ms: i64) -> Result<Section, LogError> {
        self.load_segments().await?;
        let point = self.clean_point().await?;
        let (log_start, first_open, recovery_base) = {
            let state = self.state.borrow();
            (state.log_start, state.first_open_base(), state.point.segment_base)
        };
        let limit = self.retention_limit().min(recovery_base);
        let trusted = point.cleaned_to >= log_start && point.cleaned_to <= first_open;
        let from = if trusted { point.cleaned_to } else { log_start };
        let min_lag_ms = self.config().min_compaction_lag_ms;
        let mut segments = Vec::new();
        for segment in self.closed_refs() {
            if segment.next_offset > limit {
                break;
            }
            if segment.next_offset <= log_start {
                continue;
            }
            let is_dirty = segment.next_offset > from;
            if is_dirty && min_lag_ms > 0 && self.largest_ms(segment).await? > now_ms.saturating_sub(min_lag_ms) {
                break;
            }
            segments.push(segment);
        }
        Ok(Section { segments, from })
    }

    async fn largest_ms(&self, segment: SegmentRef) -> Result<i64, LogError> {
        match self.max_timestamp_of(segment).await? {
            NO_TIMESTAMP => self.modified_ms(segment).await,
            largest_ms => Ok(largest_ms),
        }
    }

    async fn is_over_max_lag(&self, section: &Section, now_ms: i64) -> Result<bool, LogError> {
        let max_lag_ms = self.config().max_compaction_lag_ms;
        let Some(first) = section.dirty().next().filter(|_| max_lag_ms < i64::MAX) else { return Ok(false) };
        let known = self.compact.first_dirty.get().filter(|(base, _)| *base == first.base_offset);
        let first_ms = match known {
            Some((_, first_ms)) => first_ms,
            None => self.first_batch_ms(first).await?,
        };
        self.compact.first_dirty.set(Some((first.base_offset, first_ms)));
        Ok(now_ms.saturating_sub(first_ms) > max_lag_ms)
    }

    async fn first_batch_ms(&self, segment: SegmentRef) -> Result<i64, LogError> {
        let file = path(self.dir(), segment.base_offset, FileKind::Log);
        let head = fs::read_at(&file, 0, HEADER_LEN).await?;
        let first_ms = BatchHeader::parse(&head).map_or(NO_TIMESTAMP, |header| header.max_timestamp_ms);
        if first_ms == NO_TIMESTAMP { self.modified_ms(segment).await } else { Ok(first_ms) }
    }

    /// How far the log is clean. A file that is damaged counts as lost; one of a newer version is left alone.
    pub(super) async fn clean_point(&self) -> Result<CleanPoint, LogError> {
        if let Some(known) = self.compact.point.get() {
            return Ok(known);
        }
        let file = self.dir().join(POINT_FILE);
        let mut point = CleanPoint::default();
        if self.folder_made.get()
            && let Some(bytes) = fs::read_if_there(&file, SMALL_FILE as usize).await?
        {
            point = match CleanPoint::decode(&bytes) {
                Err(why) if why.contains("newer version") => {
                    return Err(LogError::BadFolder { path: file, why: why.to_string() });
                }
                decoded => decoded.unwrap_or_default(),
            };
        }
        self.compact.point.set(Some(point));
        Ok(point)
    }

    pub(super) async fn put_clean_point(&self, point: CleanPoint) -> Result<(), LogError> {
        if self.compact.point.get() != Some(point) {
            super::stop::step(self.dir())?;
            fs::write_durable(&self.dir().join(POINT_FILE), point.encode()).await?;
            self.compact.point.set(Some(point));
        }
        Ok(())
    }

    /// Before a truncation: what is appended behind the cut is dirty, whatever lay there.
    pub(crate) async fn lower_clean_point(&self, end: Offset) -> Result<(), LogError> {
        let point = self.clean_point().await?;
        self.compact.first_dirty.set(None);
        if point.cleaned_to <= end {
            return Ok(());
        }
        self.put_clean_point(CleanPoint { cleaned_to: end, ..point }).await
    }
}
