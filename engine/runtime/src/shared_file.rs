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
use crate::limits::{BLOCK, WANT_STEP};
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
        match spawn_blocking(move || open_without_read_ahead(&inner)).await {
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
            file.inner.want(position, len);
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

    /// The range, if all of it lies in the page cache: nothing is brought in, and nothing is waited for.
    pub fn read_resident(&self, position: u64, len: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; len];
        let mut filled = 0;
        while filled < len {
            let part = libc::iovec { iov_base: out[filled..].as_mut_ptr().cast(), iov_len: len - filled };
            let at = libc::off_t::try_from(position + filled as u64).ok()?;
            // SAFETY: `part` names memory of `out` that nothing else refers to meanwhile.
            let got = unsafe { libc::preadv2(self.fd(), &raw const part, 1, at, libc::RWF_NOWAIT) };
            // Also -1: it would have to wait, or the file system cannot tell.
            match usize::try_from(got) {
                Ok(got) if got > 0 => filled += got,
                _ => return None,
            }
        }
        Some(out)
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

/// The kernel brings in what is asked for and nothing around it: its pages would pass for ones that were looked at.
fn open_without_read_ahead(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    // SAFETY: no memory is handed over. An error only means that the advice is not taken.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
    Ok(file)
}

impl Inner {
    /// Sets the device to work on all of a range that is about to be read, which the kernel's read-ahead would do otherwise.
    fn want(&self, position: u64, len: usize) {
        for at in (0..len).step_by(WANT_STEP) {
            let (from, len) = (position + at as u64, WANT_STEP.min(len - at));
            let (Ok(from), Ok(len)) = (libc::off_t::try_from(from), libc::off_t::try_from(len)) else { return };
            // SAFETY: no memory is handed over.
            unsafe { libc::posix_fadvise(self.file.as_raw_fd(), from, len, libc::POSIX_FADV_WILLNEED) };
        }
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
