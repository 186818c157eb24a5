//! A shard's side of a data folder: the loss of the clean mark before its first write, and its part of
//! the checkpoint. Renewals gather for a moment; a caller that needs its entry on disk first waits for `flush`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use model::PartitionKey;
use runtime::sync::before;
use runtime::{IoError, Notify, TaskGroup, clock, fs, spawn};

use crate::data_dir::DataDir;
use crate::error::LogError;
use crate::format::checkpoint::{self, CheckpointEntry};
use crate::limits::CHECKPOINT_GATHER_MS;

/// Progress of something that is done once by whoever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Once {
    Idle,
    Running,
    Done,
}

#[derive(Debug)]
pub(crate) struct ShardDir {
    pub dir: Arc<DataDir>,
    writer: u16,
    invalidated: Cell<Once>,
    entries: RefCell<BTreeMap<PartitionKey, CheckpointEntry>>,
    /// Versions of `entries`: the newest, and the newest on disk.
    version: Cell<u64>,
    on_disk: Cell<u64>,
    writing: Cell<bool>,
    gathering: Cell<bool>,
    stopped: Cell<bool>,
    stop: Notify,
    gatherers: TaskGroup,
    changed: Notify,
}

impl ShardDir {
    pub fn new(dir: Arc<DataDir>, writer: u16) -> ShardDir {
        ShardDir {
            dir,
            writer,
            invalidated: Cell::new(Once::Idle),
            entries: RefCell::default(),
            version: Cell::new(0),
            on_disk: Cell::new(0),
            writing: Cell::new(false),
            gathering: Cell::new(false),
            stopped: Cell::new(false),
            stop: Notify::new(),
            gatherers: TaskGroup::new(),
            changed: Notify::new(),
        }
    }

    /// An outcome of what all partitions of the folder need: without it the folder is lost.
    pub fn noted<T>(&self, result: Result<T, IoError>) -> Result<T, LogError> {
        if let Err(error) = &result {
            self.dir.notice_of_folder(error);
        }
        Ok(result?)
    }

    /// Before the first change of this shard in the folder.
    pub async fn prepare_write(self: &Rc<Self>) -> Result<(), LogError> {
        loop {
            let seen = self.changed.version();
            match self.invalidated.get() {
                Once::Done => return Ok(()),
                Once::Running => self.changed.changed_since(seen).await,
                Once::Idle => break,
            }
        }
        self.invalidated.set(Once::Running);
        let me = self.clone();
        // In a task of its own, so that a caller that goes away does not leave it half done.
        let task = spawn("data-folder", async move {
            let result = me.noted(me.dir.invalidate().await);
            me.invalidated.set(if result.is_ok() { Once::Done } else { Once::Idle });
            me.changed.notify();
            result
        });
        task.join().await.unwrap_or(Err(LogError::Closed))
    }

    /// Takes a newer entry; it reaches the disk soon.
    pub fn put(self: &Rc<Self>, entry: CheckpointEntry) {
        self.entries.borrow_mut().insert(entry.key, entry);
        self.version.set(self.version.get() + 1);
        if self.stopped.get() || self.gathering.replace(true) {
            return;
        }
        let me = self.clone();
        self.gatherers.spawn("checkpoint", async move {
            let _ = before(clock::now_ms() + CHECKPOINT_GATHER_MS, me.stop.changed()).await;
            me.gathering.set(false);
            if me.stopped.get() {
                return;
            }
            // A failure is not lost: the next start scans from the older recovery point, and whoever needs the entry
            // on disk flushes and gets the error.
            let _ = me.flush().await;
        });
    }

    /// Renewals that still gather are not written any more.
    pub async fn stop(&self) {
        self.stopped.set(true);
        self.stop.notify();
        self.gatherers.wait().await;
    }

    pub fn remove(self: &Rc<Self>, key: PartitionKey) {
        self.entries.borrow_mut().remove(&key);
    }

    /// Resolves when every entry put before this call is on disk.
    pub async fn flush(self: &Rc<Self>) -> Result<(), LogError> {
        self.prepare_write().await?;
        let wanted = self.version.get();
        loop {
            let seen = self.changed.version();
            if self.on_disk.get() >= wanted {
                return Ok(());
            }
            if self.writing.get() {
                self.changed.changed_since(seen).await;
                continue;
            }
            self.writing.set(true);
            let me = self.clone();
            let task = spawn("checkpoint", async move {
                let result = me.write().await;
                me.writing.set(false);
                me.changed.notify();
                result
            });
            task.join().await.unwrap_or(Err(LogError::Closed))?;
        }
    }

    async fn write(self: &Rc<Self>) -> Result<(), LogError> {
        let version = self.version.get();
        let bytes = checkpoint::encode(self.dir.incarnation(), self.entries.borrow().values());
        self.noted(fs::write_durable(&self.dir.part_path(self.writer), bytes).await)?;
        self.on_disk.set(version);
        Ok(())
    }
}
