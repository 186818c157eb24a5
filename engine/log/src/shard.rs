//! What the partitions of a shard share: the committer, the chunk pool and the batch cache's budget, the bound on open
//! files, the memory of closed segments, and the folders' checkpoints. One per shard, never leaves it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use model::{Offset, PartitionKey};
use runtime::sync::{Budget, before};
use runtime::{ChunkPool, DirectFile, Notify, SharedFile, TaskGroup, clock, fs, spawn};

use crate::cache::ChunkCache;
use crate::committer::{Committer, Way, each};
use crate::config::{PartitionSpec, StartMode};
use crate::damage::{DamageStats, DamageTally};
use crate::data_dir::DataDir;
use crate::device::{Device, DeviceLimits, DeviceStats, WriteClock};
use crate::error::LogError;
use crate::figures::{AppendStats, AppendTally, WayStats};
use crate::file_table::{FileKey, FileTable};
use crate::index_cache::SegmentMemory;
use crate::journal::{Journal, JournalConfig, JournalStats};
use crate::limits::{
    DESTAGE_LANES, FULL_TELL_MS, IDLE_CHECK_MS, IDLE_CHECKS_A_LOOK, IDLE_LOOKS_MOST, INDEX_CACHE, SHARED_FILES_PART,
    TRIM_AFTER_RESTING, UNWRITTEN_BRAKE, UNWRITTEN_MAX,
};
use crate::partition::PartitionLog;
use crate::read_ahead::ReadAhead;
use crate::shard_dir::ShardDir;

/// What a shard's logs may use.
#[derive(Clone, Debug)]
pub struct LogShardConfig {
    /// Number of this writer among those of the process: names its part of the checkpoint, nothing else.
    pub writer: u16,
    /// Chunks in use by tails and as batch cache.
    pub cache_bytes: usize,
    /// Largest chunk of a hot partition.
    pub chunk_bytes: usize,
    /// Segment files open at once: at most a quarter of them through the page cache, for lagging readers, the others for direct
    /// I/O. One of each at least.
    pub open_files: usize,
    /// Bytes of direct writes and reads in flight.
    pub io_bytes: usize,
    /// Size of writes, and writes and syncs in flight.
    pub device: DeviceLimits,
    /// The journal; `None`: everything goes straight to the segments.
    pub journal: Option<JournalConfig>,
    /// Memory of chunks, shared by all shards.
    pub pool: ChunkPool,
    /// When anybody last wrote, shared by all shards.
    pub writes: WriteClock,
}

impl LogShardConfig {
    pub fn new(writer: u16, pool: ChunkPool) -> LogShardConfig {
        LogShardConfig {
            writer,
            cache_bytes: 64 << 20,
            chunk_bytes: crate::limits::CHUNK_MAX,
            open_files: 256,
            io_bytes: 16 << 20,
            device: DeviceLimits::default(),
            journal: None,
            pool,
            writes: WriteClock::default(),
        }
    }
}

/// Counters of a shard, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogShardStats {
    pub partitions: usize,
    pub appended: AppendStats,
    pub cached_bytes: usize,
    pub cache_limit_bytes: usize,
    pub unwritten_bytes: u64,
    pub commit_rounds: u64,
    /// Straight to segments, and from the journal to them.
    pub direct: WayStats,
    pub destage: WayStats,
    pub open_files: usize,
    pub device: DeviceStats,
    /// Of all data folders together.
    pub journal: JournalStats,
    pub damage: DamageStats,
}

/// Data folders that may not be called clean, by path, each with its first error.
type UncleanFolders = BTreeMap<PathBuf, (Arc<DataDir>, LogError)>;

/// A partition that was opened, with what the replica needs to rebuild its producer state.
#[derive(Debug)]
pub struct Opened {
    pub log: Rc<PartitionLog>,
    /// Newest snapshot at or below the log's end, and the offset it was made at.
    pub producer_snapshot: Option<(Offset, Vec<u8>)>,
}

