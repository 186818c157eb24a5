//! What files and folders are asked and say: the part of [`crate::file`] and [`crate::fs`] that is the same on every back
//! end.

use std::path::PathBuf;

use bytes::Bytes;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    Read,
    /// Read and write an existing file.
    ReadWrite,
    /// Read and write; make it if it is not there.
    Create,
    /// Read and write; fail if it is there.
    CreateNew,
}

/// A directory entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub name: String,
    pub is_dir: bool,
    pub len: u64,
}

/// What `stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub len: u64,
    pub modified_ms: i64,
    /// Bytes taken on the device.
    pub allocated: u64,
}

/// Pieces to be written into a file, each at its position; see [`crate::fs::overlay`].
#[derive(Clone, Debug)]
pub struct Overlay {
    pub path: PathBuf,
    pub pieces: Vec<(u64, Bytes)>,
}

/// Space of a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    pub free: u64,
}
