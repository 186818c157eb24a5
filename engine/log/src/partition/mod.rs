//! One partition's log. Owned by one shard: `Rc`, never `Send`. The state machine is split by what moves it: [`append`],
//! [`commit`], [`read`], [`time_lookup`], [`roll`], [`retention`], [`truncate`], [`recover`], [`lifecycle`].
//!
//! Offsets, from low to high: `log_start_offset` <= `durable_end` <= `written_end` <= `log_end_offset`. What is below
//! the durable end is on the device (or, in memory mode, counts as such); nothing above it may be shown or acknowledged
//! to `acks=all`.

pub(crate) mod append;
pub(crate) mod commit;
pub(crate) mod damage;
pub(crate) mod epochs;
mod figures;
pub(crate) mod indexes;
pub(crate) mod journaled;
pub(crate) mod lifecycle;
mod pinned;
pub(crate) mod places;
pub(crate) mod read;
pub(crate) mod read_closed;
pub(crate) mod recover;
pub(crate) mod retention;
pub(crate) mod roll;
pub(crate) mod scan_headers;
pub(crate) mod segments;
pub(crate) mod snapshots;
pub(crate) mod time_lookup;
pub(crate) mod truncate;
mod write;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};

use model::{Offset, PartitionKey};
use runtime::Notify;

use crate::cache::Evicted;
use crate::compact::CompactState;
use crate::config::LogConfig;
use crate::damage::DamagedRange;
use crate::error::LogError;
use crate::format::epochs::EpochHistory;
use crate::journal::Journal;
use crate::limits::IDLE_AFTER_MS;
use crate::partition::journaled::Held;
use crate::partition::places::Places;
use crate::partition::snapshots::RecoveryPoint;
use crate::segment::{ClosedSegment, OpenSegment};
use crate::shard::LogShard;
use crate::shard_dir::ShardDir;
use crate::tail::Tail;
use crate::watermark::Watermark;

/// What the shard's task alone reads and changes. Never borrowed over an await.
#[derive(Debug)]
pub(crate) struct State {
    pub config: LogConfig,
    pub log_start: Offset,
    pub log_end: Offset,
    pub epochs: EpochHistory,
    /// Whether `epochs` differs from its file.
    pub epochs_dirty: bool,
    /// Set when the history has to be read from its file first (too long for the checkpoint).
    pub epochs_unread: bool,
    /// Closed segments, oldest first; `None` until someone needs them.
    pub closed: Option<Vec<ClosedSegment>>,
    pub closed_count: u32,
    pub closed_bytes: u64,
    /// Rolled in memory, not yet sealed on disk; oldest first.
    pub draining: VecDeque<OpenSegment>,
    pub active: OpenSegment,
    pub tail: Tail,
    /// Producer snapshots on disk, oldest first, as far as they are known.
    pub snapshots: Vec<Offset>,
    /// Position of the newest recovery point: bytes since then count towards the next.
    pub recovery_point: (Offset, u64),
    /// The recovery point that the checkpoint holds.
    pub point: RecoveryPoint,
    /// Segment and position when the replica last gave a producer snapshot.
    pub snapshot_mark: (Offset, u64),
    pub failed: Option<LogError>,
    /// It was compacted once, whatever its topic asks for now.
    pub was_cleaned: bool,
}

impl State {
    /// Offsets may be missing between batches.
    pub fn may_have_gaps(&self) -> bool {
        self.config.gaps || self.config.compact || self.was_cleaned
    }

    /// Open segments, oldest first.
    pub fn open_segments(&self) -> impl Iterator<Item = &OpenSegment> {
        self.draining.iter().chain(std::iter::once(&self.active))
    }

    pub fn open_segment_mut(&mut self, base_offset: Offset) -> Option<&mut OpenSegment> {
        self.draining.iter_mut().chain(std::iter::once(&mut self.active)).find(|s| s.base_offset == base_offset)
    }

    pub fn open_segment(&self, base_offset: Offset) -> Option<&OpenSegment> {
        self.open_segments().find(|s| s.base_offset == base_offset)
    }

    pub fn all_written(&self) -> bool {
        self.draining.is_empty() && self.active.is_written()
    }
}

