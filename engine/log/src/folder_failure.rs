//! A data folder that failed as a whole: its device is gone, or what every partition in it needs (names, checkpoint) cannot
//! be written any more.
//!
//! Set once, by whichever shard meets it first, and never taken back while the process lives: nobody can say what such a
//! device still holds. What was acknowledged stays on it; a start looks again. An error of one file's data is not such a
//! failure: it poisons its partition alone.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use runtime::IoError;

// From errno.h: no such device or address, no such device, read-only file system, stale file handle, shut down.
const DEVICE_IS_GONE: [i32; 5] = [6, 19, 30, 116, 108];
// No such file, input/output error, structure needs cleaning: of the folder itself they mean that it is lost.
const FOLDER_IS_GONE: [i32; 3] = [2, 5, 117];

#[derive(Debug, Default)]
pub(crate) struct FolderFailure {
    why: OnceLock<Arc<str>>,
}

impl FolderFailure {
    pub fn why(&self) -> Option<Arc<str>> {
        self.why.get().cloned()
    }

    /// Tells the operator, once.
    pub fn set(&self, folder: &Path, why: &str) {
        // Simulated folders fail all the time.
        if self.why.set(why.into()).is_ok() && !cfg!(any(feature = "sim", test)) {
            eprintln!(
                "ringlog: data folder {} failed ({why}): its partitions answer KAFKA_STORAGE_ERROR until the broker is \
                 started again; other folders go on.",
                folder.display()
            );
        }
    }
}

/// Whether an error of any file means that the device is gone.
pub(crate) fn device_is_gone(error: &IoError) -> bool {
    error.source.raw_os_error().is_some_and(|errno| DEVICE_IS_GONE.contains(&errno))
}

/// Whether an error of what the whole folder needs means that the folder is lost. A full disk does not.
pub(crate) fn folder_is_gone(error: &IoError) -> bool {
    device_is_gone(error) || error.source.raw_os_error().is_some_and(|errno| FOLDER_IS_GONE.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(errno: i32) -> IoError {
        IoError::new("cannot write", Path::new("/a"), std::io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn full_disks_and_damaged_files_are_no_lost_folders() {
        for (errno, device, folder) in [(28, false, false), (5, false, true), (30, true, true), (2, false, true)] {
            assert_eq!((device_is_gone(&error(errno)), folder_is_gone(&error(errno))), (device, folder), "{errno}");
        }
        let failure = FolderFailure::default();
        assert_eq!(failure.why(), None);
        failure.set(Path::new("/a"), "first");
        failure.set(Path::new("/a"), "second");
        assert_eq!(failure.why().as_deref(), Some("first"));
    }
}
