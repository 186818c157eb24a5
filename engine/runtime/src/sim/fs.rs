//! Small file work on the simulated disk. Each call is the row of operations that the real one makes, so that a crash
//! can come between any two of them.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::IoError;
pub use crate::file_types::{Entry, Overlay, Space, Stat};
use crate::sim::disk::InodeId;
use crate::sim::plan::Operation;
use crate::sim::step::{detached, step, step_or};
use crate::sim::world::{try_with, with};

/// Size of the simulated disk as [`space`] gives it; only a fault makes it full.
const TOTAL_SPACE: u64 = 1 << 40;

async fn on_pool<T: 'static, F: Future<Output = io::Result<T>> + 'static>(
    what: &'static str,
    path: &Path,
    work: impl FnOnce(PathBuf) -> F,
) -> Result<T, IoError> {
    detached(work(path.to_path_buf())).await.map_err(|e| IoError::new(what, path, e))
}

async fn sync_folder(path: &Path) -> io::Result<()> {
    let upto = with(|world| world.disk.sequence());
    step(Operation::SyncDir, path, |world| {
        let dir = world.disk.lookup(path)?;
        world.disk.sync_dir(dir, upto)
    })
    .await
}

async fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent).await,
        _ => Ok(()),
    }
}

async fn sync_file(path: &Path, inode: InodeId) -> io::Result<()> {
    let upto = with(|world| world.disk.sequence());
    step_or(Operation::Sync, path, |world, fault| match fault {
        None => world.disk.sync(inode, upto),
        Some(error) => {
            world.disk.sync_in_part(inode, upto, false, &mut world.dice);
            Err(error)
        }
    })
    .await
}

async fn create(path: &Path) -> io::Result<InodeId> {
    step(Operation::Create, path, |world| {
        let wall_ms = world.wall_ms();
        world.disk.create_file(path, false, wall_ms)
    })
    .await
}

async fn cut(path: &Path, inode: InodeId, len: u64) -> io::Result<()> {
    step(Operation::Truncate, path, |world| {
        let wall_ms = world.wall_ms();
        world.disk.truncate(inode, len, wall_ms)
    })
    .await
}

async fn write_bytes(path: &Path, inode: InodeId, position: u64, bytes: &[u8]) -> io::Result<()> {
    let ticket = step_or(Operation::Write, path, |world, fault| {
        let wall_ms = world.wall_ms();
        match fault {
            None => world.disk.write(inode, position, bytes, wall_ms),
            Some(error) => {
                world.disk.write_in_part(inode, position, bytes, wall_ms, &mut world.dice);
                Err(error)
            }
        }
    })
    .await?;
    with(|world| world.disk.came_back(inode, position, bytes.len(), ticket));
    Ok(())
}

async fn read_bytes(path: &Path, position: u64, len: usize) -> io::Result<Vec<u8>> {
    step(Operation::Read, path, |world| {
        let inode = world.disk.lookup(path)?;
        world.disk.read(inode, position, len)
    })
    .await
}

pub async fn create_dir_all(path: &Path) -> Result<(), IoError> {
    on_pool("cannot create", path, |p| async move {
        let missing = |folder: &&Path| with(|world| world.disk.lookup(folder).is_err());
        let folders: Vec<PathBuf> = p.ancestors().take_while(missing).map(Path::to_path_buf).collect();
        for folder in folders.iter().rev() {
            let made = step(Operation::Create, folder, |world| world.disk.make_dir(folder)).await;
            match made {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                _ => {}
            }
        }
        Ok(())
    })
    .await
}

/// Makes a new directory and syncs its parent.
pub async fn create_dir_durable(path: &Path) -> Result<(), IoError> {
    on_pool("cannot create", path, |p| async move {
        step(Operation::Create, &p, |world| world.disk.make_dir(&p)).await?;
        sync_parent(&p).await
    })
    .await
}

/// Entries in name order.
pub async fn read_dir(path: &Path) -> Result<Vec<Entry>, IoError> {
    on_pool("cannot list", path, |p| async move {
        let listed = step(Operation::List, &p, |world| world.disk.list(&p)).await?;
        Ok(listed.into_iter().map(|(name, is_dir, len)| Entry { name, is_dir, len }).collect())
    })
    .await
}

