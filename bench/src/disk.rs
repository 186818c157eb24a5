//! What a folder takes on its disk.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Everything below a folder. Names that go while it is counted do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Taken on the device.
    pub bytes: u64,
    pub files: u64,
    pub folders: u64,
}

impl Usage {
    pub fn of(dir: &Path) -> Usage {
        let mut usage = Usage::default();
        usage.add(dir);
        usage
    }

    pub fn mib(self) -> f64 {
        self.bytes as f64 / f64::from(1 << 20)
    }

    fn add(&mut self, dir: &Path) {
        let Ok(list) = std::fs::read_dir(dir) else { return };
        for entry in list.filter_map(Result::ok) {
            let Ok(meta) = entry.metadata() else { continue };
            self.bytes += meta.blocks() * 512;
            if meta.is_dir() {
                self.folders += 1;
                self.add(&entry.path());
            } else {
                self.files += 1;
            }
        }
    }
}
