//! What must happen on disk, in which order: data, so that a driver performs it and a test may cut it anywhere.
//!
//! Files of the metadata folder: `metadata-<base>.log` (the journal since the snapshot at `base`), `snapshot-<base>` (none for
//! base 0), and `*.tmp` while one is being made. A new pair replaces the old one in this order: snapshot, journal (each aside,
//! synced, renamed, folder synced), then the old files go. A crash anywhere leaves a journal whose snapshot is there: the one
//! with the greatest base counts, for it was whole before it got its name.

use crate::error::MetadataError;

const JOURNAL_PREFIX: &str = "metadata-";
const JOURNAL_SUFFIX: &str = ".log";
const SNAPSHOT_PREFIX: &str = "snapshot-";
const ASIDE_SUFFIX: &str = ".tmp";

/// One step, durable when it is done. Steps of a `Ready` are performed in order; any failure but that of `Remove` ends the
/// process, because what it covered may be lost although a second try would not say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskStep {
    /// The whole file: written as `<file>.tmp`, synced, renamed, the folder synced.
    Replace { file: String, bytes: Vec<u8> },
    /// Written at `offset`, which is the file's length so far, and synced.
    Append { file: String, offset: u64, bytes: Vec<u8> },
    /// Cut and synced.
    Truncate { file: String, len: u64 },
    /// May fail, and need not be durable: the next start removes what is left.
    Remove { file: String },
}

/// Which files of the folder count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryPlan {
    /// To be read whole; `None` on the first start.
    pub journal: Option<String>,
    /// To be read whole, where the journal has one.
    pub snapshot: Option<String>,
    /// Left over by a crash. The node's first steps remove them.
    pub stale: Vec<String>,
}

pub(crate) fn journal_name(base: u64) -> String {
    format!("{JOURNAL_PREFIX}{base:020}{JOURNAL_SUFFIX}")
}

pub(crate) fn snapshot_name(base: u64) -> String {
    format!("{SNAPSHOT_PREFIX}{base:020}")
}

/// Chooses among the names in the metadata folder. Names that are not ours are left alone.
pub fn plan_recovery<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<RecoveryPlan, MetadataError> {
    let names: Vec<&str> = names.into_iter().collect();
    let base = names.iter().filter_map(|name| journal_base(name)).max();
    let mut plan = RecoveryPlan { journal: base.map(journal_name), ..RecoveryPlan::default() };
    plan.snapshot = base.filter(|base| *base > 0).map(snapshot_name);
    if let Some(name) = plan.snapshot.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(MetadataError::MissingFile { name: name.clone() });
    }
    for name in names {
        let ours = journal_base(name).is_some() || snapshot_base(name).is_some() || is_aside(name);
        let kept = plan.journal.as_deref() == Some(name) || plan.snapshot.as_deref() == Some(name);
        if ours && !kept {
            plan.stale.push(name.to_string());
        }
    }
    plan.stale.sort_unstable();
    if let (None, Some(snapshot)) = (base, plan.stale.iter().find(|name| snapshot_base(name).is_some())) {
        // A snapshot gets its name only while an older journal is there: the journal was taken away.
        let name = snapshot_base(snapshot).map_or_else(String::new, journal_name);
        return Err(MetadataError::MissingFile { name });
    }
    Ok(plan)
}

fn journal_base(name: &str) -> Option<u64> {
    number(name.strip_prefix(JOURNAL_PREFIX)?.strip_suffix(JOURNAL_SUFFIX)?)
}

fn snapshot_base(name: &str) -> Option<u64> {
    number(name.strip_prefix(SNAPSHOT_PREFIX)?)
}

fn is_aside(name: &str) -> bool {
    name.strip_suffix(ASIDE_SUFFIX).is_some_and(|name| journal_base(name).or(snapshot_base(name)).is_some())
}

fn number(digits: &str) -> Option<u64> {
    (digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

#[cfg(test)]
#[path = "disk_steps_tests.rs"]
mod tests;