#[derive(Debug)]
pub struct LogShard {
    pub(crate) config: LogShardConfig,
    pub(crate) committer: Rc<Committer>,
    /// Moves to the segments what the journals hold.
    pub(crate) destager: Rc<Committer>,
    journals: RefCell<BTreeMap<PathBuf, Rc<Journal>>>,
    /// What the journals had counted when they were stopped.
    stopped_journals: Cell<JournalStats>,
    pub(crate) cache: ChunkCache,
    pub(crate) files: FileTable<DirectFile>,
    pub(crate) shared_files: FileTable<SharedFile>,
    pub(crate) memory: SegmentMemory,
    pub(crate) read_ahead: ReadAhead,
    pub(crate) device: Rc<Device>,
    pub(crate) damage: DamageTally,
    pub(crate) appended: AppendTally,
    dirs: RefCell<BTreeMap<PathBuf, Rc<ShardDir>>>,
    partitions: RefCell<BTreeMap<PartitionKey, Rc<PartitionLog>>>,
    /// Folders of deleted partitions by when they go, in ms, and in order. What a stop or a crash leaves is removed by
    /// `DataDir::remove_deleted` at the next start.
    removals: RefCell<BTreeMap<(i64, u64), PathBuf>>,
    /// When the operator was last told of a full disk.
    full_told_ms: Cell<Option<i64>>,
    next_id: Cell<u64>,
    unwritten: Cell<u64>,
    room: Notify,
    stopping: Cell<bool>,
    /// Cleanings make way, and none begins.
    cleaning_held: Cell<bool>,
    stop: Rc<Notify>,
    pub(crate) tasks: TaskGroup,
}

impl LogShard {
    pub fn new(config: LogShardConfig) -> Rc<LogShard> {
        let shard = Rc::new(LogShard {
            committer: Committer::new(Way::Direct, config.device.queue_depth),
            destager: Committer::new(Way::Destage, config.device.queue_depth.min(DESTAGE_LANES)),
            journals: RefCell::default(),
            stopped_journals: Cell::default(),
            cache: ChunkCache::new(config.cache_bytes),
            files: FileTable::new(),
            shared_files: FileTable::new(),
            memory: SegmentMemory::new(INDEX_CACHE),
            read_ahead: ReadAhead::default(),
            device: Rc::new(Device::new(config.device, Budget::new(config.io_bytes), config.writes.clone())),
            damage: DamageTally::default(),
            appended: AppendTally::default(),
            dirs: RefCell::default(),
            partitions: RefCell::default(),
            removals: RefCell::default(),
            full_told_ms: Cell::new(None),
            next_id: Cell::new(0),
            unwritten: Cell::new(0),
            room: Notify::new(),
            stopping: Cell::new(false),
            cleaning_held: Cell::new(false),
            stop: Rc::default(),
            tasks: TaskGroup::new(),
            config,
        });
        shard.tasks.spawn("committer", shard.committer.clone().run());
        shard.tasks.spawn("destager", shard.destager.clone().run());
        shard.tasks.spawn("idle-partitions", idle_loop(Rc::downgrade(&shard), shard.stop.clone()));
        shard
    }

    /// A partition that holds nothing yet. Its folder is made, durably, with its first append.
    pub async fn create_partition(self: &Rc<Self>, spec: PartitionSpec) -> Result<Rc<PartitionLog>, LogError> {
        let log = PartitionLog::fresh(self, spec, Offset::ZERO);
        self.keep(log.clone());
        Ok(log)
    }

    /// A partition that may hold something. `start` comes from [`DataDir::start_mode`].
    pub async fn open_partition(self: &Rc<Self>, spec: PartitionSpec, start: StartMode) -> Result<Opened, LogError> {
        if let Some(round) = spec.data_dir.lost_in_journal(spec.key) {
            let why = format!("round {round} of the journal, which held acknowledged records of it, was damaged");
            return Err(LogError::BadFolder { path: spec.data_dir.path().to_path_buf(), why });
        }
        let log = match start {
            StartMode::Clean(entry) => PartitionLog::from_checkpoint(self, spec, *entry)?,
            StartMode::Unclean(entry) => PartitionLog::recover(self, spec, entry.map(|e| *e)).await?,
        };
        let producer_snapshot = log.newest_snapshot().await?;
        log.load_epochs_if_needed().await?;
        self.keep(log.clone());
        Ok(Opened { log, producer_snapshot })
    }

    fn keep(&self, log: Rc<PartitionLog>) {
        let before = self.partitions.borrow_mut().insert(log.key(), log);
        assert!(before.is_none(), "a partition is opened once");
    }

