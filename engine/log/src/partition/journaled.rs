//! The partition's side of the journal: what a round takes, what it means when the round is durable, and which of the
//! ring's files still hold bytes that the segments do not.
//!
//! Of an open segment, from low to high: `durable` (in the file, synced) <= `written` (in the file) and `durable` <= `kept`
//! (durable in the file or the journal) <= `taken` (given to a round, or durable in the file) <= `fill`. A round takes from
//! `taken`; the direct way writes from `written`, so it never overtakes what the journal holds. While the direct way
//! carries bytes that no round has, no round takes any: what a round makes durable has everything before it durable.
//!
//! Where it can, what goes from the journal to the segment ends with a whole block, mostly within a batch: the rest of that
//! batch stays in the ring, in a file that is not to come free yet, and begins the next write. `whole` then lies before
//! `written`. A start finds the rest of the batch where it finds every round that is needed.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use model::Offset;

use super::{PartitionLog, State};
use crate::committer::{Committer, Way};
use crate::config::Durability;
use crate::error::LogError;
use crate::limits::{BLOCK, RECOVERY_POINT_BYTES};
use crate::mutants::{Mutant, active};
use crate::segment::Mark;
use crate::tail::Parts;

/// Bytes of one segment on their way through a round.
#[derive(Debug)]
pub(crate) struct Piece {
    pub log: Rc<PartitionLog>,
    pub segment_base: Offset,
    pub from: u64,
    pub to: Mark,
    pub parts: Vec<Bytes>,
    /// Somebody waits for the write alone.
    pub tells_written: bool,
    /// Acknowledged long ago; the partition is poisoned.
    pub carried: bool,
}

impl Piece {
    pub fn len(&self) -> usize {
        (self.to.fill.size - self.from) as usize
    }
}

/// What a partition has for a round.
#[derive(Debug)]
pub(crate) enum Taken {
    Nothing,
    /// It has to go straight to its segment.
    Direct,
    /// More than the round has room for.
    NoRoom {
        bytes: usize,
    },
    Piece(Piece),
}

/// A place in the ring that holds bytes of the partition which its segments do not have durably.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub lap: u64,
    pub segment_base: Offset,
    pub end: u64,
}

impl PartitionLog {
    pub(crate) fn take_for_journal(self: &Rc<Self>, room: usize, small_bytes: u64) -> Taken {
        let mut state = self.state.borrow_mut();
        if self.paused.get() > 0 || self.sealing.get() || state.failed.is_some() {
            self.queued.set(false);
            return Taken::Nothing;
        }
        if !state.draining.is_empty() {
            return Taken::Direct;
        }
        let only_direct = self.direct_only.get() > 0 || self.full.get();
        let pending = state.active.fill.size - state.active.taken;
        if pending == 0 {
            self.queued.set(false);
            let direct = self.settles_held() || (only_direct && !state.active.is_written());
            return if direct { Taken::Direct } else { Taken::Nothing };
        }
        if self.steps[Way::Direct as usize].get() > 0 {
            // Its end registers again.
            self.queued.set(false);
            return Taken::Nothing;
        }
        let ready = state.active.name_synced && self.folder_synced.get() && !state.active.needs_cut;
        let fits = state.active.fill.size.next_multiple_of(BLOCK) <= state.active.allocated;
        let durable = state.config.durability == Durability::Sync && !self.unsynced.get();
        if only_direct || !ready || !fits || !durable || pending > small_bytes {
            return Taken::Direct;
        }
        if pending as usize > room {
            return Taken::NoRoom { bytes: pending as usize };
        }
        let (base, from, to) = (state.active.base_offset, state.active.taken, state.active.mark());
        let Parts::Ready(parts) = state.tail.parts(base, from, to.fill.size) else { return Taken::Direct };
        state.active.taken = to.fill.size;
        self.count_pinned(&state);
        self.queued.set(false);
        self.in_flight.set(self.in_flight.get() + 1);
        let tells_written = self.tells_written.take();
        Taken::Piece(Piece { log: self.clone(), segment_base: base, from, to, parts, tells_written, carried: false })
    }

