//! Retention: by time, by size, and by log start. A move of the log start is durable before anything is unlinked; the
//! files go after `file.delete.delay.ms`. The active segment stays; when all of it has expired it is rolled first.

use std::time::Duration;

use model::Offset;
use runtime::{clock, fs, spawn};

use super::segments::SegmentRef;
use super::{PartitionLog, State};
use crate::error::LogError;
use crate::format::names::FileKind;
use crate::mutants::{Mutant, active};
use crate::segment::{NO_TIMESTAMP, path};

/// What a check removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    pub deleted_segments: usize,
    pub deleted_bytes: u64,
    pub log_start_offset: Offset,
}

/// When a segment counts as written: its largest timestamp, but never later than its last append, so that stamps in the
/// future or in another unit do not keep it for ever; without timestamps the last append alone.
pub(crate) fn effective_ms(max_timestamp_ms: i64, last_append_ms: i64) -> i64 {
    if max_timestamp_ms < 0 { last_append_ms } else { max_timestamp_ms.min(last_append_ms) }
}

impl PartitionLog {
    pub async fn apply_retention(&self, wall_now_ms: i64) -> Result<Retained, LogError> {
        if let Some(error) = self.failure() {
            return Err(error);
        }
        let _upkeep = self.lock_upkeep().await;
        self.load_segments().await?;
        let mut expired = self.expired(wall_now_ms).await?;
        if expired.len() == self.closed_refs().len() && self.active_expired(wall_now_ms, &expired) {
            let rolled = self.roll_now(wall_now_ms).await?;
            // What was appended and rolled meanwhile is not what was judged.
            expired = self.closed_refs().into_iter().filter(|s| s.base_offset <= rolled).collect();
        }
        if let Some(last) = expired.last().map(|s| s.next_offset) {
            self.move_log_start(last).await?;
        }
        self.drop_segments(&expired)
    }

    /// Closed segments that have to go, oldest first.
    async fn expired(&self, now_ms: i64) -> Result<Vec<SegmentRef>, LogError> {
        let (config, log_start) = (self.config(), self.log_start_offset());
        let limit = self.retention_limit();
        let mut over = self.bytes_over_retention();
        let mut expired = Vec::new();
        let mut appended_ms = i64::MIN;
        for segment in self.closed_refs() {
            if segment.next_offset > limit {
                break;
            }
            let by_start = segment.next_offset <= log_start;
            let by_size = config.cleanup_delete && over >= segment.size;
            let by_time = config.cleanup_delete && config.retention_ms >= 0 && !by_start && !by_size && {
                // What cannot be read has no timestamps: damage holds nothing back.
                let max_timestamp_ms = self.max_timestamp_of(segment).await.unwrap_or(NO_TIMESTAMP);
                let modified_ms = self.modified_ms(segment).await?;
                // The clock was set back meanwhile: not older than what was appended before.
                let written_ms = effective_ms(max_timestamp_ms, modified_ms.max(appended_ms));
                if modified_ms <= now_ms {
                    appended_ms = appended_ms.max(modified_ms);
                }
                self.age_ms(segment.base_offset, written_ms, now_ms) > config.retention_ms
            };
            if !(by_start || by_size || by_time) {
                break;
            }
            over = over.saturating_sub(segment.size);
            expired.push(segment);
        }
        Ok(expired)
    }

    /// How long ago a segment was written. By a clock that has been ahead, or is behind now, it would not have been yet: then
    /// the time counts for which this process has seen it so, which neither deletes early nor keeps for ever.
    fn age_ms(&self, base: Offset, written_ms: i64, now_ms: i64) -> i64 {
        let mut ahead = self.ahead_since_ms.borrow_mut();
        if written_ms <= now_ms {
            ahead.remove(&base);
            return now_ms.saturating_sub(written_ms);
        }
        let since_ms = *ahead.entry(base).or_insert_with(clock::now_ms);
        clock::now_ms() - since_ms
    }

    fn bytes_over_retention(&self) -> u64 {
        match u64::try_from(self.config().retention_bytes) {
            Ok(limit) => self.size_bytes().saturating_sub(limit),
            Err(_) => 0,
        }
    }

    /// Whether the active segment would go if it were closed, once the older ones are gone.
    fn active_expired(&self, now_ms: i64, before: &[SegmentRef]) -> bool {
        let gone: u64 = before.iter().map(|s| s.size).sum();
        let over = self.bytes_over_retention().saturating_sub(gone);
        let limit = self.retention_limit();
        let state = self.state.borrow();
        let (active, config) = (&state.active, &state.config);
        let full = active.fill.size > 0 && state.draining.is_empty() && active.fill.next_offset <= limit;
        let written_ms = effective_ms(active.fill.max_timestamp_ms, active.last_append_ms);
        let by_time =
            config.retention_ms >= 0 && self.age_ms(active.base_offset, written_ms, now_ms) > config.retention_ms;
        full && config.cleanup_delete && !self.closed.get() && (by_time || over >= active.fill.size)
    }

