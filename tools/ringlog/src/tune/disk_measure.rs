//! The phases of `ringlog tune disk`. A shard makes the file and reserves its space; each measuring loop runs on ordinary
//! threads with one read or write each, so that nothing but the drive is measured.
//!
//! Writes go, as the broker's do, one behind the other into space that was reserved and never written; so a sync after
//! each has to record that the space is used now, not only flush. Reads go to random places of what the last write phase
//! left, past the page cache.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use hdrhistogram::Histogram;
use runtime::limits::BLOCK;
use runtime::sync::all;
use runtime::{DirectFile, IoError, OpenMode, clock, fs, random};

use super::disk_report::Row;
use super::verdict::bytes;

/// Length of the temporary file.
pub const FILE_BYTES: u64 = 256 << 20;
/// Bytes that reads spread over at least, and the longest that filling up to them may take.
const READ_SPAN_MIN: u64 = 64 << 20;
const FILL_NS_MAX: u64 = 3_000_000_000;
/// From one block to the largest piece the broker writes at once.
const WRITE_SIZES: [usize; 7] = [4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
/// Synced writes at once beyond one, each to a file of its own as partitions are, and their size: one of [`WRITE_SIZES`],
/// so that one at once is measured too.
const WRITE_DEPTHS: [usize; 3] = [4, 16, 64];
pub const DEPTH_WRITE_BYTES: usize = 16 << 10;
const READ_SIZES: [usize; 2] = [4 << 10, 64 << 10];
const READ_DEPTHS: [usize; 3] = [1, 4, 16];
/// Longest latency told apart, in microseconds.
const LATENCY_US_MAX: u64 = 60_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Write,
    /// With an fdatasync after each write.
    WriteSync,
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    pub kind: Kind,
    pub size: usize,
    pub depth: usize,
}

impl Phase {
    /// All phases, in order: the last write phase fills what the reads read.
    pub fn all() -> Vec<Phase> {
        let writes = |kind| WRITE_SIZES.into_iter().map(move |size| Phase { kind, size, depth: 1 });
        let reads = READ_SIZES
            .into_iter()
            .flat_map(|size| READ_DEPTHS.into_iter().map(move |depth| Phase { kind: Kind::Read, size, depth }));
        let depths =
            WRITE_DEPTHS.into_iter().map(|depth| Phase { kind: Kind::WriteSync, size: DEPTH_WRITE_BYTES, depth });
        writes(Kind::WriteSync).chain(depths).chain(writes(Kind::Write)).chain(reads).collect()
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = bytes(self.size as u64);
        match self.kind {
            Kind::Write => write!(f, "write {size}"),
            Kind::WriteSync if self.depth == 1 => write!(f, "write {size} and fdatasync"),
            Kind::WriteSync => write!(f, "write {size} and fdatasync, {} at once", self.depth),
            Kind::Read => write!(f, "read {size}, {} at once", self.depth),
        }
    }
}

/// Why nothing could be measured.
#[derive(Debug)]
pub enum DiskError {
    Io(IoError),
    NoDirectIo { dir: String, source: io::Error },
    Measured(io::Error),
    NoSpace { dir: String, free: u64 },
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskError::Io(e) => write!(f, "{e}"),
            DiskError::NoDirectIo { dir, source } => {
                write!(f, "the file system of {dir} refuses direct I/O ({source}): name a folder on ext4, xfs or btrfs")
            }
            DiskError::Measured(e) => write!(f, "the drive failed while it was measured: {e}"),
            DiskError::NoSpace { dir, free } => write!(
                f,
                "{dir} has {} free; measuring takes {} and leaves as much again: make room or name another folder",
                bytes(*free),
                bytes(FILE_BYTES)
            ),
        }
    }
}

impl From<IoError> for DiskError {
    fn from(e: IoError) -> DiskError {
        DiskError::Io(e)
    }
}

/// Runs all phases, `phase_ns` each.
pub async fn run(
    dir: &Path,
    phases: &[Phase],
    phase_ns: u64,
    progress: &mut dyn FnMut(usize, usize, &Phase),
) -> Result<Vec<Row>, DiskError> {
    let free = fs::space(dir).await?.free;
    if free < 2 * FILE_BYTES {
        return Err(DiskError::NoSpace { dir: dir.display().to_string(), free });
    }
    let target = Target::create(dir).await?;
    let rows = run_phases(dir, &target, phases, phase_ns, progress).await;
    target.file.close().await?;
    rows
}

