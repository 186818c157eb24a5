//! Helpers for tests of the crates above: one shard, a temporary folder.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::shard::{HelperSpec, ShardSpec, start};

/// Runs `main` on one shard and gives its result. A panic in it ends the test process with the task's name and text.
pub fn run<F, T>(main: impl Fn() -> F + Clone + Send + 'static) -> T
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let spec = ShardSpec::default();
    let running = start(&[spec], HelperSpec::default(), move |_| main()).expect("a test host can run a shard");
    let mut results = running.join().expect("a test's shard ends by itself");
    results.remove(0)
}

/// A folder that is removed when the value is dropped.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    pub fn new(name: &str) -> TempDir {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = std::env::temp_dir().join(format!(
            "ringlog-{name}-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the temporary folder can be written");
        TempDir { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Makes the kernel forget the pages of a file, as if memory had been short: what is read next comes from the device.
#[cfg(not(feature = "sim"))]
pub fn evict_pages(path: &std::path::Path) {
    use std::os::fd::AsRawFd;
    let file = std::fs::File::open(path).expect("a test's file can be opened");
    file.sync_all().expect("a test's file can be synced");
    // SAFETY: no memory is handed over.
    let rc = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(rc, 0, "the kernel takes the advice");
}
