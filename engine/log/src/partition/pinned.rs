//! What a partition keeps in memory for the journal's sake: bytes that rounds have, and its segments' files do not. Past a
//! bound the journal asks for them to be written ([`Journal::write_out`](crate::journal)), and lets rounds wait.
//!
//! Written is not synced: these bytes leave memory then, but stay in the ring until a sync of the segment's file, of which
//! one covers all that was written since the last. A crash in between loses nothing: a start goes by the ring.

use super::{PartitionLog, State};
use crate::committer::Way;
use crate::segment::OpenSegment;

impl PartitionLog {
    /// Counts anew. Whoever changed what of the open segments is taken or written calls it, with the state as it is then.
    pub(crate) fn count_pinned(&self, state: &State) {
        let Some(journal) = &self.journal else { return };
        // Of a failed one nothing can be written; rounds do not wait for that.
        let now = if state.failed.is_some() { 0 } else { state.open_segments().map(OpenSegment::pinned).sum() };
        journal.count_pinned(self.pinned.replace(now), now);
    }

    /// Nothing of it can be moved now; who asks then is asked again. Without space a try would only fail: its retry comes by itself.
    pub(crate) fn is_kept_away(&self) -> bool {
        self.paused.get() > 0 || self.sealing.get() || self.retries.get()
    }

    pub(crate) fn can_write_out(&self) -> bool {
        self.pinned.get() > 0 && !self.is_kept_away() && self.state.borrow().open_segments().any(OpenSegment::can_move)
    }

    /// What the ring holds of it changed.
    pub(crate) fn count_held(&self) {
        let holds = !self.held.borrow().is_empty();
        if let (true, Some(journal)) = (self.holds.replace(holds) != holds, &self.journal) {
            journal.whereabouts().hold(if holds { 1 } else { -1 });
        }
    }

    pub(crate) fn pinned(&self) -> u64 {
        self.pinned.get()
    }

    /// Asks for the segment to be written and synced as far as the journal has it.
    pub(crate) fn request_destage(&self) {
        self.wants_sync.set(true);
        self.queue_destage();
    }

    /// Asks for it to be written, which is all that memory needs.
    pub(crate) fn queue_destage(&self) {
        if !self.destage_queued.replace(true) {
            if let Some(journal) = &self.journal {
                journal.whereabouts().asked(1);
            }
            self.shard.destager.register(self.me());
        }
    }

    /// A round of the destager has it.
    pub(crate) fn destage_taken_up(&self) {
        if let (true, Some(journal)) = (self.destage_queued.replace(false), &self.journal) {
            journal.whereabouts().asked(-1);
        }
    }

    /// A step of the committer began or ended.
    pub(crate) fn count_moves(&self, way: Way, change: i32) {
        if let (Way::Destage, Some(journal)) = (way, &self.journal) {
            journal.whereabouts().under_way(change);
        }
    }

    /// Whether the next step of the destager ends with a sync: somebody asked for it, or the ring's oldest file with bytes of
    /// this partition is to come free.
    pub(crate) fn destage_syncs(&self) -> bool {
        let oldest = self.held.borrow().front().map(|held| held.lap);
        let empties = || self.journal.as_ref().zip(oldest).is_some_and(|(journal, lap)| journal.is_emptying(lap));
        self.wants_sync.replace(false) || empties()
    }
}
