//! The first half of a cleaning: the offset map of the dirty section.

use model::Offset;
use runtime::{random, spawn_blocking};

use super::CleanLimits;
use super::offset_map::OffsetMap;
use super::pace::Pace;
use super::rewrite::Indexer;
use super::section::Section;
use super::source::{Piece, Source};
use crate::error::LogError;
use crate::partition::PartitionLog;
use crate::partition::segments::SegmentRef;

/// The map, and where the section ends that it stands for.
pub(super) struct Mapped {
    pub map: OffsetMap,
    pub end: Offset,
    pub read_bytes: u64,
}

impl PartitionLog {
    pub(super) async fn map_dirty(
        &self,
        section: &Section,
        limits: &CleanLimits,
        pace: &mut Pace,
    ) -> Result<Mapped, LogError> {
        let keys: i64 = section.dirty().map(|s| s.next_offset.0 - s.base_offset.0).sum();
        let before = Offset(section.from.0 - 1);
        let map = OffsetMap::new(limits.map_bytes, limits.map_load, keys.unsigned_abs(), random::bytes(), before);
        let mut indexer = Indexer::new(map, section.from);
        let mut read_bytes = 0;
        for segment in section.dirty() {
            let mut source = Source::open(self, segment, limits.piece_bytes).await?;
            let result = self.map_segment(indexer, segment, &mut source, pace, &mut read_bytes).await;
            source.close().await;
            indexer = result?;
            if indexer.is_full {
                break;
            }
        }
        let mut map = indexer.map;
        if !indexer.is_full {
            // Behind its last batch a segment may have a gap.
            map.looked_to(Offset(section.end().0 - 1));
        }
        Ok(Mapped { end: map.latest().plus(1), map, read_bytes })
    }

    async fn map_segment(
        &self,
        mut indexer: Indexer,
        segment: SegmentRef,
        source: &mut Source,
        pace: &mut Pace,
        read_bytes: &mut u64,
    ) -> Result<Indexer, LogError> {
        while let Some(Piece { position, bytes, .. }) = source.next(self).await? {
            let len = bytes.len() as u64;
            let work = move || {
                let result = indexer.take_piece(&bytes);
                (indexer, result)
            };
            let (back, result) = spawn_blocking(work).await.map_err(|panic| LogError::Io(panic.to_string().into()))?;
            indexer = back;
            result.map_err(|damage| self.corrupt(segment.base_offset, position + damage.at as u64, damage.why))?;
            *read_bytes += len;
            pace.step(self, len).await?;
            if indexer.is_full {
                break;
            }
        }
        Ok(indexer)
    }
}
