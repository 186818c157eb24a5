//! The journal: the committer's second way, for small appends of many partitions. One a shard and data folder.
//!
//! A round takes what is pending of every partition into one sequential direct write and one fdatasync: that is stage
//! two for all of them. Their segments get the bytes later, in larger writes ([`memory`]); until then they are pinned in the
//! partitions' tail chunks, from which they are served. The segments are synced later still, before the ring's file that holds the
//! bytes is used again ([`destage`]). What is
//! large, of a new file or of a topic in memory goes straight to its segment, as everything does where the journal is off
//! ([`crate::committer`]).
//!
//! * [`rounds`]: the loop that makes rounds; [`room`]: who comes when there is none; [`ring`]: the files; [`format`]: what is
//!   in them;
//! * [`destage`]: how files come free; [`memory`]: how much of them is in memory; [`replay`] and [`plan`]: what a start does with what it finds;
//! * [`look`]: a ring as tools see it; [`figures`]: what is counted of it; [`testing`]: rings of any making;
//! * `partition/journaled.rs`: the partition's side.
//!
//! Ownership: everything here is the shard's. A partition that is taken up by a round or asked to destage says when it is
//! done; the journal never reads its state.
//!
//! What a crash leaves: rounds up to the first that was not synced, in files that the state file names. The state file
//! comes durably before the first round and goes durably when nothing in the ring is needed any more: at a clean stop,
//! or when the ring's device failed and everyone went to the segments.

mod destage;
mod figures;
pub mod format;
pub mod look;
mod memory;
pub mod plan;
pub mod replay;
mod ring;
mod room;
mod rounds;
pub mod testing;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use model::Offset;
use runtime::histogram::{Histogram, Latencies};
use runtime::sync::{OneshotSender, oneshot};
use runtime::{DirectFile, Notify, OpenMode, TaskGroup, clock, fs};

use crate::committer::Committer;
use crate::data_dir::DataDir;
use crate::device::{Device, Operation};
use crate::error::LogError;
use crate::limits::{BLOCK, IO_MAX, JOURNAL_AFTER, RING_FILE_MAX, ROUND_BYTES};
use crate::partition::PartitionLog;
use crate::shard_dir::ShardDir;
pub use figures::RingStats;
use format::Owner;
use ring::Ring;

/// Folder of the rings in a data folder.
pub const FOLDER: &str = "ringlog.journal";

/// How a shard's journals are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// Length of each of the ring's files.
    pub file_bytes: u64,
    /// Files of a ring, at most. They are made as the load asks for them.
    pub files_max: usize,
    /// Most pending bytes of a partition that go to the journal; more goes straight to its segment.
    pub small_bytes: u64,
    /// Bytes of all partitions that are in rounds and not in their segments' files, at most: what is in memory for the journal's
    /// sake. From half of that on they are written, without a sync, which they need only when a file is to come free.
    pub memory_bytes: u64,
    /// Commits of partitions before the first file is made: a node that does little keeps no ring.
    pub after_commits: u32,
}

impl JournalConfig {
    /// A file with less left than this is as good as full. The last of it, where no other file is free, is for what makes
    /// files come free: half of this, which has to leave most of a round to the others.
    fn tight_bytes(&self) -> u64 {
        (self.file_bytes / 8).clamp(4 * BLOCK, ROUND_BYTES / 4)
    }

    /// Whether a file has room for rounds, and a start can read it.
    pub fn fits(&self) -> bool {
        (2 * self.tight_bytes()..=RING_FILE_MAX).contains(&self.file_bytes)
    }

    /// Most pending bytes of a partition that go to the journal: what has room in a file of its own.
    fn most_bytes(&self) -> u64 {
        let room = self.file_bytes.min(ROUND_BYTES) - self.tight_bytes() / 2 - 3 * BLOCK;
        self.small_bytes.min(room)
    }
}

