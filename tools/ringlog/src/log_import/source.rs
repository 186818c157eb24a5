//! What Kafka's data folders hold, read through: every batch of every partition that is to be taken over.
//!
//! A sentence refuses what would not be served as Kafka serves it: damage, record formats before 2, aborted transactions. Behind
//! an unclean stop the last segment may end in a batch that was cut off; Kafka would leave it out at its start, and so does
//! the import.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use log::format::epochs::EpochHistory;
use log::format::names::{EPOCHS_FILE, FileKind, METADATA_FILE, parse_file_name, parse_partition_dir};
use log::format::partition_metadata;
use model::{LeaderEpoch, Offset, TopicId};
use runtime::checks;
use server::import::{ImportPartition, ImportTopic};

use crate::cli::progress::Progress;
use crate::log_dump::walk::{Found, Walk};

const LOCK: &str = ".lock";
const CLEAN: &str = ".kafka_cleanshutdown";
const LOG_STARTS: &str = "log-start-offset-checkpoint";
const SKIPPED: [(&str, &str); 3] = [
    ("-delete", "of a deleted topic"),
    ("-future", "the unfinished copy of a move between folders"),
    ("-stray", "of no topic that its cluster knew"),
];
const INTERNAL: [&str; 5] =
    ["__cluster_metadata", "__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"];

/// What is asked for.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// Empty: all but internal ones.
    pub topics: &'a [String],
    /// Data folders of the node, which are no sources.
    pub ours: &'a [String],
}

#[derive(Debug, Default)]
pub struct Source {
    pub topics: Vec<SourceTopic>,
    /// Sentences about what is left out.
    pub notes: Vec<String>,
}

#[derive(Debug)]
pub struct SourceTopic {
    pub name: String,
    pub id: Option<TopicId>,
    pub partitions: BTreeMap<i32, SourcePartition>,
}

#[derive(Debug)]
pub struct SourcePartition {
    pub folder: PathBuf,
    /// Names and lengths of what is copied.
    pub files: Vec<(String, u64)>,
    pub last_segment: Offset,
    /// Behind the last record.
    pub end: Offset,
    log_start: Option<Offset>,
    leader_epoch: LeaderEpoch,
}

impl SourcePartition {
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, len)| len).sum()
    }
}

impl SourceTopic {
    pub fn to_import(&self, configs: &[(String, String)]) -> ImportTopic {
        let count = self.partitions.last_key_value().map_or(0, |(index, _)| index + 1);
        let partition = |index: i32| {
            self.partitions.get(&index).map(|partition| ImportPartition {
                log_start_offset: partition.log_start,
                last_segment: partition.last_segment,
                leader_epoch: partition.leader_epoch,
            })
        };
        let partitions = (0..count).map(partition).collect();
        ImportTopic { name: self.name.clone(), id: self.id, configs: configs.to_vec(), partitions }
    }
}

/// A partition's folder, before it was read.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    topic: String,
    partition: i32,
    log_start: Option<Offset>,
    /// Its folder was closed cleanly.
    is_clean: bool,
}

pub fn read(sources: &[PathBuf], wanted: &Wanted<'_>) -> Result<Source, String> {
    let mut source = Source::default();
    let mut folders = Vec::new();
    for path in sources {
        check_source(path, wanted)?;
        folders.extend(list(path, wanted, &mut source.notes)?);
    }
    folders.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    if let Some(missing) = wanted.topics.iter().find(|topic| !folders.iter().any(|folder| folder.topic == **topic)) {
        return Err(format!("topic {missing} is not in {}", shown(&sources[0])));
    }
    if folders.is_empty() {
        return Err(format!("{} holds no partition to import: give a data folder of Apache Kafka", shown(&sources[0])));
    }
    let total = folders.iter().map(|folder| bytes_in(&folder.path)).sum();
    let mut progress = Progress::new("bytes checked", Some(total));
    let mut done = 0;
    for folder in folders {
        let partition = read_partition(&folder, &mut source.notes, &mut progress, &mut done)?;
        add(&mut source, folder, partition)?;
    }
    for topic in &source.topics {
        let count = topic.partitions.last_key_value().map_or(0, |(index, _)| index + 1);
        let missing: Vec<String> =
            (0..count).filter(|index| !topic.partitions.contains_key(index)).map(|index| index.to_string()).collect();
        if !missing.is_empty() {
            let (name, list) = (&topic.name, missing.join(", "));
            source
                .notes
                .push(format!("partitions {list} of topic {name} are not in these folders: they will begin empty"));
        }
    }
    Ok(source)
}

