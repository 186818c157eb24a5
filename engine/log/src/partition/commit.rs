//! The partition's side of the committer: which range is next, how it gets to the file, and what it means when it did.
//! On the produce way, between the two stages.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use model::Offset;
use runtime::{DirectFile, OpenMode, clock, fs, spawn};

use super::PartitionLog;
use crate::committer::Way;
use crate::config::Durability;
use crate::error::LogError;
use crate::format::names::{FileKind, METADATA_FILE};
use crate::format::partition_metadata;
use crate::limits::{
    BLOCK, INDEX_TAIL_ENTRIES, MAX_SEGMENT, PREALLOCATE_MAX, PREALLOCATE_MIN, RECOVERY_POINT_BYTES, SMALL_FILE,
};
use crate::mutants::{Mutant, active};
use crate::reserve::Grant;
use crate::segment::{Fill, Mark, OpenSegment, path};
use crate::shard::close_files;

const FULL_RETRY_MS: u64 = 1000;

/// A range that was written and waits for its sync.
#[derive(Debug)]
pub(crate) struct Written {
    pub log: Rc<PartitionLog>,
    /// The folder's name was not synced yet: its parent has to be synced too.
    pub new_folder_in: Option<PathBuf>,
    file: DirectFile,
    job: Job,
    way: Way,
    /// Its write was its sync.
    is_synced: bool,
}

/// A range to write: everything of one segment that was appended when the round took it up, or what the journal holds of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) segment_base: Offset,
    pub(super) from: u64,
    /// Where the write ends: at `fill`, or at the last whole block before it, within a batch ([`super::journaled`]).
    pub(super) to: u64,
    /// Where the last batch that is whole in the file ends then.
    whole: u64,
    /// Up to where a round had it before.
    taken: u64,
    fill: Fill,
    index_entries: u32,
    time_entries: u32,
    pub(super) draining: bool,
}

impl Job {
    fn mark(&self) -> Mark {
        Mark { fill: self.fill, index_entries: self.index_entries, time_entries: self.time_entries }
    }

    /// Whether it goes to a batch's end, with everything known of that place. One that does not changes no end: the journal
    /// moved those.
    fn ends_a_batch(&self) -> bool {
        self.to == self.fill.size
    }
}

enum Next {
    Nothing,
    Seal,
    Write(Job),
}

/// What a failed step means.
enum Failure {
    /// No space before anything was written: try again later, nothing is lost.
    Brake(LogError),
    Poison(LogError),
}

/// Before the write itself a full disk only brakes.
fn before_write(error: LogError) -> Failure {
    if matches!(error, LogError::Full(_)) { Failure::Brake(error) } else { Failure::Poison(error) }
}

impl PartitionLog {
    /// `syncs`: of the destager, whether the step ends with a sync.
    fn next_job(&self, way: Way, syncs: bool) -> Next {
        let state = self.state.borrow();
        if self.paused.get() > 0 || self.sealing.get() || state.failed.is_some() {
            return Next::Nothing;
        }
        let (segment, draining) = match state.draining.front() {
            Some(front) if front.is_written() => return Next::Seal,
            Some(front) => (front, true),
            None => (&state.active, false),
        };
        let upto = if way == Way::Destage && !draining { segment.kept } else { segment.mark() };
        let end = match way {
            Way::Destage if !draining => self.destage_end(&state, syncs),
            // Somebody waits for the sync of what the destager wrote.
            _ if upto.fill.size <= segment.written && (draining || !self.settles_held()) => None,
            _ => Some((upto.fill.size, upto.fill.size)),
        };
        let Some((to, whole)) = end else { return Next::Nothing };
        let from = if active(Mutant::DirectOvertakes) && way == Way::Direct {
            segment.taken.max(segment.written)
        } else {
            segment.written
        };
        Next::Write(Job {
            segment_base: segment.base_offset,
            from,
            to,
            whole,
            taken: segment.taken,
            fill: upto.fill,
            index_entries: upto.index_entries,
            time_entries: upto.time_entries,
            draining,
        })
    }

