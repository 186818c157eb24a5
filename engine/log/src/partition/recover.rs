//! Opening after a crash. The log ends at the last whole valid batch behind the recovery point; what follows (zeros that
//! were preallocated, a torn write) is not data and is cut before the next write. Segments before the last were synced
//! when they were rolled and are not scanned.
//!
//! What a recovery point vouches for and is not there, or not sound, is no end: the range is marked and refused, the log
//! goes on behind it (in a segment of its own when the bytes are gone), and no offset is given away a second time.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use model::{LeaderEpoch, Offset};
use runtime::{DirectFile, OpenMode, clock, fs};

use super::segments::closed_segments;
use super::{PartitionLog, Start, State};
use crate::PartitionSpec;
use crate::compact::{POINT_FILE, finish_replacement};
use crate::error::LogError;
use crate::format::checkpoint::CheckpointEntry;
use crate::format::epochs::{self, EpochHistory};
use crate::format::names::{self, EPOCHS_FILE, FileKind, METADATA_FILE, parse_file_name};
use crate::format::{index, partition_metadata, time_index};
use crate::limits::{RECOVERY_FIRST_READ, SCAN_WINDOW, SMALL_FILE};
use crate::mutants::{Mutant, active};
use crate::scan::{EndReason, ReadLimits, SegmentScan, Step};
use crate::segment::{Fill, GrowingIndex, OpenSegment, path};
use crate::shard::LogShard;

/// What a partition's folder holds.
#[derive(Debug, Default)]
struct Folder {
    listing: Vec<fs::Entry>,
    logs: BTreeMap<Offset, u64>,
    snapshots: Vec<Offset>,
    /// Lengths of index files.
    indexes: BTreeMap<(Offset, bool), u64>,
    leftovers: Vec<String>,
    has_epochs: bool,
}

impl Folder {
    fn sort(listing: Vec<fs::Entry>) -> Folder {
        let mut folder = Folder::default();
        for entry in listing.iter().filter(|e| !e.is_dir) {
            folder.has_epochs |= entry.name == EPOCHS_FILE;
            if names::is_leftover(&entry.name) {
                folder.leftovers.push(entry.name.clone());
            }
            match parse_file_name(&entry.name) {
                Some((base, FileKind::Log)) => {
                    folder.logs.insert(base, entry.len);
                }
                Some((base, FileKind::Index)) => {
                    folder.indexes.insert((base, false), entry.len);
                }
                Some((base, FileKind::TimeIndex)) => {
                    folder.indexes.insert((base, true), entry.len);
                }
                Some((offset, FileKind::Snapshot)) => folder.snapshots.push(offset),
                Some((_, FileKind::TxnIndex)) | None => {}
            }
        }
        folder.snapshots.sort_unstable();
        folder.listing = listing;
        folder
    }

    /// Whether the index files still hold what the recovery point counts on.
    fn has_indexes(&self, entry: &CheckpointEntry) -> bool {
        let len = |times| self.indexes.get(&(entry.segment_base, times)).copied().unwrap_or(0);
        len(false) >= u64::from(entry.index_entries) * index::ENTRY_LEN as u64
            && len(true) >= u64::from(entry.time_entries) * time_index::ENTRY_LEN as u64
    }
}

/// Where the scan of the last segment starts.
struct ScanFrom {
    fill: Fill,
    index_entries: u32,
    time_entries: u32,
}