#[derive(Debug)]
pub struct PartitionLog {
    pub(crate) me: Weak<PartitionLog>,
    pub(crate) shard: Rc<LogShard>,
    pub(crate) home: Rc<ShardDir>,
    /// Number within the shard, for its tables.
    pub(crate) id: u64,
    key: PartitionKey,
    topic: String,
    uses_reserve: bool,
    dir: PathBuf,
    pub(crate) state: RefCell<State>,
    pub(crate) written: Watermark,
    pub(crate) durable: Watermark,
    durable_advanced: Notify,
    /// Signalled when a commit step ends, a pause is over, segments were loaded or the log closes.
    pub(crate) settled: Notify,
    /// Registered with the committer.
    pub(crate) queued: Cell<bool>,
    /// Somebody waits for the write of what is pending, not for its sync.
    pub(crate) tells_written: Cell<bool>,
    /// The journal of its data folder, where there is one.
    pub(crate) journal: Option<Rc<Journal>>,
    /// Laps of the ring that hold what the segments do not have durably, oldest first; and the newest that ever held any.
    pub(crate) held: RefCell<VecDeque<Held>>,
    pub(crate) newest_lap: Cell<u64>,
    /// Bytes in memory that rounds have and the segments' files do not, as the journal counts them.
    pub(crate) pinned: Cell<u64>,
    /// Whether the journal counts it among those with bytes in the ring.
    pub(crate) holds: Cell<bool>,
    /// Everything goes straight to the segments while this is above 0: somebody waits for that.
    pub(crate) direct_only: Cell<u32>,
    /// Registered with the destager.
    pub(crate) destage_queued: Cell<bool>,
    /// And what it writes then is to be synced.
    pub(crate) wants_sync: Cell<bool>,
    /// Steps of each [`Way`] under way, and whether one that found the other at work wants another turn.
    pub(crate) steps: [Cell<u32>; 2],
    pub(crate) comes_back: [Cell<bool>; 2],
    /// The file holds bytes that counted as durable without a sync.
    pub(crate) unsynced: Cell<bool>,
    /// Commit steps under way.
    pub(crate) in_flight: Cell<u32>,
    /// Written ranges that wait for their sync stage or are in it.
    pub(crate) syncing: Cell<u32>,
    /// The oldest draining segment is being sealed.
    pub(crate) sealing: Cell<bool>,
    /// Index entries are on their way to their files.
    pub(crate) flushing: Cell<bool>,
    /// Truncation, deletion and the like keep the committer away.
    pub(crate) paused: Cell<u32>,
    /// A truncation is under way: appends are refused for the moment.
    pub(crate) cutting: Cell<bool>,
    /// Counts truncations: what was opened or read before one says nothing about a segment of the same name after it.
    pub(crate) cuts: Cell<u64>,
    pub(crate) closed: Cell<bool>,
    /// The folder was renamed away.
    pub(crate) deleted: Cell<bool>,
    /// The folder exists.
    pub(crate) folder_made: Cell<bool>,
    /// Its name in the data folder was synced.
    pub(crate) folder_synced: Cell<bool>,
    /// Something changed since the start, so the clean checkpoint no longer holds.
    pub(crate) touched: Cell<bool>,
    /// The disk was full at the last try.
    pub(crate) full: Cell<bool>,
    /// It is tried again in a moment.
    pub(crate) retries: Cell<bool>,
    pub(crate) last_append_at_ms: Cell<i64>,
    /// Segments out of the list whose files are still there, until `file.delete.delay.ms` is over.
    pub(crate) to_unlink: RefCell<BTreeSet<Offset>>,
    /// Ranges that are refused, in order.
    pub(crate) damage: RefCell<Vec<DamagedRange>>,
    /// Segments whose last append lies in the future, with the moment, by the clock that never jumps, when that was seen.
    pub(crate) ahead_since_ms: RefCell<BTreeMap<Offset, i64>>,
    retention_bound: Cell<Offset>,
    /// Offsets of closed segments that one reader has read past the page cache, from and to.
    pub(crate) read_past_cache: Cell<(Offset, Offset)>,
    /// Size of the batch that the last direct read ended before.
    pub(crate) batch_read: Cell<usize>,
    /// Where direct reads ended.
    pub(crate) places: Places,
    pub(crate) compact: CompactState,
}

/// Everything that a partition begins with.
pub(crate) struct Start {
    pub state: State,
    pub durable_end: Offset,
    pub folder_made: bool,
    pub touched: bool,
}

