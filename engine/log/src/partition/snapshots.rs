//! Producer snapshots: opaque bytes of the replica, kept beside the segments under Kafka's name, so that a start
//! rebuilds producer state from the newest one instead of from the whole log. Also the partition's recovery points.

use std::rc::Rc;

use model::Offset;
use runtime::{fs, spawn};

use super::PartitionLog;
use crate::error::LogError;
use crate::format::checkpoint::CheckpointEntry;
use crate::format::names::FileKind;
use crate::limits::{RECOVERY_POINT_BYTES, SNAPSHOT_FILE, SNAPSHOTS_KEPT};
use crate::segment::{Fill, path};

/// Where a start after a crash begins to scan. Everything before is durable, and so are that many index entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecoveryPoint {
    pub segment_base: Offset,
    pub fill: Fill,
    pub index_entries: u32,
    pub time_entries: u32,
}

impl PartitionLog {
    /// `Some(log_end)` when a snapshot of the producer state at the log's end is due: after a roll, and every 64 MiB. Asked
    /// for once: whoever takes the wish makes the snapshot.
    pub fn take_snapshot_wish(&self) -> Option<Offset> {
        let at = self.wants_producer_snapshot()?;
        let mut state = self.state.borrow_mut();
        state.snapshot_mark = (state.active.base_offset, state.active.fill.size);
        Some(at)
    }

    /// Whether a snapshot is due, without taking the wish.
    pub fn wants_producer_snapshot(&self) -> Option<Offset> {
        let state = self.state.borrow();
        let (base, size) = state.snapshot_mark;
        let active = &state.active;
        let due = if base == active.base_offset {
            active.fill.size - size.min(active.fill.size) >= RECOVERY_POINT_BYTES
        } else {
            true
        };
        (due && state.failed.is_none()).then_some(state.log_end)
    }

    /// Stores the producer state as it is at `at`, the log end when `bytes` were made.
    pub async fn put_producer_snapshot(&self, at: Offset, bytes: Vec<u8>) -> Result<(), LogError> {
        {
            let mut state = self.state.borrow_mut();
            state.snapshot_mark = (state.active.base_offset, state.active.fill.size);
            if state.snapshots.last() == Some(&at) {
                // The same records make the same state.
                return Ok(());
            }
        }
        if !self.folder_made.get() {
            return Ok(());
        }
        self.home.prepare_write().await?;
        fs::write_durable(&path(self.dir(), at, FileKind::Snapshot), bytes).await?;
        self.touched.set(true);
        let old: Vec<Offset> = {
            let mut state = self.state.borrow_mut();
            state.snapshots.retain(|s| *s != at);
            state.snapshots.push(at);
            state.snapshots.sort_unstable();
            let keep_from = state.snapshots.len().saturating_sub(SNAPSHOTS_KEPT);
            state.snapshots.drain(..keep_from).collect()
        };
        for offset in old {
            fs::remove_file(&path(self.dir(), offset, FileKind::Snapshot)).await?;
        }
        Ok(())
    }

    /// The newest snapshot that can be read. One that cannot is passed over: older ones, or the log, say the same.
    pub(crate) async fn newest_snapshot(&self) -> Result<Option<(Offset, Vec<u8>)>, LogError> {
        let known = self.state.borrow().snapshots.clone();
        for offset in known.into_iter().rev() {
            let file = path(self.dir(), offset, FileKind::Snapshot);
            if let Some(bytes) = fs::read_if_there(&file, SNAPSHOT_FILE as usize).await? {
                return Ok(Some((offset, bytes)));
            }
            self.state.borrow_mut().snapshots.retain(|s| *s != offset);
        }
        Ok(None)
    }

    /// A recovery point is due: index files and epochs first, then the checkpoint that relies on them.
    pub(crate) fn renew_recovery_point(self: &Rc<Self>, base: Offset, fill: Fill, index: u32, times: u32) {
        let me = self.clone();
        me.in_flight.set(me.in_flight.get() + 1);
        spawn("recovery-point", async move {
            me.lock_indexes().await;
            let still_open = me.state.borrow().active.base_offset == base;
            let flushed = if still_open { me.flush_active_indexes(true).await } else { Ok(()) };
            let saved = me.save_epochs_if_dirty().await;
            me.unlock_indexes();
            // A failure keeps the older point: more to scan after a crash, nothing lost.
            if flushed.is_ok() && still_open && saved.is_ok() {
                // Sealed meanwhile: the next segment's beginning is the point by now, and this one would be a step back.
                if me.state.borrow().open_segment(base).is_some() {
                    me.put_recovery_point(base, fill, index, times);
                }
            }
            me.step_done();
        });
    }

    pub(crate) fn put_recovery_point(&self, segment_base: Offset, fill: Fill, index_entries: u32, time_entries: u32) {
        {
            let mut state = self.state.borrow_mut();
            state.point = RecoveryPoint { segment_base, fill, index_entries, time_entries };
            state.recovery_point = (segment_base, fill.size);
        }
        self.put_checkpoint_entry();
    }

    /// Hands the present recovery point, log start and so on to the checkpoint.
    pub(crate) fn put_checkpoint_entry(&self) {
        self.home.put(self.checkpoint_entry());
    }

    fn checkpoint_entry(&self) -> CheckpointEntry {
        let epochs = self.checkpoint_epochs();
        let state = self.state.borrow();
        let point = state.point;
        let reached = point.fill.next_offset;
        CheckpointEntry {
            key: self.key(),
            topic: self.topic().to_string(),
            log_start_offset: state.log_start,
            segment_base: point.segment_base,
            fill: point.fill,
            index_entries: point.index_entries,
            time_entries: point.time_entries,
            closed_count: state.closed_count,
            closed_bytes: state.closed_bytes,
            created_ms: state.active.created_ms,
            last_append_ms: state.active.last_append_ms,
            snapshot_at: state.snapshots.iter().rfind(|s| **s <= reached).copied(),
            epochs,
        }
    }
}
