//! A partition's folder: its segments in order, the small files beside them, and what a start would keep.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use log::format::names::{EPOCHS_FILE, FileKind, METADATA_FILE, file_name, parse_file_name, parse_partition_dir};
use log::format::partition_metadata;
use log::limits::{DIR_NAMES_MAX, SMALL_FILE, SNAPSHOT_FILE};
use model::Offset;
use serde_json::json;

use super::out::Out;
use super::records::Dialect;
use super::recovery_point::{Recovery, RecoveryPoints};
use super::segment::{self, Fail, Look, Segment};
use super::walk::GAPS_HINT;

/// `orders-3` is topic `orders`; `None` for a name that is no partition's.
pub fn topic_of(name: &str) -> Option<&str> {
    parse_partition_dir(name).map(|(topic, _)| topic)
}

/// Names in a folder, in order.
pub fn names(dir: &Path) -> Result<Vec<String>, Fail> {
    let entries =
        std::fs::read_dir(dir).map_err(|e| Fail::Sentence(format!("{} cannot be read: {e}", dir.display())))?;
    let mut names: Vec<String> =
        entries.flatten().take(DIR_NAMES_MAX).filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Whether a folder holds segments itself.
pub fn is_partition(names: &[String]) -> bool {
    names.iter().any(|name| name == METADATA_FILE || parse_file_name(name).is_some())
}

/// How a partition's folder is to be looked at.
#[derive(Clone, Copy, Debug)]
pub struct FolderLook<'a> {
    /// That of [`segment::Look`], for the segment that a broker may be writing to.
    pub patience: u32,
    /// Of the data folder, if it lies in one of ours.
    pub points: Option<&'a RecoveryPoints>,
    /// The caller knows that the topic is compacted.
    pub gaps: bool,
}

pub fn dump(dir: &Path, names: &[String], look: FolderLook<'_>, out: &mut Out<'_>) -> Result<(), Fail> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let dialect = Dialect::of_topic(topic_of(&name).unwrap_or_default());
    let topic_id = topic_id(dir);
    out.item(
        || format!("partition {name}  topic id {}", topic_id.as_deref().unwrap_or("unknown")),
        || json!({ "type": "partition", "folder": dir.display().to_string(), "topic_id": topic_id }),
    )?;
    let recovery = look.points.map(|points| points.of(dir));
    let gaps = may_have_gaps(&name, look.gaps);
    let mut segments: BTreeMap<Offset, (PathBuf, Segment)> = BTreeMap::new();
    // End of the segment before, and whether all of it could be read.
    let mut before: Option<(i64, bool)> = None;
    let bases: Vec<Offset> = names
        .iter()
        .filter_map(|n| parse_file_name(n))
        .filter(|(_, k)| *k == FileKind::Log)
        .map(|(base, _)| base)
        .collect();
    for &base in &bases {
        let path = dir.join(file_name(base, FileKind::Log));
        if let Some((end, _)) = before.filter(|(end, _)| *end > base.0) {
            out.damage(
                || format!("  DAMAGE: segment {} begins before the end {end} of the one before it", base.0),
                || json!({ "type": "damage", "why": "segments overlap", "base_offset": base.0, "previous_end": end }),
            )?;
        }
        if let Some((end, _)) = before.filter(|(end, sound)| !gaps && *sound && *end < base.0) {
            let last = base.0 - 1;
            out.damage(
                || format!("  DAMAGE: offsets {end} to {last} are missing before segment {} ({GAPS_HINT})", base.0),
                || json!({ "type": "damage", "why": "records are missing", "from_offset": end, "last_offset": last }),
            )?;
        }
        // Only the last one is written to.
        let is_last = Some(&base) == bases.last();
        let patience = if is_last { look.patience } else { 0 };
        let trusted = recovery.as_ref().filter(|_| is_last).and_then(|r| r.trusted(dir, base));
        if let Some(segment) = segment::dump(&path, Look { base, dialect, patience, trusted, gaps }, out)? {
            before = Some((segment.kept_offset, segment.damaged == 0));
            segments.insert(base, (path, segment));
        }
    }
    let epochs: Vec<(i32, i64)> = segments.values().flat_map(|(_, s)| s.epochs.iter().copied()).collect();
    let end = segments.values().next_back().map_or(0, |(_, s)| s.kept_offset);
    snapshots(dir, names, end, out)?;
    epoch_checkpoint(dir, &epochs, out)?;
    verdict(&segments, recovery.as_ref(), out)
}