    /// The write stage of a round. What comes back has to go through [`Self::sync_written`].
    pub(crate) async fn write_dirty(self: Rc<Self>, way: Way) -> Option<Written> {
        match way {
            Way::Direct => self.queued.set(false),
            Way::Destage => self.destage_taken_up(),
        }
        if self.steps[way.other() as usize].get() > 0 {
            self.comes_back[way as usize].set(true);
            return None;
        }
        let syncs = way == Way::Direct || self.destage_syncs();
        let job = match self.next_job(way, syncs) {
            Next::Nothing => {
                self.tell_journal_of_step();
                return None;
            }
            Next::Seal => {
                self.start_seal();
                return None;
            }
            Next::Write(job) => job,
        };
        self.in_flight.set(self.in_flight.get() + 1);
        self.steps[way as usize].set(self.steps[way as usize].get() + 1);
        self.count_moves(way, 1);
        match self.write_job(job, way).await {
            Ok(written) => {
                let failed_meanwhile = !self.wrote(&job);
                self.mutate_written(&job);
                if !failed_meanwhile && job.draining {
                    self.start_seal();
                } else if !failed_meanwhile && syncs {
                    self.syncing.set(self.syncing.get() + 1);
                    return Some(written);
                }
            }
            Err(Failure::Brake(error)) => self.brake(&error),
            Err(Failure::Poison(error)) => self.poison(&error),
        }
        self.way_done(way);
        self.step_done();
        None
    }

    /// A step of one of the two ways ended. The other one may have waited for that, and so may a round of the journal.
    fn way_done(self: &Rc<Self>, way: Way) {
        let steps = &self.steps[way as usize];
        assert!(steps.get() > 0, "a step ends once");
        steps.set(steps.get() - 1);
        self.count_moves(way, -1);
        if steps.get() > 0 {
            return;
        }
        if self.comes_back[way.other() as usize].replace(false) {
            match way.other() {
                Way::Direct => self.register(),
                Way::Destage => self.queue_destage(),
            }
        }
        if way == Way::Direct && self.journal.is_some() && self.has_untaken() {
            self.register();
        }
    }

    /// Somebody waits until the segments have everything durably that the ring still holds of them.
    pub(crate) fn settles_held(&self) -> bool {
        self.direct_only.get() > 0 && !self.held.borrow().is_empty()
    }

    fn has_untaken(&self) -> bool {
        let state = self.state.borrow();
        state.failed.is_none() && !self.full.get() && state.active.taken < state.active.fill.size
    }

    async fn write_job(self: &Rc<Self>, job: Job, way: Way) -> Result<Written, Failure> {
        self.home.prepare_write().await.map_err(before_write)?;
        let new_folder_in = self.make_folder().await.map_err(before_write)?;
        let new_file = job.from == 0;
        let file = self.direct_file(job.segment_base, new_file).await.map_err(before_write)?;
        if job.from == job.to {
            return Ok(Written { log: self.clone(), new_folder_in, file, job, way, is_synced: false });
        }
        self.cut_leftovers(&file, job).await.map_err(before_write)?;
        self.reserve(&file, job).await.map_err(before_write)?;
        self.full.set(false);
        let is_synced = self.goes_at_once(&job, way);
        if is_synced {
            self.write_at_once(&file, job, way).await.map_err(Failure::Poison)?;
        } else {
            self.write_range(&file, job, way).await.map_err(Failure::Poison)?;
        }
        self.shard.committer_of(way).tally().wrote(job.to - job.from, job.to.saturating_sub(job.from.max(job.taken)));
        let mut written = Written { log: self.clone(), new_folder_in, file, job, way, is_synced };
        if let Some(parent) = written.new_folder_in.take_if(|_| job.draining) {
            // Sealing follows at once, without a sync stage.
            self.home.noted(fs::sync_dir(&parent).await).map_err(Failure::Poison)?;
            self.folder_synced.set(true);
        }
        Ok(written)
    }

