//! Reads what the host says about itself under `/proc` and `/sys`. The root is a parameter, so that a test gives a tree of
//! its own. Every failure is a reason in words: what cannot be read is told, never left out.

use std::io::Read;
use std::path::{Path, PathBuf};

use tuning::{CpuText, Topology};

/// Largest file of `/proc` or `/sys` that is read; /proc/interrupts of a large host is some hundred KiB.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Names of one folder that are looked at.
const NAMES_MAX: usize = 16_384;

/// A tree that looks like a host's `/`.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    pub fn new(root: &Path) -> Host {
        Host { root: root.to_path_buf() }
    }

    /// Where `path`, absolute on the host, lies in this tree.
    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's text without white space around it, or why not.
    pub fn text(&self, path: &str) -> Result<String, String> {
        let mut text = Vec::new();
        let read = std::fs::File::open(self.at(path)).and_then(|f| f.take(FILE_BYTES_MAX).read_to_end(&mut text));
        match read {
            Ok(_) => Ok(String::from_utf8_lossy(&text).trim().to_owned()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(format!("there is no {path} here")),
            Err(e) => Err(format!("{path} cannot be read: {e}")),
        }
    }

    pub fn number(&self, path: &str) -> Result<u64, String> {
        let text = self.text(path)?;
        text.parse().map_err(|_| format!("{path} says {text:?}, which is no number"))
    }

    /// Names in a folder, in order; none when it is not there.
    pub fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.at(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().take(NAMES_MAX).filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Last part of the path that a link leads to.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let real = std::fs::canonicalize(self.at(path)).ok()?;
        Some(real.file_name()?.to_string_lossy().into_owned())
    }

    pub fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// CPUs, cores and NUMA nodes as sysfs shows them.
    pub fn topology(&self) -> Topology {
        const CPUS: &str = "/sys/devices/system/cpu";
        const NODES: &str = "/sys/devices/system/node";
        let numbered = |name: &String, prefix: &str| name.strip_prefix(prefix).and_then(|n| n.parse::<usize>().ok());
        let online = self.text(&format!("{CPUS}/online")).ok().and_then(|text| tuning::cpu_list::parse(&text));
        let is_online = |id: &usize| online.as_ref().is_none_or(|list| list.contains(id));
        let ids =
            self.names(CPUS).iter().filter_map(|name| numbered(name, "cpu")).filter(is_online).collect::<Vec<_>>();
        let read = |id: usize, file: &str| self.text(&format!("{CPUS}/cpu{id}/topology/{file}")).unwrap_or_default();
        let cpus: Vec<CpuText> = ids
            .into_iter()
            .map(|id| CpuText {
                id,
                siblings: read(id, "thread_siblings_list"),
                package: read(id, "physical_package_id"),
            })
            .collect();
        let nodes: Vec<(usize, String)> = self
            .names(NODES)
            .iter()
            .filter_map(|name| numbered(name, "node"))
            .filter_map(|node| Some((node, self.text(&format!("{NODES}/node{node}/cpulist")).ok()?)))
            .collect();
        Topology::parse(&cpus, &nodes)
    }

    /// Memory of the host in bytes.
    pub fn memory_bytes(&self) -> Option<u64> {
        super::parse::meminfo(&self.text("/proc/meminfo").ok()?, "MemTotal")
    }
}
