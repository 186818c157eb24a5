//! A data folder: who it belongs to, whether it was closed cleanly, and what its checkpoint knew. Opened once per start
//! and shared by all shards; afterwards immutable but for the clean mark.
//!
//! Files, all ours: `ringlog.lock` (held while the process lives), `ringlog.meta` (identity), `ringlog.checkpoint` (all
//! partitions, as the last start left them), `ringlog.checkpoint.N` (what writer N of this start knows better) and
//! `ringlog.clean`, which vouches for the checkpoint of one incarnation and is removed, durably, before the first
//! append of the next start.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use model::{PartitionIndex, PartitionKey, TopicId};
use runtime::fs::{self, LockedFile};
use runtime::{IoError, random};

use crate::config::StartMode;
use crate::error::{DataDirError, LogError};
use crate::folder_failure::{self, FolderFailure};
use crate::format::checkpoint::{self, Checkpoint, CheckpointEntry};
use crate::format::identity::{DirectoryId, FolderIdentity, Identity};
use crate::format::names::{self, METADATA_FILE};
use crate::format::partition_metadata;
use crate::journal::replay::{LostPartitions, replay};
use crate::limits::{CHECKPOINT_FILE, DIR_NAMES_MAX, SMALL_FILE};
use crate::mutants::{Mutant, active};
use crate::reserve::{self, Reserve, SpaceLimits, SpaceLook};

const LOCK: &str = "ringlog.lock";
pub const META: &str = "ringlog.meta";
pub const CHECKPOINT: &str = "ringlog.checkpoint";
const PART_PREFIX: &str = "ringlog.checkpoint.";
pub const CLEAN: &str = "ringlog.clean";

/// A partition's folder that was there at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPartition {
    pub topic: String,
    pub partition: PartitionIndex,
    /// `None` when `partition.metadata` is missing or not understood.
    pub topic_id: Option<TopicId>,
}

#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    incarnation: u64,
    was_clean: bool,
    identity: Option<FolderIdentity>,
    /// Known from [`DataDir::adopt`] on.
    directory_id: OnceLock<DirectoryId>,
    failure: FolderFailure,
    entries: BTreeMap<PartitionKey, CheckpointEntry>,
    found: Vec<FoundPartition>,
    /// Places in `found`.
    found_at: BTreeMap<(String, PartitionIndex), usize>,
    /// Whether `ringlog.clean` may still be on disk.
    marked_clean: AtomicBool,
    reserve: Reserve,
    /// Partitions of which the journal lost acknowledged records.
    lost: LostPartitions,
    _lock: LockedFile,
}

impl DataDir {
    /// Opens (or makes) a data folder. After an unclean stop the checkpoint and its parts become one file first.
    pub async fn open(path: &Path) -> Result<Arc<DataDir>, DataDirError> {
        DataDir::open_with(path, 0).await
    }

    /// The same, with `reserve_bytes` of the disk held back (see [`crate::reserve`]).
    pub async fn open_with(path: &Path, reserve_bytes: u64) -> Result<Arc<DataDir>, DataDirError> {
        make_data_folder(path).await?;
        reserve::make_room(path).await?;
        let lock = LockedFile::take(&path.join(LOCK))?.ok_or_else(|| DataDirError::InUse(path.to_path_buf()))?;
        let identity = read_identity(path).await?;
        let listing = fs::read_dir(path).await?;
        if listing.len() > DIR_NAMES_MAX {
            let why = format!("it holds more than {DIR_NAMES_MAX} names");
            return Err(DataDirError::Unreadable { path: path.to_path_buf(), why });
        }
        let incarnation = random::u64();
        let stored = Stored::read(path, &listing).await?;
        let was_clean = stored.clean;
        let found = find_partitions(path, &listing, was_clean.then_some(&stored.entries)).await?;
        let lost = replay(path, &found, was_clean).await?;
        if !was_clean {
            stored.consolidate(path, incarnation).await?;
        }
        let place = |(at, f): (usize, &FoundPartition)| ((f.topic.clone(), f.partition), at);
        let found_at = found.iter().enumerate().map(place).collect();
        Ok(Arc::new(DataDir {
            found_at,
            path: path.to_path_buf(),
            incarnation,
            was_clean,
            identity,
            directory_id: OnceLock::new(),
            failure: FolderFailure::default(),
            entries: stored.entries,
            found,
            marked_clean: AtomicBool::new(was_clean),
            reserve: Reserve::new(reserve_bytes),
            lost,
            _lock: lock,
        }))
    }

