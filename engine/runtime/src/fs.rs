//! Small file work on the shard's pool thread: directories, checkpoints, indexes. Never on the produce or fetch way.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use crate::error::IoError;
pub use crate::file_types::{Entry, Overlay, Space, Stat};
use crate::limits::OVERLAY_THREADS;
use crate::task::spawn_blocking;

async fn on_pool<T: Send + 'static>(
    what: &'static str,
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, IoError> {
    let path = path.to_path_buf();
    let inner = path.clone();
    match spawn_blocking(move || work(&inner)).await {
        Ok(result) => result.map_err(|e| IoError::new(what, &path, e)),
        Err(panic) => Err(IoError::new(what, &path, io::Error::other(panic))),
    }
}

pub async fn create_dir_all(path: &Path) -> Result<(), IoError> {
    on_pool("cannot create", path, |p| fs::create_dir_all(p)).await
}

/// Makes a new directory and syncs its parent.
pub async fn create_dir_durable(path: &Path) -> Result<(), IoError> {
    on_pool("cannot create", path, |p| {
        fs::create_dir(p)?;
        sync_parent(p)
    })
    .await
}

/// Entries in name order. Names that are not UTF-8 are left out: none of ours is. A symbolic link is what it leads to, and
/// left out when that is nothing.
pub async fn read_dir(path: &Path) -> Result<Vec<Entry>, IoError> {
    on_pool("cannot list", path, |p| {
        let mut entries = Vec::new();
        for entry in fs::read_dir(p)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let mut meta = entry.metadata()?;
            if meta.is_symlink() {
                let Ok(target) = fs::metadata(entry.path()) else { continue };
                meta = target;
            }
            entries.push(Entry { name, is_dir: meta.is_dir(), len: meta.len() });
        }
        entries.sort();
        Ok(entries)
    })
    .await
}

/// Reads a whole file; `limit` bytes at most, more is an error.
pub async fn read(path: &Path, limit: usize) -> Result<Vec<u8>, IoError> {
    on_pool("cannot read", path, move |p| {
        let mut out = Vec::new();
        File::open(p)?.take(limit as u64 + 1).read_to_end(&mut out)?;
        if out.len() > limit {
            return Err(io::Error::other(format!("it is larger than {limit} bytes")));
        }
        Ok(out)
    })
    .await
}

/// As [`read`], with `None` for a file that is not there.
pub async fn read_if_there(path: &Path, limit: usize) -> Result<Option<Vec<u8>>, IoError> {
    match read(path, limit).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Reads many small files in one go: with thousands of them the way to the pool thread costs more than the reading. `None`
/// for one that is not there, cannot be read or is larger than `limit`.
pub async fn read_each(paths: Vec<PathBuf>, limit: usize) -> Result<Vec<Option<Vec<u8>>>, IoError> {
    on_pool("cannot read", Path::new("many files"), move |_| {
        let read = |path: &PathBuf| {
            let mut out = Vec::new();
            File::open(path).ok()?.take(limit as u64 + 1).read_to_end(&mut out).ok()?;
            (out.len() <= limit).then_some(out)
        };
        Ok(paths.iter().map(read).collect())
    })
    .await
}

/// Reads `len` bytes at `position` through the page cache; fewer at the end of the file.
pub async fn read_at(path: &Path, position: u64, len: usize) -> Result<Vec<u8>, IoError> {
    on_pool("cannot read", path, move |p| {
        let mut file = File::open(p)?;
        file.seek(SeekFrom::Start(position))?;
        let mut out = Vec::with_capacity(len);
        file.take(len as u64).read_to_end(&mut out)?;
        Ok(out)
    })
    .await
}

/// Replaces a file so that a crash leaves the old or the new content: written aside, synced, renamed, directory synced.
pub async fn write_durable(path: &Path, bytes: Vec<u8>) -> Result<(), IoError> {
    on_pool("cannot write", path, move |p| {
        let mut aside = p.as_os_str().to_owned();
        aside.push(".tmp");
        let aside = PathBuf::from(aside);
        let mut file = File::create(&aside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&aside, p)?;
        sync_parent(p)
    })
    .await
}

/// Replaces a file without any promise about crashes.
pub async fn write(path: &Path, bytes: Vec<u8>) -> Result<(), IoError> {
    on_pool("cannot write", path, move |p| fs::write(p, bytes)).await
}

/// Writes `bytes` at `position`, cuts the file behind them, and syncs if asked. Makes the file if need be.
pub async fn write_tail(path: &Path, position: u64, bytes: Vec<u8>, sync: bool) -> Result<(), IoError> {
    on_pool("cannot write", path, move |p| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(p)?;
        file.seek(SeekFrom::Start(position))?;
        file.write_all(&bytes)?;
        file.set_len(position + bytes.len() as u64)?;
        if sync { file.sync_all() } else { Ok(()) }
    })
    .await
}