impl PartitionLog {
    pub(crate) async fn recover(
        shard: &Rc<LogShard>,
        spec: PartitionSpec,
        entry: Option<CheckpointEntry>,
    ) -> Result<Rc<PartitionLog>, LogError> {
        let dir = spec.data_dir.path().join(names::partition_dir(&spec.topic, spec.key.partition));
        let Some(mut folder) = read_folder(&dir).await? else {
            if entry.as_ref().is_some_and(CheckpointEntry::has_data) {
                return Err(LogError::BadFolder { path: dir, why: "it is missing, but it held records".into() });
            }
            return Ok(PartitionLog::fresh(shard, spec, Offset::ZERO));
        };
        if !check_owner(&dir, &spec, &folder).await? {
            return Ok(PartitionLog::fresh(shard, spec, Offset::ZERO));
        }
        let history = stored_epochs(&dir, &folder, entry.as_ref()).await?;
        if finish_replacement(&dir).await? {
            folder = read_folder(&dir).await?.unwrap_or_default();
        }
        if folder.logs.is_empty() {
            // Its maker may have been killed between the write and the sync that comes before the first segment.
            let text = partition_metadata::encode(spec.key.topic_id);
            fs::write_tail(&dir.join(METADATA_FILE), 0, text.into_bytes(), true).await?;
        }
        for name in &folder.leftovers {
            fs::remove_file(&dir.join(name)).await?;
        }
        let recovered = recover_tail(&dir, &spec, &folder, entry.as_ref(), &history).await?;
        if let Some(position) = recovered.torn_at {
            let file = path(&dir, recovered.active.base_offset, FileKind::Log);
            shard.damage.torn(&file, recovered.active.fill.next_offset, position, recovered.active.allocated);
        }
        let lost = recovered.lost;
        if recovered.from.fill.size == 0 {
            // Names that no recovery point vouches for may not have reached the disk before the crash.
            fs::sync_dir(&dir).await?;
            fs::sync_dir(spec.data_dir.path()).await?;
        }
        let state = assemble(&spec, &dir, folder, entry, history, recovered).await?;
        let start = Start { durable_end: state.log_end, state, folder_made: true, touched: true };
        let log = PartitionLog::build(shard, spec, start);
        if let Some(offset) = lost.filter(|offset| *offset >= log.log_start_offset()) {
            // Finds how far the damage reaches, marks it and tells of it. Whoever asks for the range later is refused.
            let one = ReadLimits { max_bytes: 1, min_one_batch: true, upper_bound: Offset(i64::MAX) };
            let _ = log.read(offset, one).await;
        }
        Ok(log)
    }
}

async fn read_folder(dir: &Path) -> Result<Option<Folder>, LogError> {
    if fs::stat(dir).await?.is_none() {
        return Ok(None);
    }
    Ok(Some(Folder::sort(fs::read_dir(dir).await?)))
}

/// Whether the folder is this topic's. One without metadata is the rest of a creation that a crash cut off, as long as
/// it holds no segment.
async fn check_owner(dir: &Path, spec: &PartitionSpec, folder: &Folder) -> Result<bool, LogError> {
    let bytes = fs::read_if_there(&dir.join(METADATA_FILE), SMALL_FILE as usize).await?.unwrap_or_default();
    if let Some(version) = partition_metadata::newer_version(&bytes) {
        return Err(LogError::Newer { path: dir.join(METADATA_FILE), version });
    }
    match partition_metadata::decode(&bytes) {
        Some(id) if id == spec.key.topic_id => Ok(true),
        Some(id) => Err(LogError::ForeignFolder { path: dir.to_path_buf(), found: id.to_string() }),
        None if folder.logs.is_empty() => Ok(false),
        None => Err(LogError::BadFolder { path: dir.to_path_buf(), why: "partition.metadata cannot be read".into() }),
    }
}

/// The newer of the epoch file and the checkpoint's copy.
async fn stored_epochs(dir: &Path, folder: &Folder, entry: Option<&CheckpointEntry>) -> Result<EpochHistory, LogError> {
    let mut history = EpochHistory::default();
    if folder.has_epochs {
        let bytes = fs::read_if_there(&dir.join(EPOCHS_FILE), SMALL_FILE as usize).await?;
        let bytes = bytes.unwrap_or_default();
        if let Some(version) = epochs::newer_version(&bytes) {
            return Err(LogError::Newer { path: dir.join(EPOCHS_FILE), version });
        }
        history = EpochHistory::decode(&bytes).unwrap_or_default();
    }
    let copy = entry.and_then(|e| e.epochs.clone()).and_then(EpochHistory::from_entries);
    Ok(copy.filter(|copy| copy.latest() > history.latest()).unwrap_or(history))
}

/// The last segment as the scan found it, and the epochs that begin in it.
struct RecoveredTail {
    active: OpenSegment,
    scan: Option<SegmentScan>,
    from: ScanFrom,
    /// The first offset that was durable once and is not there, or not sound, any more.
    lost: Option<Offset>,
    /// Where the tail ends in bytes that are neither batch nor preallocated.
    torn_at: Option<u64>,
}