    /// The folder comes with the first append. Gives the parent to sync until that succeeded once.
    async fn make_folder(&self) -> Result<Option<PathBuf>, LogError> {
        if self.folder_synced.get() {
            return Ok(None);
        }
        let parent = self.home.dir.path().to_path_buf();
        if self.folder_made.get() {
            return Ok(Some(parent));
        }
        let metadata = self.dir().join(METADATA_FILE);
        if let Some(bytes) = fs::read_if_there(&metadata, SMALL_FILE as usize).await? {
            // Unreadable: a crash cut this file's first write, so no segment was made yet.
            let found = partition_metadata::decode(&bytes).filter(|id| *id != self.key().topic_id);
            if let Some(found) = found {
                let found = found.to_string();
                return Err(LogError::ForeignFolder { path: self.dir().to_path_buf(), found });
            }
        }
        self.home.noted(fs::create_dir_all(self.dir()).await)?;
        // Durable with its name before the segment's file is made: a segment without it would be nobody's.
        let text = partition_metadata::encode(self.key().topic_id);
        self.home.noted(fs::write_tail(&metadata, 0, text.into_bytes(), true).await)?;
        self.home.noted(fs::sync_dir(self.dir()).await)?;
        self.folder_made.set(true);
        Ok(Some(parent))
    }

    /// The segment's file for direct I/O, opened when it is not.
    pub(crate) async fn direct_file(&self, base: Offset, create: bool) -> Result<DirectFile, LogError> {
        let key = (self.id, base);
        if let Some(file) = self.shard.files.get(key) {
            return Ok(file);
        }
        let mode = if create { OpenMode::Create } else { OpenMode::ReadWrite };
        let cuts = self.cuts.get();
        let opened = DirectFile::open(&path(self.dir(), base, FileKind::Log), mode).await;
        let file = match opened {
            // A partition's folder that is not there says nothing about the others.
            Err(error) if create && error.kind() != std::io::ErrorKind::NotFound => self.home.noted(Err(error))?,
            other => other?,
        };
        // Otherwise it may be a file that a truncation removed: good for this reader, not for the next writer.
        if cuts == self.cuts.get() {
            self.shard.keep_file(key, file.clone());
        }
        Ok(file)
    }

    pub(crate) fn forget_direct_file(&self, base: Offset) {
        close_files(self.shard.files.remove((self.id, base)).into_iter().collect());
    }

    /// After a crash: what lies behind the log's end goes, durably, before anything is written there.
    async fn cut_leftovers(&self, file: &DirectFile, job: Job) -> Result<(), LogError> {
        let needs_cut = self.state.borrow().open_segment(job.segment_base).is_some_and(|s| s.needs_cut);
        if !needs_cut {
            return Ok(());
        }
        file.truncate(job.from).await?;
        self.sync_direct(file).await?;
        if let Some(segment) = self.state.borrow_mut().open_segment_mut(job.segment_base) {
            segment.needs_cut = false;
            segment.allocated = job.from;
        }
        Ok(())
    }

    /// Reserves space ahead, more each time, so that writes seldom extend the file.
    async fn reserve(&self, file: &DirectFile, job: Job) -> Result<(), LogError> {
        let end = job.to.next_multiple_of(BLOCK);
        let (allocated, size) = {
            let mut state = self.state.borrow_mut();
            let limit = state.config.segment_bytes.min(MAX_SEGMENT).next_multiple_of(BLOCK);
            let Some(segment) = state.open_segment_mut(job.segment_base) else {
                unreachable!("a segment stays open while it is written")
            };
            if end <= segment.allocated {
                return Ok(());
            }
            let wanted = (segment.allocated + segment.preallocate).next_multiple_of(BLOCK);
            segment.preallocate = (segment.preallocate * 2).min(PREALLOCATE_MAX);
            // A rolled segment gets no more than it holds.
            (segment.allocated, if job.draining { end } else { wanted.min(limit).max(end) })
        };
        let (size, grant) = self.beside_reserve(allocated, size, end).await?;
        file.preallocate(size).await?;
        drop(grant);
        if let Some(segment) = self.state.borrow_mut().open_segment_mut(job.segment_base) {
            segment.allocated = size;
        }
        Ok(())
    }

