//! Opening the set at a start: which folders are there, which are missing, and where each partition lives.
//!
//! Found wins: a partition lives where its folder is. What is not found lives where the record says, which may be a folder
//! that is missing. A folder that the record knows and that holds partitions is never made anew: an empty folder in its
//! place (a mount point without its mount) stays untouched, and those partitions are offline. Everything here is done by
//! one task before anyone else sees the set. A crash at any line leaves the record as it was or as it becomes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use model::{PartitionKey, TopicId};
use runtime::fs;

use super::record::{FILE, KnownFolder, Record, UNDECIDED, UNSEEN};
use super::{DataDirs, Folder, FolderSpec, Homes, RecordEnd, State, twice};
use crate::data_dir::{DataDir, FoundPartition, check_owner, read_identity};
use crate::error::DataDirError;
use crate::format::identity::{DirectoryId, Identity};
use crate::limits::{FOLDERS_MAX, HOMES_FILE};

/// What a start knows before it opens the other folders.
#[derive(Debug)]
pub struct OpenFolders<'a> {
    /// The folder of the metadata log: open and adopted.
    pub metadata: Arc<DataDir>,
    /// All folders, that of the metadata log among them under its own path.
    pub specs: &'a [FolderSpec],
    pub owner: &'a Identity,
    pub reserve_bytes: u64,
    /// Partitions of each topic that exists.
    pub topics: &'a BTreeMap<TopicId, usize>,
}

/// Places where one partition was found: numbers of folders and places in their lists.
type FoundAt = BTreeMap<PartitionKey, Vec<(usize, usize)>>;

impl DataDirs {
    /// Opens the set. Gives sentences for the operator besides: what is offline, and why.
    pub async fn open(open: OpenFolders<'_>) -> Result<(Arc<DataDirs>, Vec<String>), DataDirError> {
        let record = read_record(open.metadata.path()).await?;
        if record.is_none() && open.specs.len() == 1 {
            return Ok((DataDirs::of_one(open.metadata), Vec::new()));
        }
        let record = record.unwrap_or_default();
        let mut folders = open_all(&open, &record).await?;
        let mut notes = Vec::new();
        let mut known = to_numbers(&record, &mut folders, open.topics, &mut notes);
        if folders.len() > FOLDERS_MAX {
            return Err(DataDirError::TooMany { most: FOLDERS_MAX });
        }
        known.loads = vec![0; folders.len()];
        let metadata = folders.iter().position(|f| f.path == open.metadata.path()).unwrap_or(0);
        let record = Some(Mutex::new(RecordEnd { len: 0, whole: 0 }));
        let dirs = DataDirs { folders, metadata, homes: RwLock::new(Homes::default()), record };
        let homes = dirs.settle(known, open.topics, &mut notes).await?;
        *dirs.homes_mut() = homes;
        dirs.write_record().await?;
        dirs.tell_offline(&mut notes);
        let topics: Vec<(TopicId, usize)> = open.topics.iter().map(|(id, count)| (*id, *count)).collect();
        dirs.place(&topics).await?;
        Ok((Arc::new(dirs), notes))
    }

    /// Where partitions live: where they were found, else where it was written down.
    async fn settle(
        &self,
        mut homes: Homes,
        topics: &BTreeMap<TopicId, usize>,
        notes: &mut Vec<String>,
    ) -> Result<Homes, DataDirError> {
        let written = std::mem::take(&mut homes.of);
        written.iter().for_each(|(topic, numbers)| homes.put(*topic, 0, numbers));
        for (key, number) in self.vouched(topics) {
            if homes.get(key).is_none() {
                put_one(&mut homes, key, number as u16);
            }
        }
        for (key, places) in self.found(topics) {
            let number = match places[..] {
                // The other copy may be the longer one, and its folder is not there to ask.
                [_] if homes.is_undecided(key) && self.folders.iter().any(|folder| folder.dir().is_none()) => None,
                [(number, _)] => Some(number),
                _ => self.resolve(homes.get(key), &places, notes).await?,
            };
            put_one(&mut homes, key, number.map_or(UNDECIDED, |number| number as u16));
        }
        Ok(homes)
    }

