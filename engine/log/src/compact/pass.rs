//! A cleaning from its beginning to its end.

use std::collections::BTreeMap;

use model::{Offset, ProducerId};
use runtime::{fs, spawn_blocking};

use super::offset_map::OffsetMap;
use super::pace::Pace;
use super::point::CleanPoint;
use super::replace::{cleaned_path, remove_cleaned};
use super::rewrite::{Rewriter, Tally};
use super::rules::Rules;
use super::sink::Sink;
use super::source::Source;
use super::{CleanLimits, Cleaned};
use crate::error::LogError;
use crate::format::index::{self, ENTRY_LEN as INDEX_ENTRY};
use crate::format::names::FileKind;
use crate::format::time_index::{self, ENTRY_LEN as TIME_ENTRY};
use crate::limits::{BLOCK, IO_MAX, MAX_SEGMENT, REPLACED_SEGMENTS};
use crate::partition::PartitionLog;
use crate::partition::segments::SegmentRef;
use crate::segment::{ClosedSegment, path};

/// What a cleaning carries from group to group.
struct Pass {
    limits: CleanLimits,
    pace: Pace,
    /// `None` while a group has it.
    map: Option<(OffsetMap, Rules)>,
    tally: Tally,
    done: Cleaned,
}

impl PartitionLog {
    /// Cleans what may be cleaned, as far as the map has room. `producers` gives the last offset of every producer whose
    /// sequence number is still wanted. `None`: there was nothing to do, or the cleaning made way for a truncation, a stop
    /// or a deletion; it begins anew later.
    pub async fn clean(
        &self,
        limits: CleanLimits,
        producers: BTreeMap<ProducerId, Offset>,
        wall_now_ms: i64,
    ) -> Result<Option<Cleaned>, LogError> {
        let Some(_cleaning) = self.begin_cleaning() else { return Ok(None) };
        let first = self.first_closed();
        match self.clean_quietly(limits, producers, wall_now_ms).await {
            Err(LogError::Closed) => Ok(None),
            // Retention took what was being read.
            Err(_) if first.is_some() && self.first_closed() != first && self.failure().is_none() => Ok(None),
            result => result,
        }
    }

    async fn clean_quietly(
        &self,
        limits: CleanLimits,
        producers: BTreeMap<ProducerId, Offset>,
        now_ms: i64,
    ) -> Result<Option<Cleaned>, LogError> {
        self.may_clean()?;
        let section = self.section(now_ms).await?;
        if section.segments.is_empty() {
            return Ok(None);
        }
        self.home.prepare_write().await?;
        self.touched.set(true);
        let limits = CleanLimits { piece_bytes: limits.piece_bytes.clamp(BLOCK as usize, IO_MAX as usize), ..limits };
        let mut pace = Pace::new(self, &limits);
        let mapped = self.map_dirty(&section, &limits, &mut pace).await?;
        let config = self.config();
        let rules = Rules { now_ms, delete_retention_ms: config.delete_retention_ms, producers, ..Rules::default() };
        let done = Cleaned { cleaned_to: mapped.end, read_bytes: mapped.read_bytes, ..Cleaned::default() };
        let mut pass = Pass { limits, pace, map: Some((mapped.map, rules)), tally: Tally::default(), done };
        let within: Vec<SegmentRef> =
            section.segments.iter().copied().take_while(|s| s.base_offset < mapped.end).collect();
        for group in self.groups(within).await? {
            self.clean_group(&mut pass, &group).await?;
        }
        let point = CleanPoint { cleaned_to: mapped.end, next_horizon_ms: pass.tally.next_horizon_ms };
        self.may_clean()?;
        self.put_clean_point(point).await?;
        pass.done.kept_records = pass.tally.kept_records;
        pass.done.dropped_records = pass.tally.dropped_records;
        // The map may be large: giving its memory back takes a while.
        let map = pass.map;
        let _ = spawn_blocking(move || drop(map)).await;
        Ok(Some(pass.done))
    }

    /// Neighbours that fit one segment together, by bytes, index and offsets.
    async fn groups(&self, segments: Vec<SegmentRef>) -> Result<Vec<Vec<SegmentRef>>, LogError> {
        let config = self.config();
        let (most_bytes, most_index) = (config.segment_bytes.min(MAX_SEGMENT), config.segment_index_bytes);
        let mut groups: Vec<Vec<SegmentRef>> = Vec::new();
        let (mut bytes, mut entries) = (0, [0; 2]);
        for segment in segments {
            let own = [
                self.file_len(segment, FileKind::Index).await? / INDEX_ENTRY as u64 * INDEX_ENTRY as u64,
                self.file_len(segment, FileKind::TimeIndex).await? / TIME_ENTRY as u64 * TIME_ENTRY as u64,
            ];
            let fits = groups.last().is_some_and(|group| {
                bytes + segment.size <= most_bytes
                    && entries.iter().zip(own).all(|(all, own)| all + own <= most_index)
                    && index::relative(group[0].base_offset, segment.next_offset).is_some()
                    && group.len() < REPLACED_SEGMENTS
            });
            match groups.last_mut() {
                Some(group) if fits => group.push(segment),
                _ => {
                    groups.push(vec![segment]);
                    (bytes, entries) = (0, [0; 2]);
                }
            }
            bytes += segment.size;
            entries = [entries[0] + own[0], entries[1] + own[1]];
        }
        Ok(groups)
    }

