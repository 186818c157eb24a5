//! Names of folders and files, Kafka's. Read at start and when a partition's segments are first needed.

use model::{Offset, PartitionIndex, TopicId};

pub const EPOCHS_FILE: &str = "leader-epoch-checkpoint";
pub const METADATA_FILE: &str = "partition.metadata";
pub const DELETE_SUFFIX: &str = "-delete";
pub const STRAY_SUFFIX: &str = "-stray";
const OFFSET_DIGITS: usize = 20;
const MAX_DIR_NAME: usize = 255;
const ID_HEX: usize = 32;

/// Kinds of files named by an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Log,
    Index,
    TimeIndex,
    TxnIndex,
    Snapshot,
}

impl FileKind {
    pub const ALL: [FileKind; 5] =
        [FileKind::Log, FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex, FileKind::Snapshot];

    pub fn extension(self) -> &'static str {
        match self {
            FileKind::Log => "log",
            FileKind::Index => "index",
            FileKind::TimeIndex => "timeindex",
            FileKind::TxnIndex => "txnindex",
            FileKind::Snapshot => "snapshot",
        }
    }
}

/// `00000000000000000042.log`
pub fn file_name(base_offset: Offset, kind: FileKind) -> String {
    assert!(base_offset.0 >= 0, "a file is named by an offset");
    format!("{:020}.{}", base_offset.0, kind.extension())
}

/// The reverse; `None` for any other name.
pub fn parse_file_name(name: &str) -> Option<(Offset, FileKind)> {
    let (digits, extension) = name.split_once('.')?;
    let kind = FileKind::ALL.into_iter().find(|k| k.extension() == extension)?;
    if digits.len() != OFFSET_DIGITS || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((Offset(digits.parse().ok()?), kind))
}

/// `topic-3`
pub fn partition_dir(topic: &str, partition: PartitionIndex) -> String {
    format!("{topic}-{partition}")
}

/// The reverse; `None` for names that are no live partition's.
pub fn parse_partition_dir(name: &str) -> Option<(&str, PartitionIndex)> {
    let (topic, digits) = name.rsplit_once('-')?;
    let canonical = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'));
    if topic.is_empty() || !canonical {
        return None;
    }
    Some((topic, PartitionIndex(digits.parse().ok()?)))
}

/// `topic-3.0123456789abcdef0123456789abcdef-delete`, cut to what a file system takes. The random part keeps two
/// generations of one name apart.
pub fn deleted_dir(topic: &str, partition: PartitionIndex, unique: TopicId) -> String {
    let mut hex = String::with_capacity(ID_HEX);
    for byte in unique.0 {
        hex.push_str(&format!("{byte:02x}"));
    }
    let suffix = format!("-{partition}.{hex}{DELETE_SUFFIX}");
    let room = MAX_DIR_NAME.saturating_sub(suffix.len());
    let end = (0..=room.min(topic.len())).rev().find(|&i| topic.is_char_boundary(i)).unwrap_or(0);
    format!("{}{suffix}", &topic[..end])
}

/// The same for a copy of a partition that lives in another folder: set aside, never data again, and left to the operator.
pub fn stray_dir(topic: &str, partition: PartitionIndex, unique: TopicId) -> String {
    let deleted = deleted_dir(topic, partition, unique);
    format!("{}{STRAY_SUFFIX}", deleted.strip_suffix(DELETE_SUFFIX).unwrap_or(&deleted))
}

pub fn is_deleted_dir(name: &str) -> bool {
    name.ends_with(DELETE_SUFFIX) && name.contains('.')
}

/// Leftovers of an interrupted operation (ours end in `.tmp`): never data.
pub fn is_leftover(name: &str) -> bool {
    [".deleted", ".cleaned", ".swap", ".tmp"].iter().any(|s| name.ends_with(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_go_both_ways() {
        for kind in FileKind::ALL {
            let name = file_name(Offset(42), kind);
            assert_eq!(parse_file_name(&name), Some((Offset(42), kind)));
        }
        assert_eq!(file_name(Offset(0), FileKind::Log), "00000000000000000000.log");
        for bad in ["42.log", "00000000000000000042.logs", "99999999999999999999.log", "x", "+0000000000000000042.log"]
        {
            assert_eq!(parse_file_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn partition_folders_go_both_ways() {
        assert_eq!(parse_partition_dir("my-topic-12"), Some(("my-topic", PartitionIndex(12))));
        for bad in ["topic", "-1", "t-01", "t-", "t-1x", "t-99999999999", "t-1.00-delete"] {
            assert_eq!(parse_partition_dir(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_deleted_folder_fits_and_is_not_a_partition() {
        let name = deleted_dir(&"x".repeat(249), PartitionIndex(1000), TopicId([7; 16]));
        assert_eq!(name.len(), MAX_DIR_NAME);
        assert!(is_deleted_dir(&name));
        assert_eq!(parse_partition_dir(&name), None);
        let name = stray_dir("t", PartitionIndex(3), TopicId([7; 16]));
        assert!(name.starts_with("t-3.07") && name.ends_with("07-stray") && !is_deleted_dir(&name), "{name}");
        assert_eq!(parse_partition_dir(&name), None);
    }
}
