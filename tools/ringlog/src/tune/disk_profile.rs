//! What `ringlog tune disk` chooses from its figures, and the file it leaves: a tuning profile of the disk alone, which
//! `serve --tuning` takes as it is.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use super::disk_measure::{DEPTH_WRITE_BYTES, Kind};
use super::disk_report::{Report, Row};

/// Part of the best throughput that counts as having reached it, in percent.
pub const ENOUGH_PERCENT: f64 = 90.0;
/// The broker's bounds of its largest write.
const WRITE_MAX_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 20;

/// What the broker should ask of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Smallest that reaches most of the best synced throughput of one writer.
    pub write_max_bytes: usize,
    /// Fewest synced writes at once that reach most of the best rate of small ones.
    pub queue_depth: usize,
    /// Median of a synced write of that size, or at that depth if that takes longer.
    pub expected_write_us: u64,
}

impl Choice {
    /// `None` without figures.
    pub fn of(rows: &[Row]) -> Option<Choice> {
        let synced = || rows.iter().filter(|r| r.phase.kind == Kind::WriteSync);
        let sizes: Vec<&Row> =
            synced().filter(|r| r.phase.depth == 1 && WRITE_MAX_BYTES.contains(&r.phase.size)).collect();
        let depths: Vec<&Row> = synced().filter(|r| r.phase.size == DEPTH_WRITE_BYTES).collect();
        let size = first_enough(&sizes, |r| r.phase.size)?;
        let depth = first_enough(&depths, |r| r.phase.depth)?;
        Some(Choice {
            write_max_bytes: size.phase.size,
            queue_depth: depth.phase.depth,
            expected_write_us: size.p50_us.max(depth.p50_us).max(1),
        })
    }

    /// The profile's text, with what it was chosen from.
    pub fn toml(&self, report: &Report) -> String {
        let mut out = String::from(
            "# The disk's part of a tuning profile, measured and written by ringlog tune disk.\n\
             # ringlog serve --tuning FILE takes it as it is (CPUs and memory are then derived from the machine), or copy the\n\
             # three lines at the end into a profile of yours. Figures of a shared machine or drive vary: measure more than once.\n",
        );
        for line in [""].into_iter().chain(report.host_text().lines()).chain([""]).chain(report.table().lines()) {
            // A name on this host may hold anything; a comment may not.
            let line: String = line.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            out.push_str(format!("# {line}").trim_end());
            out.push('\n');
        }
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "\n# Smallest write that reaches {ENOUGH_PERCENT} % of the best synced throughput of one writer.\n\
             disk_write_max_bytes = {}\n\n\
             # Fewest synced writes at once that reach {ENOUGH_PERCENT} % of the best rate.\n\
             disk_queue_depth = {}\n\n\
             # Usual time of a synced write: one that takes 20 times as long, and 100 ms at least, is told as a stall.\n\
             disk_expected_write_us = {}\n",
            self.write_max_bytes, self.queue_depth, self.expected_write_us
        );
        out
    }
}

/// The one with the smallest `key` of those that reach enough of the best.
pub fn first_enough<'a>(rows: &[&'a Row], key: fn(&Row) -> usize) -> Option<&'a Row> {
    let best = rows.iter().map(|r| r.mib_per_s()).fold(0.0, f64::max);
    let enough = rows.iter().filter(|r| r.mib_per_s() >= best * ENOUGH_PERCENT / 100.0);
    enough.min_by_key(|r| key(r)).copied()
}

/// Whether the file could be written, asked before the measuring takes its time.
pub fn check(path: &Path, force: bool) -> Result<(), String> {
    let shown = path.display();
    if path.is_dir() {
        return Err(format!("{shown} is a folder: name the file to write"));
    }
    if path.symlink_metadata().is_ok() && !force {
        return Err(exists(path));
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            Err(format!("{shown} cannot be written: its folder is not there"))
        }
        _ => Ok(()),
    }
}

fn exists(path: &Path) -> String {
    format!("{} exists already: --force overwrites it", path.display())
}

pub fn write(path: &Path, text: &str, force: bool) -> Result<(), String> {
    let mut options = OpenOptions::new();
    options.write(true);
    let options = if force { options.create(true).truncate(true) } else { options.create_new(true) };
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => format!("{} cannot be written: {e}", path.display()),
    })
}

#[cfg(test)]
#[path = "disk_profile_tests.rs"]
mod tests;
