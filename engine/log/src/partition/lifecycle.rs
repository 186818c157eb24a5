//! From opening to closing: a fresh partition, one that a clean checkpoint describes, the pauses that keep the committer
//! away, the clean stop, and deletion.

use std::collections::VecDeque;
use std::rc::Rc;

use model::{Offset, TopicId};
use runtime::{clock, fs, random};

use super::{PartitionLog, Start, State};
use crate::error::LogError;
use crate::format::checkpoint::CheckpointEntry;
use crate::format::epochs::EpochHistory;
use crate::format::names;
use crate::mutants::{Mutant, active};
use crate::partition::snapshots::RecoveryPoint;
use crate::segment::{Fill, GrowingIndex, OpenSegment};
use crate::shard::{LogShard, close_files};
use crate::tail::Tail;
use crate::{Durability, PartitionSpec};

/// Keeps the committer away from a partition while it lives.
#[derive(Debug)]
pub(crate) struct Pause(Rc<PartitionLog>);

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.paused.set(self.0.paused.get() - 1);
        self.0.settled.notify();
        if !self.0.state.borrow().all_written() {
            self.0.register();
        }
        self.0.ask_for_destage();
    }
}

impl PartitionLog {
    pub(crate) fn fresh(shard: &Rc<LogShard>, spec: PartitionSpec, log_start: Offset) -> Rc<PartitionLog> {
        let active = OpenSegment::fresh(log_start, clock::wall_ms());
        let state = State::new(&spec, active, log_start);
        let start = Start { durable_end: log_start, state, folder_made: false, touched: false };
        PartitionLog::build(shard, spec, start)
    }

    /// As the clean stop left it. No file of the partition is looked at.
    pub(crate) fn from_checkpoint(
        shard: &Rc<LogShard>,
        spec: PartitionSpec,
        entry: CheckpointEntry,
    ) -> Result<Rc<PartitionLog>, LogError> {
        let mut active = OpenSegment::fresh(entry.segment_base, entry.created_ms);
        active.fill = entry.fill;
        active.name_synced = entry.fill.size > 0;
        active.allocated = entry.fill.size;
        active.index = GrowingIndex::new(entry.index_entries);
        active.time_index = GrowingIndex::new(entry.time_entries);
        active.is_all_on_disk();
        active.last_append_ms = entry.last_append_ms;
        let durable_end = entry.fill.next_offset;
        let mut state = State::new(&spec, active, entry.log_start_offset);
        state.closed = (entry.closed_count == 0).then(Vec::new);
        state.closed_count = entry.closed_count;
        state.closed_bytes = entry.closed_bytes;
        state.snapshots = entry.snapshot_at.into_iter().collect();
        state.epochs_unread = entry.epochs.is_none();
        let history = EpochHistory::from_entries(entry.epochs.clone().unwrap_or_default());
        state.epochs = history.ok_or_else(|| LogError::BadFolder {
            path: spec.data_dir.path().to_path_buf(),
            why: format!("the checkpoint's epochs of {} are out of order", spec.topic),
        })?;
        state.point.index_entries = entry.index_entries;
        state.point.time_entries = entry.time_entries;
        let start = Start { durable_end, state, folder_made: entry.has_data(), touched: false };
        Ok(PartitionLog::build(shard, spec, start))
    }

    /// Resolves when everything appended is on disk and no step is under way.
    pub(crate) async fn settle(&self) -> Result<(), LogError> {
        self.direct_only.set(self.direct_only.get() + 1);
        self.register_direct();
        let settled = self.wait_settled().await;
        self.direct_only.set(self.direct_only.get() - 1);
        settled
    }

    async fn wait_settled(&self) -> Result<(), LogError> {
        loop {
            let seen = self.settled.version();
            if let Some(error) = self.failure() {
                return Err(error);
            }
            if self.full.get() {
                return Err(LogError::Full("appended records wait for space".into()));
            }
            if self.is_settled() {
                return Ok(());
            }
            self.settled.changed_since(seen).await;
        }
    }

    fn is_settled(&self) -> bool {
        let held = !self.held.borrow().is_empty() && !active(Mutant::CloseUnsynced);
        self.in_flight.get() == 0 && !self.flushing.get() && !held && self.state.borrow().all_written()
    }

    /// Waits for the steps under way and keeps new ones from beginning.
    pub(crate) async fn pause(&self) -> Pause {
        self.paused.set(self.paused.get() + 1);
        let pause = Pause(self.me());
        loop {
            let seen = self.settled.version();
            if self.in_flight.get() == 0 && !self.flushing.get() {
                return pause;
            }
            self.settled.changed_since(seen).await;
        }
    }

    /// Closes the log for good in this process: everything to disk, tail trimmed, checkpoint entry handed over.
    pub async fn close(&self) -> Result<(), LogError> {
        let result = self.close_clean().await;
        // Whoever opens it again does not know what the ring holds of it.
        let result = match result {
            Ok(()) => self.void_journal(Offset(i64::MAX)).await,
            failed => failed,
        };
        self.shard.forget(self.key());
        result
    }

