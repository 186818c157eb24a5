//! Helpers for tests of the crates above: one simulated shard, a folder on its disk.

use std::path::{Path, PathBuf};

use crate::sim::{Config, run as simulate};

/// Runs `main` in a simulation of its own and gives its result.
pub fn run<F, T>(main: impl Fn() -> F + Clone + Send + 'static) -> T
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    simulate(1, Config::default(), async move { main().await })
}

/// A folder's name; it goes with the simulated disk.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    pub fn new(name: &str) -> TempDir {
        TempDir { path: Path::new("/tmp").join(name) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}
