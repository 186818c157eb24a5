//! Direct-I/O files on the simulated disk; the same promises and the same rules as on a real one.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;

use crate::buffers::ChunkPool;
use crate::error::IoError;
pub use crate::file_types::OpenMode;
use crate::limits::{BLOCK, MAX_IO_BYTES};
use crate::sim::disk::InodeId;
use crate::sim::plan::Operation;
use crate::sim::step::{detached, step, step_or};
use crate::sim::world::with;

/// A file read and written past the page cache. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DirectFile {
    inode: InodeId,
    path: Rc<PathBuf>,
}

impl DirectFile {
    pub async fn open(path: &Path, mode: OpenMode) -> Result<DirectFile, IoError> {
        let owned = path.to_path_buf();
        let opened = detached(async move {
            step(Operation::Open, &owned.clone(), move |world| match mode {
                OpenMode::Read | OpenMode::ReadWrite => {
                    let inode = world.disk.lookup(&owned)?;
                    world.disk.file(inode).map(|_| inode)
                }
                OpenMode::Create | OpenMode::CreateNew => {
                    let wall_ms = world.wall_ms();
                    world.disk.create_file(&owned, mode == OpenMode::CreateNew, wall_ms)
                }
            })
            .await
        });
        let inode = opened.await.map_err(|e| IoError::new("cannot open", path, e))?;
        Ok(DirectFile { inode, path: Rc::new(path.to_path_buf()) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn fail(&self, what: &'static str) -> impl FnOnce(io::Error) -> IoError {
        move |error| IoError::new(what, &self.path, error)
    }

    /// Writes `bytes` at `position`, padded with zeros to a whole block. `position` must be a multiple of [`BLOCK`].
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
        let bytes = parts.concat();
        if bytes.is_empty() {
            return Ok(());
        }
        self.write_padded(bytes, position, false).await
    }

    /// As [`DirectFile::write_piece`], and durable when it is done. Nothing is said of other writes to the file.
    pub async fn write_piece_durably(&self, parts: &[&[u8]], position: u64) -> Result<(), IoError> {
        assert!(position.is_multiple_of(BLOCK as u64), "direct writes begin at a block");
        assert!(parts.iter().any(|part| !part.is_empty()), "nothing has no place to be durable at");
        self.write_padded(parts.concat(), position, true).await
    }

    async fn write_padded(&self, mut bytes: Vec<u8>, position: u64, durably: bool) -> Result<(), IoError> {
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        let (inode, path, len) = (self.inode, self.path.clone(), bytes.len());
        let path_of_write = path.clone();
        let written = detached(async move {
            let (ticket, position) = step_or(Operation::Write, &path, move |world, fault| {
                let wall_ms = world.wall_ms();
                let astray = if world.plan.strays(&path_of_write) { BLOCK as u64 } else { 0 };
                match fault {
                    None => {
                        let position = position + astray;
                        world.disk.write(inode, position, &bytes, wall_ms).map(|ticket| (ticket, position))
                    }
                    Some(error) => {
                        world.disk.write_in_part(inode, position, &bytes, wall_ms, &mut world.dice);
                        Err(error)
                    }
                }
            })
            .await?;
            with(|world| {
                world.disk.came_back(inode, position, len, ticket);
                world.note("wrote", [position, len as u64], || format!("{} {position}+{len}", path.display()));
            });
            if !durably {
                return Ok(());
            }
            step_or(Operation::Sync, &path, move |world, fault| match fault {
                None => world.disk.sync_written(inode, position, len, ticket),
                Some(error) => {
                    let upto = world.disk.sequence();
                    world.disk.sync_in_part(inode, upto, true, &mut world.dice);
                    Err(error)
                }
            })
            .await
        });
        written.await.map_err(self.fail("cannot write"))
    }

    /// As [`DirectFile::write_piece`].
    pub async fn write_parts(&self, parts: Vec<Bytes>, position: u64) -> Result<(), IoError> {
        let slices: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        self.write_piece(&slices, position).await
    }

    /// As [`DirectFile::write_piece_durably`].
    pub async fn write_parts_durably(&self, parts: Vec<Bytes>, position: u64) -> Result<(), IoError> {
        let slices: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        self.write_piece_durably(&slices, position).await
    }

    /// Reads up to `len` bytes at `position` (any alignment). Fewer come back only at the end of the file.
    pub async fn read(&self, position: u64, len: usize) -> Result<Bytes, IoError> {
        let inode = self.inode;
        let path = self.path.clone();
        let read =
            detached(
                async move { step(Operation::Read, &path, move |world| world.disk.read(inode, position, len)).await },
            );
        read.await.map(Bytes::from).map_err(self.fail("cannot read"))
    }

    /// As [`DirectFile::read`], into pooled memory.
    pub async fn read_pooled(&self, position: u64, len: usize, pool: &ChunkPool) -> Result<Bytes, IoError> {
        let mut chunk = pool.take(len.max(1));
        chunk.append(&self.read(position, len).await?);
        Ok(chunk.slice(0..chunk.len()))
    }

    pub async fn fdatasync(&self) -> Result<(), IoError> {
        let (inode, path) = (self.inode, self.path.clone());
        let upto = with(|world| world.disk.sequence());
        let synced = detached(async move {
            step_or(Operation::Sync, &path, move |world, fault| match fault {
                None => world.disk.sync(inode, upto),
                Some(error) => {
                    world.disk.sync_in_part(inode, upto, true, &mut world.dice);
                    Err(error)
                }
            })
            .await
        });
        synced.await.map_err(self.fail("cannot sync"))
    }

    /// Makes the file `size` bytes long with its blocks reserved.
    pub async fn preallocate(&self, size: u64) -> Result<(), IoError> {
        let (inode, path) = (self.inode, self.path.clone());
        let reserved = detached(async move {
            step(Operation::Reserve, &path, move |world| {
                let wall_ms = world.wall_ms();
                world.disk.reserve(inode, size, wall_ms)
            })
            .await
        });
        reserved.await.map_err(self.fail("cannot reserve space for"))
    }

    pub async fn truncate(&self, size: u64) -> Result<(), IoError> {
        let (inode, path) = (self.inode, self.path.clone());
        let cut = detached(async move {
            step(Operation::Truncate, &path, move |world| {
                let wall_ms = world.wall_ms();
                world.disk.truncate(inode, size, wall_ms)
            })
            .await
        });
        cut.await.map_err(self.fail("cannot cut"))
    }

    pub async fn size(&self) -> Result<u64, IoError> {
        let inode = self.inode;
        let stat = step(Operation::List, &self.path, move |world| world.disk.file(inode).map(|file| file.size)).await;
        stat.map_err(self.fail("cannot stat"))
    }

    /// Nothing to give back: the disk forgets unnamed files when the process ends.
    pub async fn close(self) -> Result<(), IoError> {
        Ok(())
    }
}