fn shown(path: &Path) -> std::path::Display<'_> {
    path.display()
}

fn check_source(path: &Path, wanted: &Wanted<'_>) -> Result<(), String> {
    if !path.is_dir() {
        return Err(format!("{} is no folder", shown(path)));
    }
    if path.join("ringlog.meta").exists() || wanted.ours.iter().any(|ours| Path::new(ours) == path) {
        return Err(format!("{} is a data folder of this broker, not of Apache Kafka", shown(path)));
    }
    match checks::is_record_locked(&path.join(LOCK)) {
        Ok(true) => Err(format!("{} is in use by a live Apache Kafka (it holds {LOCK}); stop that first", shown(path))),
        Ok(false) => Ok(()),
        Err(error) => Err(format!("{} cannot be asked for its lock: {error}", shown(&path.join(LOCK)))),
    }
}

fn list(path: &Path, wanted: &Wanted<'_>, notes: &mut Vec<String>) -> Result<Vec<Folder>, String> {
    let cannot = |error| format!("{} cannot be read: {error}", shown(path));
    let is_clean = path.join(CLEAN).exists();
    let log_starts = log_starts(path)?;
    let mut folders = Vec::new();
    for entry in fs::read_dir(path).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !entry.path().is_dir() {
            continue;
        }
        if let Some((_, why)) = SKIPPED.iter().find(|(suffix, _)| name.ends_with(suffix)) {
            notes.push(format!("{} is left out: it is {why}", shown(&entry.path())));
            continue;
        }
        let Some((topic, partition)) = parse_partition_dir(&name) else { continue };
        let is_asked = wanted.topics.is_empty() || wanted.topics.iter().any(|wanted| wanted == topic);
        if INTERNAL.contains(&topic) {
            if wanted.topics.iter().any(|wanted| wanted == topic) {
                return Err(format!("topic {topic} is internal and cannot be imported: groups begin anew"));
            }
            continue;
        }
        if is_asked {
            let log_start = log_starts.get(&(topic.to_string(), partition.0)).copied();
            folders.push(Folder {
                path: entry.path(),
                topic: topic.to_string(),
                partition: partition.0,
                log_start,
                is_clean,
            });
        }
    }
    notes.sort();
    Ok(folders)
}

/// Kafka's checkpoint: version 0, a count, then topic, partition and offset in a line each.
fn log_starts(path: &Path) -> Result<BTreeMap<(String, i32), Offset>, String> {
    let file = path.join(LOG_STARTS);
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        read => read.map_err(|error| format!("{} cannot be read: {error}", shown(&file)))?,
    };
    let bad = || format!("{} is damaged, and with it where logs begin: import from a clean stop", shown(&file));
    let mut lines = text.lines();
    let count = (lines.next() == Some("0")).then(|| lines.next()?.parse::<usize>().ok()).flatten().ok_or_else(bad)?;
    let entry = |line: &str| {
        let mut words = line.rsplitn(3, ' ');
        let offset = words.next()?.parse().ok()?;
        let partition = words.next()?.parse().ok()?;
        Some(((words.next()?.to_string(), partition), Offset(offset)))
    };
    let starts: BTreeMap<_, _> = lines.map(|line| entry(line).ok_or_else(bad)).collect::<Result<_, _>>()?;
    if starts.len() == count { Ok(starts) } else { Err(bad()) }
}

fn read_partition(
    folder: &Folder,
    notes: &mut Vec<String>,
    progress: &mut Progress,
    done: &mut u64,
) -> Result<SourcePartition, String> {
    let files = files_of(&folder.path)?;
    let logs: Vec<Offset> = files.iter().filter_map(|(name, _)| log_base(name)).collect();
    let epochs = fs::read(folder.path.join(EPOCHS_FILE)).ok().and_then(|bytes| EpochHistory::decode(&bytes));
    let mut leader_epoch = epochs.and_then(|history| history.latest()).unwrap_or(LeaderEpoch(0));
    let mut end = logs.first().copied().unwrap_or(Offset::ZERO);
    for &base in &logs {
        if base < end {
            let path = folder.path.join(log::format::names::file_name(base, FileKind::Log));
            return Err(format!("{} begins before the end {end} of the segment before it", shown(&path)));
        }
        let may_be_cut = Some(&base) == logs.last() && !folder.is_clean;
        let segment = read_segment(&folder.path, base, may_be_cut, notes)?;
        end = segment.0.max(base);
        leader_epoch = leader_epoch.max(segment.1);
        *done += files.iter().find(|(name, _)| log_base(name) == Some(base)).map_or(0, |(_, len)| *len);
        progress.at(*done);
    }
    let last_segment = logs.last().copied().unwrap_or(Offset::ZERO);
    let log_start = folder.log_start;
    Ok(SourcePartition { folder: folder.path.clone(), files, last_segment, end, log_start, leader_epoch })
}