    pub(crate) fn forget(&self, key: PartitionKey) {
        self.partitions.borrow_mut().remove(&key);
    }

    pub fn partition(&self, key: PartitionKey) -> Option<Rc<PartitionLog>> {
        self.partitions.borrow().get(&key).cloned()
    }

    /// The first partition at or behind `key`, in the order of keys.
    pub(crate) fn partition_from(&self, key: PartitionKey) -> Option<Rc<PartitionLog>> {
        self.partitions.borrow().range(key..).next().map(|(_, log)| log.clone())
    }

    pub(crate) fn logs(&self) -> Vec<Rc<PartitionLog>> {
        self.partitions.borrow().values().cloned().collect()
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.set(self.next_id.get() + 1);
        self.next_id.get()
    }

    pub(crate) fn dir(&self, dir: &Arc<DataDir>) -> Rc<ShardDir> {
        let mut dirs = self.dirs.borrow_mut();
        dirs.entry(dir.path().to_path_buf())
            .or_insert_with(|| Rc::new(ShardDir::new(dir.clone(), self.config.writer)))
            .clone()
    }

    /// The journal of a data folder, if this shard has journals.
    pub(crate) fn journal(&self, dir: &Arc<DataDir>) -> Option<Rc<Journal>> {
        let config = self.config.journal?;
        let home = self.dir(dir);
        let mut journals = self.journals.borrow_mut();
        let made = || Journal::new(config, home, self.config.writer, self.device.clone(), self.committer.clone());
        Some(journals.entry(dir.path().to_path_buf()).or_insert_with(made).clone())
    }

    fn journal_stats(&self) -> JournalStats {
        let before = self.stopped_journals.get();
        self.journals.borrow().values().fold(before, |sum, journal| sum.plus(journal.stats()))
    }

    /// Ends the journals. What a failed partition could not write is for the next start to find: its folder's is not retired.
    async fn stop_journals(&self, retire: impl Fn(&Path) -> bool) -> Vec<(Arc<DataDir>, LogError)> {
        let stats = self.journal_stats();
        let journals = std::mem::take(&mut *self.journals.borrow_mut());
        self.stopped_journals.set(stats);
        let mut failed = Vec::new();
        for (folder, journal) in journals {
            if let Err(error) = journal.stop(retire(&folder)).await {
                failed.push((journal.dir().clone(), error));
            }
        }
        failed
    }

    pub(crate) fn committer_of(&self, way: Way) -> &Committer {
        match way {
            Way::Direct => &self.committer,
            Way::Destage => &self.destager,
        }
    }