    pub(crate) async fn modified_ms(&self, segment: SegmentRef) -> Result<i64, LogError> {
        if let Some(known) = self.with_closed(segment.base_offset, |s| s.modified_ms).flatten() {
            return Ok(known);
        }
        let stat = fs::stat(&path(self.dir(), segment.base_offset, FileKind::Log)).await?;
        let modified_ms = stat.map_or(0, |s| s.modified_ms);
        self.with_closed(segment.base_offset, |s| s.modified_ms = Some(modified_ms));
        Ok(modified_ms)
    }

    /// DeleteRecords: everything below `offset` is gone for readers when this resolves. Gives the new log start.
    pub async fn delete_records_before(&self, offset: Offset) -> Result<Offset, LogError> {
        let (log_start_offset, durable) = (self.log_start_offset(), self.durable_end());
        if offset > durable {
            return Err(LogError::OffsetOutOfRange { asked: offset, log_start_offset, log_end_offset: durable });
        }
        if offset <= log_start_offset {
            // Whoever moved it may still wait for the disk, or have failed.
            if self.is_touched() {
                self.home.flush().await?;
            }
            return Ok(log_start_offset);
        }
        let _upkeep = self.lock_upkeep().await;
        self.load_segments().await?;
        self.move_log_start(offset).await?;
        let limit = self.retention_limit();
        let gone: Vec<SegmentRef> =
            self.closed_refs().into_iter().take_while(|s| s.next_offset <= offset.min(limit)).collect();
        self.drop_segments(&gone)?;
        Ok(self.log_start_offset())
    }

    /// Durable before it returns.
    async fn move_log_start(&self, to: Offset) -> Result<(), LogError> {
        self.touched.set(true);
        let moved = {
            let mut state = self.state.borrow_mut();
            let moved = to > state.log_start;
            if moved {
                assert!(to <= state.log_end, "the log start never passes the log end");
                state.log_start = to;
                if state.epochs.truncate_from_start(to) {
                    state.epochs_dirty = true;
                }
            }
            moved
        };
        if moved {
            self.put_checkpoint_entry();
        }
        if active(Mutant::UnlinkBeforeLogStart) {
            return Ok(());
        }
        // Also when it was there already: an earlier move may not be on disk yet.
        self.home.flush().await
    }

    /// Takes segments out of the list, and their files away later.
    fn drop_segments(&self, gone: &[SegmentRef]) -> Result<Retained, LogError> {
        let mut done = Retained { log_start_offset: self.log_start_offset(), ..Retained::default() };
        {
            let mut state = self.state.borrow_mut();
            let State { closed, closed_count, closed_bytes, .. } = &mut *state;
            let closed = closed.get_or_insert_default();
            // A check that ran at the same time may have taken some of them.
            for segment in gone {
                if closed.first().is_some_and(|s| s.base_offset == segment.base_offset) {
                    closed.remove(0);
                    *closed_count -= 1;
                    *closed_bytes -= segment.size;
                    done.deleted_segments += 1;
                    done.deleted_bytes += segment.size;
                }
            }
        }
        self.drop_tail_below(done.log_start_offset);
        for segment in gone {
            self.shard.memory.forget_segment((self.id, segment.base_offset));
            drop(self.shard.shared_files.remove((self.id, segment.base_offset)));
            self.forget_direct_file(segment.base_offset);
            self.ahead_since_ms.borrow_mut().remove(&segment.base_offset);
        }
        let bases: Vec<Offset> = gone.iter().map(|s| s.base_offset).collect();
        if !bases.is_empty() {
            self.unlink_later(bases);
        }
        Ok(done)
    }

    fn unlink_later(&self, bases: Vec<Offset>) {
        self.to_unlink.borrow_mut().extend(&bases);
        let me = self.me.clone();
        let delay = Duration::from_millis(self.config().file_delete_delay_ms.max(0).unsigned_abs());
        spawn("unlink-segments", async move {
            clock::sleep(delay).await;
            // The path may be another topic's once this log is gone. Deletion waits for a step under way.
            let Some(log) = me.upgrade().filter(|log| !log.deleted.get()) else { return };
            log.in_flight.set(log.in_flight.get() + 1);
            log.unlink(&bases).await;
            log.step_done();
        });
    }

    /// Unlinks those of `bases` that still wait for it.
    async fn unlink(&self, bases: &[Offset]) {
        for base in bases {
            if !self.to_unlink.borrow_mut().remove(base) {
                continue;
            }
            // Whoever builds an index of it anew has finished, or will see that it is gone.
            self.lock_indexes().await;
            for kind in [FileKind::Log, FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex] {
                // What cannot be removed now is below the log start and goes after a later start that lists the folder.
                let _ = fs::remove_file(&path(self.dir(), *base, kind)).await;
            }
            self.unlock_indexes();
        }
    }

    /// At a stop no one will come back for the files whose delay is not over.
    pub(crate) async fn unlink_now(&self) {
        let bases: Vec<Offset> = self.to_unlink.borrow().iter().copied().collect();
        self.unlink(&bases).await;
    }
}
