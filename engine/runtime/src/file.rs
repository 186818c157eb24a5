//! Direct-I/O files of one shard.
//!
//! Positions and lengths on the device are multiples of [`BLOCK`]; every transfer's byte count is checked, because a
//! short write is a lost write. What an operation under way reads or writes, and its descriptor, stay until the kernel is done
//! with them, also if the caller goes away; what came of it is lost then, so futures here are to be awaited.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{opcode, squeue};

use crate::buffers::{Chunk, ChunkPool};
use crate::driver;
use crate::error::IoError;
use crate::faults::{self, Operation};
pub use crate::file_types::OpenMode;
use crate::io_buffer::{IoBuffer, Pieces};
use crate::limits::{BLOCK, FILE_MODE, MAX_IO_BYTES};
use crate::task::spawn_blocking;

/// A file read and written past the page cache. Cheap to clone; closed with the last clone and the last operation.
#[derive(Clone, Debug)]
pub struct DirectFile {
    fd: Arc<OwnedFd>,
    path: Rc<PathBuf>,
}

impl DirectFile {
    pub async fn open(path: &Path, mode: OpenMode) -> Result<DirectFile, IoError> {
        let flags = libc::O_CLOEXEC
            | libc::O_DIRECT
            | match mode {
                OpenMode::Read => libc::O_RDONLY,
                OpenMode::ReadWrite => libc::O_RDWR,
                OpenMode::Create => libc::O_RDWR | libc::O_CREAT,
                OpenMode::CreateNew => libc::O_RDWR | libc::O_CREAT | libc::O_EXCL,
            };
        let opened = match open(path, flags).await {
            // A file system that knows no direct I/O, as some in memory: it may have made the file before it said so. Data
            // folders on such are refused; tests may lie there.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                open(path, flags & !(libc::O_DIRECT | libc::O_EXCL)).await
            }
            other => other,
        };
        let fd = opened.map_err(|e| IoError::new("cannot open", path, e))?;
        Ok(DirectFile { fd: Arc::new(fd), path: Rc::new(path.to_path_buf()) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn fail(&self, what: &'static str, error: io::Error) -> IoError {
        IoError::new(what, &self.path, error)
    }

    /// An operation on this file that needs no memory.
    async fn plain(&self, entry: impl FnOnce(Fd) -> squeue::Entry) -> io::Result<u32> {
        let fd = Fd(self.fd.as_raw_fd());
        // SAFETY: the entry points to nothing; the descriptor stays open meanwhile.
        unsafe { driver::begin(self.fd.clone(), |_| entry(fd)) }.await.0
    }

    /// Writes `bytes` at `position`, padded with zeros to a whole block. `position` must be a multiple of [`BLOCK`].
    /// The bytes are copied once; larger amounts go out in pieces of [`MAX_IO_BYTES`], all in flight together.
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
        self.write_gathered(parts, position, 0).await
    }

    /// As [`DirectFile::write_piece`], and durable when it is done: in one operation, which a drive that can does as one too.
    /// Nothing is said of other writes to the file.
    pub async fn write_piece_durably(&self, parts: &[&[u8]], position: u64) -> Result<(), IoError> {
        assert!(parts.iter().any(|part| !part.is_empty()), "nothing has no place to be durable at");
        faults::check(Operation::Sync, "cannot sync", &self.path)?;
        self.write_gathered(parts, position, libc::RWF_DSYNC).await
    }

    async fn write_gathered(&self, parts: &[&[u8]], position: u64, flags: i32) -> Result<(), IoError> {
        assert!(position.is_multiple_of(BLOCK as u64), "direct writes begin at a block");
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(());
        }
        faults::check(Operation::Write, "cannot write", &self.path)?;
        let buffer = IoBuffer::gather(parts);
        let padded = buffer.len();
        let entry = |(buffer, fd): &mut (IoBuffer, Arc<OwnedFd>)| {
            let fd = Fd(fd.as_raw_fd());
            opcode::Write::new(fd, buffer.address(), buffer.len() as u32).offset(position).rw_flags(flags).build()
        };
        // SAFETY: the entry names the buffer, whole, and a descriptor that stays open.
        let (written, _) = unsafe { driver::begin((buffer, self.fd.clone()), entry) }.await;
        self.all_written(written, padded, position)
    }

    /// As [`DirectFile::write_piece`], from where the parts lie: their whole blocks are not copied, if they begin at one in
    /// memory as they do in the file. `BLOCK` bytes of each part at most are.
    pub async fn write_parts(&self, parts: Vec<Bytes>, position: u64) -> Result<(), IoError> {
        self.write_in_place(parts, position, 0).await
    }

    /// As [`DirectFile::write_parts`], and durable when it is done, as [`DirectFile::write_piece_durably`] says.
    pub async fn write_parts_durably(&self, parts: Vec<Bytes>, position: u64) -> Result<(), IoError> {
        assert!(parts.iter().any(|part| !part.is_empty()), "nothing has no place to be durable at");
        faults::check(Operation::Sync, "cannot sync", &self.path)?;
        self.write_in_place(parts, position, libc::RWF_DSYNC).await
    }

