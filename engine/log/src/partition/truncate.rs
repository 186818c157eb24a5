//! Truncation, as a follower does it when the leader's history differs (KIP-101). Durable before the next append: the
//! checkpoint first stops to vouch for the part that goes, then the files are cut.

use model::{LeaderEpoch, Offset};
use runtime::fs;

use super::PartitionLog;
use super::segments::SegmentRef;
use crate::error::LogError;
use crate::format::names::FileKind;
use crate::limits::SCAN_WINDOW;
use crate::mutants::{Mutant, active};
use crate::scan::{SegmentScan, Step};
use crate::segment::{Fill, GrowingIndex, OpenSegment, path};
use crate::shard::close_files;

/// Segment files of one segment.
const SEGMENT_FILES: [FileKind; 4] = [FileKind::Log, FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex];

impl PartitionLog {
    /// Cuts the log so that it ends at or before `offset`: a batch that holds the offset goes whole.
    pub async fn truncate_to(&self, offset: Offset) -> Result<(), LogError> {
        let (log_start_offset, log_end_offset) = (self.log_start_offset(), self.log_end_offset());
        if offset >= log_end_offset {
            return Ok(());
        }
        if offset < log_start_offset {
            return Err(LogError::OffsetOutOfRange { asked: offset, log_start_offset, log_end_offset });
        }
        if self.cutting.replace(true) {
            return Err(LogError::Overloaded);
        }
        let result = self.truncate_quietly(offset).await;
        self.cutting.set(false);
        self.register();
        result
    }

    async fn truncate_quietly(&self, offset: Offset) -> Result<(), LogError> {
        self.cleaning_over().await;
        self.register();
        self.settle().await?;
        let _pause = self.pause().await;
        self.load_segments().await?;
        let segment = self.segment_of(offset).await?;
        let scan = self.scan_before(segment, offset).await?;
        self.touched.set(true);
        self.void_journal(Offset(i64::MAX)).await?;
        self.lower_clean_point(scan.fill.next_offset).await?;
        self.vouch_for_less(&scan).await?;
        if let Err(error) = self.cut_durably(segment, scan).await {
            // The files hold less than the log says, or may after a crash: nothing may be appended to that.
            self.me().poison(&LogError::Storage(error.to_string().into()));
            return Err(error);
        }
        Ok(())
    }

    async fn cut_durably(&self, segment: SegmentRef, scan: SegmentScan) -> Result<(), LogError> {
        self.cut_files(segment, &scan).await?;
        // Leaderships go after the records, of which a crash may leave some; and before the next append, which may be of one
        // that goes. The log start may have come down: a start after a crash would hide what is appended below the old one.
        let goes = self.take_cut(segment, scan);
        self.save_epochs_if_dirty().await?;
        if goes {
            self.put_checkpoint_entry();
            self.home.flush().await?;
        }
        Ok(())
    }

    /// What the segment holds below `offset`, from its headers.
    async fn scan_before(&self, segment: SegmentRef, offset: Offset) -> Result<SegmentScan, LogError> {
        let base = segment.base_offset;
        let interval = self.config().index_interval_bytes;
        let scan = SegmentScan::new(base, Fill::empty(base), LeaderEpoch::UNKNOWN, interval);
        let mut scan = scan.headers_only().with_gaps(self.may_have_gaps()).stop_before(offset);
        let file = self.direct_file(base, false).await?;
        let mut window = SCAN_WINDOW;
        loop {
            let position = scan.position();
            let left = segment.size - position;
            let len = window.min(left as usize);
            let bytes = file.read(position, len).await?;
            match scan.feed(&bytes, left) {
                Step::Need(_) if bytes.len() < len => {
                    return Err(self.corrupt(base, position, "the file is shorter than its log".into()));
                }
                Step::Need(len) => window = len.max(SCAN_WINDOW),
                Step::End(_) => return Ok(scan),
            }
        }
    }

