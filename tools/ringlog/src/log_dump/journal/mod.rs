//! The journal of a data folder: its rounds, and what a start would do with each of them and why.
//!
//! Only reads, a round at a time; what a start would say comes from [`log::journal::look`], which keeps a few numbers of each
//! round. A ring is read twice: to judge it, and to print it. Beside a running broker rounds come and go between the two;
//! what looks lost is looked at again before it is said.
//!
//! [`blocks`] finds rounds in a file, [`ring`] judges a writer's files together, [`round`] prints.

mod blocks;
mod ring;
mod round;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use log::format::names::{FileKind, METADATA_FILE, file_name, parse_partition_dir};
use log::format::partition_metadata;
use log::journal::replay::{LOST, decode_lost};
use log::limits::SMALL_FILE;
use model::{Offset, PartitionKey};
use serde_json::json;

use self::ring::Ring;
use super::folder::{names, read_small};
use super::out::Out;
use super::segment::Fail;

pub use log::journal::FOLDER;

/// What of a ring is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Only the rounds of this file.
    pub slot: Option<usize>,
    /// Also the rounds that do not count: older laps, other starts. Files keep them until they are written over.
    pub all: bool,
}

/// `00000.00003.ring` is writer 0, slot 3; `00000.state` has no slot.
pub fn parse_name(name: &str) -> Option<(u16, Option<usize>)> {
    if let Some(writer) = name.strip_suffix(".state") {
        return Some((writer.parse().ok()?, None));
    }
    let (writer, slot) = name.strip_suffix(".ring")?.split_once('.')?;
    Some((writer.parse().ok()?, Some(slot.parse().ok()?)))
}

/// One file of a ring, or all of the ring that a state file is of.
pub fn dump_file(path: &Path, out: &mut Out<'_>) -> Result<(), Fail> {
    let full = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let name = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (Some((writer, slot)), Some(folder)) = (parse_name(&name), full.parent()) else {
        return Err(Fail::Sentence(format!("{} is no file of a journal", path.display())));
    };
    Ring::find(folder, writer)?.dump(&Homes::of(folder)?, Shown { slot, all: true }, out)
}

/// Every ring of the folder. `all` as in [`Shown`].
pub fn dump_folder(folder: &Path, all: bool, out: &mut Out<'_>) -> Result<(), Fail> {
    let writers: BTreeSet<u16> =
        names(folder)?.iter().filter_map(|n| parse_name(n)).map(|(writer, _)| writer).collect();
    let homes = Homes::of(folder)?;
    for writer in writers {
        Ring::find(folder, writer)?.dump(&homes, Shown { slot: None, all }, out)?;
    }
    dump_lost(folder, &homes, out)
}

/// Partitions that an earlier start found to have lost records.
fn dump_lost(folder: &Path, homes: &Homes, out: &mut Out<'_>) -> Result<(), Fail> {
    let path = folder.join(LOST);
    let bytes = match read_small(&path, SMALL_FILE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Fail::Sentence(format!("{} cannot be read: {error}", path.display()))),
    };
    let Some(lost) = decode_lost(&bytes) else {
        let why = "it is damaged or of a newer version: a start refuses";
        return Ok(out.damage(
            || format!("  DAMAGE: {LOST}: {why}"),
            || json!({ "type": "damage", "file": path.display().to_string(), "why": why }),
        )?);
    };
    for (key, round) in lost {
        let name = homes.name(key);
        let why =
            "an earlier start found it to have lost acknowledged records; it is refused until the file lost is removed";
        out.damage(
            || format!("  DAMAGE: {name}: {why} (round {round})"),
            || json!({ "type": "damage", "partition": name, "round": round, "why": why }),
        )?;
    }
    Ok(())
}

/// The partitions' folders beside the journal.
struct Homes(BTreeMap<PartitionKey, PathBuf>);

impl Homes {
    fn of(journal: &Path) -> Result<Homes, Fail> {
        let Some(data) = journal.parent() else { return Ok(Homes(BTreeMap::new())) };
        // Someone may look at a journal whose data folder is closed to them.
        let listing = names(data).unwrap_or_default();
        let home = |name: &String| {
            let (_, partition) = parse_partition_dir(name)?;
            let folder = data.join(name);
            let metadata = read_small(&folder.join(METADATA_FILE), SMALL_FILE).ok()?;
            Some((PartitionKey { topic_id: partition_metadata::decode(&metadata)?, partition }, folder))
        };
        Ok(Homes(listing.iter().filter_map(home).collect()))
    }

    fn name(&self, key: PartitionKey) -> String {
        let named = self.0.get(&key).and_then(|folder| folder.file_name());
        named.map_or_else(|| format!("{}-{}", key.topic_id, key.partition), |name| name.to_string_lossy().into_owned())
    }

    /// Why bytes of this segment have nowhere to go.
    fn absent(&self, key: PartitionKey, base: Offset) -> Option<&'static str> {
        let Some(folder) = self.0.get(&key) else { return Some("no such partition here") };
        let there = folder.join(file_name(base, FileKind::Log)).exists();
        (!there).then_some("its segment is gone")
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
