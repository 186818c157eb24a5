//! Rolling: a new active segment begins in memory at once; the old one drains through the committer and is then sealed,
//! synced and trimmed with its indexes complete, before the first byte of the next goes to disk. Only the last file of
//! a partition can therefore have an open end.

use std::rc::Rc;

use model::{BatchHeader, Offset};
use runtime::{fs, random, spawn};

use super::{PartitionLog, State};
use crate::error::LogError;
use crate::format::index;
use crate::format::names::FileKind;
use crate::format::{index::ENTRY_LEN as INDEX_ENTRY, time_index, time_index::ENTRY_LEN as TIME_ENTRY};
use crate::limits::MAX_SEGMENT;
use crate::mutants::{Mutant, active};
use crate::segment::{ClosedSegment, Fill, OpenSegment, path};

/// What a roll did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rolled {
    NotDue,
    Rolled,
}

/// Kafka's reasons, in its order: size, time since the first batch, a full index, offsets beyond the index's reach.
pub(crate) fn is_due(state: &State, batch: &BatchHeader, now_ms: i64) -> bool {
    let active = &state.active;
    if active.fill.size == 0 {
        return false;
    }
    let config = &state.config;
    let size = active.fill.size + batch.size() as u64;
    let index_entries = (config.segment_index_bytes / INDEX_ENTRY as u64).max(1);
    let time_entries = (config.segment_index_bytes / TIME_ENTRY as u64).max(2) - 1;
    size > config.segment_bytes.min(MAX_SEGMENT)
        || time_is_up(state, Some(batch.max_timestamp_ms), now_ms)
        || u64::from(active.index.len()) >= index_entries
        || u64::from(active.time_index.len()) >= time_entries
        || index::relative(active.base_offset, batch.last_offset()).is_none()
}

/// `segment.ms` counts from the first batch's timestamp to the next batch's. Without a next batch, or without
/// timestamps, it counts from the segment's creation by the clock: records may be of any age, and the clock says nothing
/// about theirs.
fn time_is_up(state: &State, batch_ms: Option<i64>, now_ms: i64) -> bool {
    let active = &state.active;
    let waited = match (active.fill.first_timestamp_ms, batch_ms) {
        (first, Some(batch)) if first >= 0 => batch.saturating_sub(first),
        _ => now_ms.saturating_sub(active.created_ms),
    };
    active.fill.size > 0 && waited > state.config.roll_ms().saturating_sub(active.jitter_ms)
}

pub(crate) fn roll(state: &mut State, now_ms: i64) {
    assert!(state.active.fill.size > 0, "an empty segment is not rolled");
    let mut fresh = OpenSegment::fresh(state.log_end, now_ms);
    if state.config.segment_jitter_ms > 0 {
        fresh.jitter_ms = (random::u64() % state.config.segment_jitter_ms.unsigned_abs()) as i64;
    }
    // A clock that was set back makes no segment older than the one before it.
    fresh.last_append_ms = fresh.last_append_ms.max(state.active.last_append_ms);
    // A partition that filled a segment fills the next at the same rate.
    fresh.preallocate = state.active.preallocate;
    let old = std::mem::replace(&mut state.active, fresh);
    state.draining.push_back(old);
}

impl PartitionLog {
    /// Rolls when `segment.ms` is over although nothing is appended: retention and compaction only touch closed ones.
    pub async fn roll_if_due(&self, wall_now_ms: i64) -> Result<Rolled, LogError> {
        let due = {
            let state = self.state.borrow();
            state.failed.is_none() && time_is_up(&state, None, wall_now_ms)
        };
        // A truncation is about to choose the active segment itself.
        if !due || self.closed.get() || self.cutting.get() {
            return Ok(Rolled::NotDue);
        }
        self.roll_now(wall_now_ms).await?;
        Ok(Rolled::Rolled)
    }

    /// Rolls and waits until the old segment is sealed. Gives its base offset.
    pub(crate) async fn roll_now(&self, now_ms: i64) -> Result<Offset, LogError> {
        let old = {
            let mut state = self.state.borrow_mut();
            let old = state.active.base_offset;
            roll(&mut state, now_ms);
            old
        };
        self.touched.set(true);
        self.register_direct();
        loop {
            let seen = self.settled.version();
            if let Some(error) = self.failure() {
                return Err(error);
            }
            if self.full.get() {
                // It goes on by itself once there is space; whoever asked has other things to do until then.
                return Err(LogError::Full("the rolled segment waits for space".into()));
            }
            let draining = self.state.borrow().draining.iter().any(|s| s.base_offset == old);
            if !draining {
                return Ok(old);
            }
            self.settled.changed_since(seen).await;
        }
    }

