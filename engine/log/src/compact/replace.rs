//! `ringlog.replace` in a partition's folder: the replacement of a group of segments by one cleaned segment. The file is
//! there from the moment the cleaned files are complete and durable under their names `*.cleaned` until the old ones are
//! gone. That it is there is the decision: without it the old segments are the log and `*.cleaned` is rubbish, with it the
//! cleaned one is, and what is missing of the renames and removals is done by whoever finds it. Every step may be done
//! twice. Kafka writes the same into the names (`.swap`); a plan says which segments go, so nobody has to guess it from
//! the offsets in a file.

use std::io;
use std::path::{Path, PathBuf};

use model::Offset;
use runtime::{IoError, fs};

use super::point::{Fields, sealed};
use super::stop::step;
use crate::error::LogError;
use crate::format::names::{FileKind, file_name};
use crate::limits::{REPLACED_SEGMENTS, SMALL_FILE};
use crate::segment::path;

/// The file's name.
pub(crate) const REPLACE_FILE: &str = "ringlog.replace";
const CLEANED: &str = ".cleaned";
/// What a cleaned segment consists of.
pub(crate) const CLEANED_KINDS: [FileKind; 3] = [FileKind::Log, FileKind::Index, FileKind::TimeIndex];
const ALL_KINDS: [FileKind; 4] = [FileKind::Log, FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex];

/// First offsets of the segments that become one under the name of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    bases: Vec<Offset>,
}

/// Name of a cleaned file until it takes the place of the old one.
pub(crate) fn cleaned_path(dir: &Path, base: Offset, kind: FileKind) -> PathBuf {
    dir.join(format!("{}{CLEANED}", file_name(base, kind)))
}

impl Replacement {
    pub fn new(bases: Vec<Offset>) -> Replacement {
        assert!(!bases.is_empty() && bases.is_sorted(), "a group is segments in order");
        Replacement { bases }
    }

    pub fn encode(&self) -> Vec<u8> {
        let list = self.bases.iter().map(|base| base.0.to_string()).collect::<Vec<_>>().join(",");
        sealed(format!("version=1\nsegments={list}\n")).into_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Result<Replacement, &'static str> {
        let list = Fields::open(bytes)?.text("segments=")?;
        let number = |text: &str| text.parse().ok().filter(|n: &i64| *n >= 0).map(Offset);
        let bases: Option<Vec<Offset>> = list.split(',').take(REPLACED_SEGMENTS + 1).map(number).collect();
        match bases.filter(|b| b.is_sorted_by(|a, b| a < b) && b.len() <= REPLACED_SEGMENTS) {
            Some(bases) => Ok(Replacement { bases }),
            None => Err("its list of segments cannot be read"),
        }
    }

    /// From the decision to its end. After an error it may be called again, now or at the next start.
    pub async fn finish(&self, dir: &Path) -> Result<(), IoError> {
        for kind in CLEANED_KINDS {
            step(dir)?;
            rename_if_there(&cleaned_path(dir, self.bases[0], kind), &path(dir, self.bases[0], kind)).await?;
        }
        self.remove_replaced(dir).await?;
        step(dir)?;
        fs::sync_dir(dir).await?;
        // A plan that came back after a later segment took one of these names would remove that.
        fs::remove_file(&dir.join(REPLACE_FILE)).await?;
        fs::sync_dir(dir).await
    }

    pub async fn remove_replaced(&self, dir: &Path) -> Result<(), IoError> {
        for base in &self.bases[1..] {
            for kind in ALL_KINDS {
                step(dir)?;
                fs::remove_file(&path(dir, *base, kind)).await?;
            }
        }
        Ok(())
    }
}

async fn rename_if_there(from: &Path, to: &Path) -> Result<(), IoError> {
    match fs::rename(from, to).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// At a start after a crash, before the folder's segments are looked at: a replacement that was decided is finished. Gives
/// whether there was one.
pub(crate) async fn finish_replacement(dir: &Path) -> Result<bool, LogError> {
    let file = dir.join(REPLACE_FILE);
    let Some(bytes) = fs::read_if_there(&file, SMALL_FILE as usize).await? else { return Ok(false) };
    let replacement = Replacement::decode(&bytes)
        .map_err(|why| LogError::BadFolder { path: file, why: format!("{why}; restore the folder from a backup") })?;
    replacement.finish(dir).await?;
    Ok(true)
}

/// Removes what an unfinished cleaning wrote.
pub(crate) async fn remove_cleaned(dir: &Path, base: Offset) -> Result<(), IoError> {
    for kind in CLEANED_KINDS {
        fs::remove_file(&cleaned_path(dir, base, kind)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn goes_both_ways_and_notices_damage() {
        let plan = Replacement::new(vec![Offset(3), Offset(40), Offset(41)]);
        let bytes = plan.encode();
        assert_eq!(Replacement::decode(&bytes), Ok(plan));
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 1;
            assert!(Replacement::decode(&damaged).is_err(), "byte {i}");
        }
        for bad in ["", "1,1", "2,1", "-1", "x", "1,"] {
            let text = sealed(format!("version=1\nsegments={bad}\n"));
            assert!(Replacement::decode(text.as_bytes()).is_err(), "{bad}");
        }
        let newer = sealed("version=2\n".to_string());
        assert_eq!(Replacement::decode(newer.as_bytes()), Err("it was written by a newer version"));
    }
}
