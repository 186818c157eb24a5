//! Files read through the page cache and sent by `sendfile`: closed segments only, since mixing the page cache with
//! direct writes to the same range would serve old bytes.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::IoError;
use crate::limits::BLOCK;
use crate::task::spawn_blocking;

/// A file open for reading that may be handed to other shards. Closed with the last clone.
#[derive(Clone)]
pub struct SharedFile {
    inner: Arc<Inner>,
}

struct Inner {
    file: File,
    path: PathBuf,
}

impl fmt::Debug for SharedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedFile({})", self.inner.path.display())
    }
}

impl SharedFile {
    pub async fn open(path: &Path) -> Result<SharedFile, IoError> {
        let path = path.to_path_buf();
        let inner = path.clone();
        match spawn_blocking(move || File::open(&inner)).await {
            Ok(Ok(file)) => Ok(SharedFile { inner: Arc::new(Inner { file, path }) }),
            Ok(Err(e)) => Err(IoError::new("cannot open", &path, e)),
            Err(panic) => Err(IoError::new("cannot open", &path, io::Error::other(panic))),
        }
    }

    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.inner.file.as_raw_fd()
    }

    /// Reads `len` bytes at `position` on the pool thread, leaving them in the page cache; fewer at the end.
    pub async fn read(&self, position: u64, len: usize) -> Result<Vec<u8>, IoError> {
        let file = self.clone();
        let result = spawn_blocking(move || {
            let mut out = vec![0; len];
            let filled = read_up_to(&file.inner.file, &mut out, position)?;
            out.truncate(filled);
            Ok(out)
        })
        .await;
        match result {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(e)) => Err(IoError::new("cannot read", self.path(), e)),
            Err(panic) => Err(IoError::new("cannot read", self.path(), io::Error::other(panic))),
        }
    }

    /// Reads up to `len` bytes at `position` on the pool thread, leaves them in the page cache, and gives what `look` makes
    /// of them there. The memory is the pool thread's own and used again, so looking costs no page faults.
    pub async fn look<T: Send + 'static>(
        &self,
        position: u64,
        len: usize,
        look: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, IoError> {
        thread_local! {
            static SCRATCH: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
        }
        let file = self.clone();
        let result = spawn_blocking(move || {
            SCRATCH.with_borrow_mut(|scratch| {
                if scratch.len() < len {
                    scratch.resize(len, 0);
                }
                let filled = read_up_to(&file.inner.file, &mut scratch[..len], position)?;
                Ok(look(&scratch[..filled]))
            })
        })
        .await;
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(e)) => Err(IoError::new("cannot read", self.path(), e)),
            Err(panic) => Err(IoError::new("cannot read", self.path(), io::Error::other(panic))),
        }
    }

    /// Whether the range lies in the page cache, so that `sendfile` will not wait for the disk. Kernels before 6.5
    /// cannot tell; they get `false`.
    pub fn is_resident(&self, position: u64, len: u64) -> bool {
        #[repr(C)]
        #[derive(Default)]
        struct Range {
            off: u64,
            len: u64,
        }
        #[repr(C)]
        #[derive(Default)]
        struct Stat {
            cache: u64,
            dirty: u64,
            writeback: u64,
            evicted: u64,
            recently_evicted: u64,
        }
        const SYS_CACHESTAT: libc::c_long = 451;
        let range = Range { off: position, len };
        let mut stat = Stat::default();
        // SAFETY: both structures live on the stack and have the kernel's layout (five and two 64-bit words).
        let rc = unsafe { libc::syscall(SYS_CACHESTAT, self.fd(), &raw const range, &raw mut stat, 0) };
        let first = position / BLOCK as u64;
        let last = (position + len).div_ceil(BLOCK as u64);
        rc == 0 && stat.cache >= last - first
    }
}

/// Fills `out` from `position`; fewer bytes come back only at the end of the file.
fn read_up_to(file: &File, out: &mut [u8], position: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match file.read_at(&mut out[filled..], position + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