/// A file without a name: its space goes back by itself, whatever ends the process.
struct Target {
    file: DirectFile,
    /// The same file for ordinary reads and writes past the page cache.
    plain: Arc<File>,
}

impl Target {
    async fn create(dir: &Path) -> Result<Target, DiskError> {
        let path = dir.join(format!(".ringlog-tune-disk-{:016x}", random::u64()));
        let file = DirectFile::open(&path, OpenMode::CreateNew).await?;
        let plain = open_plain(&path);
        fs::remove_file(&path).await?;
        let plain = plain.map_err(|source| DiskError::NoDirectIo { dir: dir.display().to_string(), source })?;
        Ok(Target { file, plain })
    }

    /// Reserves space that was never written.
    async fn reserve(&self, len: u64) -> Result<(), DiskError> {
        self.file.truncate(0).await?;
        self.file.preallocate(len).await?;
        Ok(self.file.fdatasync().await?)
    }
}

fn open_plain(path: &Path) -> io::Result<Arc<File>> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path).map(Arc::new)
}

async fn run_phases(
    dir: &Path,
    target: &Target,
    phases: &[Phase],
    phase_ns: u64,
    progress: &mut dyn FnMut(usize, usize, &Phase),
) -> Result<Vec<Row>, DiskError> {
    let mut rows = Vec::with_capacity(phases.len());
    let mut span = 0;
    for (done, phase) in phases.iter().enumerate() {
        progress(done, phases.len(), phase);
        rows.push(match phase.kind {
            Kind::Write | Kind::WriteSync if phase.depth > 1 => {
                // Its space is what the files of this phase take.
                target.file.truncate(0).await?;
                span = 0;
                depth_phase(dir, *phase, phase_ns).await?
            }
            Kind::Write | Kind::WriteSync => {
                let (row, end) = write_phase(target, *phase, phase_ns).await?;
                span = end;
                row
            }
            Kind::Read => {
                span = off_shard(&target.plain, move |plain| fill(plain, span)).await?;
                let (phase, span) = (*phase, span);
                off_shard(&target.plain, move |plain| read_phase(plain, phase, phase_ns, span)).await?
            }
        });
    }
    Ok(rows)
}

/// Runs `work` on a pool thread. A shard that waits for one write sleeps, and may notice its end only at the next pulse;
/// under load it has always something to do, and here it is the drive that is measured.
async fn off_shard<T: Send + 'static>(
    plain: &Arc<File>,
    work: impl FnOnce(&File) -> io::Result<T> + Send + 'static,
) -> Result<T, DiskError> {
    let plain = plain.clone();
    match runtime::spawn_blocking(move || work(&plain)).await {
        Ok(result) => result.map_err(DiskError::Measured),
        Err(panic) => Err(DiskError::Measured(io::Error::other(panic))),
    }
}

/// Memory that begins at a block, as direct I/O wants it.
struct Aligned {
    bytes: Vec<u8>,
    from: usize,
    len: usize,
}

impl Aligned {
    fn new(len: usize) -> Aligned {
        let bytes = vec![0; len + BLOCK];
        let from = bytes.as_ptr().align_offset(BLOCK);
        Aligned { bytes, from, len }
    }

    /// Filled with what no drive and no file system can compress.
    fn noise(len: usize) -> Aligned {
        let mut aligned = Aligned::new(len);
        let mut state = random::u64() | 1;
        for word in aligned.slice().chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
        }
        aligned
    }

    fn slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.from + self.len]
    }
}

fn histogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, LATENCY_US_MAX, 3) {
        Ok(histogram) => histogram,
        Err(e) => panic!("the histogram's bounds are fixed and right: {e}"),
    }
}

/// Also gives how far the file is filled.
async fn write_phase(target: &Target, phase: Phase, phase_ns: u64) -> Result<(Row, u64), DiskError> {
    target.reserve(FILE_BYTES).await?;
    off_shard(&target.plain, move |plain| {
        let start = clock::now_ns();
        let (latencies, end) = writes(plain, phase, FILE_BYTES, start + phase_ns)?;
        Ok((Row::new(phase, clock::now_ns() - start, &latencies), end))
    })
    .await
}

