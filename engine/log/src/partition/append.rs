//! Append: on the produce way, stage one. One copy of the batch into the tail chunk, patched there; nothing waits. When
//! it returns, the batch's position is fixed and the committer knows of it.

use model::batch::{HEADER_LEN, patch_max_timestamp, patch_position};
use model::{BatchHeader, Offset};
use runtime::clock;

use super::{PartitionLog, State, roll};
use crate::config::{Appended, Durability, Patch, Placement, Timestamps};
use crate::error::LogError;
use crate::format::index;
use crate::limits::{BLOCK, CHUNK_MIN, DRAINING_SEGMENTS, MAX_BATCH};
use crate::tail::TailChunk;

const ATTR_LOG_APPEND_TIME: i16 = 0x08;

impl PartitionLog {
    /// Appends one validated batch. The caller's bytes stay as they are.
    pub fn append(&self, batch: &[u8], patch: Patch) -> Result<Appended, LogError> {
        let header = whole_batch(batch)?;
        let now_ms = clock::wall_ms();
        self.may_append(batch.len() as u64)?;
        let (appended, took_chunk, memory) = {
            let mut state = self.state.borrow_mut();
            let placed = place(&state, header, patch)?;
            if roll::is_due(&state, &placed, now_ms) {
                if state.draining.len() >= DRAINING_SEGMENTS {
                    return Err(LogError::Overloaded);
                }
                roll::roll(&mut state, now_ms);
            }
            let took_chunk = self.take_chunk_if_needed(&mut state, batch.len());
            copy_patched(&mut state, batch, &placed, patch.timestamps);
            (account(&mut state, &placed, now_ms), took_chunk, state.config.durability == Durability::Memory)
        };
        self.touched.set(true);
        self.last_append_at_ms.set(now_ms);
        self.shard.add_unwritten(batch.len() as u64);
        self.shard.appended.add(header.record_count.max(0) as u64, batch.len() as u64);
        if took_chunk && self.shard.cache.is_over() {
            self.shard.cache.shrink();
            if let Some(journal) = self.journal.as_ref().filter(|_| self.shard.cache.is_over()) {
                journal.relieve();
            }
        }
        if memory {
            self.advance_written(appended.next_offset);
            self.advance_durable(appended.next_offset);
        }
        self.register();
        Ok(appended)
    }

    fn may_append(&self, bytes: u64) -> Result<(), LogError> {
        if self.closed.get() {
            return Err(LogError::Closed);
        }
        if let Some(error) = self.failure() {
            return Err(error);
        }
        if self.full.get() {
            return Err(LogError::Full("no space for the next segment bytes".into()));
        }
        if self.cutting.get() || !self.shard.has_room(bytes) {
            return Err(LogError::Overloaded);
        }
        Ok(())
    }

    /// Makes sure that the last chunk is of the active segment and has room; says whether it took a new one.
    fn take_chunk_if_needed(&self, state: &mut State, len: usize) -> bool {
        let base = state.active.base_offset;
        let last = state.tail.chunks.back();
        if last.is_some_and(|c| c.segment_base == base && c.chunk.room() >= len) {
            return false;
        }
        let pad = (state.active.fill.size % BLOCK) as usize;
        let first = last.is_none();
        let most = self.shard.config.chunk_bytes.min(self.shard.cache.fair_chunk()).max(CHUNK_MIN);
        let grown = last.map_or(CHUNK_MIN, |c| (c.chunk.capacity() * 4).clamp(CHUNK_MIN, most));
        let chunk = self.shard.config.pool.take(grown.max(len + pad));
        let id = self.shard.next_id();
        self.shard.cache.added(self.me.clone(), id, chunk.capacity(), first);
        let chunk = TailChunk::new(id, base, state.active.fill.size, state.log_end, chunk);
        state.tail.chunks.push_back(chunk);
        true
    }

    /// What is appended next is to be written before it is synced, since somebody waits for just that. Otherwise the two may be
    /// one operation.
    pub fn tell_written(&self) {
        self.tells_written.set(true);
    }

