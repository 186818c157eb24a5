//! Direct-I/O files of one shard.
//!
//! Positions and lengths on the device are multiples of [`BLOCK`]; every transfer's byte count is checked, because a
//! short write is a lost write. Operations in flight are owned by the event loop: their futures must be awaited, never
//! dropped midway (spawn the owner if the caller may go away).

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;
use futures_lite::FutureExt;
use glommio::io::{DmaFile, OpenOptions};

use crate::buffers::ChunkPool;
use crate::error::{IoError, from_glommio};
use crate::faults::{self, Operation};
pub use crate::file_types::OpenMode;
use crate::lent;
use crate::limits::{BLOCK, MAX_IO_BYTES};

/// A file read and written past the page cache. Cheap to clone; closed by [`DirectFile::close`] on the last clone, or
/// in the background when dropped.
#[derive(Clone, Debug)]
pub struct DirectFile {
    file: Rc<DmaFile>,
    path: Rc<PathBuf>,
}

impl DirectFile {
    pub async fn open(path: &Path, mode: OpenMode) -> Result<DirectFile, IoError> {
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::ReadWrite => {
                options.write(true);
            }
            OpenMode::Create => {
                options.write(true).create(true);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        // Opening asks for the file system by path a second time and panics if the path is gone by then.
        let opened = AssertUnwindSafe(options.dma_open(path)).catch_unwind().await;
        let vanished = |_| IoError::new("cannot open", path, std::io::ErrorKind::NotFound.into());
        let file = opened.map_err(vanished)?.map_err(|e| from_glommio("cannot open", path, e))?;
        Ok(DirectFile { file: Rc::new(file), path: Rc::new(path.to_path_buf()) })
    }

    /// glommio probes for polled I/O with the first file of a device and takes an empty read-write file for a yes;
    /// each shard therefore opens a write-only file first, once for each data folder.
    pub async fn probe_device(dir: &Path, shard: usize) -> Result<(), IoError> {
        let path = dir.join(format!(".probe-{shard}"));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .dma_open(&path)
            .await
            .map_err(|e| from_glommio("cannot open", &path, e))?;
        file.close().await.map_err(|e| from_glommio("cannot close", &path, e))?;
        crate::fs::remove_file(&path).await
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn fail(&self, what: &'static str, error: glommio::GlommioError<()>) -> IoError {
        from_glommio(what, &self.path, error)
    }

    /// Writes `bytes` at `position`, padded with zeros to a whole block. `position` must be a multiple of [`BLOCK`].
    /// The bytes are copied once into registered memory; larger amounts go out in pieces of [`MAX_IO_BYTES`], all in
    /// flight together.
    pub async fn write(&self, bytes: &[u8], position: u64) -> Result<(), IoError> {
        assert!(position.is_multiple_of(BLOCK as u64), "direct writes begin at a block");
        if bytes.len() <= MAX_IO_BYTES {
            return self.write_piece(&[bytes], position).await;
        }
        let pieces = bytes
            .chunks(MAX_IO_BYTES)
            .enumerate()
            .map(|(i, piece)| async move { self.write_piece(&[piece], position + (i * MAX_IO_BYTES) as u64).await });
        crate::sync::all(pieces.collect()).await.into_iter().collect()
    }

    /// Writes parts one behind the other as one operation of at most [`MAX_IO_BYTES`], padded with zeros.
    pub async fn write_piece(&self, parts: &[&[u8]], position: u64) -> Result<(), IoError> {
        assert!(position.is_multiple_of(BLOCK as u64), "direct writes begin at a block");
        let len: usize = parts.iter().map(|p| p.len()).sum();
        if len == 0 {
            return Ok(());
        }
        faults::check(Operation::Write, "cannot write", &self.path)?;
        let padded = len.next_multiple_of(BLOCK);
        let mut buffer = self.file.alloc_dma_buffer(padded);
        let target = buffer.as_bytes_mut();
        let mut at = 0;
        for part in parts {
            target[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        target[at..padded].fill(0);
        let written = self.file.write_at(buffer, position).await.map_err(|e| self.fail("cannot write", e))?;
        if written == padded {
            return Ok(());
        }
        let text = format!("{written} of {padded} bytes went out at {position}");
        Err(IoError::new("short write to", &self.path, std::io::Error::new(std::io::ErrorKind::WriteZero, text)))
    }

    /// Reads up to `len` bytes at `position` (any alignment). Fewer come back only at the end of the file.
    pub async fn read(&self, position: u64, len: usize) -> Result<Bytes, IoError> {
        let mut out = Vec::with_capacity(len);
        self.read_pieces(position, len, |piece| out.extend_from_slice(piece)).await?;
        Ok(Bytes::from(out))
    }

    /// As [`DirectFile::read`], into pooled memory: for bytes that go to a client and come back to the pool soon, so that
    /// reading costs no page faults.
    pub async fn read_pooled(&self, position: u64, len: usize, pool: &ChunkPool) -> Result<Bytes, IoError> {
        let mut chunk = pool.take(len.max(1));
        self.read_pieces(position, len, |piece| chunk.append(piece)).await?;
        Ok(chunk.slice(0..chunk.len()))
    }

    /// As [`DirectFile::read`], for bytes that go to a client and are let go soon: they are lent out of the ring's registered
    /// memory without a copy, if one operation can read them and not too much is on loan; else pooled as above.
    pub async fn read_lent(&self, position: u64, len: usize, pool: &ChunkPool) -> Result<Bytes, IoError> {
        let from = position / BLOCK as u64 * BLOCK as u64;
        let ask = ((position + len as u64).next_multiple_of(BLOCK as u64) - from) as usize;
        // The ring's allocator gives out powers of two.
        let takes = ask.next_power_of_two();
        let Some(reserved) = (ask <= MAX_IO_BYTES).then(|| lent::reserve(takes)).flatten() else {
            return self.read_pooled(position, len, pool).await;
        };
        faults::check(Operation::Read, "cannot read", &self.path)?;
        let got = self.file.read_at_aligned(from, ask).await.map_err(|e| self.fail("cannot read", e))?;
        let skip = ((position - from) as usize).min(got.len());
        let len = len.min(got.len() - skip);
        Ok(reserved.lend(got).slice(skip..skip + len))
    }

    async fn read_pieces(&self, position: u64, len: usize, mut take: impl FnMut(&[u8])) -> Result<(), IoError> {
        faults::check(Operation::Read, "cannot read", &self.path)?;
        let from = position / BLOCK as u64 * BLOCK as u64;
        let to = (position + len as u64).next_multiple_of(BLOCK as u64);
        let (mut at, mut taken) = (from, 0);
        while at < to && taken < len {
            let ask = ((to - at) as usize).min(MAX_IO_BYTES);
            let got = self.file.read_at_aligned(at, ask).await.map_err(|e| self.fail("cannot read", e))?;
            let skip = if at == from { (position - from) as usize } else { 0 };
            if got.len() > skip {
                let count = (got.len() - skip).min(len - taken);
                take(&got[skip..skip + count]);
                taken += count;
            }
            if got.len() < ask {
                break;
            }
            at += ask as u64;
        }
        Ok(())
    }

    pub async fn fdatasync(&self) -> Result<(), IoError> {
        faults::check(Operation::Sync, "cannot sync", &self.path)?;
        self.file.fdatasync().await.map_err(|e| self.fail("cannot sync", e))
    }

    /// Makes the file `size` bytes long with its blocks reserved; the new bytes read as zeros. File systems without
    /// fallocate get the length alone.
    pub async fn preallocate(&self, size: u64) -> Result<(), IoError> {
        faults::check(Operation::Reserve, "cannot reserve space for", &self.path)?;
        match self.file.pre_allocate(size, false).await {
            Ok(()) => Ok(()),
            Err(e) => {
                let error = self.fail("cannot reserve space for", e);
                if matches!(error.source.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) {
                    return self.truncate(size).await;
                }
                Err(error)
            }
        }
    }

    pub async fn truncate(&self, size: u64) -> Result<(), IoError> {
        self.file.truncate(size).await.map_err(|e| self.fail("cannot cut", e))
    }

    pub async fn size(&self) -> Result<u64, IoError> {
        self.file.file_size().await.map_err(|e| self.fail("cannot stat", e))
    }

    /// Closes the descriptor if this is the last clone.
    pub async fn close(self) -> Result<(), IoError> {
        let path = self.path.clone();
        self.file.close_rc().await.map(drop).map_err(|e| from_glommio("cannot close", &path, e))
    }
}
