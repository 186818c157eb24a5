//! Whether a data folder was written by a newer Ringlog. Asked before anything in it is opened or changed, so that a
//! refusal leaves every byte as it was and the newer program can go on.
//!
//! What stays in all versions to come: in text files the first line `version=N` and the last one `crc=`, in checkpoints the
//! magic, the version behind it and the CRC at the end. A file whose CRC is wrong says nothing here: it is judged as
//! damage where it is used. Whoever raises the version of a partition's file raises that of `ringlog.meta` too: a start
//! after a clean stop does not look into partitions.

use std::path::Path;

use runtime::fs;

use crate::data_dir::{CHECKPOINT, CLEAN, META, is_part};
use crate::error::DataDirError;
use crate::format::{checkpoint, clean_mark, identity};
use crate::journal;
use crate::limits::{CHECKPOINT_FILE, SMALL_FILE};

/// An error names the first file that is newer than this program.
pub async fn refuse_newer(folder: &Path) -> Result<(), DataDirError> {
    if fs::stat(folder).await?.is_none() {
        return Ok(());
    }
    check(folder, META, SMALL_FILE, identity::newer_version).await?;
    check(folder, CLEAN, SMALL_FILE, clean_mark::newer_version).await?;
    check(folder, CHECKPOINT, CHECKPOINT_FILE, checkpoint::newer_version).await?;
    for entry in fs::read_dir(folder).await?.iter().filter(|entry| is_part(&entry.name)) {
        check(folder, &entry.name, CHECKPOINT_FILE, checkpoint::newer_version).await?;
    }
    let rings = folder.join(journal::FOLDER);
    if fs::stat(&rings).await?.is_some() {
        for entry in fs::read_dir(&rings).await?.iter().filter(|entry| entry.name.ends_with(".state")) {
            check(&rings, &entry.name, SMALL_FILE, journal::format::newer_version).await?;
        }
    }
    Ok(())
}

async fn check(
    folder: &Path,
    name: &str,
    limit: u64,
    newer_version: impl Fn(&[u8]) -> Option<u32>,
) -> Result<(), DataDirError> {
    let path = folder.join(name);
    let bytes = fs::read_if_there(&path, limit as usize).await?;
    match bytes.and_then(|bytes| newer_version(&bytes)) {
        Some(version) => Err(DataDirError::Newer { path, version }),
        None => Ok(()),
    }
}
