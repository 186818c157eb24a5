//! The data folders of a node together: which are there, which are not, and in which of them each partition lives.
//!
//! One [`DataDir`] is one folder; this is the set. A partition's home is known durably before anyone opens it: where a node
//! has several folders [`record`] keeps it beside the metadata log, and a partition's folder that is found wins over it. So
//! a folder that is missing at a start (not mounted, failed, taken out of log.dirs) leaves its partitions offline, and never
//! lets them begin anew, empty.
//!
//! Ownership: made once per start by shard 0 ([`open`]), shared by all shards. Only shard 0 places partitions ([`place`]),
//! one call after the other, before it publishes the image that has them; the others read. The lock is held for a look,
//! never over an await, and not on the produce or fetch ways: a partition asks for its home when it is opened.
//!
//! A node with one folder that never had another keeps no record and asks nobody.

mod open;
mod place;
pub mod record;
mod twice;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use model::{PartitionKey, TopicId};

use crate::data_dir::DataDir;
use crate::error::LogError;
use crate::folders::record::{NOWHERE, UNDECIDED};
use crate::format::identity::DirectoryId;

pub use open::OpenFolders;

/// One item of log.dirs, or the folder of the metadata log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderSpec {
    pub path: PathBuf,
    /// `false`: it is there for the metadata log alone.
    pub takes_partitions: bool,
}

/// A folder of the set, by number.
#[derive(Clone, Debug)]
pub struct Folder {
    pub path: PathBuf,
    /// `None`: never seen by this node, because it could not be used at this start.
    id: Option<DirectoryId>,
    takes_partitions: bool,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Online(Arc<DataDir>),
    /// For the whole life of the process; the reason is a sentence's part.
    Offline(Arc<str>),
}

impl Folder {
    /// The folder, unless it is offline. It may have failed since.
    pub fn dir(&self) -> Option<&Arc<DataDir>> {
        match &self.state {
            State::Online(dir) => Some(dir),
            State::Offline(_) => None,
        }
    }

    /// Why its partitions cannot be used, if so.
    pub fn failure(&self) -> Option<Arc<str>> {
        match &self.state {
            State::Online(dir) => dir.failure(),
            State::Offline(why) => Some(why.clone()),
        }
    }

    /// Whether clients are to see it: the folder of the metadata log alone is none of log.dirs.
    pub fn takes_partitions(&self) -> bool {
        self.takes_partitions
    }
}

/// What changes while the node runs.
#[derive(Debug, Default)]
struct Homes {
    /// Number of the folder of each partition.
    of: BTreeMap<TopicId, Vec<u16>>,
    /// Partitions in each folder.
    loads: Vec<usize>,
    cordoned: Vec<PathBuf>,
}

impl Homes {
    fn is_undecided(&self, key: PartitionKey) -> bool {
        let homes = self.of.get(&key.topic_id);
        let at = usize::try_from(key.partition.0).ok();
        homes.zip(at).and_then(|(homes, at)| homes.get(at)) == Some(&UNDECIDED)
    }

    fn get(&self, key: PartitionKey) -> Option<usize> {
        let homes = self.of.get(&key.topic_id)?;
        let home = *homes.get(usize::try_from(key.partition.0).ok()?)?;
        (home < UNDECIDED).then_some(usize::from(home))
    }

    /// Puts partitions of `topic` from `first` on; those that were elsewhere move.
    fn put(&mut self, topic: TopicId, first: usize, homes: &[u16]) {
        let all = self.of.entry(topic).or_default();
        if all.len() < first + homes.len() {
            all.resize(first + homes.len(), NOWHERE);
        }
        for (home, new) in all[first..].iter_mut().zip(homes) {
            if let Some(load) = self.loads.get_mut(usize::from(*home)) {
                *load -= 1;
            }
            *home = *new;
            if let Some(load) = self.loads.get_mut(usize::from(*home)) {
                *load += 1;
            }
        }
    }