    /// Folders whose checkpoint counts on records of a partition: it lives there even if its folder is gone.
    fn vouched(&self, topics: &BTreeMap<TopicId, usize>) -> Vec<(PartitionKey, usize)> {
        let mut vouched = Vec::new();
        for (number, folder) in self.folders.iter().enumerate() {
            let entries = folder.dir().into_iter().flat_map(|dir| dir.entries());
            let live = entries.filter(|e| e.has_data() && topics.contains_key(&e.key.topic_id));
            vouched.extend(live.map(|e| (e.key, number)));
        }
        vouched
    }

    fn found(&self, topics: &BTreeMap<TopicId, usize>) -> FoundAt {
        let mut found = FoundAt::new();
        for (number, folder) in self.folders.iter().enumerate() {
            let all = folder.dir().into_iter().flat_map(|dir| dir.found().iter().enumerate());
            for (at, partition) in all {
                let Some(topic_id) = partition.topic_id.filter(|id| topics.contains_key(id)) else { continue };
                let key = PartitionKey { topic_id, partition: partition.partition };
                found.entry(key).or_default().push((number, at));
            }
        }
        found
    }

    /// Of several copies the longest; as long ones: the one that is written down as home. The others go out of the way.
    async fn resolve(
        &self,
        home: Option<usize>,
        places: &[(usize, usize)],
        notes: &mut Vec<String>,
    ) -> Result<Option<usize>, DataDirError> {
        let copy = |place: (usize, usize)| -> Option<(&DataDir, &FoundPartition)> {
            let dir = self.folders[place.0].dir()?;
            Some((dir, &dir.found()[place.1]))
        };
        let mut best = places[0];
        for &place in &places[1..] {
            let (Some(a), Some(b)) = (copy(best), copy(place)) else { return Ok(None) };
            let name = format!("{}-{}", a.1.topic, a.1.partition);
            let (here, there) = (a.0.path().display().to_string(), b.0.path().display().to_string());
            let Some(order) = twice::compare(a, b).await? else {
                notes.push(format!(
                    "partition {name} lies in {here} and in {there}, and after an unclean stop it cannot be told which copy is \
                     longer: it is offline until one of them is taken away."
                ));
                return Ok(None);
            };
            let keeps = order.then(if home == Some(place.0) { Ordering::Less } else { Ordering::Greater });
            let (kept, lost) = if keeps == Ordering::Less { (place, a) } else { (best, b) };
            best = kept;
            let aside = twice::set_aside(lost.0, lost.1).await?;
            notes.push(format!(
                "partition {name} lies in {here} and in {there}: the copy that is not longer was renamed to {}.",
                lost.0.path().join(aside).display()
            ));
        }
        Ok(Some(best.0))
    }

    fn tell_offline(&self, notes: &mut Vec<String>) {
        for (number, folder) in self.folders.iter().enumerate() {
            let State::Offline(why) = &folder.state else { continue };
            let partitions = self.load(number);
            notes.push(format!(
                "data folder {} is offline ({why}): its {partitions} partition{} answer{} KAFKA_STORAGE_ERROR until the broker \
                 is started with it again.",
                folder.path.display(),
                if partitions == 1 { "" } else { "s" },
                if partitions == 1 { "s" } else { "" }
            ));
        }
    }
}

fn put_one(homes: &mut Homes, key: PartitionKey, number: u16) {
    if let Ok(at) = usize::try_from(key.partition.0) {
        homes.put(key.topic_id, at, &[number]);
    }
}

/// `None`: the node never had several folders.
async fn read_record(folder: &Path) -> Result<Option<Record>, DataDirError> {
    let path = folder.join(FILE);
    match fs::read_if_there(&path, HOMES_FILE as usize).await? {
        None => Ok(None),
        Some(bytes) => match Record::decode(&bytes) {
            Ok((record, _)) => Ok(Some(record)),
            Err(why) => Err(DataDirError::Unreadable { path, why: why.to_string() }),
        },
    }
}

