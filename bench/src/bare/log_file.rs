//! The one file of all partitions: batches as they came, one round behind the other, each round filled up with zeros to a block.
//!
//! Owned by the server. A crash leaves every round whose sync had returned; a later one may be there in parts. Nothing reads it back:
//! there is no recovery. Two layouts, because what a sync costs depends on them: a file that grows into preallocated space, as
//! segments do, makes the file system commit its own journal with each sync; one that is written over and over, as a journal is,
//! does not, and keeps no more than its length.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use clap::ValueEnum;

use super::limits::{ALLOCATION_BYTES, FILE_BYTES_MAX, RING_FILE_BYTES};
use crate::limits_disk::Aligned;

/// What the ring's file is filled with at the start is written in pieces of this.
const FILL_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// A file that grows into preallocated space.
    Grow,
    /// A file that is written over and over.
    Ring,
}

#[derive(Debug)]
pub struct LogFile {
    file: File,
    layout: Layout,
    /// Preallocated, or filled.
    allocated: u64,
}

impl LogFile {
    /// A file of that name, empty, or filled where it is written over.
    pub fn create(path: &Path, layout: Layout) -> io::Result<LogFile> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(true).custom_flags(libc::O_DIRECT);
        let mut made = LogFile { file: options.open(path)?, layout, allocated: 0 };
        match layout {
            Layout::Grow => made.allocate(ALLOCATION_BYTES)?,
            Layout::Ring => made.fill()?,
        }
        made.file.sync_all()?;
        Ok(made)
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where a range of the log goes.
    pub fn place(&mut self, range: &Range<u64>) -> io::Result<u64> {
        match self.layout {
            Layout::Ring => Ok(range.start % RING_FILE_BYTES),
            Layout::Grow => {
                while range.end > self.allocated {
                    self.allocate(self.allocated + ALLOCATION_BYTES)?;
                }
                Ok(range.start)
            }
        }
    }

    fn allocate(&mut self, end: u64) -> io::Result<()> {
        if end > FILE_BYTES_MAX {
            return Err(io::Error::other(format!("the file has reached {} GiB, its end", FILE_BYTES_MAX >> 30)));
        }
        let len = (end - self.allocated) as libc::off_t;
        // SAFETY: the descriptor is open, and no pointer is handed over.
        let failed = unsafe { libc::posix_fallocate(self.file.as_raw_fd(), self.allocated as libc::off_t, len) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        self.allocated = end;
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut zeros = Aligned::new(FILL_BYTES);
        zeros.bytes().fill(0);
        for at in (0..RING_FILE_BYTES).step_by(FILL_BYTES) {
            self.file.write_all_at(zeros.bytes(), at)?;
        }
        self.allocated = RING_FILE_BYTES;
        Ok(())
    }
}