    fn forget(&mut self, topic: TopicId) {
        for home in self.of.remove(&topic).into_iter().flatten() {
            if let Some(load) = self.loads.get_mut(usize::from(home)) {
                *load -= 1;
            }
        }
    }
}

/// The end of the record's file, and how long it was when it was last written whole.
#[derive(Clone, Copy, Debug)]
struct RecordEnd {
    len: u64,
    whole: u64,
}

#[derive(Debug)]
pub struct DataDirs {
    folders: Vec<Folder>,
    /// Number of the folder of the metadata log.
    metadata: usize,
    homes: RwLock<Homes>,
    /// `None`: one folder, no record.
    record: Option<Mutex<RecordEnd>>,
}

impl DataDirs {
    /// A node with one folder that never had another.
    pub fn of_one(dir: Arc<DataDir>) -> Arc<DataDirs> {
        let folder = Folder {
            path: dir.path().to_path_buf(),
            id: dir.directory_id(),
            takes_partitions: true,
            state: State::Online(dir),
        };
        let homes = Homes { loads: vec![0], ..Homes::default() };
        Arc::new(DataDirs { folders: vec![folder], metadata: 0, homes: RwLock::new(homes), record: None })
    }

    /// All folders: those of log.dirs, and those that are missing although partitions live there.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// Those that were there at the start. One may have failed since.
    pub fn online(&self) -> impl Iterator<Item = &Arc<DataDir>> {
        self.folders.iter().filter_map(Folder::dir)
    }

    /// The folder of the metadata log.
    pub fn metadata(&self) -> &Arc<DataDir> {
        match &self.folders[self.metadata].state {
            State::Online(dir) => dir,
            State::Offline(_) => unreachable!("a node does not start without its metadata"),
        }
    }

    fn homes(&self) -> RwLockReadGuard<'_, Homes> {
        self.homes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn homes_mut(&self) -> RwLockWriteGuard<'_, Homes> {
        self.homes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the folder that a partition lives in; `None` while it has none.
    pub fn number_of(&self, key: PartitionKey) -> Option<usize> {
        if self.record.is_none() {
            return Some(self.metadata);
        }
        self.homes().get(key)
    }

    /// The folder that a partition lives in. The error is the partition's: its folder is offline or failed.
    pub fn home(&self, key: PartitionKey) -> Result<&Arc<DataDir>, LogError> {
        let Some(number) = self.number_of(key) else {
            return Err(LogError::Storage(
                "no data folder takes new partitions, or none of its copies can be chosen".into(),
            ));
        };
        let folder = &self.folders[number];
        match (&folder.state, folder.failure()) {
            (State::Online(dir), None) => Ok(dir),
            (_, why) => {
                let why = why.unwrap_or_else(|| "unknown".into());
                Err(LogError::Storage(format!("data folder {}: {why}", folder.path.display()).into()))
            }
        }
    }

    /// Whether a partition lives in `dir`.
    pub fn is_home(&self, dir: &DataDir, key: PartitionKey) -> bool {
        let number = self.number_of(key);
        number.and_then(|number| self.folders[number].dir()).is_some_and(|home| std::ptr::eq(home.as_ref(), dir))
    }

    /// Partitions that live in folder `number`. Only where there is a record.
    pub fn load(&self, number: usize) -> usize {
        self.homes().loads.get(number).copied().unwrap_or(0)
    }

    /// Obeys `cordoned.log.dirs`.
    pub fn set_cordoned(&self, paths: &[String]) {
        self.homes_mut().cordoned = paths.iter().map(PathBuf::from).collect();
    }

    pub fn is_cordoned(&self, path: &Path) -> bool {
        self.homes().cordoned.iter().any(|cordoned| cordoned == path)
    }

    /// Obeys `ringlog.log.dir.quota.bytes`.
    pub fn set_quota(&self, bytes: Option<u64>) {
        self.online().for_each(|dir| dir.set_quota(bytes));
    }
}

#[cfg(all(test, not(feature = "sim")))]
#[path = "folders_tests.rs"]
mod tests;