    #[cfg(test)]
    pub(crate) fn set_reserve(&self, bytes: u64) {
        self.reserve.set(bytes);
    }

    /// The round of a journal that held acknowledged records of the partition and was damaged.
    pub fn lost_in_journal(&self, key: PartitionKey) -> Option<u64> {
        self.lost.get(&key).copied()
    }

    /// Partitions of which the journal lost acknowledged records.
    pub fn lost_partitions(&self) -> usize {
        self.lost.len()
    }

    /// What is held back of the disk, and what the files may take.
    pub fn space_limits(&self) -> SpaceLimits {
        self.reserve.limits()
    }

    pub(crate) fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    /// Looks whether the folder is still there, after the ballast and, under a quota, after what the files take; for one
    /// shard, every second or so.
    pub async fn mind_space(&self) -> Result<SpaceLook, IoError> {
        if self.directory_id.get().is_some() && self.failure.why().is_none() {
            match fs::stat(&self.path.join(META)).await {
                Ok(Some(_)) => {}
                Ok(None) => self.fail(&format!("{META} is gone")),
                Err(error) => self.notice_of_folder(&error),
            }
        }
        self.reserve.measure_if_due(&self.path).await?;
        self.reserve.look(&self.path).await
    }

    /// Bytes that the folder's files may take at most; `None` takes the quota away.
    pub fn set_quota(&self, bytes: Option<u64>) {
        let known = || self.entries.values().map(|entry| entry.closed_bytes + entry.fill.size).sum();
        self.reserve.set_quota(bytes, known);
    }

