//! A start after a crash: what the rings hold goes into the segments, is synced, and the rings are given up, before any
//! partition is opened. All writers' rings, whatever the number of shards is now.
//!
//! Entries are applied to files that are there. A segment that is missing was removed by retention or a deletion after its
//! bytes were journalled; nothing is journalled for a segment whose name is not durable. What was applied once may be
//! applied again: a crash in here is a start like the first.
//!
//! Partitions that lost something acknowledged are remembered in a file of their own until an operator removes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::{Offset, PartitionIndex, PartitionKey, TopicId};
use runtime::fs::{self, Overlay};
use runtime::spawn_blocking;

use super::format::{self, Owner};
use super::plan::{Lost, Piece, Plan, plan};
use super::{FOLDER, file_path};
use crate::data_dir::FoundPartition;
use crate::error::DataDirError;
use crate::format::names::{self, FileKind, file_name};
use crate::limits::{RING_FILE_MAX, RING_FILES_MAX, SMALL_FILE};

/// Partitions whose journalled records are lost, one a line.
pub const LOST: &str = "lost";

/// Partitions that lost acknowledged records, and the round that held them.
pub type LostPartitions = BTreeMap<PartitionKey, u64>;

/// Applies and retires every ring of the data folder. A clean stop left none, durably.
pub(crate) async fn replay(dir: &Path, found: &[FoundPartition], clean: bool) -> Result<LostPartitions, DataDirError> {
    let folder = dir.join(FOLDER);
    if fs::stat(&folder).await?.is_none() {
        return Ok(LostPartitions::new());
    }
    let mut lost = read_lost(&folder).await?;
    let listing = fs::read_dir(&folder).await?;
    let states: Vec<PathBuf> =
        listing.iter().filter(|e| e.name.ends_with(".state")).map(|e| folder.join(&e.name)).collect();
    if clean && states.is_empty() {
        return Ok(lost);
    }
    for state in &states {
        let (owner, files) = read_ring(&folder, state).await?;
        let (plan, files) = plan_off_shard(owner, files, state).await?;
        apply(dir, found, &plan, &files).await?;
        if !plan.damaged.is_empty() {
            lost.extend(plan.damaged);
            fs::write_durable(&folder.join(LOST), encode_lost(&lost)).await?;
        }
    }
    for state in &states {
        fs::remove_file(state).await?;
    }
    // Also without a state: a kill may have come between its removal and the sync. The ring's files stay: the next ring is made of them, and its incarnation tells its rounds from theirs.
    fs::sync_dir(&folder).await?;
    Ok(lost)
}

fn unreadable(path: &Path, why: impl Into<String>) -> DataDirError {
    DataDirError::Unreadable { path: path.to_path_buf(), why: why.into() }
}

/// One of the ring's files.
pub fn ring_path(folder: &Path, owner: Owner, slot: usize) -> PathBuf {
    file_path(folder, owner.writer, slot)
}

/// All files of one writer's ring.
pub async fn read_ring(folder: &Path, state: &Path) -> Result<(Owner, Vec<Vec<u8>>), DataDirError> {
    let bytes = fs::read(state, SMALL_FILE as usize).await?;
    let (owner, count) = format::decode_state(&bytes).map_err(|why| unreadable(state, why))?;
    if count as usize > RING_FILES_MAX {
        return Err(unreadable(state, format!("it names more than {RING_FILES_MAX} files")));
    }
    let mut files = Vec::new();
    for slot in 0..count as usize {
        let path = file_path(folder, owner.writer, slot);
        let bytes = fs::read_if_there(&path, RING_FILE_MAX as usize).await?;
        files.push(bytes.ok_or_else(|| unreadable(&path, "it is missing, and it may hold acknowledged records"))?);
    }
    Ok((owner, files))
}