/// As many threads as writes at once, each with a file of its own; all files together are as long as the one.
async fn depth_phase(dir: &Path, phase: Phase, phase_ns: u64) -> Result<Row, DiskError> {
    let len = FILE_BYTES / phase.depth as u64;
    let made: Vec<Result<Target, DiskError>> = all((0..phase.depth)
        .map(|_| async {
            let target = Target::create(dir).await?;
            target.reserve(len).await.map(|()| target)
        })
        .collect())
    .await;
    let targets = made.into_iter().collect::<Result<Vec<Target>, DiskError>>()?;
    let files: Vec<Arc<File>> = targets.iter().map(|target| target.plain.clone()).collect();
    let measured = runtime::spawn_blocking(move || {
        let start = clock::now_ns();
        let latencies = on_threads(&files, |file| writes(file, phase, len, start + phase_ns).map(|(one, _)| one))?;
        Ok(Row::new(phase, clock::now_ns() - start, &latencies))
    })
    .await;
    for target in targets {
        target.file.close().await?;
    }
    measured.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(DiskError::Measured)
}

/// One thread for each item; what all of them measured, together.
fn on_threads<T: Sync>(
    items: &[T],
    work: impl Fn(&T) -> io::Result<Histogram<u64>> + Sync,
) -> io::Result<Histogram<u64>> {
    let mut latencies = histogram();
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.iter().map(|item| scope.spawn(|| work(item))).collect();
        for thread in threads {
            let one = thread.join().map_err(|_| io::Error::other("a measuring thread panicked"))??;
            latencies.add(one).map_err(io::Error::other)?;
        }
        Ok(latencies)
    })
}

/// Also gives how far the file, `len` long, is filled.
fn writes(plain: &File, phase: Phase, len: u64, until_ns: u64) -> io::Result<(Histogram<u64>, u64)> {
    let mut noise = Aligned::noise(phase.size);
    let mut latencies = histogram();
    let (mut position, mut end) = (0, 0);
    while clock::now_ns() < until_ns || latencies.is_empty() {
        let before = clock::now_ns();
        plain.write_all_at(noise.slice(), position)?;
        if phase.kind == Kind::WriteSync {
            plain.sync_data()?;
        }
        latencies.saturating_record((clock::now_ns() - before) / 1000);
        position += phase.size as u64;
        end = end.max(position);
        if position + phase.size as u64 > len {
            position = 0;
        }
    }
    Ok((latencies, end))
}

/// Reads of space that was never written cost nothing: makes sure that enough was.
fn fill(plain: &File, written: u64) -> io::Result<u64> {
    let piece = *WRITE_SIZES.last().unwrap_or(&BLOCK);
    let mut noise = Aligned::noise(piece);
    let (start, mut end) = (clock::now_ns(), written / piece as u64 * piece as u64);
    while end < READ_SPAN_MIN && clock::now_ns() - start < FILL_NS_MAX {
        plain.write_all_at(noise.slice(), end)?;
        end += piece as u64;
    }
    Ok(end)
}

/// As many threads as reads at once.
fn read_phase(plain: &File, phase: Phase, phase_ns: u64, span: u64) -> io::Result<Row> {
    let start = clock::now_ns();
    let latencies = on_threads(&vec![plain; phase.depth], |plain| reads(plain, phase.size, start + phase_ns, span))?;
    Ok(Row::new(phase, clock::now_ns() - start, &latencies))
}

fn reads(plain: &File, size: usize, until_ns: u64, span: u64) -> io::Result<Histogram<u64>> {
    let places = (span / size as u64).max(1);
    let mut buffer = Aligned::new(size);
    let mut latencies = histogram();
    while clock::now_ns() < until_ns || latencies.is_empty() {
        let before = clock::now_ns();
        plain.read_exact_at(buffer.slice(), random::u64() % places * size as u64)?;
        latencies.saturating_record((clock::now_ns() - before) / 1000);
    }
    Ok(latencies)
}

#[cfg(test)]
#[path = "disk_measure_tests.rs"]
mod tests;