    async fn file_len(&self, segment: SegmentRef, kind: FileKind) -> Result<u64, LogError> {
        Ok(fs::stat(&path(self.dir(), segment.base_offset, kind)).await?.map_or(0, |stat| stat.len))
    }

    async fn clean_group(&self, pass: &mut Pass, group: &[SegmentRef]) -> Result<(), LogError> {
        self.may_clean()?;
        super::stop::step(self.dir())?;
        let base = group[0].base_offset;
        let made = match self.write_cleaned(pass, group).await {
            Ok(made) => made,
            Err(error) => {
                self.drop_cleaned(base).await;
                return Err(error);
            }
        };
        pass.done.segments_before += group.len();
        pass.done.segments_after += 1;
        if group.len() == 1 && !made.changed {
            self.drop_cleaned(base).await;
            return Ok(());
        }
        let swapped = self.swap(group, made.segment).await;
        if swapped.is_err() && !self.is_swap_stuck() {
            self.drop_cleaned(base).await;
        }
        swapped
    }

    /// What a cleaning gave up. A leftover is removed by the next cleaning of the segment, or a start.
    async fn drop_cleaned(&self, base: Offset) {
        if super::stop::step(self.dir()).is_ok() {
            let _ = remove_cleaned(self.dir(), base).await;
        }
    }

    /// The group's records that stay, in files beside the old ones: complete, synced, not yet with a durable name.
    async fn write_cleaned(&self, pass: &mut Pass, group: &[SegmentRef]) -> Result<Made, LogError> {
        let base = group[0].base_offset;
        remove_cleaned(self.dir(), base).await?;
        let mut sink = Sink::create(self, base, group.iter().map(|s| s.size).sum()).await?;
        let filled = self.fill(pass, group, &mut sink).await;
        sink.close().await;
        let (rewriter, size) = filled?;
        let Rewriter { map, rules, fill, index, mut times, tally, .. } = rewriter;
        pass.map = Some((map, rules));
        pass.tally.add(tally);
        pass.done.written_bytes += size;
        times.extend(fill.final_time_entry(base));
        fs::write_tail(&cleaned_path(self.dir(), base, FileKind::Index), 0, index::encode(&index), true).await?;
        fs::write_tail(&cleaned_path(self.dir(), base, FileKind::TimeIndex), 0, time_index::encode(&times), true)
            .await?;
        assert!(size == fill.size, "what was written is what was made");
        let last = group[group.len() - 1];
        let modified_ms = self.modified_ms(last).await?;
        // Retention asks the file when its last record was appended.
        fs::set_modified(&cleaned_path(self.dir(), base, FileKind::Log), modified_ms).await?;
        let segment = ClosedSegment {
            base_offset: base,
            next_offset: last.next_offset,
            size,
            max_timestamp_ms: Some(fill.max_timestamp_ms),
            modified_ms: Some(modified_ms),
        };
        Ok(Made { segment, changed: tally.changed })
    }

    async fn fill(&self, pass: &mut Pass, group: &[SegmentRef], sink: &mut Sink) -> Result<(Rewriter, u64), LogError> {
        let Some((map, rules)) = pass.map.take() else { unreachable!("a group gives the map back") };
        let interval = self.config().index_interval_bytes;
        let mut rewriter = Rewriter::new(map, rules, group[0].base_offset, interval);
        for (at, segment) in group.iter().enumerate() {
            let mut source = Source::open(self, *segment, pass.limits.piece_bytes).await?;
            let ends_group = at + 1 == group.len();
            let result = self.fill_from(pass, rewriter, &mut source, *segment, ends_group, sink).await;
            source.close().await;
            rewriter = result?;
        }
        let size = sink.finish(self).await?;
        Ok((rewriter, size))
    }

    async fn fill_from(
        &self,
        pass: &mut Pass,
        mut rewriter: Rewriter,
        source: &mut Source,
        segment: SegmentRef,
        ends_group: bool,
        sink: &mut Sink,
    ) -> Result<Rewriter, LogError> {
        while let Some(piece) = source.next(self).await? {
            let (bytes, is_last) = (piece.bytes, piece.is_last && ends_group);
            let read = bytes.len() as u64;
            let work = move || {
                let result = rewriter.take_piece(&bytes, is_last);
                (rewriter, result)
            };
            let (back, result) = spawn_blocking(work).await.map_err(|panic| LogError::Io(panic.to_string().into()))?;
            rewriter = back;
            result
                .map_err(|damage| self.corrupt(segment.base_offset, piece.position + damage.at as u64, damage.why))?;
            let mut out = std::mem::take(&mut rewriter.out);
            let written = sink.push(self, &out).await?;
            out.clear();
            rewriter.out = out;
            pass.done.read_bytes += read;
            pass.pace.step(self, read + written).await?;
        }
        Ok(rewriter)
    }
}

/// A cleaned segment beside the old ones.
struct Made {
    segment: ClosedSegment,
    /// It differs from what it was made of by more than being one file.
    changed: bool,
}