    /// What was acknowledged of a poisoned partition and is only in the journal.
    pub(crate) fn take_carry(self: &Rc<Self>) -> Vec<Piece> {
        if self.held.borrow().is_empty() || self.deleted.get() {
            return Vec::new();
        }
        let state = self.state.borrow();
        if state.open_segments().all(|s| s.kept.fill.size <= s.durable) {
            drop(state);
            // What the ring has of it was never acknowledged, or is in its segments too.
            self.leave_ring();
            return Vec::new();
        }
        let mut pieces = Vec::new();
        for segment in state.open_segments().filter(|s| s.kept.fill.size > s.durable) {
            let (from, to) = (segment.durable, segment.kept);
            // What its segment's file was given may have left memory before the sync failed: the file of the ring that has it is
            // kept then, for the next start.
            let base = segment.base_offset;
            if !state.tail.reaches(base, to.fill.size) {
                continue;
            }
            let Parts::Ready(parts) = state.tail.parts(base, from, to.fill.size) else { continue };
            let (log, tells_written) = (self.clone(), false);
            pieces.push(Piece { log, segment_base: base, from, to, parts, tells_written, carried: true });
        }
        self.in_flight.set(self.in_flight.get() + pieces.len() as u32);
        pieces
    }

    /// The round's lap, before it is written.
    pub(crate) fn note_lap(&self, lap: u64, piece: &Piece) {
        let mut held = self.held.borrow_mut();
        let end = piece.to.fill.size;
        match held.back_mut() {
            Some(last) if last.lap == lap && last.segment_base == piece.segment_base => last.end = end.max(last.end),
            _ => held.push_back(Held { lap, segment_base: piece.segment_base, end }),
        }
        drop(held);
        self.count_held();
        self.newest_lap.set(lap);
    }

    /// The round is in the ring's file: it survives a kill.
    pub(crate) fn journal_wrote(&self, piece: &Piece) {
        if piece.carried {
            return;
        }
        let counted = {
            let mut state = self.state.borrow_mut();
            if state.failed.is_some() {
                return;
            }
            state.open_segment_mut(piece.segment_base).map_or(0, |segment| segment.count(piece.to.fill.size))
        };
        self.shard.sub_unwritten(counted);
        self.advance_written(piece.to.fill.next_offset);
    }

    /// The round is durable.
    pub(crate) fn journal_synced(self: &Rc<Self>, piece: &Piece) {
        if piece.carried {
            self.carried(piece);
        } else {
            let good = {
                let mut state = self.state.borrow_mut();
                let good = state.failed.is_none();
                if let Some(segment) = state.open_segment_mut(piece.segment_base)
                    && segment.kept.fill.size < piece.to.fill.size
                    && good
                {
                    segment.kept = piece.to;
                }
                good
            };
            if good {
                self.journal_acknowledges(piece);
            }
        }
        self.step_done();
    }

    pub(crate) fn journal_acknowledges(&self, piece: &Piece) {
        let past = if active(Mutant::AcknowledgedPastEnd) { self.log_end_offset() } else { piece.to.fill.next_offset };
        self.advance_durable(past);
    }

    /// Older laps are not needed any more for what the newest now holds.
    fn carried(&self, piece: &Piece) {
        let newest = self.newest_lap.get();
        let is_old = |held: &Held| held.segment_base == piece.segment_base && held.lap < newest;
        let old: VecDeque<Held> = {
            let mut held = self.held.borrow_mut();
            let (old, rest) = held.iter().copied().partition(is_old);
            *held = rest;
            old
        };
        self.leave_laps(&old);
    }

    /// The round failed, or had no room after all: its bytes go another way.
    pub(crate) fn journal_given_up(&self, piece: &Piece) {
        if !piece.carried {
            let mut state = self.state.borrow_mut();
            if let Some(segment) = state.open_segment_mut(piece.segment_base) {
                segment.taken = segment.taken.min(piece.from);
            }
            self.count_pinned(&state);
        }
        self.step_done();
    }

    /// Into the next round of the direct way, if it is not on its way there.
    pub(crate) fn go_direct(self: &Rc<Self>, direct: &Rc<Committer>) {
        if self.paused.get() > 0 {
            self.queued.set(false);
            return;
        }
        self.queued.set(true);
        direct.register(self.clone());
    }