    /// Whether `bytes` more may be appended before the disk has caught up.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.unwritten.get() == 0 || self.unwritten.get() + bytes <= UNWRITTEN_MAX
    }

    pub(crate) fn add_unwritten(&self, bytes: u64) {
        self.unwritten.set(self.unwritten.get() + bytes);
    }

    pub(crate) fn sub_unwritten(&self, bytes: u64) {
        assert!(self.unwritten.get() >= bytes, "only appended bytes are written");
        self.unwritten.set(self.unwritten.get() - bytes);
        self.room.notify();
    }

    /// Whether producers should wait for room before they append more.
    pub fn is_braked(&self) -> bool {
        self.unwritten.get() >= UNWRITTEN_BRAKE && !self.stopping.get()
    }

    /// The brake for producers: resolves once few enough bytes wait for the disk.
    pub async fn wait_room(&self) {
        loop {
            let seen = self.room.version();
            if self.unwritten.get() < UNWRITTEN_BRAKE || self.stopping.get() {
                return;
            }
            self.room.changed_since(seen).await;
        }
    }

    /// Where chunks come from, for others who need such memory.
    pub fn pool(&self) -> &ChunkPool {
        &self.config.pool
    }

    /// Keeps a segment's file open for direct I/O: of those that may be open, what readers of closed segments do not need.
    pub(crate) fn keep_file(&self, key: FileKey, file: DirectFile) {
        close_files(self.files.insert(key, file, self.direct_files()));
    }

    /// Keeps a segment's file open for reads through the page cache.
    pub(crate) fn keep_shared_file(&self, key: FileKey, file: SharedFile) {
        drop(self.shared_files.insert(key, file, self.config.open_files / SHARED_FILES_PART));
        close_files(self.files.keep(self.direct_files()));
    }

    fn direct_files(&self) -> usize {
        self.config.open_files.saturating_sub(self.shared_files.len())
    }

    pub fn stats(&self) -> LogShardStats {
        LogShardStats {
            partitions: self.partitions.borrow().len(),
            appended: self.appended.stats(),
            cached_bytes: self.cache.used(),
            cache_limit_bytes: self.config.cache_bytes,
            unwritten_bytes: self.unwritten.get(),
            commit_rounds: self.committer.rounds(),
            direct: self.committer.stats(),
            destage: self.destager.stats(),
            open_files: self.files.len() + self.shared_files.len(),
            device: self.device.stats(),
            journal: self.journal_stats(),
            damage: self.damage.stats(),
        }
    }

    /// Before a stop: cleanings end at their next step.
    pub fn hold_cleaning(&self) {
        self.cleaning_held.set(true);
    }

    pub(crate) fn is_cleaning_held(&self) -> bool {
        self.cleaning_held.get() || self.stopping.get()
    }

    /// Everything appended goes to disk; tails are trimmed, indexes and checkpoint written. The shard's last call:
    /// afterwards the caller of the process's stop calls `DataDir::close_clean`.
    pub async fn stop_clean(self: &Rc<Self>) -> Result<(), LogError> {
        match self.stop_clean_by_folder().await.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// The same where there are several data folders: gives those that may not be called clean, each with its first error.
    pub async fn stop_clean_by_folder(self: &Rc<Self>) -> Vec<(Arc<DataDir>, LogError)> {
        self.begin_stop();
        let logs: Vec<Rc<PartitionLog>> = self.partitions.borrow().values().cloned().collect();
        let failed: Rc<RefCell<UncleanFolders>> = Rc::default();
        let to = failed.clone();
        each(logs.into(), self.config.device.queue_depth, move |log: Rc<PartitionLog>| {
            let to = to.clone();
            async move {
                if let Err(error) = log.close_clean().await {
                    let dir = log.home.dir.clone();
                    to.borrow_mut().entry(dir.path().to_path_buf()).or_insert((dir, error));
                }
            }
        })
        .await;
        let unclean: BTreeSet<PathBuf> = failed.borrow().keys().cloned().collect();
        for (dir, error) in self.stop_journals(|folder| !unclean.contains(folder)).await {
            failed.borrow_mut().entry(dir.path().to_path_buf()).or_insert((dir, error));
        }
        self.committer.stop();
        self.destager.stop();
        self.tasks.wait().await;
        for file in self.files.remove_all() {
            let _ = file.close().await;
        }
        drop(self.shared_files.remove_all());
        let dirs: Vec<Rc<ShardDir>> = std::mem::take(&mut *self.dirs.borrow_mut()).into_values().collect();
        for dir in dirs {
            let changed = self.partitions.borrow().values().any(|log| log.is_touched() && Rc::ptr_eq(&log.home, &dir));
            if changed && let Err(error) = dir.flush().await {
                failed.borrow_mut().entry(dir.dir.path().to_path_buf()).or_insert((dir.dir.clone(), error));
            }
            dir.stop().await;
        }
        self.partitions.borrow_mut().clear();
        failed.take().into_values().collect()
    }
}

impl LogShard {
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    fn begin_stop(&self) {
        self.stopping.set(true);
        self.room.notify();
        self.stop.notify();
    }

    /// Takes apart what holds itself in memory, once a simulated crash has ended all tasks.
    #[cfg(feature = "sim")]
    pub fn abandon(&self) {
        self.committer.abandon();
        self.destager.abandon();
        let journals = std::mem::take(&mut *self.journals.borrow_mut());
        journals.values().for_each(|journal| journal.abandon());
        drop(std::mem::take(&mut *self.dirs.borrow_mut()));
        drop(std::mem::take(&mut *self.partitions.borrow_mut()));
    }

