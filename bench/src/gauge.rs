//! What a run costs, read from `/proc` and `/sys`: CPU time of the broker, of the whole machine and of this process, bytes
//! written, the page cache.
//!
//! The machine's CPU time counts everything that ran, kernel threads included, whoever caused it: on a machine that does other
//! work besides, it says so too. Resolution is the kernel's tick, 10 ms.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::broker::Broker;

const TICKS_PER_SECOND: f64 = 100.0;
const SECTOR_BYTES: f64 = 512.0;

/// CPU seconds at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    pub at: Instant,
    pub broker: f64,
    pub machine: f64,
    pub own: f64,
}

impl Cpu {
    pub fn now(broker: &Broker) -> Cpu {
        Cpu { at: Instant::now(), broker: broker.cpu_seconds(), machine: machine_seconds(), own: own_seconds() }
    }

    /// What was spent since.
    pub fn since(self, before: Cpu) -> Spent {
        let own = self.own - before.own;
        Spent {
            seconds: (self.at - before.at).as_secs_f64(),
            broker: self.broker - before.broker,
            machine_without_client: (self.machine - before.machine - own).max(0.0),
            client: own,
        }
    }
}

/// CPU seconds of a span.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    pub seconds: f64,
    pub broker: f64,
    pub machine_without_client: f64,
    pub client: f64,
}

fn machine_seconds() -> f64 {
    busy_ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()) / TICKS_PER_SECOND
}

/// user, nice, system, irq, softirq of the first line: neither idle nor waiting, and not stolen by other guests. Guests' time is
/// part of user's.
fn busy_ticks(stat: &str) -> f64 {
    let line = stat.lines().next().unwrap_or_default();
    let fields: Vec<f64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    [0, 1, 2, 5, 6].iter().filter_map(|&at| fields.get(at)).sum()
}

/// User and system time of this process.
pub fn own_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    behind_name.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<f64>().ok()).sum::<f64>()
        / TICKS_PER_SECOND
}

/// Nanoseconds that the calling thread has run.
pub fn thread_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// The block device below a folder; none where the file system has none of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its folder in `/sys`; a partition's is inside its disk's.
    folder: PathBuf,
}

impl Device {
    pub fn of(dir: &Path) -> Option<Device> {
        let number = fs::metadata(dir).ok()?.dev();
        let (major, minor) = (libc::major(number), libc::minor(number));
        let folder = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        Some(Device { folder })
    }

    /// Bytes written to it so far, by whomever.
    pub fn written_bytes(&self) -> Option<f64> {
        sectors_written(&fs::read_to_string(self.folder.join("stat")).ok()?).map(|sectors| sectors * SECTOR_BYTES)
    }

    /// Of the whole disk, where this is a partition.
    fn attribute(&self, name: &str) -> Option<String> {
        let found = [self.folder.clone(), self.folder.join("..")]
            .iter()
            .find_map(|folder| fs::read_to_string(folder.join(name)).ok())?;
        Some(found.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What the device calls itself, or the driver it has.
    pub fn model(&self) -> String {
        let driver = [self.folder.join("device/driver"), self.folder.join("../device/driver")]
            .iter()
            .find_map(|link| fs::canonicalize(link).ok())
            .and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
        self.attribute("device/model").or(driver).unwrap_or_else(|| "unknown".to_owned())
    }

    /// The one of the kernel's schedulers that is chosen.
    pub fn scheduler(&self) -> String {
        let all = self.attribute("queue/scheduler").unwrap_or_default();
        let chosen = all.split(['[', ']']).nth(1).map(str::to_owned);
        chosen.unwrap_or(all)
    }
}

/// The seventh field of a device's `stat`.
fn sectors_written(stat: &str) -> Option<f64> {
    stat.split_whitespace().nth(6)?.parse().ok()
}

/// Writes back what is dirty on a folder's file system.
pub fn write_back(dir: &Path) {
    let _ = Command::new("sync").arg("-f").arg(dir).status();
}

/// Empties the page cache, where permitted.
pub fn drop_page_cache(dir: &Path) -> Result<(), String> {
    write_back(dir);
    fs::write("/proc/sys/vm/drop_caches", "1\n").map_err(|e| format!("the page cache was not dropped: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ran_counts_as_busy() {
        let stat = "cpu  100 20 30 4000 500 6 7 80 90 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert!((busy_ticks(stat) - 163.0).abs() < 1e-9);
    }

    #[test]
    fn a_devices_seventh_field_is_sectors_written() {
        assert_eq!(sectors_written("  11 12 13 14 15 16 4711 18 0 1 2\n"), Some(4711.0));
        assert_eq!(sectors_written("1 2 3"), None);
    }

    #[test]
    fn time_spent_here_grows() {
        let before = (own_seconds(), thread_seconds());
        let begun = Instant::now();
        let mut sum = 0u64;
        // A busy machine may give this thread its time late, or have given it enough between the two looks already.
        while own_seconds() <= before.0 || thread_seconds() <= before.1 {
            (0..100_000u64).for_each(|i| sum = sum.wrapping_add(std::hint::black_box(i)));
            assert!(begun.elapsed().as_secs() < 30, "CPU time does not count");
        }
        std::hint::black_box(sum);
    }
}