    /// Why the folder takes and gives nothing any more, if it failed as a whole.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.failure.why()
    }

    /// Marks the folder as failed, for all shards.
    pub fn fail(&self, why: &str) {
        self.failure.set(&self.path, why);
    }

    /// Looks whether an error of one file means that the folder's device is gone.
    pub fn notice(&self, error: &IoError) {
        if folder_failure::device_is_gone(error) {
            self.fail(&error.to_string());
        }
    }

    /// The same for an error of what all partitions of the folder need.
    pub fn notice_of_folder(&self, error: &IoError) {
        if folder_failure::folder_is_gone(error) {
            self.fail(&error.to_string());
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Random number of this start.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    pub fn was_clean(&self) -> bool {
        self.was_clean
    }

    /// Partition folders that were there at the start, in name order.
    pub fn found(&self) -> &[FoundPartition] {
        &self.found
    }

    /// What was found of one partition.
    pub fn found_partition(&self, topic: &str, partition: PartitionIndex) -> Option<&FoundPartition> {
        self.found_at.get(&(topic.to_string(), partition)).map(|&at| &self.found[at])
    }

    pub fn entries(&self) -> impl Iterator<Item = &CheckpointEntry> {
        self.entries.values()
    }

    /// How `open_partition` has to open this one.
    pub fn start_mode(&self, key: PartitionKey) -> StartMode {
        let entry = self.entries.get(&key).cloned().map(Box::new);
        match entry {
            Some(entry) if self.was_clean => StartMode::Clean(entry),
            entry => StartMode::Unclean(entry),
        }
    }

    /// Whose folder it is, if it was used before.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref().map(|identity| &identity.owner)
    }

    /// Which folder it is; `None` before [`DataDir::adopt`].
    pub fn directory_id(&self) -> Option<DirectoryId> {
        self.directory_id.get().copied()
    }

    /// Checks that the folder is ours, or makes it so. One that has no id of its own yet gets one.
    pub async fn adopt(&self, ours: &Identity) -> Result<(), DataDirError> {
        if let Some(found) = &self.identity {
            check_owner(&self.path, &found.owner, ours)?;
        }
        let known = self.directory_id().or(self.identity.as_ref().and_then(|found| found.directory_id));
        let id = known.unwrap_or_else(|| DirectoryId::from_random(random::bytes()));
        if known.is_none() {
            let file = FolderIdentity { owner: ours.clone(), directory_id: Some(id) };
            fs::write_durable(&self.path.join(META), file.encode().into_bytes()).await?;
        }
        let _ = self.directory_id.set(id);
        Ok(())
    }

    pub(crate) fn part_path(&self, writer: u16) -> PathBuf {
        self.path.join(format!("{PART_PREFIX}{writer}"))
    }

    /// Removes the clean mark durably. Every shard calls it before its first write; only the first one costs.
    pub(crate) async fn invalidate(&self) -> Result<(), IoError> {
        if !self.marked_clean.load(Ordering::Acquire) {
            return Ok(());
        }
        if !active(Mutant::CleanMarkKept) {
            fs::remove_file(&self.path.join(CLEAN)).await?;
            fs::sync_dir(&self.path).await?;
        }
        self.marked_clean.store(false, Ordering::Release);
        Ok(())
    }

    /// The last step of a clean stop, once every shard's `stop_clean` succeeded: the parts become the checkpoint, and
    /// the clean mark vouches for it. After a start without any write there is nothing to do.
    pub async fn close_clean(&self) -> Result<(), LogError> {
        if self.marked_clean.load(Ordering::Acquire) {
            return Ok(());
        }
        let listing = fs::read_dir(&self.path).await?;
        let parts: Vec<&str> = listing.iter().map(|e| e.name.as_str()).filter(|n| is_part(n)).collect();
        let mut entries = self.read_parts(&parts).await?;
        let untouched = self.untouched(&listing, &entries);
        if !self.was_clean && !untouched.is_empty() {
            // No one opened these since the crash: their tails are not known, and nothing may vouch for them. Also where
            // the entry knows of no data: it says where the scan begins, and the folder is there.
            return Ok(());
        }
        entries.extend(untouched.into_iter().map(|e| (e.key, e)));
        let bytes = checkpoint::encode(self.incarnation, entries.values());
        fs::write_durable(&self.path.join(CHECKPOINT), bytes).await?;
        for name in parts {
            fs::remove_file(&self.path.join(name)).await?;
        }
        fs::sync_dir(&self.path).await?;
        fs::write_durable(&self.path.join(CLEAN), clean_mark(self.incarnation)).await?;
        self.marked_clean.store(true, Ordering::Release);
        Ok(())
    }

    /// What the shards of this start know. A part that cannot be read would be missed in silence: it is an error.
    async fn read_parts(&self, names: &[&str]) -> Result<BTreeMap<PartitionKey, CheckpointEntry>, LogError> {
        let mut entries = BTreeMap::new();
        for name in names {
            let path = self.path.join(name);
            match read_checkpoint(&path).await? {
                Some(part) if part.incarnation == self.incarnation => {
                    entries.extend(part.entries.into_iter().map(|e| (e.key, e)));
                }
                Some(_) => {}
                None => return Err(LogError::BadFolder { path, why: "the checkpoint's part is damaged".into() }),
            }
        }
        Ok(entries)
    }

    /// Entries of the start's checkpoint that no shard of this start knows better and whose folder is still there.
    fn untouched(&self, listing: &[fs::Entry], ours: &BTreeMap<PartitionKey, CheckpointEntry>) -> Vec<CheckpointEntry> {
        let folders: BTreeSet<&str> = listing.iter().filter(|e| e.is_dir).map(|e| e.name.as_str()).collect();
        // A folder that a topic of this start made under an old name is not the old topic's.
        let taken: BTreeSet<(&str, PartitionIndex)> =
            ours.values().map(|e| (e.topic.as_str(), e.key.partition)).collect();
        let still_there = |e: &&CheckpointEntry| {
            let found = self.found_partition(&e.topic, e.key.partition).and_then(|f| f.topic_id);
            found == Some(e.key.topic_id)
                && !taken.contains(&(e.topic.as_str(), e.key.partition))
                && folders.contains(names::partition_dir(&e.topic, e.key.partition).as_str())
        };
        self.entries.values().filter(still_there).cloned().collect()
    }

    /// Takes a folder out of the way whose topic is gone: renamed durably; the next start (or the caller) unlinks it.
    /// `expected` is the topic id that the folder had when this was decided (`None`: it had none that could be read).
    /// Gives `None`, and does nothing, when the folder is gone or another topic's by now.
    pub async fn discard(
        &self,
        topic: &str,
        partition: PartitionIndex,
        expected: Option<TopicId>,
    ) -> Result<Option<PathBuf>, LogError> {
        let from = self.path.join(names::partition_dir(topic, partition));
        if fs::stat(&from).await?.is_none() || read_topic_id(&from).await? != expected {
            return Ok(None);
        }
        let to = self.path.join(names::deleted_dir(topic, partition, TopicId(random::bytes())));
        fs::rename(&from, &to).await?;
        Ok(Some(to))
    }

    /// Unlinks what earlier deletions left. Not urgent: call it after the start.
    pub async fn remove_deleted(&self) -> Result<usize, LogError> {
        let mut removed = 0;
        for entry in fs::read_dir(&self.path).await? {
            if entry.is_dir && names::is_deleted_dir(&entry.name) {
                fs::remove_dir_all(&self.path.join(&entry.name)).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// Whether a file is a writer's part of the checkpoint.
pub fn is_part(name: &str) -> bool {
    name.strip_prefix(PART_PREFIX).is_some_and(|n| n.parse::<u16>().is_ok())
}

fn clean_mark(incarnation: u64) -> Vec<u8> {
    crate::format::clean_mark::encode(incarnation)
}

/// Refuses a folder of another node or cluster.
pub(crate) fn check_owner(path: &Path, found: &Identity, ours: &Identity) -> Result<(), DataDirError> {
    let path = path.to_path_buf();
    if found.node_id != ours.node_id {
        return Err(DataDirError::OtherNode { path, found: found.node_id.0, ours: ours.node_id.0 });
    }
    if found.cluster_id != ours.cluster_id {
        let (found, ours) = (found.cluster_id.clone(), ours.cluster_id.clone());
        return Err(DataDirError::OtherCluster { path, found, ours });
    }
    Ok(())
}

/// What `ringlog.meta` says; `None` for a folder that was never used.
pub async fn read_identity(path: &Path) -> Result<Option<FolderIdentity>, DataDirError> {
    let path = path.join(META);
    match fs::read_if_there(&path, SMALL_FILE as usize).await? {
        None => Ok(None),
        Some(bytes) => FolderIdentity::decode(&bytes)
            .map(Some)
            .map_err(|why| DataDirError::Unreadable { path, why: why.to_string() }),
    }
}

async fn read_topic_id(partition_dir: &Path) -> Result<Option<TopicId>, IoError> {
    let bytes = fs::read_if_there(&partition_dir.join(METADATA_FILE), SMALL_FILE as usize).await?;
    Ok(bytes.and_then(|b| partition_metadata::decode(&b)))
}

/// Makes a data folder and, where they are missing, those above it; their names survive a power cut.
async fn make_data_folder(path: &Path) -> Result<(), IoError> {
    if fs::stat(&path.join(CHECKPOINT)).await?.is_some() {
        return Ok(());
    }
    let mut missing = BTreeSet::new();
    let folders = || path.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    for folder in folders() {
        if fs::stat(folder).await?.is_some() {
            break;
        }
        missing.insert(folder);
    }
    fs::create_dir_all(path).await?;
    for folder in folders() {
        let parent = folder.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
        let Some(parent) = parent else { break };
        // Also the names that were there: whoever made them may have been killed before they were synced. Those may lie
        // where we may not look, which is no reason not to start.
        match fs::sync_dir(parent).await {
            Err(error) if missing.contains(folder) || !is_refusal(error.kind()) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn is_refusal(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(kind, PermissionDenied | ReadOnlyFilesystem | InvalidInput | Unsupported)
}

/// A damaged checkpoint is as good as none: the partitions are scanned then.
async fn read_checkpoint(path: &Path) -> Result<Option<Checkpoint>, IoError> {
    let bytes = fs::read_if_there(path, CHECKPOINT_FILE as usize).await?;
    Ok(bytes.and_then(|bytes| checkpoint::decode(&bytes)))
}

/// What the checkpoint, its parts and the clean mark say together: whether nothing was written since a clean stop, and an
/// entry for each partition. Parts are of the last start, the base is older: what a part says wins.
pub fn combine(
    base: Option<Checkpoint>,
    parts: Vec<Option<Checkpoint>>,
    mark: Option<&[u8]>,
) -> (bool, BTreeMap<PartitionKey, CheckpointEntry>) {
    let vouched = matches!((&base, mark), (Some(b), Some(m)) if *m == clean_mark(b.incarnation));
    let clean = vouched && parts.is_empty();
    let files = base.into_iter().chain(parts.into_iter().flatten());
    (clean, files.flat_map(|file| file.entries).map(|e| (e.key, e)).collect())
}

/// What the last start left.
struct Stored {
    clean: bool,
    entries: BTreeMap<PartitionKey, CheckpointEntry>,
    parts: Vec<PathBuf>,
}

impl Stored {
    async fn read(path: &Path, listing: &[fs::Entry]) -> Result<Stored, IoError> {
        let base = read_checkpoint(&path.join(CHECKPOINT)).await?;
        let mark = fs::read_if_there(&path.join(CLEAN), SMALL_FILE as usize).await?;
        let parts: Vec<PathBuf> = listing.iter().filter(|e| is_part(&e.name)).map(|e| path.join(&e.name)).collect();
        let mut read = Vec::with_capacity(parts.len());
        for part in &parts {
            read.push(read_checkpoint(part).await?);
        }
        let (clean, entries) = combine(base, read, mark.as_deref());
        Ok(Stored { clean, entries, parts })
    }

    /// Makes one file of what was read, so that the parts of this start are the only ones.
    async fn consolidate(&self, path: &Path, incarnation: u64) -> Result<(), IoError> {
        fs::remove_file(&path.join(CLEAN)).await?;
        let bytes = checkpoint::encode(incarnation, self.entries.values());
        fs::write_durable(&path.join(CHECKPOINT), bytes).await?;
        for part in &self.parts {
            fs::remove_file(part).await?;
        }
        fs::sync_dir(path).await
    }
}

/// Partition folders. Where a clean checkpoint names the folder its topic id is taken from there.
async fn find_partitions(
    path: &Path,
    listing: &[fs::Entry],
    clean: Option<&BTreeMap<PartitionKey, CheckpointEntry>>,
) -> Result<Vec<FoundPartition>, IoError> {
    let mut known = BTreeMap::new();
    for entry in clean.into_iter().flat_map(BTreeMap::values).filter(|e| e.has_data()) {
        known.insert((entry.topic.as_str(), entry.key.partition), entry.key.topic_id);
    }
    let dirs = listing.iter().filter(|e| e.is_dir).filter_map(|e| Some((e, names::parse_partition_dir(&e.name)?)));
    let mut found: Vec<FoundPartition> = Vec::new();
    let mut unknown = Vec::new();
    for (entry, (topic, partition)) in dirs {
        let topic_id = known.get(&(topic, partition)).copied();
        if topic_id.is_none() {
            unknown.push((found.len(), path.join(&entry.name).join(METADATA_FILE)));
        }
        found.push(FoundPartition { topic: topic.to_string(), partition, topic_id });
    }
    let (places, files): (Vec<usize>, Vec<PathBuf>) = unknown.into_iter().unzip();
    for (at, bytes) in places.into_iter().zip(fs::read_each(files, SMALL_FILE as usize).await?) {
        found[at].topic_id = bytes.and_then(|b| partition_metadata::decode(&b));
    }
    Ok(found)
}
