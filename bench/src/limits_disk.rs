//! A file written and read directly, past the page cache: by `fio`, or by ourselves.
//!
//! Writes go over bytes that are there already, as those of a preallocated segment or a journal do: a write that grows a file costs
//! a commit of the file system's own journal with each sync, and would set the limit too low.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::Value;

use crate::drive::histogram;

const MIB: f64 = (1u64 << 20) as f64;
/// What direct writes are aligned to.
pub const ALIGNMENT: usize = 4_096;
/// Lone writes, each on a quiet disk.
const LONE_WRITES: usize = 400;
const LONE_PAUSE: Duration = Duration::from_millis(5);
/// Between two small writes beside readers.
const BESIDE_PAUSE: Duration = Duration::from_micros(500);

pub fn has_fio() -> bool {
    Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// MiB/s of sequential writes over a file that is there, a sync after each block.
pub fn write(file: &Path, block: u64, bytes: u64) -> Result<f64, String> {
    write_in_groups(file, block, bytes, 1)
}

/// The same with a sync after so many blocks.
pub fn write_in_groups(file: &Path, block: u64, bytes: u64, group: u64) -> Result<f64, String> {
    if has_fio() {
        let sync = format!("--fdatasync={group}");
        return fio(file, &["--rw=write", "--overwrite=1", &sync], block, bytes, 1, "write");
    }
    let fail = |e: io::Error| format!("{}: {e}", file.display());
    let open = open(file).map_err(fail)?;
    let mut buffer = Aligned::new(block as usize);
    write_all(&open, buffer.bytes(), bytes, false).map_err(fail)?;
    open.sync_all().map_err(fail)?;
    timed(&open, buffer.bytes(), bytes, group).map_err(fail)
}

/// MiB/s of sequential writes into a fresh file whose space was allocated before, as a segment's is, a sync after so many blocks:
/// by ourselves.
pub fn write_allocated(file: &Path, block: u64, bytes: u64, group: u64) -> Result<f64, String> {
    let fail = |e: io::Error| format!("{}: {e}", file.display());
    let _ = std::fs::remove_file(file);
    let open = open(file).map_err(fail)?;
    allocate(&open, bytes).map_err(fail)?;
    let mut buffer = Aligned::new(block as usize);
    timed(&open, buffer.bytes(), bytes, group).map_err(fail)
}

/// Allocates the space of a file, and makes that durable.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open, and no pointer is handed over.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) } {
        0 => file.sync_all(),
        failed => Err(io::Error::from_raw_os_error(failed)),
    }
}

fn timed(file: &File, block: &[u8], bytes: u64, group: u64) -> io::Result<f64> {
    let begun = Instant::now();
    for at in (0..bytes).step_by(block.len() * group as usize) {
        for number in 0..group {
            file.write_all_at(block, at + number * block.len() as u64)?;
        }
        file.sync_data()?;
    }
    Ok(bytes as f64 / MIB / begun.elapsed().as_secs_f64())
}

/// MiB/s of sequential reads by `jobs` readers, each of its own part.
pub fn read(file: &Path, block: u64, bytes: u64, jobs: u64) -> Result<f64, String> {
    if has_fio() {
        return fio(file, &["--rw=read"], block, bytes / jobs, jobs, "read");
    }
    read_by_ourselves(file, block, bytes, jobs)
}

fn read_by_ourselves(file: &Path, block: u64, bytes: u64, jobs: u64) -> Result<f64, String> {
    let fail = |e: io::Error| format!("{}: {e}", file.display());
    let open = open(file).map_err(fail)?;
    let begun = Instant::now();
    let part = bytes / jobs / block * block;
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..jobs)
            .map(|job| {
                scope.spawn({
                    let open = &open;
                    move || read_part(open, job * part, part, block)
                })
            })
            .collect();
        readers
            .into_iter()
            .try_for_each(|reader| reader.join().map_err(|_| "a reader panicked".to_owned())?.map_err(fail))
    })?;
    Ok((part * jobs) as f64 / MIB / begun.elapsed().as_secs_f64())
}

/// A write of 4 KiB and its sync, one after the other with a pause, microseconds. Always by ourselves: `fio` measures the two apart.
pub fn lone_writes(file: &Path) -> io::Result<Histogram<u64>> {
    let open = file_written_over(file)?;
    let mut buffer = Aligned::new(ALIGNMENT);
    let mut latencies = histogram();
    for number in 0..LONE_WRITES {
        std::thread::sleep(LONE_PAUSE);
        latencies.saturating_record(write_one(&open, buffer.bytes(), number)?);
    }
    Ok(latencies)
}

/// One write and its sync, microseconds.
fn write_one(file: &File, block: &[u8], number: usize) -> io::Result<u64> {
    let begun = Instant::now();
    file.write_all_at(block, (number * block.len()) as u64)?;
    file.sync_data()?;
    Ok(begun.elapsed().as_micros() as u64)
}

/// A read of the disk beside small writes, and what those wait for.
pub struct Beside {
    pub read_mib_per_s: f64,
    /// A write of 4 KiB with its sync, microseconds.
    pub writes: Histogram<u64>,
}

/// `jobs` readers, each of its own part of `file`, while small synced writes go to another file: a drive serves them in some order, and
/// what it has been asked to read delays a sync. No broker gets more from the drive for both. Always by ourselves.
pub fn read_beside_writes(file: &Path, block: u64, bytes: u64, jobs: u64) -> Result<Beside, String> {
    let other = file.with_extension("beside");
    let fail = |e: io::Error| format!("{}: {e}", other.display());
    let written = file_written_over(&other).map_err(fail)?;
    let is_over = AtomicBool::new(false);
    let (read, writes) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(&written, &is_over));
        let read = read_by_ourselves(file, block, bytes, jobs);
        is_over.store(true, Ordering::Relaxed);
        (read, writer.join().map_err(|_| "the writer panicked".to_owned()))
    });
    let _ = std::fs::remove_file(&other);
    Ok(Beside { read_mib_per_s: read?, writes: writes?.map_err(fail)? })
}