/// Checksums over the whole ring take a while: not on the shard.
async fn plan_off_shard(owner: Owner, files: Vec<Vec<u8>>, state: &Path) -> Result<(Plan, Vec<Bytes>), DataDirError> {
    let chosen = crate::mutants::chosen();
    let planned = spawn_blocking(move || {
        crate::mutants::choose_here(chosen);
        (plan(owner, &files), files)
    });
    let (planned, files) = planned.await.map_err(|panic| unreadable(state, panic.to_string()))?;
    let planned = planned.map_err(|Lost { sequence }| {
        let why = format!(
            "round {sequence} was durable and is damaged, nobody can tell whose acknowledged records it held; to start \
             without them, move this file away"
        );
        unreadable(state, why)
    })?;
    Ok((planned, files.into_iter().map(Bytes::from).collect()))
}

async fn apply(dir: &Path, found: &[FoundPartition], plan: &Plan, files: &[Bytes]) -> Result<(), DataDirError> {
    let mut overlays = Vec::new();
    for partition in found {
        let Some(topic_id) = partition.topic_id else { continue };
        let key = PartitionKey { topic_id, partition: partition.partition };
        let Some(pieces) = plan.pieces.get(&key) else { continue };
        let folder = dir.join(names::partition_dir(&partition.topic, partition.partition));
        overlays.extend(by_segment(&folder, pieces, files));
    }
    if !overlays.is_empty() {
        fs::overlay(dir, overlays).await?;
    }
    Ok(())
}

fn by_segment(folder: &Path, pieces: &[Piece], files: &[Bytes]) -> Vec<Overlay> {
    let mut segments: BTreeMap<Offset, Vec<(u64, Bytes)>> = BTreeMap::new();
    for piece in pieces {
        let bytes = files[piece.file].slice(piece.bytes.clone());
        segments.entry(piece.segment_base).or_default().push((piece.position, bytes));
    }
    let overlay = |(base, pieces)| Overlay { path: folder.join(file_name(base, FileKind::Log)), pieces };
    segments.into_iter().map(overlay).collect()
}

async fn read_lost(folder: &Path) -> Result<LostPartitions, DataDirError> {
    let path = folder.join(LOST);
    match fs::read_if_there(&path, SMALL_FILE as usize).await? {
        None => Ok(LostPartitions::new()),
        Some(bytes) => decode_lost(&bytes).ok_or_else(|| unreadable(&path, "it is damaged or of a newer version")),
    }
}

pub fn encode_lost(lost: &LostPartitions) -> Vec<u8> {
    let mut text = "version=1\n".to_string();
    for (key, round) in lost {
        text.push_str(&format!("{} {} {round}\n", key.topic_id, key.partition));
    }
    format!("{text}crc={:08x}\n", crc32fast::hash(text.as_bytes())).into_bytes()
}

pub fn decode_lost(bytes: &[u8]) -> Option<LostPartitions> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (body, crc) = text.split_at(text.rfind("crc=")?);
    if crc != format!("crc={:08x}\n", crc32fast::hash(body.as_bytes())) {
        return None;
    }
    let rest = body.strip_prefix("version=1\n")?;
    let line = |line: &str| {
        let mut words = line.split(' ');
        let topic_id = TopicId::parse(words.next()?)?;
        let partition = PartitionIndex(words.next()?.parse().ok()?);
        Some((PartitionKey { topic_id, partition }, words.next()?.parse().ok()?))
    };
    rest.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_partitions_are_remembered_and_damage_is_noticed() {
        let key = |n| PartitionKey { topic_id: TopicId::from_random([n; 16]), partition: PartitionIndex(i32::from(n)) };
        let lost = LostPartitions::from([(key(1), 7), (key(2), 9)]);
        let bytes = encode_lost(&lost);
        assert_eq!(decode_lost(&bytes), Some(lost));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(decode_lost(&damaged), None, "byte {at}");
        }
        assert_eq!(decode_lost(&encode_lost(&LostPartitions::new())), Some(LostPartitions::new()));
    }
}
