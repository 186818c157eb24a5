//! One error type for everything that the operating system refuses.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An input/output error with what was tried and on which file, if any.
#[derive(Debug)]
pub struct IoError {
    pub what: &'static str,
    pub path: Option<PathBuf>,
    pub source: io::Error,
}

impl IoError {
    pub fn new(what: &'static str, path: &Path, source: io::Error) -> IoError {
        IoError { what, path: Some(path.to_path_buf()), source }
    }

    pub fn bare(what: &'static str, source: io::Error) -> IoError {
        IoError { what, path: None, source }
    }

    /// Whether the device or quota is full: the one error that may pass by itself.
    pub fn is_full(&self) -> bool {
        matches!(self.source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
    }

    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{} {}: {}", self.what, path.display(), self.source),
            None => write!(f, "{}: {}", self.what, self.source),
        }
    }
}

impl std::error::Error for IoError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
