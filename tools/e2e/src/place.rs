//! Where things are: the workspace, the cache folder with what `tools/test` fetched, the program under test, temporary folders.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// The version of Apache Kafka whose packages are used; `tools/clients/pom.xml` pins the same.
pub const KAFKA_VERSION: &str = "4.4.0";

/// The top folder of the repository.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace folder exists")
}

/// The folder for what is downloaded once and not committed.
pub fn cache() -> PathBuf {
    env::var_os("RINGLOG_CACHE").map_or_else(|| workspace().join(".cache"), PathBuf::from)
}

/// The program under test: `RINGLOG_BIN`, or the newest that cargo has built.
pub fn ringlog() -> PathBuf {
    if let Some(named) = env::var_os("RINGLOG_BIN") {
        return PathBuf::from(named);
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
    let built = ["release", "debug"].map(|profile| target.join(profile).join("ringlog"));
    let newest = built.iter().filter_map(|path| Some((fs::metadata(path).ok()?.modified().ok()?, path))).max();
    let (_, path) = newest.unwrap_or_else(|| panic!("no ringlog in {}: run `cargo build` first", target.display()));
    path.clone()
}

/// A file that the tests' clients need from the cache, with a sentence when it is missing.
pub fn cached(name: &str) -> PathBuf {
    let path = cache().join(name);
    assert!(path.exists(), "{} is missing: run `tools/test prepare`", path.display());
    path
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// A folder of its own, removed at the end, kept (and named) when the test failed.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("ringlog-e2e-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = env::var_os("RINGLOG_E2E_DIR").map_or_else(env::temp_dir, PathBuf::from).join(name);
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        TempDir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for TempDir {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("kept for you to look at: {}", self.0.display());
        } else {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Every file below `folder` for which `wanted` holds, sorted.
pub fn files_below(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if wanted(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
