//! Files read through the simulated page cache: what was read is resident, until the dice say that it went.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::IoError;
use crate::limits::BLOCK;
use crate::sim::disk::InodeId;
use crate::sim::plan::Operation;
use crate::sim::step::{detached, step};
use crate::sim::world::with;

/// A file open for reading that may be handed to other shards.
#[derive(Clone)]
pub struct SharedFile {
    inner: Arc<Inner>,
}

struct Inner {
    inode: InodeId,
    path: PathBuf,
}

impl fmt::Debug for SharedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedFile({})", self.inner.path.display())
    }
}

impl SharedFile {
    pub async fn open(path: &Path) -> Result<SharedFile, IoError> {
        let opened = step(Operation::Open, path, |world| {
            let inode = world.disk.lookup(path)?;
            world.disk.file(inode).map(|_| inode)
        });
        let inode = opened.await.map_err(|e| IoError::new("cannot open", path, e))?;
        Ok(SharedFile { inner: Arc::new(Inner { inode, path: path.to_path_buf() }) })
    }

    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Reads `len` bytes at `position`, leaving them in the page cache; fewer at the end.
    pub async fn read(&self, position: u64, len: usize) -> Result<Vec<u8>, IoError> {
        let inner = self.inner.clone();
        let read = detached(async move {
            step(Operation::Read, &inner.path, |world| {
                let bytes = world.disk.read(inner.inode, position, len)?;
                let last = (position + bytes.len() as u64).div_ceil(BLOCK as u64);
                world.disk.file_mut(inner.inode)?.resident.extend(position / BLOCK as u64..last);
                Ok(bytes)
            })
            .await
        });
        read.await.map_err(|e| IoError::new("cannot read", self.path(), e))
    }

    /// As [`SharedFile::read`]; gives what `look` makes of the bytes.
    pub async fn look<T: Send + 'static>(
        &self,
        position: u64,
        len: usize,
        look: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, IoError> {
        self.read(position, len).await.map(|bytes| look(&bytes))
    }

    /// The range, if all of it lies in the page cache.
    pub fn read_resident(&self, position: u64, len: usize) -> Option<Vec<u8>> {
        if !self.is_resident(position, len as u64) {
            return None;
        }
        with(|world| world.disk.read(self.inner.inode, position, len)).ok().filter(|bytes| bytes.len() == len)
    }

    /// Whether the range lies in the page cache.
    pub fn is_resident(&self, position: u64, len: u64) -> bool {
        with(|world| {
            let evicted = world.dice.one_in(8);
            let Ok(file) = world.disk.file_mut(self.inner.inode) else { return false };
            if evicted {
                file.resident.clear();
            }
            let mut pages = position / BLOCK as u64..(position + len).div_ceil(BLOCK as u64);
            pages.all(|page| file.resident.contains(&page))
        })
    }
}