    async fn write_in_place(&self, parts: Vec<Bytes>, position: u64, flags: i32) -> Result<(), IoError> {
        assert!(position.is_multiple_of(BLOCK as u64), "direct writes begin at a block");
        let Some(pieces) = Pieces::of(&parts) else {
            let slices: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
            return self.write_gathered(&slices, position, flags).await;
        };
        faults::check(Operation::Write, "cannot write", &self.path)?;
        let padded = pieces.bytes;
        let entry = |(pieces, _, fd): &mut (Pieces, Vec<Bytes>, Arc<OwnedFd>)| {
            let (fd, vectors) = (Fd(fd.as_raw_fd()), &pieces.vectors);
            opcode::Writev::new(fd, vectors.as_ptr(), vectors.len() as u32).offset(position).rw_flags(flags).build()
        };
        // SAFETY: the entry names vectors that point into the parts and the pieces' own blocks; all of it is handed over. Whole
        // blocks of `Bytes` are written by nobody.
        let (written, _) = unsafe { driver::begin((pieces, parts, self.fd.clone()), entry) }.await;
        self.all_written(written, padded, position)
    }

    fn all_written(&self, written: io::Result<u32>, padded: usize, position: u64) -> Result<(), IoError> {
        let written = written.map_err(|e| self.fail("cannot write", e))? as usize;
        if written == padded {
            return Ok(());
        }
        let text = format!("{written} of {padded} bytes went out at {position}");
        Err(IoError::new("short write to", &self.path, io::Error::new(io::ErrorKind::WriteZero, text)))
    }

    /// Reads up to `len` bytes at `position` (any alignment). Fewer come back only at the end of the file.
    pub async fn read(&self, position: u64, len: usize) -> Result<Bytes, IoError> {
        let bytes = self.read_into(Chunk::with_capacity, position, len).await?;
        // Exactly its size, since it may be kept for long.
        Ok(Bytes::copy_from_slice(&bytes))
    }

    /// As [`DirectFile::read`], into pooled memory without a copy: for bytes that are let go soon.
    pub async fn read_pooled(&self, position: u64, len: usize, pool: &ChunkPool) -> Result<Bytes, IoError> {
        self.read_into(|bytes| pool.take(bytes), position, len).await
    }

    async fn read_into(&self, take: impl FnOnce(usize) -> Chunk, position: u64, len: usize) -> Result<Bytes, IoError> {
        if len == 0 {
            return Ok(Bytes::new());
        }
        faults::check(Operation::Read, "cannot read", &self.path)?;
        let from = position / BLOCK as u64 * BLOCK as u64;
        let whole = ((position + len as u64).next_multiple_of(BLOCK as u64) - from) as usize;
        let mut chunk = take(whole);
        while chunk.len() < whole {
            let ask = (whole - chunk.len()).min(MAX_IO_BYTES);
            let at = from + chunk.len() as u64;
            let entry = |(chunk, fd): &mut (Chunk, Arc<OwnedFd>)| {
                opcode::Read::new(Fd(fd.as_raw_fd()), chunk.spare(), ask as u32).offset(at).build()
            };
            // SAFETY: the chunk has room for what is asked, and is nobody else's; the descriptor stays open.
            let (got, held) = unsafe { driver::begin((chunk, self.fd.clone()), entry) }.await;
            chunk = held.0;
            let got = got.map_err(|e| self.fail("cannot read", e))? as usize;
            // SAFETY: the kernel wrote so many bytes.
            unsafe { chunk.publish(got) };
            if got < ask {
                break;
            }
        }
        let skip = ((position - from) as usize).min(chunk.len());
        let end = (skip + len).min(chunk.len());
        Ok(chunk.slice(skip..end))
    }

    pub async fn fdatasync(&self) -> Result<(), IoError> {
        faults::check(Operation::Sync, "cannot sync", &self.path)?;
        let synced = self.plain(|fd| opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build()).await;
        synced.map(drop).map_err(|e| self.fail("cannot sync", e))
    }

    /// Makes the file `size` bytes long with its blocks reserved; the new bytes read as zeros. File systems without
    /// fallocate get the length alone.
    pub async fn preallocate(&self, size: u64) -> Result<(), IoError> {
        faults::check(Operation::Reserve, "cannot reserve space for", &self.path)?;
        match self.plain(|fd| opcode::Fallocate::new(fd, size).build()).await {
            Ok(_) => Ok(()),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => self.truncate(size).await,
            Err(e) => Err(self.fail("cannot reserve space for", e)),
        }
    }

    pub async fn truncate(&self, size: u64) -> Result<(), IoError> {
        let fd = self.fd.clone();
        let cut = move || {
            // SAFETY: the descriptor is open as long as `fd` lives.
            let rc = unsafe { libc::ftruncate64(fd.as_raw_fd(), size as i64) };
            if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        let cut = spawn_blocking(cut).await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        cut.map_err(|e| self.fail("cannot cut", e))
    }

    pub async fn size(&self) -> Result<u64, IoError> {
        // SAFETY: an all-zero stat is a valid value, and `out` is a valid place for the answer.
        let (rc, out) = unsafe {
            let mut out: libc::stat64 = std::mem::zeroed();
            (libc::fstat64(self.fd.as_raw_fd(), &raw mut out), out)
        };
        if rc == 0 { Ok(out.st_size as u64) } else { Err(self.fail("cannot stat", io::Error::last_os_error())) }
    }

    /// Lets the file go; it is closed if this is the last clone.
    pub async fn close(self) -> Result<(), IoError> {
        Ok(())
    }
}

async fn open(path: &Path, flags: i32) -> io::Result<OwnedFd> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let entry = |name: &mut CString| {
        opcode::OpenAt::new(Fd(libc::AT_FDCWD), name.as_ptr()).flags(flags).mode(FILE_MODE).build()
    };
    // SAFETY: the name ends with a zero byte and stays until the file is open.
    let (opened, _) = unsafe { driver::begin(name, entry) }.await;
    // SAFETY: the kernel has just made this descriptor for us.
    opened.map(|fd| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