    /// Seals the oldest draining segment, which is written, in a task of its own: other partitions' rounds go on.
    pub(crate) fn start_seal(self: &Rc<Self>) {
        assert!(!self.sealing.get(), "segments are sealed one after the other");
        self.sealing.set(true);
        self.in_flight.set(self.in_flight.get() + 1);
        let me = self.clone();
        spawn("seal-segment", async move {
            let sealed = me.seal().await;
            me.sealing.set(false);
            match &sealed {
                Ok(()) => me.full.set(false),
                // The records are in the file; what is missing is tried again as a whole.
                Err(error @ LogError::Full(_)) => me.brake(error),
                Err(error) => me.poison(error),
            }
            me.step_done();
            if sealed.is_ok() {
                me.register();
            }
        });
    }

    async fn seal(self: &Rc<Self>) -> Result<(), LogError> {
        self.lock_indexes().await;
        let result = self.seal_files().await;
        self.unlock_indexes();
        let segment = result?;
        {
            let mut state = self.state.borrow_mut();
            if state.failed.is_some() {
                return Ok(());
            }
            let sealed = state.draining.pop_front();
            assert!(sealed.is_some_and(|s| s.base_offset == segment.base_offset), "segments are sealed in order");
            state.closed_count += 1;
            state.closed_bytes += segment.size;
            self.count_pinned(&state);
            if let Some(closed) = &mut state.closed {
                closed.push(segment);
            }
        }
        // Cached under the same key: the part of the index that was in its file while the segment was open.
        self.shard.memory.indexes.remove((self.id, segment.base_offset));
        self.forget_direct_file(segment.base_offset);
        self.in_segment(segment.base_offset, segment.size);
        self.advance_durable(segment.next_offset);
        self.put_recovery_point(segment.next_offset, Fill::empty(segment.next_offset), 0, 0);
        Ok(())
    }

    /// An error of a file's sync is told to one caller only: with two under way at once the other could take its own
    /// success for proof.
    async fn wait_for_syncs(&self) {
        loop {
            let seen = self.settled.version();
            if self.syncing.get() == 0 {
                return;
            }
            self.settled.changed_since(seen).await;
        }
    }

    async fn seal_files(self: &Rc<Self>) -> Result<ClosedSegment, LogError> {
        let Some(segment) = self.state.borrow().draining.front().cloned() else {
            unreachable!("a segment is sealed while it drains")
        };
        assert!(segment.is_written(), "a segment is sealed when it is written");
        let base = segment.base_offset;
        let file = self.direct_file(base, false).await?;
        self.wait_for_syncs().await;
        file.truncate(segment.fill.size).await?;
        // Never tried again, not even for want of space: the kernel may have dropped what it could not write.
        if !active(Mutant::SealUnsynced) {
            self.sync_direct(&file).await.map_err(|e| LogError::Storage(e.to_string().into()))?;
        }
        let entries = index::encode(&segment.index.tail);
        let at = u64::from(segment.index.in_file) * INDEX_ENTRY as u64;
        fs::write_tail(&path(self.dir(), base, FileKind::Index), at, entries, true).await?;
        let mut times = segment.time_index.tail.clone();
        times.extend(segment.fill.final_time_entry(base));
        let at = u64::from(segment.time_index.in_file) * TIME_ENTRY as u64;
        let entries = time_index::encode(&times);
        fs::write_tail(&path(self.dir(), base, FileKind::TimeIndex), at, entries, true).await?;
        fs::sync_dir(self.dir()).await?;
        // A start after a crash scans the last segment only: leaderships that began in this one are known from the file. Under
        // the index lock, as every save beside others: they are written aside under one name.
        self.save_epochs_if_dirty().await?;
        Ok(ClosedSegment {
            base_offset: base,
            next_offset: segment.fill.next_offset,
            size: segment.fill.size,
            max_timestamp_ms: Some(segment.fill.max_timestamp_ms),
            modified_ms: Some(segment.last_append_ms),
        })
    }
}