    /// How far a segment may be extended: as wanted, else as far as it must be for what is pending, else not at all.
    async fn beside_reserve(
        &self,
        allocated: u64,
        wanted: u64,
        needed: u64,
    ) -> Result<(u64, Option<Grant<'_>>), LogError> {
        if self.uses_reserve {
            return Ok((wanted, None));
        }
        let dir = &self.home.dir;
        for size in [wanted, needed] {
            if let Some(grant) = dir.reserve().grant(dir.path(), size - allocated).await {
                return Ok((size, Some(grant)));
            }
        }
        Err(LogError::Full(dir.reserve().refusal(needed - allocated).into()))
    }

    /// `false` when the log was poisoned (by the sync of an earlier round) while the write was under way: it was
    /// accounted for then, and counts no more.
    fn wrote(&self, job: &Job) -> bool {
        let (flush, counted) = {
            let mut state = self.state.borrow_mut();
            if state.failed.is_some() {
                return false;
            }
            let Some(segment) = state.open_segment_mut(job.segment_base) else {
                unreachable!("a segment stays open while it is written")
            };
            assert!(segment.written <= job.from, "one write stage at a time");
            (segment.written, segment.whole) = (job.to, job.whole);
            let counts = (segment.index.tail.len() >= INDEX_TAIL_ENTRIES, segment.count(job.to));
            self.count_pinned(&state);
            counts
        };
        self.shard.sub_unwritten(counted);
        if job.ends_a_batch() {
            self.advance_written(job.fill.next_offset);
        }
        if flush {
            self.flush_indexes_soon();
        }
        // What is written may leave the cache now.
        if self.shard.cache.is_over() {
            self.shard.cache.shrink();
            self.give_back_written();
        }
        true
    }

    /// Nothing, but for mutants that count on a write without its sync.
    fn mutate_written(&self, job: &Job) {
        if active(Mutant::DestageUnsynced) {
            self.in_segment(job.segment_base, job.to);
        }
        if active(Mutant::AnswerBeforeSync) {
            self.advance_durable(job.fill.next_offset);
        }
        if active(Mutant::CheckpointAhead) && !job.draining {
            self.put_recovery_point(job.segment_base, job.fill, job.index_entries, job.time_entries);
        }
    }

    /// The sync stage of a round.
    pub(crate) async fn sync_written(self: Rc<Self>, written: Written, folder_error: Option<LogError>) {
        // What the ring holds stays there until its segment was synced, whatever the topic asks for by now.
        let memory = self.state.borrow().config.durability == Durability::Memory && self.held.borrow().is_empty();
        let result = match folder_error {
            Some(error) => Err(error),
            None if memory => Ok(()),
            None => self.sync_files(&written).await,
        };
        match result {
            Ok(()) => {
                // The round synced the parent before, whatever the durability.
                self.folder_synced.set(self.folder_synced.get() || written.new_folder_in.is_some());
                self.synced(&written.job, memory);
            }
            Err(error) => self.poison(&error),
        }
        self.syncing.set(self.syncing.get() - 1);
        self.way_done(written.way);
        self.step_done();
    }