impl PartitionLog {
    pub(crate) fn build(shard: &Rc<LogShard>, spec: crate::PartitionSpec, start: Start) -> Rc<PartitionLog> {
        let dir = spec.data_dir.path().join(crate::format::names::partition_dir(&spec.topic, spec.key.partition));
        Rc::new_cyclic(|me| PartitionLog {
            me: me.clone(),
            shard: shard.clone(),
            home: shard.dir(&spec.data_dir),
            id: shard.next_id(),
            key: spec.key,
            topic: spec.topic,
            uses_reserve: spec.uses_reserve,
            dir,
            written: Watermark::new(start.durable_end),
            durable: Watermark::new(start.durable_end),
            durable_advanced: Notify::new(),
            settled: Notify::new(),
            queued: Cell::new(false),
            tells_written: Cell::new(false),
            journal: shard.journal(&spec.data_dir),
            held: RefCell::default(),
            newest_lap: Cell::new(0),
            pinned: Cell::new(0),
            holds: Cell::new(false),
            direct_only: Cell::new(0),
            destage_queued: Cell::new(false),
            wants_sync: Cell::new(false),
            steps: [Cell::new(0), Cell::new(0)],
            comes_back: [Cell::new(false), Cell::new(false)],
            unsynced: Cell::new(false),
            in_flight: Cell::new(0),
            syncing: Cell::new(0),
            sealing: Cell::new(false),
            flushing: Cell::new(false),
            paused: Cell::new(0),
            cutting: Cell::new(false),
            cuts: Cell::new(0),
            closed: Cell::new(false),
            deleted: Cell::new(false),
            folder_made: Cell::new(start.folder_made),
            folder_synced: Cell::new(start.folder_made),
            touched: Cell::new(start.touched),
            full: Cell::new(false),
            retries: Cell::new(false),
            last_append_at_ms: Cell::new(0),
            to_unlink: RefCell::default(),
            damage: RefCell::default(),
            ahead_since_ms: RefCell::default(),
            retention_bound: Cell::new(Offset(i64::MAX)),
            read_past_cache: Cell::new((Offset::ZERO, Offset::ZERO)),
            batch_read: Cell::new(0),
            places: Places::default(),
            compact: CompactState::default(),
            state: RefCell::new(start.state),
        })
    }

    pub(crate) fn me(&self) -> Rc<PartitionLog> {
        match self.me.upgrade() {
            Some(me) => me,
            None => unreachable!("a method runs only while the value lives"),
        }
    }

    pub fn key(&self) -> PartitionKey {
        self.key
    }

    pub fn topic(&self) -> &str {
        &self.topic
    }

    pub(crate) fn uses_reserve(&self) -> bool {
        self.uses_reserve
    }

    /// The partition's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Why the data folder gives and takes nothing any more, if it failed as a whole.
    pub fn folder_failure(&self) -> Option<std::sync::Arc<str>> {
        self.home.dir.failure()
    }

    pub fn config(&self) -> LogConfig {
        self.state.borrow().config
    }

    /// Offsets may be missing between batches of its closed segments, which were listed before.
    pub(crate) fn may_have_gaps(&self) -> bool {
        self.state.borrow().may_have_gaps()
    }

    pub fn set_config(&self, config: LogConfig) {
        let log_end = {
            let mut state = self.state.borrow_mut();
            state.config = config;
            state.log_end
        };
        if config.durability == crate::Durability::Memory {
            self.advance_written(log_end);
            self.advance_durable(log_end);
        }
    }

    pub fn log_start_offset(&self) -> Offset {
        self.state.borrow().log_start
    }

    pub fn log_end_offset(&self) -> Offset {
        self.state.borrow().log_end
    }

    pub fn written_end(&self) -> Offset {
        self.written.get()
    }

    pub fn durable_end(&self) -> Offset {
        self.durable.get()
    }

    /// Resolves when everything below `next_offset` was handed to the device and came back: survives kill -9.
    pub async fn wait_written(&self, next_offset: Offset) -> Result<(), LogError> {
        self.written.wait(next_offset).await
    }

    /// Resolves when everything below `next_offset` was synced.
    pub async fn wait_durable(&self, next_offset: Offset) -> Result<(), LogError> {
        self.durable.wait(next_offset).await
    }

    /// Signalled each time the durable end moves.
    pub fn durable_advanced(&self) -> &Notify {
        &self.durable_advanced
    }

    pub(crate) fn advance_written(&self, to: Offset) {
        self.written.advance(to);
    }

    pub(crate) fn advance_durable(&self, to: Offset) {
        assert!(to <= self.log_end_offset(), "only what was appended becomes durable");
        if self.durable.advance(to) {
            self.durable_advanced.notify();
        }
    }

    /// The error that stops appends, if one does.
    pub fn failure(&self) -> Option<LogError> {
        self.state.borrow().failed.clone()
    }

    pub fn size_bytes(&self) -> u64 {
        let state = self.state.borrow();
        state.closed_bytes + state.open_segments().map(|s| s.fill.size).sum::<u64>()
    }

