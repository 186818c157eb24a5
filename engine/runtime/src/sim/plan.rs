//! What a disk does to operations besides doing them: latency with a long tail, and the faults that a test dealt.

use std::collections::BTreeMap;
use std::path::Path;

use super::world::Dice;

/// Kinds of operations that take time and may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Open,
    Read,
    Write,
    /// fsync or fdatasync of a file.
    Sync,
    /// Preallocation.
    Reserve,
    Truncate,
    /// Making a file or directory.
    Create,
    Rename,
    Remove,
    /// Listing a directory, stat.
    List,
    SyncDir,
}

impl Operation {
    /// Mostly what an NVMe disk does; one in fifty takes twenty times as long, one in five hundred five hundred times.
    pub(crate) fn latency_ns(self, dice: &mut Dice) -> u64 {
        let usual = match self {
            Operation::Sync | Operation::SyncDir => 300_000,
            Operation::Write | Operation::Read => 90_000,
            _ => 20_000,
        };
        let jitter = usual / 2 + dice.below(usual);
        match dice.below(500) {
            0 => jitter * 500,
            1..=10 => jitter * 20,
            _ => jitter,
        }
    }
}

/// Fails the operations on paths that contain `path_part`, after `passes` of them went well, `times` times.
#[derive(Clone, Debug)]
pub struct Fault {
    pub operation: Operation,
    pub path_part: String,
    pub passes: u64,
    pub times: u64,
    /// As in errno.h.
    pub errno: i32,
}

/// Faults to come, and how often which operation was asked for.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub faults: Vec<Fault>,
    /// Faults that struck since the last look.
    pub struck: u64,
    /// Writes to files with this in their path, and how many of them go well before one goes astray.
    pub astray: Option<(String, u64)>,
    counts: BTreeMap<(Operation, String), u64>,
}

impl Plan {
    pub fn strike(&mut self, operation: Operation, path: &Path) -> Option<i32> {
        let text = path.to_string_lossy();
        let matching = |f: &&mut Fault| f.operation == operation && f.times > 0 && text.contains(&f.path_part);
        let fault = self.faults.iter_mut().find(matching)?;
        if fault.passes > 0 {
            fault.passes -= 1;
            return None;
        }
        fault.times -= 1;
        self.struck += 1;
        Some(fault.errno)
    }

    /// Whether this write lands one page behind its place.
    pub fn strays(&mut self, path: &Path) -> bool {
        let Some((part, passes)) = &mut self.astray else { return false };
        if !path.to_string_lossy().contains(part.as_str()) {
            return false;
        }
        if *passes > 0 {
            *passes -= 1;
            return false;
        }
        self.astray = None;
        self.struck += 1;
        true
    }

    pub fn count(&mut self, operation: Operation, path: &Path) {
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        *self.counts.entry((operation, extension)).or_default() += 1;
    }

    pub fn counted(&self, operation: Operation, extension: &str) -> u64 {
        self.counts.get(&(operation, extension.to_string())).copied().unwrap_or(0)
    }
}