    async fn sync_files(&self, written: &Written) -> Result<(), LogError> {
        if !written.is_synced && !active(Mutant::SyncLeftOut) {
            let sync = self.shard.committer_of(written.way).tally().time(self.sync_direct(&written.file));
            match sync.await {
                Err(_) if active(Mutant::SyncRetried) => self.sync_direct(&written.file).await?,
                synced => synced?,
            }
        }
        let base = written.job.segment_base;
        // Not only with the first byte: that may have been written when the topic asked for memory only.
        if self.state.borrow().open_segment(base).is_some_and(|s| !s.name_synced) {
            if !active(Mutant::SegmentNameUnsynced) {
                fs::sync_dir(self.dir()).await?;
            }
            if let Some(segment) = self.state.borrow_mut().open_segment_mut(base) {
                segment.name_synced = true;
            }
        }
        Ok(())
    }

    fn synced(self: &Rc<Self>, job: &Job, memory: bool) {
        let due = {
            let mut state = self.state.borrow_mut();
            if state.failed.is_some() {
                return;
            }
            let (base, position) = state.recovery_point;
            let since = if base == job.segment_base { job.fill.size.saturating_sub(position) } else { job.fill.size };
            let due = !memory && since >= RECOVERY_POINT_BYTES && job.ends_a_batch();
            if due {
                state.recovery_point = (job.segment_base, job.fill.size);
            }
            if let Some(segment) = state.open_segment_mut(job.segment_base) {
                segment.durable = segment.durable.max(job.to);
                segment.taken = segment.taken.max(job.to);
                if segment.kept.fill.size < job.to {
                    segment.kept = job.mark();
                }
            }
            self.count_pinned(&state);
            due
        };
        self.unsynced.set(memory);
        if !memory {
            let whole_batches = active(Mutant::RemainderForgotten);
            self.in_segment(job.segment_base, if whole_batches { job.fill.size } else { job.to });
        }
        if job.ends_a_batch() {
            self.advance_durable(job.fill.next_offset);
        }
        if due {
            self.renew_recovery_point(job.segment_base, job.fill, job.index_entries, job.time_entries);
        }
    }

    /// A step of the committer ended.
    pub(crate) fn step_done(&self) {
        assert!(self.in_flight.get() > 0, "a step ends once");
        self.in_flight.set(self.in_flight.get() - 1);
        self.settled.notify();
        self.ask_for_destage();
        self.tell_journal_of_step();
    }

    fn tell_journal_of_step(&self) {
        if let Some(journal) = &self.journal {
            journal.step_ended();
        }
    }

    /// The device failed: nothing that is not durable yet may ever be acknowledged, and nothing is tried again as if
    /// the failure had not been (the kernel may have dropped the pages). What was durable is still served.
    pub(crate) fn poison(self: &Rc<Self>, error: &LogError) {
        if active(Mutant::OffsetReused) {
            self.state.borrow_mut().log_end = self.durable.get();
            return;
        }
        let error = match error {
            LogError::Storage(_) | LogError::ForeignFolder { .. } => error.clone(),
            other => LogError::Storage(other.to_string().into()),
        };
        let unwritten = {
            let mut state = self.state.borrow_mut();
            if state.failed.is_some() {
                return;
            }
            state.failed = Some(error.clone());
            self.count_pinned(&state);
            state.open_segments().map(OpenSegment::uncounted).sum()
        };
        self.shard.sub_unwritten(unwritten);
        self.written.fail(error.clone());
        self.durable.fail(error);
        self.durable_advanced.notify();
        self.settled.notify();
        self.tell_journal_of_failure();
    }

    /// The disk is full: appends are refused until a retry of what is pending succeeds.
    pub(crate) fn brake(self: &Rc<Self>, error: &LogError) {
        self.shard.tell_full(self.home.dir.path(), error);
        self.full.set(true);
        self.state.borrow_mut().active.preallocate = PREALLOCATE_MIN;
        if self.retries.replace(true) {
            return;
        }
        let me = self.clone();
        spawn("disk-full-retry", async move {
            clock::sleep(Duration::from_millis(FULL_RETRY_MS)).await;
            me.retries.set(false);
            me.register_direct();
            me.ask_for_destage();
        });
    }
}