    /// Puts the partition into the next commit round, once.
    pub(crate) fn register(&self) {
        if self.paused.get() > 0 || self.queued.replace(true) {
            return;
        }
        match &self.journal {
            Some(journal) => journal.register(self.me()),
            None => self.shard.committer.register(self.me()),
        }
    }
}

fn whole_batch(batch: &[u8]) -> Result<BatchHeader, LogError> {
    if batch.len() > MAX_BATCH {
        return Err(LogError::BadBatch("it is larger than a log can hold"));
    }
    if batch.len() < HEADER_LEN {
        return Err(LogError::BadBatch("it has no whole header"));
    }
    let header = BatchHeader::parse(batch).map_err(|_| LogError::BadBatch("its header is malformed"))?;
    if header.size() != batch.len() {
        return Err(LogError::BadBatch("its length differs from its header's"));
    }
    if header.last_offset_delta < 0 {
        return Err(LogError::BadBatch("it holds no record"));
    }
    Ok(header)
}

/// The header as it will be in the log.
fn place(state: &State, mut header: BatchHeader, patch: Patch) -> Result<BatchHeader, LogError> {
    match patch.placement {
        Placement::Leader(epoch) => {
            header.base_offset = state.log_end;
            header.leader_epoch = epoch;
        }
        Placement::AsStored if header.base_offset < state.log_end => {
            return Err(LogError::BadBatch("its offsets are in the log already"));
        }
        Placement::AsStored if header.base_offset > state.log_end && !state.may_have_gaps() => {
            return Err(LogError::BadBatch("offsets are missing before it, and the topic is not compacted"));
        }
        Placement::AsStored => {}
    }
    match patch.timestamps {
        Timestamps::Keep => {}
        Timestamps::SetMax(ms) => header.max_timestamp_ms = ms,
        Timestamps::LogAppendTime(ms) => {
            header.max_timestamp_ms = ms;
            header.attributes |= ATTR_LOG_APPEND_TIME;
        }
    }
    if header.base_offset.0 > i64::MAX - i64::from(i32::MAX) - 1 {
        return Err(LogError::BadBatch("the partition has run out of offsets"));
    }
    // A segment that begins at the log's end has to reach it.
    if index::relative(state.log_end, header.last_offset()).is_none() {
        return Err(LogError::BadBatch("its offsets are too far behind the log's end"));
    }
    Ok(header)
}

fn copy_patched(state: &mut State, batch: &[u8], placed: &BatchHeader, timestamps: Timestamps) {
    let Some(tail) = state.tail.chunks.back_mut() else { unreachable!("a chunk was taken for the batch") };
    tail.chunk.append_with(batch, |copy| {
        patch_position(copy, placed.base_offset, placed.leader_epoch);
        match timestamps {
            Timestamps::Keep => {}
            Timestamps::SetMax(ms) => patch_max_timestamp(copy, ms, false),
            Timestamps::LogAppendTime(ms) => patch_max_timestamp(copy, ms, true),
        }
    });
}

/// Ends, indexes and epochs after the copy.
fn account(state: &mut State, placed: &BatchHeader, now_ms: i64) -> Appended {
    let interval = state.config.index_interval_bytes;
    let active = &mut state.active;
    let base = active.base_offset;
    let Some(entries) = active.fill.add(base, placed, interval) else {
        unreachable!("a batch that does not fit its segment rolls it first")
    };
    if let Some(entries) = entries {
        active.index.tail.push(entries.index);
        active.time_index.tail.extend(entries.time);
    }
    // A clock that was set back takes nothing off the age that retention counts from.
    active.last_append_ms = active.last_append_ms.max(now_ms);
    if state.epochs.assign(placed.leader_epoch, placed.base_offset) {
        state.epochs_dirty = true;
    }
    state.log_end = placed.next_offset();
    assert!(state.log_end > placed.base_offset && state.log_end == state.active.fill.next_offset);
    Appended {
        base_offset: placed.base_offset,
        last_offset: placed.last_offset(),
        next_offset: Offset(placed.last_offset().0 + 1),
    }
}
