//! The committer: one object a shard that moves appended bytes to the disk and the written and durable ends with them.
//! On the produce way, between stage one and stage two; no timer, no copy but into the write buffer.
//!
//! This is way 1, *per file*: a round is every partition that has something pending, their writes issued together, then
//! one fdatasync for each file touched, issued together. The syncs of a round run beside the writes of the next; two
//! write stages never overlap, because both would write the block that holds the end. A round begins as soon as the one
//! before has written. Within a stage at most as many partitions are worked on as the drive is given operations
//! ([`crate::device`]).
//!
//! The other way is [`crate::journal`]. Where a shard has one, this committer gets what is not for the journal, and a
//! second one of the same kind, with fewer lanes, moves to the segments what the journal holds ([`Way::Destage`]). A
//! partition has steps of one of the two under way at a time.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use runtime::{Notify, TaskGroup, TaskHandle, fs, spawn};

use crate::error::LogError;
use crate::figures::{WayStats, WayTally};
use crate::limits::{DESTAGE_ROUND, ROUND_PARTITIONS};
use crate::mutants::{Mutant, active};
use crate::partition::PartitionLog;
use crate::partition::commit::Written;

/// Which bytes a committer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Everything appended.
    Direct = 0,
    /// What the journal holds durably.
    Destage = 1,
}

impl Way {
    pub fn other(self) -> Way {
        if self == Way::Direct { Way::Destage } else { Way::Direct }
    }
}

#[derive(Debug)]
pub(crate) struct Committer {
    way: Way,
    /// Partitions worked on at once, in each stage.
    lanes: usize,
    dirty: RefCell<VecDeque<Rc<PartitionLog>>>,
    ready: Notify,
    stopping: Cell<bool>,
    rounds: Cell<u64>,
    tally: WayTally,
}

impl Committer {
    pub fn new(way: Way, lanes: usize) -> Rc<Committer> {
        Rc::new(Committer {
            way,
            lanes,
            dirty: RefCell::default(),
            ready: Notify::new(),
            stopping: Cell::new(false),
            rounds: Cell::new(0),
            tally: WayTally::default(),
        })
    }

    /// Takes a partition into the next round. The partition calls it once until that round takes it up.
    pub fn register(&self, log: Rc<PartitionLog>) {
        self.dirty.borrow_mut().push_back(log);
        self.ready.notify();
    }

    #[cfg(feature = "sim")]
    pub fn abandon(&self) {
        drop(std::mem::take(&mut *self.dirty.borrow_mut()));
    }

    pub fn rounds(&self) -> u64 {
        self.rounds.get()
    }

    /// What its steps count.
    pub fn tally(&self) -> &WayTally {
        &self.tally
    }

    pub fn stats(&self) -> WayStats {
        self.tally.stats(self.rounds.get())
    }

    /// After this the loop ends once nothing is pending.
    pub fn stop(&self) {
        self.stopping.set(true);
        self.ready.notify();
    }

    fn take_round(&self) -> VecDeque<Rc<PartitionLog>> {
        let mut dirty = self.dirty.borrow_mut();
        // Destaging frees the ring's files one by one: small rounds, whose syncs run beside the next writes.
        let most = if self.way == Way::Destage { DESTAGE_ROUND } else { ROUND_PARTITIONS };
        let count = dirty.len().min(most);
        dirty.drain(..count).collect()
    }

    async fn next_round(&self) -> Option<VecDeque<Rc<PartitionLog>>> {
        loop {
            let seen = self.ready.version();
            let round = self.take_round();
            if !round.is_empty() {
                self.rounds.set(self.rounds.get() + 1);
                return Some(round);
            }
            if self.stopping.get() {
                return None;
            }
            self.ready.changed_since(seen).await;
        }
    }

    /// The loop; a task of the shard.
    pub async fn run(self: Rc<Self>) {
        let mut syncing: Option<TaskHandle<()>> = None;
        while let Some(round) = self.next_round().await {
            let written = write_stage(round, self.lanes, self.way).await;
            if let Some(before) = syncing.take() {
                before.join().await;
            }
            if !written.is_empty() {
                syncing = Some(spawn("sync", sync_stage(written, self.lanes)));
            }
        }
        if let Some(last) = syncing {
            last.join().await;
        }
    }
}

/// Writes of a whole round. A partition that fails has poisoned itself; what comes back is to be synced.
async fn write_stage(round: VecDeque<Rc<PartitionLog>>, lanes: usize, way: Way) -> VecDeque<Written> {
    let written = Rc::new(RefCell::new(VecDeque::new()));
    let out = written.clone();
    each(round, lanes, move |log| {
        let out = out.clone();
        async move {
            if let Some(written) = log.write_dirty(way).await {
                out.borrow_mut().push_back(written);
            }
        }
    })
    .await;
    written.take()
}

async fn sync_stage(written: VecDeque<Written>, lanes: usize) {
    // Folders made in this round: their parent is synced once for all of them.
    let parents: BTreeSet<PathBuf> = written.iter().filter_map(|w| w.new_folder_in.clone()).collect();
    let mut failed = BTreeMap::new();
    for parent in parents {
        if active(Mutant::FolderNameUnsynced) {
            continue;
        }
        if let Err(error) = fs::sync_dir(&parent).await {
            // Without the folder's names nothing new in it can be relied on.
            if let Some(one) = written.iter().find(|w| w.new_folder_in.as_ref() == Some(&parent)) {
                one.log.home.dir.notice_of_folder(&error);
            }
            failed.insert(parent, LogError::from(error));
        }
    }
    let failed = Rc::new(failed);
    each(written, lanes, move |written| {
        let failed = failed.clone();
        async move {
            let error = written.new_folder_in.as_ref().and_then(|parent| failed.get(parent)).cloned();
            let log = written.log.clone();
            log.sync_written(written, error).await;
        }
    })
    .await;
}

/// Runs `work` on every item, with at most `lanes` at a time.
pub(crate) async fn each<T, F, W>(items: VecDeque<T>, lanes: usize, work: W)
where
    T: 'static,
    F: Future<Output = ()> + 'static,
    W: Fn(T) -> F + Clone + 'static,
{
    let lanes = items.len().min(lanes);
    let items = Rc::new(RefCell::new(items));
    let group = TaskGroup::new();
    for _ in 1..lanes {
        group.spawn("commit-lane", lane(items.clone(), work.clone()));
    }
    lane(items, work).await;
    group.wait().await;
}

async fn lane<T, F: Future<Output = ()>>(items: Rc<RefCell<VecDeque<T>>>, work: impl Fn(T) -> F) {
    loop {
        let next = items.borrow_mut().pop_front();
        let Some(item) = next else { return };
        work(item).await;
    }
}