/// Compaction leaves gaps. The broker's own topics are compacted; of others the files do not say it.
pub fn may_have_gaps(partition_dir: &str, told: bool) -> bool {
    told || partition_dir.starts_with("__")
}

/// At most `limit` bytes of a file.
pub fn read_small(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn topic_id(dir: &Path) -> Option<String> {
    let bytes = read_small(&dir.join(METADATA_FILE), SMALL_FILE).ok()?;
    partition_metadata::decode(&bytes).map(|id| id.to_string())
}

/// Producer snapshots, a line for each producer.
fn snapshots(dir: &Path, names: &[String], end: i64, out: &mut Out<'_>) -> Result<(), Fail> {
    for name in names.iter().filter(|n| parse_file_name(n).is_some_and(|(_, kind)| kind == FileKind::Snapshot)) {
        snapshot(&dir.join(name), Some(end), out)?;
    }
    Ok(())
}

/// One producer snapshot; `end` is the log's, if it is known.
pub fn snapshot(path: &Path, end: Option<i64>, out: &mut Out<'_>) -> Result<(), Fail> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let at = parse_file_name(&name).map_or(0, |(at, _)| at.0);
    let bytes = match read_small(path, SNAPSHOT_FILE) {
        // A broker keeps the newest two and removes the others.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|e| e.to_string()),
    };
    let table = bytes.and_then(|bytes| replica::snapshot::decode(&bytes).map_err(|e| e.to_string()));
    let table = match table {
        Ok(table) => table,
        Err(why) => {
            out.damage(
                || format!("  snapshot {name}  DAMAGE: {why}; producers are read from the log instead"),
                || json!({ "type": "snapshot", "file": name, "problem": why }),
            )?;
            return Ok(());
        }
    };
    let dropped = end.is_some_and(|end| at > end);
    let note = if dropped { ", beyond the log's end: a start removes it" } else { "" };
    out.item(
        || format!("  snapshot {name}  {} producers{note}", table.len()),
        || json!({ "type": "snapshot", "file": name, "producers": table.len(), "beyond_end": dropped }),
    )?;
    if out.detail.summary {
        return Ok(());
    }
    for (id, producer) in table.to_vec() {
        let Some(last) = producer.batches.last() else { continue };
        out.item(
            || {
                format!(
                    "    producer {id}/{}  last sequence {} at offset {}  {} batches remembered",
                    producer.epoch,
                    last.last_sequence,
                    last.last_offset,
                    producer.batches.len()
                )
            },
            || {
                json!({
                    "type": "producer", "producer_id": id.0, "producer_epoch": producer.epoch.0,
                    "last_sequence": last.last_sequence, "last_offset": last.last_offset.0,
                    "timestamp_ms": last.timestamp_ms, "batches": producer.batches.len(),
                })
            },
        )?;
    }
    Ok(())
}

/// Kafka's text: version, count, then an epoch and its first offset a line.
fn parse_epochs(text: &str) -> Result<Vec<(i32, i64)>, String> {
    let mut lines = text.lines();
    if lines.next() != Some("0") {
        return Err("it is not of version 0".to_owned());
    }
    let count: usize = lines.next().and_then(|l| l.parse().ok()).ok_or("its count is no number")?;
    let entry = |line: &str| {
        let (epoch, start) = line.split_once(' ')?;
        Some((epoch.parse().ok()?, start.parse().ok()?))
    };
    let entries: Option<Vec<(i32, i64)>> = lines.map(entry).collect();
    let entries = entries.ok_or("a line of it is not an epoch and an offset")?;
    if entries.len() != count {
        return Err(format!("it counts {count} epochs and holds {}", entries.len()));
    }
    let rising = entries.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1);
    if rising { Ok(entries) } else { Err("its epochs or offsets do not rise".to_owned()) }
}