impl Default for JournalConfig {
    fn default() -> JournalConfig {
        JournalConfig {
            file_bytes: 8 << 20,
            files_max: 8,
            small_bytes: 128 << 10,
            memory_bytes: 16 << 20,
            after_commits: JOURNAL_AFTER,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No ring: not asked for yet, or there was no space for one.
    Off,
    Preparing,
    Ready,
    /// A round failed. What the ring holds goes to the segments; nothing new comes in.
    Broken,
    Stopped,
}

/// Counters of a journal, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalStats {
    pub rounds: u64,
    /// Bytes of partitions that went into rounds, and bytes that were written for them.
    pub payload_bytes: u64,
    pub written_bytes: u64,
    /// Files of the ring, and how many of them hold what is still needed.
    pub files: usize,
    pub files_in_use: usize,
    /// Times that a partition was asked to write its segment so that a file comes free.
    pub destages: u64,
    pub ring: RingStats,
    /// How long the syncs of rounds took, with the write where that is one operation.
    pub syncs: Latencies,
}

impl JournalStats {
    #[must_use]
    pub fn plus(self, other: JournalStats) -> JournalStats {
        JournalStats {
            rounds: self.rounds + other.rounds,
            payload_bytes: self.payload_bytes + other.payload_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            files: self.files + other.files,
            files_in_use: self.files_in_use + other.files_in_use,
            destages: self.destages + other.destages,
            ring: self.ring.plus(other.ring),
            syncs: self.syncs.plus(other.syncs),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Journal {
    config: JournalConfig,
    home: Rc<ShardDir>,
    owner: Owner,
    device: Rc<Device>,
    direct: Rc<Committer>,
    state: Cell<State>,
    ring: RefCell<Ring>,
    queue: RefCell<VecDeque<Rc<PartitionLog>>>,
    /// Those for whom there was no room, and how much the first of them needs.
    waiting: RefCell<VecDeque<Rc<PartitionLog>>>,
    waits_for: Cell<usize>,
    /// Partitions whose earlier entries are not to be applied by a start, and who waits for that.
    voids: RefCell<VecDeque<Void>>,
    /// Poisoned partitions whose acknowledged bytes have to move to a newer lap.
    carries: RefCell<VecDeque<Rc<PartitionLog>>>,
    ready: Notify,
    /// Something came free, or has to.
    progress: Notify,
    /// Bytes that are in rounds and not in their segments' files, and whether those who wait do so for fewer of them.
    pinned: Cell<u64>,
    waits_for_memory: Cell<bool>,
    whereabouts: memory::Whereabouts,
    growing: Cell<bool>,
    /// The last try to make a file failed: the ring gets on with those it has, until one comes free.
    full_grown: Cell<bool>,
    commits: Cell<u32>,
    sequence: Cell<u64>,
    previous_crc: Cell<u32>,
    synced_through: Cell<u64>,
    /// The oldest lap that a start would apply: what the newest durable round says. A file that came free since still
    /// counts, until a round says otherwise.
    counted_from: Cell<u64>,
    /// The same of the newest round of all.
    written_from: Cell<u64>,
    stats: Cell<JournalStats>,
    syncs: Histogram,
    fullness: figures::Fullness,
    tasks: TaskGroup,
}

#[derive(Debug)]
struct Void {
    key: model::PartitionKey,
    below: Offset,
    done: OneshotSender<bool>,
}

impl Journal {
    pub fn new(
        config: JournalConfig,
        home: Rc<ShardDir>,
        writer: u16,
        device: Rc<Device>,
        direct: Rc<Committer>,
    ) -> Rc<Journal> {
        assert!(config.file_bytes.is_multiple_of(BLOCK) && config.files_max > 0, "a ring of whole blocks");
        assert!(config.fits(), "a file has room for rounds, and a start can read it: {}", config.file_bytes);
        let owner = Owner { incarnation: home.dir.incarnation(), writer };
        let journal = Rc::new(Journal {
            ring: RefCell::new(Ring::new(config)),
            config,
            home,
            owner,
            device,
            direct,
            state: Cell::new(State::Off),
            queue: RefCell::default(),
            waiting: RefCell::default(),
            waits_for: Cell::new(0),
            voids: RefCell::default(),
            carries: RefCell::default(),
            ready: Notify::new(),
            progress: Notify::new(),
            pinned: Cell::new(0),
            waits_for_memory: Cell::new(false),
            whereabouts: memory::Whereabouts::default(),
            growing: Cell::new(false),
            full_grown: Cell::new(false),
            commits: Cell::new(0),
            sequence: Cell::new(1),
            previous_crc: Cell::new(0),
            synced_through: Cell::new(0),
            counted_from: Cell::new(0),
            written_from: Cell::new(0),
            stats: Cell::default(),
            syncs: Histogram::default(),
            fullness: figures::Fullness::default(),
            tasks: TaskGroup::new(),
        });
        journal.tasks.spawn("journal", journal.clone().run());
        journal.tasks.spawn("destage", journal.clone().destage_loop());
        journal
    }

    /// Takes a partition into the next round, or hands it to the direct way.
    pub fn register(self: &Rc<Self>, log: Rc<PartitionLog>) {
        match self.state.get() {
            State::Ready => {
                self.queue.borrow_mut().push_back(log);
                self.ready.notify();
            }
            State::Off => {
                self.commits.set(self.commits.get() + 1);
                if self.commits.get() >= self.config.after_commits && !self.growing.get() {
                    self.state.set(State::Preparing);
                    self.grow();
                }
                self.direct.register(log);
            }
            State::Preparing | State::Broken | State::Stopped => self.direct.register(log),
        }
    }

    pub fn dir(&self) -> &Arc<DataDir> {
        &self.home.dir
    }

    pub fn stats(&self) -> JournalStats {
        let ring = self.ring.borrow();
        let (full, full_ns) = self.fullness.so_far(clock::now_ns());
        let stats = RingStats {
            capacity_bytes: ring.file_count() as u64 * self.config.file_bytes,
            fill_bytes: ring.fill_bytes(),
            recycles: ring.recycles(),
            full,
            full_ns,
        };
        let (files, files_in_use, syncs) = (ring.file_count(), ring.used_laps(), self.syncs.snapshot());
        JournalStats { files, files_in_use, ring: stats, syncs, ..self.stats.get() }
    }

    /// Resolves when no start will apply anything that was journalled so far of this partition's segments below one. It is
    /// needed before those change in any other way than by appends; everything journalled is in them, durably, then.
    pub async fn void(&self, log: &PartitionLog, newest_lap: u64, below: Offset) -> Result<(), LogError> {
        if !matches!(self.state.get(), State::Ready | State::Broken) || newest_lap < self.counted_from.get() {
            return Ok(());
        }
        let (done, wait) = oneshot();
        self.voids.borrow_mut().push_back(Void { key: log.key(), below, done });
        self.ready.notify();
        self.progress.notify();
        match wait.await {
            Some(true) => Ok(()),
            _ => Err(LogError::Io(
                "the journal failed; what it holds is needed until the broker is started again".into(),
            )),
        }
    }

    /// One more file for the ring, in the background: made, filled with zeros and synced, so that rounds overwrite in place.
    fn grow(self: &Rc<Self>) {
        if self.growing.replace(true) {
            return;
        }
        let me = self.clone();
        self.tasks.spawn("journal-file", async move {
            let slot = me.ring.borrow().file_count();
            let made = me.make_file(slot).await;
            me.growing.set(false);
            match made {
                Ok(file) if matches!(me.state.get(), State::Preparing | State::Ready) => {
                    me.ring.borrow_mut().add(file);
                    me.state.set(State::Ready);
                }
                Ok(_) => {}
                // Without the file things are slower, not wrong. Not tried again before as many commits as the first time.
                Err(_) if me.state.get() == State::Preparing => {
                    me.commits.set(0);
                    me.state.set(State::Off);
                }
                Err(_) => me.full_grown.set(true),
            }
            me.progress.notify();
            me.ready.notify();
        });
    }

    /// One of the journal's own writes or syncs: counted and timed as the drive's others, in nobody's queue.
    async fn on_device<T>(&self, operation: Operation, work: impl Future<Output = T>) -> T {
        self.device.run_apart(self.home.dir.path(), operation, work).await
    }

    async fn make_file(&self, slot: usize) -> Result<DirectFile, LogError> {
        self.home.prepare_write().await?;
        let folder = self.home.dir.path().join(FOLDER);
        let dir = &self.home.dir;
        let Some(grant) = dir.reserve().grant(dir.path(), self.config.file_bytes).await else {
            return Err(LogError::Full("no space for the journal".into()));
        };
        fs::create_dir_all(&folder).await?;
        fs::sync_dir(dir.path()).await?;
        let path = file_path(&folder, self.owner.writer, slot);
        let before = fs::stat(&path).await?;
        let file = DirectFile::open(&path, OpenMode::Create).await?;
        if before.is_none_or(|stat| stat.len != self.config.file_bytes) {
            self.fill(&file).await?;
        }
        drop(grant);
        fs::sync_dir(&folder).await?;
        let state = format::encode_state(self.owner, slot as u32 + 1);
        fs::write_durable(&state_path(&folder, self.owner.writer), state).await?;
        Ok(file)
    }

    /// Zeros, synced. A file of an earlier ring has its blocks already.
    async fn fill(&self, file: &DirectFile) -> Result<(), LogError> {
        file.truncate(self.config.file_bytes).await?;
        file.preallocate(self.config.file_bytes).await?;
        let zeros = vec![0; IO_MAX.min(self.config.file_bytes) as usize];
        let mut at = 0;
        while at < self.config.file_bytes {
            let len = zeros.len().min((self.config.file_bytes - at) as usize);
            self.on_device(Operation::Write(len), file.write_piece(&[&zeros[..len]], at)).await?;
            at += len as u64;
        }
        Ok(file.fdatasync().await?)
    }

    /// Ends the loops. `retire`: everything is in the segments, durably, and the next start has nothing to look at.
    pub async fn stop(&self, retire: bool) -> Result<(), LogError> {
        self.state.set(State::Stopped);
        self.ready.notify();
        self.progress.notify();
        self.tasks.wait().await;
        self.give_up_voids(retire);
        let retired = if retire { self.retire().await } else { Ok(()) };
        // Partitions know their journal, and the ring its partitions.
        self.ring.borrow_mut().clear();
        self.carries.borrow_mut().clear();
        retired
    }

    /// No round counts any more.
    async fn retire(&self) -> Result<(), LogError> {
        let files = self.ring.borrow().file_count();
        if files == 0 {
            return Ok(());
        }
        let folder = self.home.dir.path().join(FOLDER);
        fs::remove_file(&state_path(&folder, self.owner.writer)).await?;
        Ok(fs::sync_dir(&folder).await?)
    }

    fn give_up_voids(&self, kept: bool) {
        for void in std::mem::take(&mut *self.voids.borrow_mut()) {
            void.done.send(kept);
        }
    }

    /// Takes apart what holds itself in memory, once a simulated crash has ended all tasks.
    #[cfg(feature = "sim")]
    pub fn abandon(&self) {
        drop(std::mem::take(&mut *self.queue.borrow_mut()));
        drop(std::mem::take(&mut *self.waiting.borrow_mut()));
        drop(std::mem::take(&mut *self.carries.borrow_mut()));
        drop(std::mem::take(&mut *self.voids.borrow_mut()));
        self.ring.borrow_mut().clear();
    }
}

pub(crate) fn file_path(folder: &Path, writer: u16, slot: usize) -> PathBuf {
    folder.join(format!("{writer:05}.{slot:05}.ring"))
}

pub(crate) fn state_path(folder: &Path, writer: u16) -> PathBuf {
    folder.join(format!("{writer:05}.state"))
}