    /// The ring's oldest file with bytes of this partition is to come free, and what kept it from that may be over.
    pub(crate) fn ask_for_destage(&self) {
        let oldest = self.held.borrow().front().map(|held| held.lap);
        let (Some(journal), Some(oldest)) = (&self.journal, oldest) else { return };
        if self.steps[Way::Destage as usize].get() > 0 {
            // On its way; at its end this is asked again. Asked now, it would go once more with the little that came since.
            return;
        }
        if journal.is_emptying(oldest) && self.failure().is_none() && !self.is_kept_away() {
            self.request_destage();
        }
    }

    /// It has to go straight to its segment, also if it waits for a round.
    pub(crate) fn register_direct(&self) {
        self.register();
        if let Some(journal) = &self.journal {
            journal.look_again();
        }
    }

    /// How far a move from the journal to the active segment should go, and where the last batch ends before: to the last whole
    /// block where that is enough. `None`: there is nothing to do. `syncs`: it ends with a sync, for which it may be
    /// that nothing is left to write.
    pub(crate) fn destage_end(&self, state: &State, syncs: bool) -> Option<(u64, u64)> {
        let segment = &state.active;
        let kept = segment.kept.fill.size;
        // A chunk stays for the little in it that is not written: where the cache is too small for that, to the end.
        let blocks = if !syncs && self.shard.cache.is_over() { kept } else { kept / BLOCK * BLOCK };
        let to = blocks.max(segment.written);
        if syncs && (self.held.borrow().is_empty() || self.wants_end(state, to)) {
            return (kept > segment.written || !self.held.borrow().is_empty()).then_some((kept, kept));
        }
        match to {
            _ if to == segment.written && syncs => Some((to, segment.whole)),
            _ if to == segment.written => (kept > to).then_some((kept, kept)),
            _ if to == kept => Some((kept, kept)),
            _ => Some(match state.tail.batch_end(segment.base_offset, segment.whole, to) {
                Some(whole) => (to, whole),
                None => (kept, kept),
            }),
        }
    }

    /// Whether a move has to go to the last batch's end: for a recovery point, which lies between two batches, for the file that
    /// is to come free, or since whoever asked wants everything.
    fn wants_end(&self, state: &State, to: u64) -> bool {
        let base = state.active.base_offset;
        let (point_base, point) = state.recovery_point;
        let since = if point_base == base { to.saturating_sub(point) } else { to };
        let Some(journal) = self.journal.as_ref().filter(|_| since < RECOVERY_POINT_BYTES) else { return true };
        let held = self.held.borrow();
        let emptying = held.iter().filter(|held| held.segment_base == base && journal.is_emptying(held.lap));
        emptying.map(|held| held.end).max().is_none_or(|needed| needed > to)
    }

    /// The segment's file has everything below `end`, durably.
    pub(crate) fn in_segment(&self, segment_base: Offset, end: u64) {
        let is_there =
            |held: &Held| held.segment_base < segment_base || (held.segment_base == segment_base && held.end <= end);
        let done: VecDeque<Held> = {
            let mut held = self.held.borrow_mut();
            let (done, rest) = held.iter().copied().partition(is_there);
            *held = rest;
            done
        };
        self.leave_laps(&done);
    }

    /// A partition that is deleted, or failed before anything in the ring was acknowledged, needs nothing of it.
    pub(crate) fn leave_ring(&self) {
        self.leave_laps(&self.held.take());
    }

    fn leave_laps(&self, done: &VecDeque<Held>) {
        self.count_held();
        let Some(journal) = &self.journal else { return };
        for held in done {
            let still = self.held.borrow().iter().any(|other| other.lap == held.lap);
            if !still {
                journal.done_with(self.id, held.lap);
            }
        }
    }

    /// After a poisoning: what was acknowledged has to stay in the ring.
    pub(crate) fn tell_journal_of_failure(self: &Rc<Self>) {
        let oldest = self.held.borrow().front().map(|held| held.lap);
        if let (Some(journal), Some(oldest)) = (&self.journal, oldest) {
            journal.failed(self.clone(), oldest);
        }
    }

    /// Resolves when no start applies what was journalled so far of segments below this one. They are closed, or the
    /// committer is kept away and everything is written.
    pub(crate) async fn void_journal(&self, below: Offset) -> Result<(), LogError> {
        let (Some(journal), lap) = (&self.journal, self.newest_lap.get()) else { return Ok(()) };
        if lap == 0 || active(Mutant::TruncationNotJournalled) {
            return Ok(());
        }
        journal.void(self, lap, below).await
    }
}
