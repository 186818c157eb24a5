//! A partition found in two folders: someone copied it, or a move was cut off. The longer copy is the partition; the other
//! is renamed out of the way (`-stray`, never removed by us), so that it can never pass for the partition when the first is
//! away. Where it cannot be told which is longer, neither is used.

use std::cmp::Ordering;
use std::path::Path;

use model::Offset;
use runtime::{IoError, fs};

use crate::data_dir::{DataDir, FoundPartition};
use crate::format::names::{self, FileKind};

/// How far a copy reaches: the last segment's first offset and length, without space that was reserved.
async fn reach(dir: &DataDir, found: &FoundPartition) -> Result<Option<(Offset, u64)>, IoError> {
    let path = dir.path().join(names::partition_dir(&found.topic, found.partition));
    let listing = fs::read_dir(&path).await?;
    let logs = listing.iter().filter_map(|entry| match names::parse_file_name(&entry.name)? {
        (base, FileKind::Log) => Some((base, entry.len)),
        _ => None,
    });
    Ok(logs.max())
}

/// Which of two copies is longer; `None` when that cannot be told without reading them. Lengths count after clean stops
/// only: otherwise reserved space is in them.
pub(super) async fn compare(
    a: (&DataDir, &FoundPartition),
    b: (&DataDir, &FoundPartition),
) -> Result<Option<Ordering>, IoError> {
    let (reach_a, reach_b) = (reach(a.0, a.1).await?, reach(b.0, b.1).await?);
    let by_base = reach_a.map(|(base, _)| base).cmp(&reach_b.map(|(base, _)| base));
    if by_base != Ordering::Equal {
        return Ok(Some(by_base));
    }
    let lengths_count = a.0.was_clean() && b.0.was_clean();
    Ok((lengths_count || reach_a.is_none()).then(|| reach_a.cmp(&reach_b)))
}

/// Renames the copy in `dir` out of the way, durably; gives its new name.
pub(super) async fn set_aside(dir: &DataDir, found: &FoundPartition) -> Result<String, IoError> {
    let unique = model::TopicId(runtime::random::bytes());
    let name = names::stray_dir(&found.topic, found.partition, unique);
    let from: &Path = &dir.path().join(names::partition_dir(&found.topic, found.partition));
    fs::rename(from, &dir.path().join(&name)).await?;
    Ok(name)
}