async fn recover_tail(
    dir: &Path,
    spec: &PartitionSpec,
    folder: &Folder,
    entry: Option<&CheckpointEntry>,
    history: &EpochHistory,
) -> Result<RecoveredTail, LogError> {
    let now_ms = clock::wall_ms();
    let fresh_at = |base| RecoveredTail {
        active: OpenSegment::fresh(base, now_ms),
        scan: None,
        from: ScanFrom { fill: Fill::empty(base), index_entries: 0, time_entries: 0 },
        lost: None,
        torn_at: None,
    };
    // Offsets below it were given away once, whatever became of the records: the log never ends there again.
    let log_start = entry.map_or(Offset::ZERO, |e| e.log_start_offset);
    let vouched_base = entry.map(|e| vouched_base(folder, e));
    let missing = entry.filter(|e| is_missing(folder, e)).map(|e| e.segment_base.max(log_start));
    let Some((&base, &len)) = folder.logs.last_key_value() else {
        let fresh = fresh_at(vouched_base.unwrap_or(Offset::ZERO).max(log_start));
        return Ok(RecoveredTail { lost: missing, ..fresh });
    };
    if let Some(vouched) = vouched_base.filter(|v| *v > base) {
        // Rolled, and nothing of the next segment reached the disk.
        return Ok(RecoveredTail { lost: missing, ..fresh_at(vouched.max(log_start)) });
    }
    let from = match entry {
        Some(e) if e.segment_base == base && e.fill.size <= len && folder.has_indexes(e) => {
            ScanFrom { fill: e.fill, index_entries: e.index_entries, time_entries: e.time_entries }
        }
        _ => ScanFrom { fill: Fill::empty(base), index_entries: 0, time_entries: 0 },
    };
    let from = if active(Mutant::IndexTrusted) { from_index(dir, base, len).await?.unwrap_or(from) } else { from };
    let (mut scan, mut end) = scan_tail(dir, spec, base, len, &from, history).await?;
    let entry = entry.filter(|e| e.segment_base == base);
    let mut from = from;
    let mut lost = missing;
    if let Some(entry) = entry.filter(|e| scan.fill.size < e.fill.size) {
        lost = Some(scan.fill.next_offset.max(log_start));
        if entry.fill.size > len {
            // What follows begins a segment of its own: no offset is given away twice.
            return Ok(RecoveredTail { lost, ..fresh_at(entry.fill.next_offset.max(log_start)) });
        }
        from = ScanFrom { fill: entry.fill, index_entries: 0, time_entries: 0 };
        let before = scan;
        (scan, end) = scan_tail(dir, spec, base, len, &from, history).await?;
        scan.put_before(before);
    } else if let Some(entry) = entry.filter(|e| from.fill.size < e.fill.size) {
        // Only its index files were of no use: the bytes are vouched for as before.
        from.fill = entry.fill;
    }
    if scan.fill.next_offset < log_start {
        return Ok(fresh_at(log_start));
    }
    // The file's own time: appends after the recovery point are in it, and the entry's times may be another segment's.
    let stat = fs::stat(&path(dir, base, FileKind::Log)).await?;
    let modified_ms = stat.map_or(now_ms, |s| s.modified_ms);
    let mut active = scanned_segment(base, len, &scan, &from);
    active.created_ms = entry.map_or(modified_ms, |e| e.created_ms);
    active.last_append_ms = modified_ms;
    let torn = matches!(end, EndReason::Damaged | EndReason::Cut | EndReason::OutOfOrder);
    let torn_at = torn.then_some(scan.fill.size);
    Ok(RecoveredTail { active, scan: Some(scan), from, lost, torn_at })
}

/// The last segment, of whose file of `len` bytes the scan found so much to be the log's.
fn scanned_segment(base: Offset, len: u64, scan: &SegmentScan, from: &ScanFrom) -> OpenSegment {
    let mut active = OpenSegment::fresh(base, 0);
    active.name_synced = true;
    active.fill = scan.fill;
    active.allocated = len;
    active.needs_cut = len > scan.fill.size;
    active.index = GrowingIndex { in_file: from.index_entries, tail: scan.index.clone() };
    active.time_index = GrowingIndex { in_file: from.time_entries, tail: scan.time_index.clone() };
    active.is_all_on_disk();
    active
}

/// [`Mutant::IndexTrusted`]: from the batch of the last index entry, as if all before it had to be there.
async fn from_index(dir: &Path, base: Offset, len: u64) -> Result<Option<ScanFrom>, LogError> {
    let bytes = fs::read_if_there(&path(dir, base, FileKind::Index), SMALL_FILE as usize).await?;
    let entries = bytes.and_then(|bytes| index::decode(&bytes, len)).unwrap_or_default();
    let [.., before, last] = entries[..] else { return Ok(None) };
    let mut fill = Fill::empty(base);
    fill.size = u64::from(last.position.unsigned_abs());
    fill.next_offset = Offset(base.0 + i64::from(before.relative) + 1);
    Ok(Some(ScanFrom { fill, index_entries: entries.len() as u32 - 1, time_entries: 0 }))
}