/// The folders of the configuration, opened or offline.
async fn open_all(open: &OpenFolders<'_>, record: &Record) -> Result<Vec<Folder>, DataDirError> {
    let mut folders: Vec<Folder> = Vec::with_capacity(open.specs.len());
    let elsewhere = ids_of(open.specs).await?;
    for spec in open.specs {
        let state = if spec.path == open.metadata.path() {
            State::Online(open.metadata.clone())
        } else {
            let known = record.folders.iter().position(|folder| folder.path == spec.path);
            let known = known.filter(|&number| !elsewhere.contains(&record.folders[number].id));
            let holds = known.map_or(0, |number| record.count_in(number));
            open_one(open, &spec.path, holds).await?
        };
        let id = match &state {
            State::Online(dir) => dir.directory_id(),
            State::Offline(_) => {
                let known = record.folders.iter().find(|known| known.path == spec.path);
                known.map(|known| known.id).filter(|id| *id != UNSEEN)
            }
        };
        if let Some(other) = folders.iter().find(|other| id.is_some() && other.id == id) {
            return Err(DataDirError::SameFolder { path: spec.path.clone(), other: other.path.clone() });
        }
        folders.push(Folder { path: spec.path.clone(), id, takes_partitions: spec.takes_partitions, state });
    }
    Ok(folders)
}

/// Ids of the folders that are there, wherever they are mounted now.
async fn ids_of(specs: &[FolderSpec]) -> Result<BTreeSet<DirectoryId>, DataDirError> {
    let mut ids = BTreeSet::new();
    for spec in specs {
        match read_identity(&spec.path).await {
            Ok(identity) => ids.extend(identity.and_then(|found| found.directory_id)),
            Err(DataDirError::Io(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ids)
}

/// `holds`: how many partitions are known to live in the folder that was last seen at `path`.
async fn open_one(open: &OpenFolders<'_>, path: &Path, holds: usize) -> Result<State, DataDirError> {
    match try_open(open, path, holds).await {
        Ok(state) => Ok(state),
        // An error of the disk or of rights takes this folder down; whose it is, or that it is in use, stops the start.
        Err(DataDirError::Io(error)) => Ok(State::Offline(error.to_string().into())),
        Err(error) => Err(error),
    }
}

async fn try_open(open: &OpenFolders<'_>, path: &Path, holds: usize) -> Result<State, DataDirError> {
    match read_identity(path).await? {
        Some(identity) => check_owner(path, &identity.owner, open.owner)?,
        None if holds > 0 => {
            let why = match fs::stat(path).await? {
                None => "it is not there".to_string(),
                Some(_) => {
                    "it is not the folder that was here: it has no ringlog.meta; is its disk mounted?".to_string()
                }
            };
            return Ok(State::Offline(why.into()));
        }
        None => {}
    }
    let dir = DataDir::open_with(path, open.reserve_bytes).await?;
    dir.adopt(open.owner).await?;
    Ok(State::Online(dir))
}

/// Adds the folders that the record knows and that are nowhere, as far as partitions live there, and turns the record's
/// numbers into places in `folders`.
fn to_numbers(
    record: &Record,
    folders: &mut Vec<Folder>,
    topics: &BTreeMap<TopicId, usize>,
    notes: &mut Vec<String>,
) -> Homes {
    let live: BTreeMap<TopicId, Vec<u16>> =
        record.homes.iter().filter(|(id, _)| topics.contains_key(id)).map(|(id, homes)| (*id, homes.clone())).collect();
    let mut numbers = Vec::with_capacity(record.folders.len());
    for (number, known) in record.folders.iter().enumerate() {
        let holds = live.values().flatten().any(|home| usize::from(*home) == number);
        numbers.push(place_of(known, holds, folders, notes));
    }
    let translate = |home: &u16| match *home {
        UNDECIDED => UNDECIDED,
        home => numbers.get(usize::from(home)).copied().flatten().unwrap_or(super::NOWHERE),
    };
    let of = live.into_iter().map(|(id, homes)| (id, homes.iter().map(translate).collect())).collect();
    Homes { of, ..Homes::default() }
}

fn place_of(known: &KnownFolder, holds: bool, folders: &mut Vec<Folder>, notes: &mut Vec<String>) -> Option<u16> {
    if let Some(at) = folders.iter().position(|folder| folder.id == Some(known.id)) {
        if folders[at].path != known.path && folders[at].dir().is_some() {
            let (was, is) = (known.path.display(), folders[at].path.display());
            notes.push(format!("data folder {is} was {was} when it was last used."));
        }
        return Some(at as u16);
    }
    if !holds {
        return None;
    }
    let why = "it is not among log.dirs, or not at its place there";
    let path: PathBuf = known.path.clone();
    folders.push(Folder { path, id: Some(known.id), takes_partitions: true, state: State::Offline(why.into()) });
    Some((folders.len() - 1) as u16)
}
