//! Why a host cannot run a shard: the part of [`crate::checks`] that is the same on every back end.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::limits::MIN_MEMLOCK_BYTES;

/// Why this host cannot run a shard.
#[derive(Debug)]
pub enum HostError {
    Memlock {
        limit_bytes: u64,
    },
    UringForbidden,
    UringMissing,
    Uring(io::Error),
    NoDirectIo {
        path: PathBuf,
        source: io::Error,
    },
    DataDir {
        path: PathBuf,
        source: io::Error,
    },
    /// Two data folders are one, or one lies in the other.
    Overlap {
        path: PathBuf,
        other: PathBuf,
    },
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostError::Memlock { limit_bytes } => write!(
                f,
                "RLIMIT_MEMLOCK is {} KiB, but io_uring needs at least {} KiB: raise it (ulimit -l 8192, LimitMEMLOCK= in a systemd unit, --ulimit memlock=-1 for a container)",
                limit_bytes >> 10,
                MIN_MEMLOCK_BYTES >> 10
            ),
            HostError::UringForbidden => write!(
                f,
                "io_uring is forbidden here: set the sysctl kernel.io_uring_disabled to 0, or, in a container, allow io_uring_setup, io_uring_enter and io_uring_register in its seccomp profile"
            ),
            HostError::UringMissing => {
                write!(f, "this kernel has no io_uring: run Linux 5.15 or newer")
            }
            HostError::Uring(e) => write!(f, "io_uring cannot be set up: {e}"),
            HostError::NoDirectIo { path, source } => write!(
                f,
                "the file system of {} refuses direct I/O (O_DIRECT: {source}): put the data folder on ext4, xfs or btrfs",
                path.display()
            ),
            HostError::Overlap { path, other } => write!(
                f,
                "data folders {} and {} are the same folder, or one lies in the other: name each folder once in log.dirs",
                path.display(),
                other.display()
            ),
            HostError::DataDir { path, source } => write!(
                f,
                "the data folder {} cannot be written ({source}): give another --data-dir, or the right to write there",
                path.display()
            ),
        }
    }
}

impl std::error::Error for HostError {}