    pub fn segment_count(&self) -> usize {
        let state = self.state.borrow();
        state.closed_count as usize + state.draining.len() + 1
    }

    /// Retention never passes this offset (the high watermark, where it trails the durable end).
    pub fn set_retention_bound(&self, offset: Offset) {
        self.retention_bound.set(offset);
    }

    pub(crate) fn retention_limit(&self) -> Offset {
        self.retention_bound.get().min(self.durable.get())
    }

    /// Whether anything changed since the start.
    pub fn is_touched(&self) -> bool {
        self.touched.get()
    }

    pub(crate) fn holds_chunk(&self, id: u64) -> bool {
        self.state.borrow().tail.chunks.iter().any(|c| c.id == id)
    }

    /// Gives the oldest chunk back if it is `id` and everything in it is written.
    pub(crate) fn evict_chunk(&self, id: u64) -> Evicted {
        // The append that asks for room may itself hold the state: its own partition is then not asked.
        let Ok(mut state) = self.state.try_borrow_mut() else { return Evicted::NotYet };
        let Some(chunk) = state.tail.chunks.front() else { return Evicted::Gone };
        if chunk.id != id {
            return if state.tail.chunks.iter().any(|c| c.id == id) { Evicted::NotYet } else { Evicted::Gone };
        }
        let open = state.open_segment(chunk.segment_base);
        let written = open.map(|s| s.written);
        let failed = state.failed.is_some();
        if open.is_some_and(|s| s.evictable(failed) < chunk.end()) {
            return Evicted::NotYet;
        }
        let bytes = state.tail.pop_front(written);
        Evicted::Freed { bytes, last: state.tail.chunks.is_empty() }
    }

    /// Gives back its own chunks, oldest first, while the cache is over its budget and they are written.
    pub(crate) fn give_back_written(&self) {
        while self.shard.cache.is_over() {
            let oldest = self.state.borrow().tail.chunks.front().map(|chunk| chunk.id);
            let Some(Evicted::Freed { bytes, last }) = oldest.map(|id| self.evict_chunk(id)) else { return };
            self.shard.cache.released(1, bytes, last);
        }
    }

    /// Whether nothing was appended for a while and everything is on disk, while memory is still held.
    pub(crate) fn is_idle(&self, now_ms: i64) -> bool {
        if now_ms - self.last_append_at_ms.get() < IDLE_AFTER_MS || self.in_flight.get() > 0 {
            return false;
        }
        let state = self.state.borrow();
        let holds = !state.tail.is_empty() || !state.active.index.tail.is_empty();
        holds && state.all_written() && self.held.borrow().is_empty()
    }

    /// Whether nothing was appended for a while, and what there is is in the journal only.
    pub(crate) fn idles_in_journal(&self, now_ms: i64) -> bool {
        if self.held.borrow().is_empty() || now_ms - self.last_append_at_ms.get() < IDLE_AFTER_MS {
            return false;
        }
        self.failure().is_none() && !self.closed.get()
    }

    /// Gives the chunks back and lets index entries go to their files.
    pub(crate) fn rest(&self) {
        self.drop_tail();
        self.flush_indexes_soon();
    }

    /// Gives back chunks whose records all lie below the log start.
    pub(crate) fn drop_tail_below(&self, log_start: Offset) {
        let (mut chunks, mut bytes) = (0, 0);
        {
            let mut state = self.state.borrow_mut();
            while state.tail.chunks.get(1).is_some_and(|second| second.first_offset <= log_start) {
                let first = &state.tail.chunks[0];
                let failed = state.failed.is_some();
                if state.open_segment(first.segment_base).is_some_and(|s| s.evictable(failed) < first.end()) {
                    break;
                }
                bytes += first.chunk.capacity();
                chunks += 1;
                state.tail.chunks.pop_front();
            }
        }
        self.shard.cache.released(chunks, bytes, false);
    }

    pub(crate) fn drop_tail(&self) {
        let (chunks, bytes) = {
            let mut state = self.state.borrow_mut();
            (state.tail.chunks.len(), state.tail.clear())
        };
        self.shard.cache.released(chunks, bytes, true);
    }
}

impl Drop for PartitionLog {
    fn drop(&mut self) {
        if let Some(journal) = &self.journal {
            journal.count_pinned(self.pinned.get(), 0);
            journal.whereabouts().hold(-i32::from(self.holds.get()));
        }
        let (chunks, bytes) = (self.state.get_mut().tail.chunks.len(), self.state.get_mut().tail.clear());
        self.shard.cache.released(chunks, bytes, true);
    }
}
