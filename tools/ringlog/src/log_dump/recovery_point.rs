//! What a data folder's checkpoint knows about its partitions: from where a start would scan each, and what it counts on.
//! Read before the logs are, so that beside a running broker the logs hold at least what it vouches for. Only reads.

use std::collections::BTreeMap;
use std::path::Path;

use log::data_dir::{self, CHECKPOINT, CLEAN, META};
use log::format::names::{self, FileKind};
use log::format::{checkpoint, index, partition_metadata, time_index};
use log::limits::{CHECKPOINT_FILE, SMALL_FILE};
use log::{CheckpointEntry, Fill};
use model::{Offset, PartitionKey};

use super::folder::{names, read_small};
use super::segment::Fail;

/// Of all partitions of a data folder.
#[derive(Debug)]
pub struct RecoveryPoints {
    clean: bool,
    entries: BTreeMap<PartitionKey, CheckpointEntry>,
}

/// Of one partition of a data folder.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The checkpoint is vouched for: a start takes it as it is.
    pub clean: bool,
    /// `None`: the checkpoint does not know the partition.
    pub entry: Option<CheckpointEntry>,
}

impl RecoveryPoints {
    /// `None` when the folder is no data folder of ours.
    pub fn read(dir: &Path, listing: &[String]) -> Result<Option<RecoveryPoints>, Fail> {
        if !listing.iter().any(|name| name == META || name == CHECKPOINT) {
            return Ok(None);
        }
        // A file that is not there, or is not readable as a checkpoint, is none, as for a start.
        let read = |name: &str| match read_small(&dir.join(name), CHECKPOINT_FILE) {
            Ok(bytes) => Ok(checkpoint::decode(&bytes)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Fail::Sentence(format!("{}/{name} cannot be read: {e}", dir.display()))),
        };
        let base = read(CHECKPOINT)?;
        let part_names = listing.iter().filter(|name| data_dir::is_part(name));
        let parts = part_names.map(|name| read(name)).collect::<Result<Vec<_>, Fail>>()?;
        let mark = read_small(&dir.join(CLEAN), SMALL_FILE).ok();
        let (clean, entries) = data_dir::combine(base, parts, mark.as_deref());
        Ok(Some(RecoveryPoints { clean, entries }))
    }

    /// Of the data folder that a partition's folder lies in.
    pub fn above(partition_dir: &Path) -> Result<Option<RecoveryPoints>, Fail> {
        let Some(parent) = partition_dir.parent() else { return Ok(None) };
        // Someone may look at a folder whose parent is closed to them.
        names(parent).map_or(Ok(None), |listing| RecoveryPoints::read(parent, &listing))
    }

    pub fn of(&self, partition_dir: &Path) -> Recovery {
        let name = partition_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let partition = names::parse_partition_dir(&name).map(|(_, partition)| partition);
        let metadata = read_small(&partition_dir.join(names::METADATA_FILE), SMALL_FILE).unwrap_or_default();
        let key = partition_metadata::decode(&metadata)
            .zip(partition)
            .map(|(topic_id, partition)| PartitionKey { topic_id, partition });
        Recovery { clean: self.clean, entry: key.and_then(|key| self.entries.get(&key).cloned()) }
    }
}

impl Recovery {
    /// Up to where the segment is taken on trust; its whole length is scanned when this is `None`.
    pub fn trusted(&self, dir: &Path, base: Offset) -> Option<Fill> {
        let len = |kind| std::fs::metadata(dir.join(names::file_name(base, kind))).map_or(0, |meta| meta.len());
        let entry = self.entry.as_ref().filter(|e| e.segment_base == base && e.fill.size <= len(FileKind::Log))?;
        let indexed = len(FileKind::Index) >= u64::from(entry.index_entries) * index::ENTRY_LEN as u64
            && len(FileKind::TimeIndex) >= u64::from(entry.time_entries) * time_index::ENTRY_LEN as u64;
        (self.clean || indexed).then_some(entry.fill)
    }

    /// What the checkpoint counts on and the log, whose last segment begins at `last_base` and is sound up to
    /// `kept_bytes`, does not have.
    pub fn missing(&self, last_base: Option<Offset>, kept_bytes: u64, has: impl Fn(Offset) -> bool) -> Option<String> {
        let entry = self.entry.as_ref().filter(|e| e.fill.size > 0)?;
        let file = names::file_name(entry.segment_base, FileKind::Log);
        let what = if !has(entry.segment_base) {
            // Deleted records need no file.
            (entry.log_start_offset < entry.fill.next_offset).then(|| format!("{file}, which is missing"))
        } else if last_base == Some(entry.segment_base) && kept_bytes < entry.fill.size {
            Some(format!("{} bytes of {file}, of which {kept_bytes} are sound", entry.fill.size))
        } else {
            None
        };
        let then = if self.clean { "reading there fails" } else { "a start refuses that range and goes on behind it" };
        what.map(|what| format!("the checkpoint vouches for {what}: {then}"))
    }

    /// How a start comes to the end of the log, for the verdict.
    pub fn text(&self, last_base: Offset, trusted: Option<Fill>) -> String {
        match (&self.entry, trusted) {
            (Some(_), _) if self.clean => "; a start takes this from the checkpoint and scans nothing".to_owned(),
            (Some(_), Some(fill)) => {
                format!("; a start scans from byte {}, its recovery point at offset {}", fill.size, fill.next_offset)
            }
            (Some(entry), None) if entry.segment_base > last_base => {
                format!("; a start scans nothing, its recovery point is offset {}", entry.segment_base)
            }
            (Some(entry), None) => format!(
                "; a start scans all of the segment, its recovery point at offset {} is of no use there",
                entry.fill.next_offset
            ),
            (None, _) => "; a start scans all of the segment, it has no recovery point".to_owned(),
        }
    }
}
