//! What can go wrong with a log, each a sentence that an operator can act on.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use model::Offset;
use runtime::IoError;

/// Operating errors of this crate. Cheap to clone, because one failed write answers many waiters.
#[derive(Clone, Debug)]
pub enum LogError {
    /// The device refused a write or sync. The partition's log takes no more appends until a restart.
    Storage(Arc<str>),
    /// The device or quota is full; nothing was lost, and it may pass by itself.
    Full(Arc<str>),
    /// A file operation failed without touching acknowledged data.
    Io(Arc<str>),
    /// Asked for what the log does not hold.
    OffsetOutOfRange { asked: Offset, log_start_offset: Offset, log_end_offset: Offset },
    /// Bytes that were durable are damaged; other ranges of the partition still answer.
    Corrupt { path: PathBuf, position: u64, why: String },
    /// Bytes handed to append are not one whole batch that fits here. Validation should have refused them.
    BadBatch(&'static str),
    /// More bytes wait for the disk than a shard may hold.
    Overloaded,
    /// The partition's folder belongs to another topic of the same name.
    ForeignFolder { path: PathBuf, found: String },
    /// The folder names files in a way that cannot be this log's.
    BadFolder { path: PathBuf, why: String },
    /// A file of the partition was written by a newer Ringlog or Apache Kafka. Nothing in the folder is changed.
    Newer { path: PathBuf, version: u32 },
    /// The log was closed or deleted while the caller waited.
    Closed,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Storage(why) => {
                write!(f, "the disk failed ({why}); this partition takes no appends until the broker is started again")
            }
            LogError::Full(why) => write!(f, "the disk is full ({why}); free space and the producer's retry succeeds"),
            LogError::Io(why) => write!(f, "a file operation failed: {why}"),
            LogError::OffsetOutOfRange { asked, log_start_offset, log_end_offset } => {
                write!(f, "offset {asked} is outside of the log, which holds {log_start_offset} to {log_end_offset}")
            }
            LogError::Corrupt { path, position, why } => {
                write!(f, "{} is damaged at byte {position}: {why}", path.display())
            }
            LogError::BadBatch(why) => write!(f, "the batch cannot be appended: {why}"),
            LogError::Overloaded => write!(f, "too many bytes wait for the disk; try again"),
            LogError::ForeignFolder { path, found } => {
                write!(f, "{} belongs to topic id {found}, which is another topic of that name", path.display())
            }
            LogError::BadFolder { path, why } => write!(f, "{} is not a log folder: {why}", path.display()),
            LogError::Newer { path, version } => newer(f, path, *version),
            LogError::Closed => write!(f, "the log was closed"),
        }
    }
}

fn newer(f: &mut fmt::Formatter<'_>, path: &std::path::Path, version: u32) -> fmt::Result {
    write!(
        f,
        "{} has format version {version}, which this Ringlog does not know; nothing was changed: start the version that wrote it",
        path.display()
    )
}

impl std::error::Error for LogError {}

impl From<IoError> for LogError {
    fn from(error: IoError) -> LogError {
        let text: Arc<str> = error.to_string().into();
        if error.is_full() { LogError::Full(text) } else { LogError::Io(text) }
    }
}

/// Why a data folder cannot be used; the process ends with the sentence.
#[derive(Debug)]
pub enum DataDirError {
    InUse(PathBuf),
    OtherNode {
        path: PathBuf,
        found: i32,
        ours: i32,
    },
    OtherCluster {
        path: PathBuf,
        found: String,
        ours: String,
    },
    Unreadable {
        path: PathBuf,
        why: String,
    },
    /// Two data folders say that they are the same one.
    SameFolder {
        path: PathBuf,
        other: PathBuf,
    },
    TooMany {
        most: usize,
    },
    /// Written by a newer Ringlog. Nothing in the folder was changed.
    Newer {
        path: PathBuf,
        version: u32,
    },
    Io(IoError),
}

impl fmt::Display for DataDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataDirError::InUse(path) => write!(
                f,
                "data folder {} is in use by a live process; stop that one or give another --data-dir",
                path.display()
            ),
            DataDirError::OtherNode { path, found, ours } => write!(
                f,
                "data folder {} is of node {found}, this is node {ours}; give that --node-id or another --data-dir",
                path.display()
            ),
            DataDirError::OtherCluster { path, found, ours } => write!(
                f,
                "data folder {} is of cluster {found}, not of {ours}; give another --data-dir",
                path.display()
            ),
            DataDirError::Unreadable { path, why } => write!(
                f,
                "{} cannot be understood ({why}); restore it from a backup or give another --data-dir",
                path.display()
            ),
            DataDirError::SameFolder { path, other } => write!(
                f,
                "data folders {} and {} have the same directory.id: one is a copy of the other; leave it out of log.dirs",
                path.display(),
                other.display()
            ),
            DataDirError::TooMany { most } => {
                write!(f, "a node has at most {most} data folders, this one knows of more")
            }
            DataDirError::Newer { path, version } => newer(f, path, *version),
            DataDirError::Io(error) => write!(f, "the data folder cannot be used: {error}"),
        }
    }
}

impl std::error::Error for DataDirError {}

impl From<IoError> for DataDirError {
    fn from(error: IoError) -> DataDirError {
        DataDirError::Io(error)
    }
}