    /// Lets go of the log without touching its files: they are not for this version.
    pub async fn leave(&self) {
        self.closed.set(true);
        let _pause = self.pause().await;
        self.touched.set(false);
        self.give_up();
        close_files(self.shard.files.remove_log(self.id));
        drop(self.shard.shared_files.remove_log(self.id));
        self.shard.forget(self.key());
    }

    pub(crate) async fn close_clean(&self) -> Result<(), LogError> {
        self.closed.set(true);
        self.cleaning_over().await;
        if !self.touched.get() {
            return Ok(());
        }
        self.register();
        self.settle().await?;
        let _pause = self.pause().await;
        self.trim().await?;
        self.save_epochs_if_dirty().await?;
        self.unlink_now().await;
        self.drop_tail();
        close_files(self.shard.files.remove_log(self.id));
        drop(self.shard.shared_files.remove_log(self.id));
        let (base, fill, index, times) = {
            let state = self.state.borrow();
            let active = &state.active;
            (active.base_offset, active.fill, active.index.len(), active.time_index.len())
        };
        self.put_recovery_point(base, fill, index, times);
        Ok(())
    }

    /// Kafka's form of the active segment: no preallocated rest, indexes complete.
    async fn trim(&self) -> Result<(), LogError> {
        if !self.folder_made.get() {
            return Ok(());
        }
        let (base, size, allocated) = {
            let mut state = self.state.borrow_mut();
            let active = &mut state.active;
            if let Some(entry) = active.fill.final_time_entry(active.base_offset) {
                active.time_index.tail.push(entry);
                active.fill.last_time_entry_ms = entry.timestamp_ms;
            }
            (active.base_offset, active.fill.size, active.allocated)
        };
        if size == 0 {
            return Ok(());
        }
        let memory = self.config().durability == Durability::Memory;
        if allocated != size || memory {
            let file = self.direct_file(base, false).await?;
            // Not synced: the checkpoint knows the size, so zeros that come back after a power cut do no harm.
            file.truncate(size).await?;
            if memory {
                // The checkpoint vouches for what no sync stage has seen.
                self.sync_direct(&file).await?;
                fs::sync_dir(self.dir()).await?;
            }
            self.state.borrow_mut().active.allocated = size;
        }
        // Synced, names too: the checkpoint counts on the entries, and the next start does not look for them. Kafka's tools
        // expect both files, if only empty ones.
        self.lock_indexes().await;
        let flushed = self.flush_active_indexes(true).await;
        self.unlock_indexes();
        flushed?;
        Ok(fs::sync_dir(self.dir()).await?)
    }

    /// Deletes the partition: the folder is renamed, durably, and unlinked after `file.delete.delay.ms`.
    pub async fn delete(self: Rc<Self>) -> Result<(), LogError> {
        self.closed.set(true);
        self.cleaning_over().await;
        let _pause = self.pause().await;
        self.deleted.set(true);
        self.give_up();
        self.leave_ring();
        close_files(self.shard.files.remove_log(self.id));
        drop(self.shard.shared_files.remove_log(self.id));
        self.shard.memory.forget_log(self.id);
        self.home.remove(self.key());
        self.shard.forget(self.key());
        if !self.folder_made.get() {
            return Ok(());
        }
        self.home.prepare_write().await?;
        let name = names::deleted_dir(self.topic(), self.key().partition, TopicId(random::bytes()));
        let aside = self.home.dir.path().join(name);
        fs::rename(self.dir(), &aside).await?;
        self.shard.remove_later(aside, self.config().file_delete_delay_ms);
        Ok(())
    }

    /// Nothing that is still on its way will get there: waiters are told, memory is given back.
    fn give_up(&self) {
        let unwritten = {
            let mut state = self.state.borrow_mut();
            let open = state.open_segments().map(OpenSegment::uncounted).sum();
            let before = if state.failed.is_some() { 0 } else { open };
            state.failed = Some(LogError::Closed);
            self.count_pinned(&state);
            before
        };
        self.shard.sub_unwritten(unwritten);
        self.written.fail(LogError::Closed);
        self.durable.fail(LogError::Closed);
        self.drop_tail();
    }
}

impl State {
    /// The state of a log whose last segment is `active`, everything in it durable.
    pub(crate) fn new(spec: &PartitionSpec, active: OpenSegment, log_start: Offset) -> State {
        assert!(active.durable == active.fill.size, "a log begins with what is on disk");
        State {
            config: spec.config,
            log_start,
            log_end: active.fill.next_offset,
            epochs: EpochHistory::default(),
            epochs_dirty: false,
            epochs_unread: false,
            closed: Some(Vec::new()),
            closed_count: 0,
            closed_bytes: 0,
            draining: VecDeque::new(),
            tail: Tail::default(),
            snapshots: Vec::new(),
            recovery_point: (active.base_offset, active.fill.size),
            point: RecoveryPoint {
                segment_base: active.base_offset,
                fill: if active.fill.size == 0 { Fill::empty(active.base_offset) } else { active.fill },
                index_entries: active.index.len(),
                time_entries: active.time_index.len(),
            },
            snapshot_mark: (active.base_offset, active.fill.size),
            failed: None,
            was_cleaned: false,
            active,
        }
    }
}