fn epoch_checkpoint(dir: &Path, in_log: &[(i32, i64)], out: &mut Out<'_>) -> Result<(), Fail> {
    let bytes = match read_small(&dir.join(EPOCHS_FILE), SMALL_FILE) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Fail::Sentence(format!("{}/{EPOCHS_FILE} cannot be read: {e}", dir.display()))),
    };
    let parsed = String::from_utf8(bytes).map_err(|_| "it is not text".to_owned()).and_then(|t| parse_epochs(&t));
    let entries = match parsed {
        Ok(entries) => entries,
        Err(why) => {
            out.damage(
                || format!("  {EPOCHS_FILE}  DAMAGE: {why}; a start takes the epochs from the batches"),
                || json!({ "type": "epochs", "problem": why }),
            )?;
            return Ok(());
        }
    };
    let missing: Vec<i32> =
        in_log.iter().map(|(epoch, _)| *epoch).filter(|e| entries.last().is_none_or(|(last, _)| last < e)).collect();
    let shown: Vec<String> = entries.iter().map(|(epoch, start)| format!("{epoch} from {start}")).collect();
    let note = if missing.is_empty() { String::new() } else { format!("; newer ones in the log: {missing:?}") };
    out.item(
        || format!("  leader epochs: {}{note}", shown.join(", ")),
        || json!({ "type": "epochs", "entries": entries, "newer_in_log": missing }),
    )?;
    Ok(())
}

/// What a start would keep: the last segment up to its first unsound byte behind the recovery point, if there is one.
/// What lies before it was synced and is not scanned; damage there shows when it is read.
fn verdict(
    segments: &BTreeMap<Offset, (PathBuf, Segment)>,
    recovery: Option<&Recovery>,
    out: &mut Out<'_>,
) -> Result<(), Fail> {
    let last = segments.last_key_value();
    let kept_bytes = last.map_or(0, |(_, (_, segment))| segment.kept_bytes);
    let missing = recovery.and_then(|r| r.missing(last.map(|l| *l.0), kept_bytes, |base| segments.contains_key(&base)));
    if let Some(why) = missing {
        out.damage(|| format!("  DAMAGE: {why}"), || json!({ "type": "damage", "why": why }))?;
    }
    let Some((base, (path, last))) = last else {
        out.item(|| "  empty: no segment".to_owned(), || json!({ "type": "verdict", "segments": 0 }))?;
        return Ok(());
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let behind = last.len.saturating_sub(last.kept_bytes);
    let unsound = behind - last.reserved_bytes.min(behind);
    let closed_damage: u64 = segments.values().rev().skip(1).map(|(_, s)| s.damaged).sum();
    let (batches, records) = segments.values().fold((0, 0), |(b, r), (_, s)| (b + s.batches, r + s.records));
    let entry = recovery.and_then(|r| r.entry.as_ref());
    let first = segments.keys().next().map_or(0, |base| base.0);
    let start = entry.map_or(first, |e| e.log_start_offset.0.max(first));
    let how = recovery.map(|r| r.text(*base, last.trusted)).unwrap_or_default();
    let cut = match (unsound, last.reserved_bytes) {
        (0, 0) => "nothing is behind it".to_owned(),
        (0, zeros) => format!("{zeros} reserved zeros behind it"),
        (unsound, 0) => format!("{unsound} bytes behind it are cut off"),
        (unsound, zeros) => format!("{unsound} bytes behind it are cut off, and {zeros} reserved zeros"),
    };
    let closed = match closed_damage {
        0 => String::new(),
        n => format!("; {n} damaged places in closed segments stay, and reading there fails"),
    };
    out.item(
        || {
            format!(
                "  verdict: offsets {start} to {} kept, up to byte {} of {name}; {cut}{how}{closed} ({batches} batches, {records} records in {} segments)",
                last.kept_offset,
                last.kept_bytes,
                segments.len()
            )
        },
        || {
            json!({
                "type": "verdict", "log_start_offset": start, "log_end_offset": last.kept_offset, "segment": name,
                "kept_bytes": last.kept_bytes, "cut_bytes": unsound, "reserved_bytes": last.reserved_bytes,
                "damaged_in_closed": closed_damage, "segments": segments.len(), "batches": batches, "records": records,
                "recovery": recovery.map(|r| json!({
                    "clean": r.clean, "recovery_point_offset": r.entry.as_ref().map(|e| e.fill.next_offset.0),
                    "scan_from_bytes": if r.clean && r.entry.is_some() { None } else { Some(last.trusted.map_or(0, |t| t.size)) },
                })),
            })
        },
    )?;
    Ok(())
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
