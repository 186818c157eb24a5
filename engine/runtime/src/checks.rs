//! What a host must offer before shards can start, each failure with a sentence that says what to do.

use std::io;
use std::path::{Path, PathBuf};

pub use crate::host_error::HostError;
use crate::limits::MIN_MEMLOCK_BYTES;

fn limit_of(resource: libc::__rlimit_resource_t) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    let rc = unsafe { libc::getrlimit(resource, &raw mut limit) };
    (rc == 0).then_some(limit)
}

fn memlock_limit() -> u64 {
    limit_of(libc::RLIMIT_MEMLOCK).map_or(u64::MAX, |limit| limit.rlim_cur)
}

/// Files and sockets that this process may have open at once.
pub fn open_files_limit() -> u64 {
    limit_of(libc::RLIMIT_NOFILE).map_or(u64::MAX, |limit| limit.rlim_cur)
}

/// Raises this process's limits of open files and of locked memory to what its owner may set (from the soft to the hard
/// limit), as a Java process does for its files. Shells and services often begin with 1024 files, which are few
/// for segments and connections.
pub fn raise_limits() {
    for resource in [libc::RLIMIT_NOFILE, libc::RLIMIT_MEMLOCK] {
        if let Some(limit) = limit_of(resource).filter(|limit| limit.rlim_cur < limit.rlim_max) {
            let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
            // SAFETY: `raised` is a valid value. Where it is refused the old limit stays.
            unsafe { libc::setrlimit(resource, &raw const raised) };
        }
    }
}

/// Checks memory locking and io_uring itself.
pub fn check_host() -> Result<(), HostError> {
    let limit_bytes = memlock_limit();
    if limit_bytes < MIN_MEMLOCK_BYTES {
        return Err(HostError::Memlock { limit_bytes });
    }
    let mut params = [0u8; 120];
    // SAFETY: io_uring_setup reads and fills a zeroed io_uring_params, which is 120 bytes.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, params.as_mut_ptr()) };
    if fd >= 0 {
        // SAFETY: the descriptor was just made and is closed once.
        unsafe { libc::close(fd as i32) };
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => HostError::UringForbidden,
        Some(libc::ENOSYS) => HostError::UringMissing,
        Some(libc::ENOMEM) => HostError::Memlock { limit_bytes },
        _ => HostError::Uring(error),
    })
}

/// Whether something is there under that name.
pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Where a folder is, or will be once it is made: without links on the way.
fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let there = absolute.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
    match there {
        Some((part, real)) => absolute.strip_prefix(part).map_or_else(|_| real.clone(), |rest| real.join(rest)),
        None => absolute,
    }
}

/// Refuses folders of which two are the same one (by name, link or bind mount) or one lies in another.
pub fn distinct_folders(folders: &[PathBuf]) -> Result<(), HostError> {
    use std::os::unix::fs::MetadataExt;
    let inode = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    let real: Vec<_> = folders.iter().map(|path| (real_path(path), inode(path))).collect();
    for (at, (path, id)) in real.iter().enumerate() {
        let overlaps = |(other, other_id): &(PathBuf, Option<(u64, u64)>)| {
            other.starts_with(path) || path.starts_with(other) || (id.is_some() && id == other_id)
        };
        if let Some(before) = real[..at].iter().position(overlaps) {
            return Err(HostError::Overlap { path: folders[before].clone(), other: folders[at].clone() });
        }
    }
    Ok(())
}

/// Whether another process holds a record lock (fcntl) on a file, as Java programs do. `false` where there is none.
pub fn is_record_locked(path: &Path) -> io::Result<bool> {
    use std::os::fd::AsRawFd;
    let file = match std::fs::OpenOptions::new().read(true).write(true).open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    // SAFETY: an all-zero flock is a valid value.
    let mut asked: libc::flock = unsafe { std::mem::zeroed() };
    asked.l_type = libc::F_WRLCK as libc::c_short;
    asked.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the descriptor is open, and `asked` is a valid place for the answer.
    let rc = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut asked) };
    if rc == 0 { Ok(asked.l_type != libc::F_UNLCK as libc::c_short) } else { Err(io::Error::last_os_error()) }
}

/// Makes the data folder if it is not there, and opens a file with O_DIRECT in it.
pub fn prepare_data_dir(dir: &Path) -> Result<(), HostError> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::create_dir_all(dir).map_err(|source| HostError::DataDir { path: dir.to_path_buf(), source })?;
    let path = dir.join(".direct-io-probe");
    let result = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path)
        .map(drop);
    let _ = std::fs::remove_file(&path);
    let path = dir.to_path_buf();
    result.map_err(|source| match source.raw_os_error() {
        Some(libc::EINVAL | libc::EOPNOTSUPP) => HostError::NoDirectIo { path, source },
        _ => HostError::DataDir { path, source },
    })
}

/// Whether the folder lies in memory (tmpfs, ramfs), where a sync makes nothing durable.
pub fn is_in_memory(dir: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    let Ok(name) = std::ffi::CString::new(dir.as_os_str().as_bytes()) else { return false };
    // SAFETY: an all-zero statfs is a valid value, `name` ends with a zero byte and `out` is a valid place.
    let (rc, kind) = unsafe {
        let mut out: libc::statfs = std::mem::zeroed();
        let rc = libc::statfs(name.as_ptr(), &raw mut out);
        (rc, out.f_type as i64)
    };
    rc == 0 && (kind == TMPFS || kind == RAMFS)
}

/// CPUs this process may run on.
pub fn allowed_cpus() -> Vec<usize> {
    core_affinity::get_core_ids().unwrap_or_default().into_iter().map(|c| c.id).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn limits_are_raised_to_the_hard_ones() {
        raise_limits();
        for resource in [libc::RLIMIT_NOFILE, libc::RLIMIT_MEMLOCK] {
            let limit = limit_of(resource).unwrap();
            assert_eq!(limit.rlim_cur, limit.rlim_max);
        }
    }

    #[test]
    fn one_folder_under_two_names_is_found() {
        let temp = crate::testing::TempDir::new("checks-folders");
        let path = |name: &str| temp.path().join(name);
        std::fs::create_dir(path("a")).unwrap();
        std::os::unix::fs::symlink(path("a"), path("link")).unwrap();
        let are_distinct = |one: &str, other: &str| distinct_folders(&[path(one), path(other)]).is_ok();
        assert!(are_distinct("a", "b"), "neither has to be there");
        assert!(are_distinct("a", "ab"));
        for (one, other) in [("a", "a/."), ("a", "link"), ("a", "a/in"), ("link/in", "a"), ("b/c", "b"), ("b", "./b")] {
            assert!(!are_distinct(one, other), "{one} {other}");
        }
    }
}