fn log_base(name: &str) -> Option<Offset> {
    parse_file_name(name).filter(|(_, kind)| *kind == FileKind::Log).map(|(base, _)| base)
}

/// Reads every batch; gives the offset behind the last one and the highest leader epoch.
fn read_segment(
    folder: &Path,
    base: Offset,
    may_be_cut: bool,
    notes: &mut Vec<String>,
) -> Result<(Offset, LeaderEpoch), String> {
    let path = folder.join(log::format::names::file_name(base, FileKind::Log));
    let cannot = |error| format!("{} cannot be read: {error}", shown(&path));
    let mut walk = Walk::open(&path, base, 0).map_err(cannot)?;
    let (mut end, mut leader_epoch) = (base, LeaderEpoch(0));
    loop {
        match walk.next().map_err(cannot)? {
            Found::Batch { position, header, problems } => {
                if let Some(why) = problems.first() {
                    return Err(format!("{} is damaged at byte {position}: {why}", shown(&path)));
                }
                end = header.next_offset();
                leader_epoch = leader_epoch.max(header.leader_epoch);
            }
            Found::Damage { position, until, why } if may_be_cut && until == walk.len() && !is_old_format(&why) => {
                let bytes = until - position;
                notes.push(format!(
                    "{}: its last {bytes} bytes are left out, an unclean stop cut them off ({why})",
                    shown(&path)
                ));
                return Ok((end, leader_epoch));
            }
            Found::Damage { why, .. } if is_old_format(&why) => {
                return Err(format!("{}: {why}; let Apache Kafka 4 read and write the topic anew first", shown(&path)));
            }
            Found::Damage { position, why, .. } => {
                return Err(format!("{} is damaged at byte {position}: {why}", shown(&path)));
            }
            Found::Preallocated { .. } => {}
            Found::End => return Ok((end, leader_epoch)),
        }
    }
}

/// Magic 0 and 1: the sentence of a batch's own error.
fn is_old_format(why: &str) -> bool {
    [0, 1].iter().any(|magic| *why == model::BatchError::Magic(*magic).to_string())
}

/// What is copied of a partition's folder.
fn files_of(folder: &Path) -> Result<Vec<(String, u64)>, String> {
    let cannot = |error| format!("{} cannot be read: {error}", shown(folder));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let len = entry.metadata().map_err(cannot)?.len();
        match parse_file_name(&name) {
            Some((_, FileKind::TxnIndex)) if len > 0 => {
                return Err(format!(
                    "{} has aborted transactions, which readers of committed records would see here: leave its topic out by \
                     naming others with --topic",
                    shown(folder)
                ));
            }
            Some((_, FileKind::TxnIndex)) => {}
            Some(_) => files.push((name, len)),
            None if name == EPOCHS_FILE => files.push((name, len)),
            None => {}
        }
    }
    files.sort();
    Ok(files)
}

fn bytes_in(folder: &Path) -> u64 {
    let files = files_of(folder).unwrap_or_default();
    files.iter().filter(|(name, _)| log_base(name).is_some()).map(|(_, len)| len).sum()
}

fn add(source: &mut Source, folder: Folder, partition: SourcePartition) -> Result<(), String> {
    let metadata = fs::read(folder.path.join(METADATA_FILE)).ok();
    let id = metadata.and_then(|bytes| partition_metadata::decode(&bytes));
    if source.topics.last().is_none_or(|topic| topic.name != folder.topic) {
        source.topics.push(SourceTopic { name: folder.topic.clone(), id, partitions: BTreeMap::new() });
    }
    let Some(topic) = source.topics.last_mut() else { unreachable!("it was just made") };
    if topic.id != id {
        return Err(format!("{} is of another topic {} than its neighbours", shown(&folder.path), folder.topic));
    }
    match topic.partitions.insert(folder.partition, partition) {
        None => Ok(()),
        Some(other) => Err(format!("{} and {} are the same partition", shown(&other.folder), shown(&folder.path))),
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