/// Whether the segment of the checkpoint's recovery point is gone although it vouches for bytes in it that the log start
/// has not passed.
fn is_missing(folder: &Folder, entry: &CheckpointEntry) -> bool {
    entry.fill.size > 0
        && !folder.logs.contains_key(&entry.segment_base)
        && entry.log_start_offset < entry.fill.next_offset
}

/// First offset of the segment that the log ends in at the earliest, as the checkpoint has it.
fn vouched_base(folder: &Folder, entry: &CheckpointEntry) -> Offset {
    let there = entry.fill.size == 0 || folder.logs.contains_key(&entry.segment_base);
    if there || folder.logs.range(entry.segment_base..).next().is_some() {
        // Or it went, and a later one holds what came after.
        return entry.segment_base;
    }
    // No offset that was vouched for is given away again.
    entry.log_start_offset.max(entry.fill.next_offset)
}

async fn scan_tail(
    dir: &Path,
    spec: &PartitionSpec,
    base: Offset,
    len: u64,
    from: &ScanFrom,
    history: &EpochHistory,
) -> Result<(SegmentScan, EndReason), LogError> {
    let file = DirectFile::open(&path(dir, base, FileKind::Log), OpenMode::ReadWrite).await?;
    let epoch = match from.fill.size {
        0 => None,
        _ => history.of_offset(Offset(from.fill.next_offset.0 - 1)),
    };
    let epoch = epoch.unwrap_or(LeaderEpoch::UNKNOWN);
    let scan = SegmentScan::new(base, from.fill, epoch, spec.config.index_interval_bytes);
    let mut scan = scan.with_gaps(spec.config.gaps || spec.config.compact);
    if active(Mutant::TailCrcUnchecked) {
        scan = scan.headers_only();
    }
    let mut window = RECOVERY_FIRST_READ;
    let end = loop {
        let left = len - scan.position();
        let ask = window.min(left as usize);
        let bytes = file.read(scan.position(), ask).await?;
        // A file shorter than its stat said ends where it ends.
        let left = if bytes.len() < ask { bytes.len() as u64 } else { left };
        match scan.feed(&bytes, left) {
            Step::Need(need) => window = need.max(SCAN_WINDOW),
            Step::End(why) => break why,
        }
    };
    if scan.fill.size > from.fill.size || from.fill.size == 0 {
        // Written, or cut to nothing, but perhaps not synced before the crash: synced before anyone may count on it.
        file.fdatasync().await?;
    }
    file.close().await?;
    Ok((scan, end))
}

async fn assemble(
    spec: &PartitionSpec,
    dir: &Path,
    folder: Folder,
    entry: Option<CheckpointEntry>,
    history: EpochHistory,
    recovered: RecoveredTail,
) -> Result<State, LogError> {
    let RecoveredTail { active, scan, from, .. } = recovered;
    let end = active.fill.next_offset;
    let base = active.base_offset;
    let closed = closed_segments(&folder.listing, base);
    let first = closed.first().map_or(base, |s| s.base_offset);
    // It is durable before a file goes: where the first file begins behind it, records are missing, and the log start does
    // not hide that.
    let log_start = entry.as_ref().map_or(first, |e| e.log_start_offset).min(end);
    let mut state = State::new(spec, active, log_start);
    state.closed_count = closed.len() as u32;
    state.closed_bytes = closed.iter().map(|s| s.size).sum();
    state.was_cleaned = folder.listing.iter().any(|entry| entry.name == POINT_FILE);
    state.closed = Some(closed);
    state.epochs = history;
    for epoch in scan.iter().flat_map(|s| &s.epochs) {
        state.epochs_dirty |= state.epochs.assign(epoch.epoch, epoch.start_offset);
    }
    state.epochs_dirty |= state.epochs.truncate_from_end(end);
    state.recovery_point = (base, from.fill.size);
    state.point.fill = from.fill;
    state.point.index_entries = from.index_entries;
    state.point.time_entries = from.time_entries;
    for snapshot in folder.snapshots {
        if snapshot <= end || crate::mutants::active(Mutant::SnapshotAhead) {
            state.snapshots.push(snapshot);
        } else {
            fs::remove_file(&path(dir, snapshot, FileKind::Snapshot)).await?;
        }
    }
    Ok(state)
}