/// Reads a whole file; `limit` bytes at most, more is an error.
pub async fn read(path: &Path, limit: usize) -> Result<Vec<u8>, IoError> {
    on_pool("cannot read", path, move |p| async move {
        let out = read_bytes(&p, 0, limit.saturating_add(1)).await?;
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

/// Reads many small files. `None` for one that is not there, cannot be read or is larger than `limit`.
pub async fn read_each(paths: Vec<PathBuf>, limit: usize) -> Result<Vec<Option<Vec<u8>>>, IoError> {
    on_pool("cannot read", Path::new("many files"), move |_| async move {
        let mut out = Vec::with_capacity(paths.len());
        for path in &paths {
            let bytes = read_bytes(path, 0, limit.saturating_add(1)).await.ok();
            out.push(bytes.filter(|bytes| bytes.len() <= limit));
        }
        Ok(out)
    })
    .await
}

/// Reads `len` bytes at `position`; fewer at the end of the file.
pub async fn read_at(path: &Path, position: u64, len: usize) -> Result<Vec<u8>, IoError> {
    on_pool("cannot read", path, move |p| async move { read_bytes(&p, position, len).await }).await
}

/// Replaces a file so that a crash leaves the old or the new content: written aside, synced, renamed, directory synced.
pub async fn write_durable(path: &Path, bytes: Vec<u8>) -> Result<(), IoError> {
    on_pool("cannot write", path, move |p| async move {
        let mut aside = p.as_os_str().to_owned();
        aside.push(".tmp");
        let aside = PathBuf::from(aside);
        let inode = create(&aside).await?;
        cut(&aside, inode, 0).await?;
        write_bytes(&aside, inode, 0, &bytes).await?;
        sync_file(&aside, inode).await?;
        step(Operation::Rename, &p, |world| world.disk.rename(&aside, &p)).await?;
        sync_parent(&p).await
    })
    .await
}

/// Replaces a file without any promise about crashes.
pub async fn write(path: &Path, bytes: Vec<u8>) -> Result<(), IoError> {
    on_pool("cannot write", path, move |p| async move {
        let inode = create(&p).await?;
        cut(&p, inode, 0).await?;
        write_bytes(&p, inode, 0, &bytes).await
    })
    .await
}

/// Writes `bytes` at `position`, cuts the file behind them, and syncs if asked. Makes the file if need be.
pub async fn write_tail(path: &Path, position: u64, bytes: Vec<u8>, sync: bool) -> Result<(), IoError> {
    on_pool("cannot write", path, move |p| async move {
        let inode = create(&p).await?;
        write_bytes(&p, inode, position, &bytes).await?;
        cut(&p, inode, position + bytes.len() as u64).await?;
        if sync { sync_file(&p, inode).await } else { Ok(()) }
    })
    .await
}

/// Cuts or extends a file and syncs it.
pub async fn truncate_durable(path: &Path, len: u64) -> Result<(), IoError> {
    on_pool("cannot cut", path, move |p| async move {
        let inode = step(Operation::Open, &p, |world| world.disk.lookup(&p)).await?;
        cut(&p, inode, len).await?;
        sync_file(&p, inode).await
    })
    .await
}

/// Writes pieces into files that are there, and syncs each. Gives which of the files were there.
pub async fn overlay(folder: &Path, files: Vec<Overlay>) -> Result<Vec<bool>, IoError> {
    on_pool("cannot write into files of", folder, |_| async move {
        let mut there = Vec::with_capacity(files.len());
        let mut synced = Vec::new();
        for Overlay { path, pieces } in files {
            let found = step(Operation::Open, &path, |world| world.disk.lookup(&path)).await;
            match found {
                Ok(inode) => {
                    for (position, bytes) in pieces {
                        write_bytes(&path, inode, position, &bytes).await?;
                    }
                    synced.push((path, inode));
                    there.push(true);
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => there.push(false),
                Err(e) => return Err(e),
            }
        }
        for (path, inode) in synced {
            sync_file(&path, inode).await?;
        }
        Ok(there)
    })
    .await
}

/// Sets when the file was last changed.
pub async fn set_modified(path: &Path, modified_ms: i64) -> Result<(), IoError> {
    on_pool("cannot stamp", path, move |p| async move {
        step(Operation::Open, &p, |world| {
            let inode = world.disk.lookup(&p)?;
            world.disk.file_mut(inode)?.modified_ms = modified_ms;
            Ok(())
        })
        .await
    })
    .await
}

/// Renames and syncs the target's directory.
pub async fn rename(from: &Path, to: &Path) -> Result<(), IoError> {
    let to = to.to_path_buf();
    on_pool("cannot rename", from, |p| async move {
        step(Operation::Rename, &p, |world| world.disk.rename(&p, &to)).await?;
        sync_parent(&to).await
    })
    .await
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes a file; one that is not there is no error.
pub async fn remove_file(path: &Path) -> Result<(), IoError> {
    on_pool("cannot remove", path, |p| async move {
        ignore_missing(step(Operation::Remove, &p, |world| world.disk.unlink(&p)).await)
    })
    .await
}

pub async fn remove_dir_all(path: &Path) -> Result<(), IoError> {
    on_pool("cannot remove", path, |p| async move {
        let mut open = vec![p];
        while let Some(folder) = open.last().cloned() {
            let listed = match step(Operation::List, &folder, |world| world.disk.list(&folder)).await {
                Ok(listed) => listed,
                Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(e) => return Err(e),
            };
            let mut has_folders = false;
            for (name, is_dir, _) in listed {
                let inner = folder.join(name);
                if is_dir {
                    has_folders = true;
                    open.push(inner);
                } else {
                    ignore_missing(step(Operation::Remove, &inner, |world| world.disk.unlink(&inner)).await)?;
                }
            }
            if !has_folders {
                ignore_missing(step(Operation::Remove, &folder, |world| world.disk.unlink(&folder)).await)?;
                open.pop();
            }
        }
        Ok(())
    })
    .await
}

pub async fn sync_dir(path: &Path) -> Result<(), IoError> {
    on_pool("cannot sync", path, |p| async move { sync_folder(&p).await }).await
}

/// `None` when it is not there.
pub async fn stat(path: &Path) -> Result<Option<Stat>, IoError> {
    on_pool("cannot stat", path, |p| async move {
        match step(Operation::List, &p, |world| world.disk.stat(&p)).await {
            Ok((len, modified_ms, allocated)) => Ok(Some(Stat { len, modified_ms, allocated })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    })
    .await
}

pub async fn space(path: &Path) -> Result<Space, IoError> {
    on_pool("cannot stat", path, |p| async move {
        let used = step(Operation::List, &p, |world| Ok(world.disk.bytes_used())).await?;
        Ok(Space { total: TOTAL_SPACE, free: TOTAL_SPACE.saturating_sub(used) })
    })
    .await
}

/// Bytes that the files right in a directory take. What is not there takes nothing.
pub async fn taken(path: &Path) -> Result<u64, IoError> {
    match read_dir(path).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        listed => Ok(listed?.iter().filter(|entry| !entry.is_dir).map(|entry| entry.len).sum()),
    }
}

/// A file held under an exclusive lock while this value and its process live.
#[derive(Debug)]
pub struct LockedFile {
    path: PathBuf,
    process: u64,
}

impl LockedFile {
    /// Takes the lock, or `None` if it is held.
    pub fn take(path: &Path) -> Result<Option<LockedFile>, IoError> {
        with(|world| {
            let wall_ms = world.wall_ms();
            let made = world.disk.create_file(path, false, wall_ms);
            made.map_err(|e| IoError::new("cannot open", path, e))?;
            let process = world.tasks.current.process;
            if world.disk.locks.contains_key(path) {
                return Ok(None);
            }
            world.disk.locks.insert(path.to_path_buf(), process);
            Ok(Some(LockedFile { path: path.to_path_buf(), process }))
        })
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        try_with(|world| {
            if world.disk.locks.get(&self.path) == Some(&self.process) {
                world.disk.locks.remove(&self.path);
            }
        });
    }
}