    /// Snapshots and the recovery point no longer reach beyond the cut, durably.
    async fn vouch_for_less(&self, scan: &SegmentScan) -> Result<(), LogError> {
        let end = scan.fill.next_offset;
        let (late, base): (Vec<Offset>, Offset) = {
            let mut state = self.state.borrow_mut();
            let late = state.snapshots.extract_if(.., |s| *s > end).collect();
            (late, scan.base_offset())
        };
        for snapshot in late {
            fs::remove_file(&path(self.dir(), snapshot, FileKind::Snapshot)).await?;
        }
        fs::sync_dir(self.dir()).await?;
        self.put_recovery_point(base, Fill::empty(base), 0, 0);
        if active(Mutant::TruncationUnsynced) {
            return Ok(());
        }
        self.home.flush().await
    }

    /// Later segments go, newest first; then this one is cut, and its index files with it.
    async fn cut_files(&self, segment: SegmentRef, scan: &SegmentScan) -> Result<(), LogError> {
        let mut later: Vec<Offset> = self.closed_refs().into_iter().map(|s| s.base_offset).collect();
        later.extend(self.open_refs().into_iter().map(|(s, _)| s.base_offset));
        later.retain(|base| *base > segment.base_offset);
        for base in later.into_iter().rev() {
            self.forget_direct_file(base);
            for kind in SEGMENT_FILES {
                fs::remove_file(&path(self.dir(), base, kind)).await?;
            }
            // One by one: a crash must not leave a later segment behind a missing one.
            fs::sync_dir(self.dir()).await?;
        }
        let file = self.direct_file(segment.base_offset, false).await?;
        file.truncate(scan.fill.size).await?;
        if !active(Mutant::TruncationUnsynced) {
            self.sync_direct(&file).await?;
        }
        for kind in [FileKind::Index, FileKind::TimeIndex] {
            fs::write_tail(&path(self.dir(), segment.base_offset, kind), 0, Vec::new(), true).await?;
        }
        Ok(())
    }

    /// Gives whether the checkpoint has to know of it: leaderships went, or the log start came down with the end, whose batch
    /// is gone.
    fn take_cut(&self, segment: SegmentRef, scan: SegmentScan) -> bool {
        self.drop_tail();
        self.forget_damage_from(scan.fill.next_offset);
        // Readers may have opened again what was removed, or be about to keep what they read of it.
        self.cuts.set(self.cuts.get() + 1);
        close_files(self.shard.files.remove_log(self.id));
        self.shard.memory.forget_log(self.id);
        drop(self.shard.shared_files.remove_log(self.id));
        let end = scan.fill.next_offset;
        let goes = {
            let mut state = self.state.borrow_mut();
            let now_ms = state.active.last_append_ms;
            let mut active = OpenSegment::fresh(segment.base_offset, now_ms);
            active.fill = scan.fill;
            // With the removal of the later segments.
            active.name_synced = true;
            active.allocated = scan.fill.size;
            active.index = GrowingIndex { in_file: 0, tail: scan.index };
            active.time_index = GrowingIndex { in_file: 0, tail: scan.time_index };
            active.is_all_on_disk();
            state.active = active;
            self.count_pinned(&state);
            if let Some(closed) = &mut state.closed {
                closed.retain(|s| s.base_offset < segment.base_offset);
            }
            state.closed_count = state.closed.as_ref().map_or(0, |c| c.len() as u32);
            state.closed_bytes = state.closed.iter().flatten().map(|s| s.size).sum();
            state.log_end = end;
            state.snapshot_mark = (segment.base_offset, state.active.fill.size);
            let start_came_down = end < state.log_start;
            state.log_start = state.log_start.min(end);
            let leaderships_went = state.epochs.truncate_from_end(end);
            state.epochs_dirty |= leaderships_went;
            start_came_down || leaderships_went
        };
        self.written.reset(end);
        self.durable.reset(end);
        goes
    }
}