/// A file whose blocks are there, for [`LONE_WRITES`] small writes.
fn file_written_over(file: &Path) -> io::Result<File> {
    let open = open(file)?;
    write_all(&open, Aligned::new(ALIGNMENT).bytes(), (LONE_WRITES * ALIGNMENT) as u64, false)?;
    open.sync_all()?;
    Ok(open)
}

/// Writes 4 KiB and syncs, again and again with a pause, once at least.
fn write_until(file: &File, is_over: &AtomicBool) -> io::Result<Histogram<u64>> {
    let mut buffer = Aligned::new(ALIGNMENT);
    let mut latencies = histogram();
    for number in (0..LONE_WRITES).cycle() {
        latencies.saturating_record(write_one(file, buffer.bytes(), number)?);
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(BESIDE_PAUSE);
    }
    Ok(latencies)
}

pub fn open(file: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).custom_flags(libc::O_DIRECT).open(file)
}

pub fn write_all(file: &File, block: &[u8], bytes: u64, sync_each: bool) -> io::Result<()> {
    let mut at = 0;
    while at < bytes {
        file.write_all_at(block, at)?;
        if sync_each {
            file.sync_data()?;
        }
        at += block.len() as u64;
    }
    Ok(())
}

fn read_part(file: &File, from: u64, bytes: u64, block: u64) -> io::Result<()> {
    let mut buffer = Aligned::new(block as usize);
    for at in (from..from + bytes).step_by(block as usize) {
        file.read_exact_at(buffer.bytes(), at)?;
    }
    Ok(())
}

/// Memory that a direct read or write may use.
pub struct Aligned {
    memory: Vec<u8>,
    from: usize,
    len: usize,
}

impl Aligned {
    pub fn new(len: usize) -> Aligned {
        // Not zeros: some devices do not write those.
        let memory = vec![0xa5; len + ALIGNMENT];
        let from = memory.as_ptr().align_offset(ALIGNMENT);
        Aligned { memory, from, len }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.len]
    }
}

/// MiB/s of all jobs together.
fn fio(file: &Path, how: &[&str], block: u64, bytes: u64, jobs: u64, side: &str) -> Result<f64, String> {
    let mut command = Command::new("fio");
    command.args(["--name=limits", "--direct=1", "--ioengine=psync", "--output-format=json", "--group_reporting"]);
    command.arg(format!("--filename={}", file.display()));
    command.args([format!("--bs={block}"), format!("--size={bytes}"), format!("--numjobs={jobs}")]);
    command.arg(format!("--offset_increment={bytes}")).args(how);
    let output = command.output().map_err(|e| format!("fio does not start: {e}"))?;
    if !output.status.success() {
        return Err(format!("fio failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    fio_rate(&String::from_utf8_lossy(&output.stdout), side).ok_or_else(|| "fio said nothing that is known".to_owned())
}

/// Of fio's JSON, which may have lines of warnings before it.
fn fio_rate(said: &str, side: &str) -> Option<f64> {
    let json: Value = serde_json::from_str(said.get(said.find('{')?..)?).ok()?;
    Some(json["jobs"][0][side]["bw_bytes"].as_f64()? / MIB)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn fios_rate_is_found_behind_its_warnings() {
        let said = "fio: a note\n{\"jobs\": [{\"write\": {\"bw_bytes\": 104857600}}]}";
        assert_eq!(fio_rate(said, "write"), Some(100.0));
        assert_eq!((fio_rate(said, "read"), fio_rate("nothing", "read")), (None, None));
    }

    #[test]
    fn memory_for_direct_io_is_aligned() {
        let mut aligned = Aligned::new(8_192);
        assert_eq!((aligned.bytes().as_ptr() as usize % ALIGNMENT, aligned.bytes().len()), (0, 8_192));
    }

    #[test]
    fn groups_are_written_whole() {
        let file = std::env::temp_dir().join(format!("ringlog-limits-groups-{}", std::process::id()));
        for group in [1, 4] {
            assert!(write_allocated(&file, 64 << 10, 1 << 20, group).unwrap() > 0.0);
            assert_eq!(std::fs::metadata(&file).unwrap().len(), 1 << 20);
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn writes_beside_readers_are_measured() {
        let file = std::env::temp_dir().join(format!("ringlog-limits-read-{}", std::process::id()));
        let open = open(&file).unwrap();
        write_all(&open, Aligned::new(64 << 10).bytes(), 4 << 20, true).unwrap();
        let beside = read_beside_writes(&file, 64 << 10, 4 << 20, 2).unwrap();
        assert!(beside.read_mib_per_s > 0.0 && !beside.writes.is_empty());
        assert!(!file.with_extension("beside").exists());
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn what_is_written_directly_is_read_back_directly() {
        let file = std::env::temp_dir().join(format!("ringlog-limits-{}", std::process::id()));
        let open = open(&file).unwrap();
        let mut buffer = Aligned::new(64 << 10);
        write_all(&open, buffer.bytes(), 1 << 20, true).unwrap();
        read_part(&open, 0, 1 << 20, 64 << 10).unwrap();
        assert!(read_part(&open, 1 << 20, 64 << 10, 64 << 10).is_err());
        assert_eq!(open.metadata().unwrap().len(), 1 << 20);
        std::fs::remove_file(&file).unwrap();
    }
}
