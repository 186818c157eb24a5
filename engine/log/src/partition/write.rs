//! How a range of a segment gets to its file: in one go with its sync, in large pieces, or in small ones that give way.

use std::cell::Cell;

use bytes::Bytes;
use model::Offset;
use runtime::sync::all;
use runtime::{DirectFile, IoError};

use super::PartitionLog;
use super::commit::Job;
use crate::committer::Way;
use crate::config::Durability;
use crate::device::Operation;
use crate::error::LogError;
use crate::limits::{AT_ONCE, BLOCK, CALM_WRITE};
use crate::mutants::{Mutant, active};
use crate::tail::Parts;

impl PartitionLog {
    /// Whether a small range is written and synced as one operation: everything before it is durable, and nobody waits for the
    /// write alone. The mutants tell one from the other.
    pub(super) fn goes_at_once(&self, job: &Job, way: Way) -> bool {
        let tells_written = way == Way::Direct && self.tells_written.take();
        let most = AT_ONCE.min(self.shard.device.limits().write_max_bytes as u64);
        let small = job.to - job.from / BLOCK * BLOCK <= most;
        if way != Way::Direct || tells_written || !small || job.draining {
            return false;
        }
        let state = self.state.borrow();
        let follows_durable = state.open_segment(job.segment_base).is_some_and(|s| s.durable == job.from);
        let syncs = state.config.durability == Durability::Sync;
        syncs && follows_durable && !active(Mutant::SyncLeftOut) && !active(Mutant::SyncRetried)
    }

    pub(super) async fn write_at_once(&self, file: &DirectFile, job: Job, way: Way) -> Result<(), LogError> {
        let from = job.from / BLOCK * BLOCK;
        let parts = self.parts(file, job.segment_base, from, job.to).await?;
        let len = parts.iter().map(Bytes::len).sum();
        let write = self.shard.committer_of(way).tally().time(file.write_parts_durably(parts, from));
        let written = self.shard.device.run(self.home.dir.path(), Operation::DurableWrite(len), write).await;
        Ok(written.inspect_err(|error| self.home.dir.notice(error))?)
    }

    /// In pieces of the largest write, as many at once as the drive is given; one after the other and small where there is time.
    pub(super) async fn write_range(&self, file: &DirectFile, job: Job, way: Way) -> Result<(), LogError> {
        let limits = self.shard.device.limits();
        let from = job.from / BLOCK * BLOCK;
        let pieces = (job.to - from).div_ceil(limits.write_max_bytes as u64);
        let next = Cell::new(from);
        let lanes = if self.has_time(way) { 1 } else { (limits.queue_depth as u64).min(pieces) };
        all((0..lanes).map(|_| self.write_lane(file, job, way, &next)).collect()).await.into_iter().collect()
    }

    /// Whether nobody waits for this way's writes.
    fn has_time(&self, way: Way) -> bool {
        way == Way::Destage && self.journal.as_ref().is_some_and(|journal| !journal.hurries())
    }

    /// Takes pieces until none is left. A failure ends the other lanes too, after the piece each has.
    async fn write_lane(&self, file: &DirectFile, job: Job, way: Way, next: &Cell<u64>) -> Result<(), LogError> {
        let (largest, end) = (self.shard.device.limits().write_max_bytes, job.to);
        while next.get() < end {
            let calm = self.has_time(way);
            let piece = if calm { largest.min(CALM_WRITE) } else { largest };
            let from = next.get();
            let to = (from + piece as u64).min(end);
            next.set(to);
            let _turn = if calm { Some(self.shard.device.calm_turn((to - from) as usize).await) } else { None };
            let written = match self.parts(file, job.segment_base, from, to).await {
                Ok(parts) => self.write_piece(file, from, parts).await,
                Err(error) => Err(error),
            };
            if written.is_err() {
                next.set(end);
                return written;
            }
        }
        Ok(())
    }

    async fn parts(&self, file: &DirectFile, base: Offset, from: u64, to: u64) -> Result<Vec<Bytes>, LogError> {
        let found = self.state.borrow().tail.parts(base, from, to);
        let (position, len) = match found {
            Parts::Ready(parts) => return Ok(parts),
            Parts::NeedHead { position, len } => (position, len),
        };
        assert!(len < BLOCK as usize, "only the block before the row is read back");
        let head = file.read(position, len).await?;
        if head.len() < len {
            return Err(LogError::Storage("the end of the log is missing from its file".into()));
        }
        let mut state = self.state.borrow_mut();
        state.tail.set_head(base, position, head);
        match state.tail.parts(base, from, to) {
            Parts::Ready(parts) => Ok(parts),
            Parts::NeedHead { .. } => unreachable!("the head was just read"),
        }
    }

    async fn write_piece(&self, file: &DirectFile, position: u64, parts: Vec<Bytes>) -> Result<(), LogError> {
        let len: usize = parts.iter().map(Bytes::len).sum();
        let write = file.write_parts(parts, position);
        let written = self.shard.device.run(self.home.dir.path(), Operation::Write(len), write).await;
        Ok(written.inspect_err(|error| self.home.dir.notice(error))?)
    }

    /// The sync of a segment's file, in its turn.
    pub(crate) async fn sync_direct(&self, file: &DirectFile) -> Result<(), IoError> {
        let synced = self.shard.device.run(self.home.dir.path(), Operation::Sync, file.fdatasync()).await;
        synced.inspect_err(|error| self.home.dir.notice(error))
    }
}
