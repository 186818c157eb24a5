//! A simulated host offers everything that a shard needs.

use std::path::{Path, PathBuf};

pub use crate::host_error::HostError;
use crate::sim::world::with;

pub fn check_host() -> Result<(), HostError> {
    Ok(())
}

pub fn open_files_limit() -> u64 {
    1024
}

/// Makes the data folder if it is not there. Its name is not durable by that, as on a real host.
pub fn prepare_data_dir(dir: &Path) -> Result<(), HostError> {
    with(|world| {
        let missing: Vec<&Path> = dir.ancestors().take_while(|folder| world.disk.lookup(folder).is_err()).collect();
        for folder in missing.into_iter().rev() {
            let made = world.disk.make_dir(folder);
            made.map_err(|source| HostError::DataDir { path: folder.to_path_buf(), source })?;
        }
        Ok(())
    })
}

/// Whether something is there under that name.
pub fn exists(path: &Path) -> bool {
    with(|world| world.disk.lookup(path).is_ok())
}

/// Refuses folders of which one lies in another. There are no links here.
pub fn distinct_folders(folders: &[PathBuf]) -> Result<(), HostError> {
    for (at, path) in folders.iter().enumerate() {
        let overlaps = |other: &&PathBuf| other.starts_with(path) || path.starts_with(other);
        if let Some(before) = folders[..at].iter().find(overlaps) {
            return Err(HostError::Overlap { path: before.clone(), other: path.clone() });
        }
    }
    Ok(())
}

pub fn is_in_memory(_dir: &Path) -> bool {
    false
}

pub fn allowed_cpus() -> Vec<usize> {
    vec![0]
}