/// Writes pieces into files that are there, in order, and syncs each. Gives which of the files were there. Some threads at a
/// time, so that the syncs share the file system's commits; not one sync of the whole file system, which would wait for
/// what other programs have written as well.
pub async fn overlay(folder: &Path, files: Vec<Overlay>) -> Result<Vec<bool>, IoError> {
    on_pool("cannot write into files of", folder, move |_| {
        let next = AtomicUsize::new(0);
        let work = || -> io::Result<Vec<usize>> {
            let mut there = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(file) = files.get(at) else { return Ok(there) };
                if overlay_one(file)? {
                    there.push(at);
                }
            }
        };
        let threads = OVERLAY_THREADS.min(files.len());
        let found = std::thread::scope(|scope| {
            let spawned: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let ended = spawned.into_iter().map(|thread| thread.join());
            let results =
                ended.map(|end| end.unwrap_or_else(|_| Err(io::Error::other("a thread that wrote panicked"))));
            results.collect::<io::Result<Vec<Vec<usize>>>>()
        })?;
        let mut there = vec![false; files.len()];
        found.into_iter().flatten().for_each(|at| there[at] = true);
        Ok(there)
    })
    .await
}

fn overlay_one(overlay: &Overlay) -> io::Result<bool> {
    let file = match OpenOptions::new().write(true).open(&overlay.path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    for (position, bytes) in &overlay.pieces {
        file.write_all_at(bytes, *position)?;
    }
    file.sync_data()?;
    Ok(true)
}

/// Cuts or extends a file and syncs it.
pub async fn truncate_durable(path: &Path, len: u64) -> Result<(), IoError> {
    on_pool("cannot cut", path, move |p| {
        let file = OpenOptions::new().write(true).open(p)?;
        file.set_len(len)?;
        file.sync_all()
    })
    .await
}

/// Sets when the file was last changed, as [`stat`] tells it: for a file that takes the place of an older one.
pub async fn set_modified(path: &Path, modified_ms: i64) -> Result<(), IoError> {
    on_pool("cannot stamp", path, move |p| {
        let since = Duration::from_millis(modified_ms.max(0).unsigned_abs());
        OpenOptions::new().write(true).open(p)?.set_modified(UNIX_EPOCH + since)
    })
    .await
}

/// Renames and syncs the target's directory.
pub async fn rename(from: &Path, to: &Path) -> Result<(), IoError> {
    let to = to.to_path_buf();
    on_pool("cannot rename", from, move |p| {
        fs::rename(p, &to)?;
        sync_parent(&to)
    })
    .await
}

/// Removes a file; one that is not there is no error.
pub async fn remove_file(path: &Path) -> Result<(), IoError> {
    on_pool("cannot remove", path, |p| ignore_missing(fs::remove_file(p))).await
}

pub async fn remove_dir_all(path: &Path) -> Result<(), IoError> {
    on_pool("cannot remove", path, |p| ignore_missing(fs::remove_dir_all(p))).await
}

pub async fn sync_dir(path: &Path) -> Result<(), IoError> {
    on_pool("cannot sync", path, |p| File::open(p)?.sync_all()).await
}

/// `None` when it is not there.
pub async fn stat(path: &Path) -> Result<Option<Stat>, IoError> {
    on_pool("cannot stat", path, |p| match fs::metadata(p) {
        Ok(meta) => {
            use std::os::unix::fs::MetadataExt;
            let modified_ms = meta.modified()?.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
            Ok(Some(Stat { len: meta.len(), modified_ms, allocated: meta.blocks() * 512 }))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    })
    .await
}

pub async fn space(path: &Path) -> Result<Space, IoError> {
    on_pool("cannot stat", path, |p| {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::CString::new(p.as_os_str().as_bytes()).map_err(io::Error::other)?;
        // SAFETY: an all-zero statvfs is a valid value.
        let mut out: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: `name` ends with a zero byte and `out` is a valid place.
        if unsafe { libc::statvfs(name.as_ptr(), &raw mut out) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let unit = out.f_frsize;
        Ok(Space { total: out.f_blocks * unit, free: out.f_bavail * unit })
    })
    .await
}

/// Bytes that the files right in a directory take on the device. What is not there takes nothing.
pub async fn taken(path: &Path) -> Result<u64, IoError> {
    on_pool("cannot list", path, |p| {
        use std::os::unix::fs::MetadataExt;
        let entries = match fs::read_dir(p) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
            listed => listed?,
        };
        let mut bytes = 0;
        for entry in entries {
            match entry?.metadata() {
                Ok(meta) if meta.is_file() => bytes += meta.blocks() * 512,
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        Ok(bytes)
    })
    .await
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => Ok(()),
    }
}

/// A file held under an exclusive lock while this value lives.
#[derive(Debug)]
pub struct LockedFile {
    _file: File,
}

impl LockedFile {
    /// Takes the lock, or `None` if another process holds it. Blocking; for start-up only.
    pub fn take(path: &Path) -> Result<Option<LockedFile>, IoError> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|e| IoError::new("cannot open", path, e))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(LockedFile { _file: file })),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(e)) => Err(IoError::new("cannot lock", path, e)),
        }
    }
}