    /// What a kill leaves: nothing that is not on its way to the device goes there any more. For tests.
    #[cfg(all(test, not(feature = "sim")))]
    pub(crate) async fn crash(self: &Rc<Self>) {
        self.begin_stop();
        let dirs: Vec<Rc<ShardDir>> = std::mem::take(&mut *self.dirs.borrow_mut()).into_values().collect();
        for dir in dirs {
            dir.stop().await;
        }
        let logs: Vec<Rc<PartitionLog>> = std::mem::take(&mut *self.partitions.borrow_mut()).into_values().collect();
        for log in logs {
            log.closed.set(true);
            log.cleaning_over().await;
            log.paused.set(log.paused.get() + 1);
            drop(log.pause().await);
        }
        drop(self.stop_journals(|_| false).await);
        self.committer.stop();
        self.destager.stop();
        self.tasks.wait().await;
        for file in self.files.remove_all() {
            let _ = file.close().await;
        }
    }
}

impl LogShard {
    /// Tells the operator that producers are held up, at most once a minute.
    pub(crate) fn tell_full(&self, folder: &Path, error: &LogError) {
        let now_ms = clock::now_ms();
        if self.full_told_ms.get().is_some_and(|told_ms| now_ms - told_ms < FULL_TELL_MS) {
            return;
        }
        self.full_told_ms.set(Some(now_ms));
        // Simulated disks are full in every other run.
        if cfg!(feature = "sim") {
            return;
        }
        eprintln!("ringlog: producers are asked to try again, {} is full: {error}", folder.display());
    }

    /// Removes a folder once `delay_ms` are over. A list instead of a task each: topics of thousands of partitions go at
    /// once.
    pub(crate) fn remove_later(self: &Rc<Self>, folder: PathBuf, delay_ms: i64) {
        if delay_ms <= 0 {
            spawn("unlink-partition", async move {
                let _ = fs::remove_dir_all(&folder).await;
            });
            return;
        }
        let number = self.next_id.get();
        self.next_id.set(number + 1);
        self.removals.borrow_mut().insert((clock::now_ms().saturating_add(delay_ms), number), folder);
    }

    /// Removes what is due; gives how much that was.
    async fn remove_due(&self, now_ms: i64) -> usize {
        let mut removed = 0;
        loop {
            let folder = {
                let mut removals = self.removals.borrow_mut();
                match removals.first_entry() {
                    Some(first) if first.key().0 <= now_ms => first.remove(),
                    _ => return removed,
                }
            };
            let _ = fs::remove_dir_all(&folder).await;
            removed += 1;
            if self.stopping.get() {
                return removed;
            }
        }
    }
}

/// Lets partitions without traffic give their memory back, and removes what is left of deleted ones. Ends with the shard.
async fn idle_loop(shard: Weak<LogShard>, stop: Rc<Notify>) {
    for look in 0u64.. {
        let _ = before(clock::now_ms() + IDLE_CHECK_MS, stop.changed()).await;
        let Some(shard) = shard.upgrade() else { return };
        if shard.stopping.get() {
            return;
        }
        shard.read_ahead.drop_old(clock::now_ms());
        let now_ms = clock::wall_ms();
        // Walking thousands of partitions costs more than what they hold for a moment longer.
        let rounds = 1 + (shard.partitions.borrow().len() / IDLE_CHECKS_A_LOOK) as u64;
        let logs: Vec<Rc<PartitionLog>> = if look % rounds.min(IDLE_LOOKS_MOST) == 0 {
            shard.partitions.borrow().values().filter(|log| log.is_idle(now_ms)).cloned().collect()
        } else {
            Vec::new()
        };
        let resting = logs.len();
        for log in logs {
            log.rest();
        }
        shard
            .partitions
            .borrow()
            .values()
            .filter(|log| log.idles_in_journal(now_ms))
            .for_each(|log| log.request_destage());
        let removed = shard.remove_due(clock::now_ms()).await;
        if resting >= TRIM_AFTER_RESTING || removed >= TRIM_AFTER_RESTING {
            // It takes milliseconds: not on the shard.
            let _ = runtime::spawn_blocking(runtime::buffers::give_back).await;
        }
    }
}

/// Closes direct files in the background.
pub(crate) fn close_files(files: Vec<DirectFile>) {
    for file in files {
        spawn("close-file", async move {
            // Everything was synced by the committer or is given up; nothing depends on the close.
            let _ = file.close().await;
        });
    }
}
