//! Space that is held back, so that a full disk brakes producers and breaks nothing.
//!
//! Two layers. A client's partition takes no new space once less than the reserve would stay free: what is left is for
//! what frees space or must not stop, the internal topics, the metadata, indexes and checkpoints. And a ballast file lies
//! in the folder for when other programs fill the disk to its last byte: taking it away lets a start, or a running node,
//! write what it must.
//!
//! Where the folder has a quota, its files are measured from time to time by one task, and what is granted in between is
//! added: no path that frees or takes space has to keep the books, and a mistake lasts until the next measurement.
//!
//! The figures are shared by all shards; only one of them minds the ballast and measures. A crash leaves the ballast there, gone or (cut
//! short) smaller, and each is seen at the next look.

use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use runtime::{DirectFile, IoError, OpenMode, clock, fs};

use crate::limits::{BALLAST_MAX, BALLAST_OF_RESERVE, BLOCK, LOW_SPACE, MEASURE_PAUSE_TIMES};

pub const BALLAST: &str = "ringlog.ballast";

#[derive(Debug)]
pub(crate) struct Reserve {
    bytes: AtomicU64,
    /// Space that was granted and is not taken yet, of all shards: the file system does not know of it.
    granted: AtomicU64,
    quota: Quota,
}

/// What the folder's files may take, and what they do.
#[derive(Debug)]
struct Quota {
    /// [`NO_QUOTA`]: without limit.
    bytes: AtomicU64,
    /// As of the last measurement, or what the checkpoint knew before the first.
    measured: AtomicU64,
    /// Granted since that measurement began.
    grown: AtomicU64,
    measure_at_ms: AtomicI64,
}

const NO_QUOTA: u64 = u64::MAX;

impl Quota {
    fn used(&self) -> u64 {
        self.measured.load(Ordering::Relaxed).saturating_add(self.grown.load(Ordering::Relaxed))
    }

    fn allows(&self, growth: u64) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        bytes == NO_QUOTA || self.used().saturating_add(growth) <= bytes
    }

    /// Counts `growth`, if that stays within the quota. Counted first, so that of many at once none gets what another got.
    fn take(&self, growth: u64) -> bool {
        self.grown.fetch_add(growth, Ordering::Relaxed);
        let allowed = self.allows(0);
        if !allowed {
            self.give_back(growth);
        }
        allowed
    }

    fn give_back(&self, growth: u64) {
        // A measurement that began in between may have taken it off already.
        let less = |grown: u64| Some(grown.saturating_sub(growth));
        let _ = self.grown.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// Space that may be taken; to be held until it is.
#[derive(Debug)]
pub(crate) struct Grant<'a> {
    reserve: &'a Reserve,
    bytes: u64,
}

impl Drop for Grant<'_> {
    fn drop(&mut self) {
        self.reserve.granted.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What braking goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceLimits {
    pub reserve_bytes: u64,
    /// `None`: the files may take what the disk has, and nobody measures what they do.
    pub quota_bytes: Option<u64>,
    /// What the files take; 0 without a quota.
    pub used_bytes: u64,
}

/// What a look at the folder's space came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceLook {
    Nothing,
    /// The disk was as good as full: the ballast made way.
    BallastReleased {
        free: u64,
    },
    BallastMade,
}

impl Reserve {
    pub fn new(bytes: u64) -> Reserve {
        let quota = Quota {
            bytes: AtomicU64::new(NO_QUOTA),
            measured: AtomicU64::new(0),
            grown: AtomicU64::new(0),
            measure_at_ms: AtomicI64::new(0),
        };
        Reserve { bytes: AtomicU64::new(bytes), granted: AtomicU64::new(0), quota }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn limits(&self) -> SpaceLimits {
        let quota_bytes = Some(self.quota.bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes != NO_QUOTA);
        let used_bytes = if quota_bytes.is_some() { self.quota.used() } else { 0 };
        SpaceLimits { reserve_bytes: self.bytes(), quota_bytes, used_bytes }
    }

    #[cfg(test)]
    pub fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    fn ballast_bytes(&self) -> u64 {
        (self.bytes() / BALLAST_OF_RESERVE).min(BALLAST_MAX) / BLOCK * BLOCK
    }

    /// Grants `growth` more bytes in `folder` if that leaves the reserve alone. Counted before the file system is asked,
    /// so that of many who ask at once none is granted what another was.
    pub async fn grant(&self, folder: &Path, growth: u64) -> Option<Grant<'_>> {
        let granted = self.granted.fetch_add(growth, Ordering::Relaxed) + growth;
        let grant = Grant { reserve: self, bytes: growth };
        if !self.quota.take(growth) {
            return None;
        }
        let reserve = self.bytes();
        // A disk whose space cannot be asked for is judged by what it says to the write itself.
        let free = if reserve == 0 { u64::MAX } else { fs::space(folder).await.map_or(u64::MAX, |space| space.free) };
        if free < reserve.saturating_add(granted) {
            self.quota.give_back(growth);
            return None;
        }
        Some(grant)
    }

    /// Why `growth` more was not granted.
    pub fn refusal(&self, growth: u64) -> String {
        if self.quota.allows(growth) {
            return format!("less than the {} bytes that are held back would be left", self.bytes());
        }
        let quota = self.quota.bytes.load(Ordering::Relaxed);
        format!("the data folder's files take {} bytes of the {quota} of its quota", self.quota.used())
    }

    /// `known` gives what the files take as far as that is known without looking.
    pub fn set_quota(&self, bytes: Option<u64>, known: impl FnOnce() -> u64) {
        let bytes = bytes.unwrap_or(NO_QUOTA);
        if self.quota.bytes.swap(bytes, Ordering::Relaxed) == NO_QUOTA && bytes != NO_QUOTA {
            self.quota.measured.store(known(), Ordering::Relaxed);
            self.quota.grown.store(0, Ordering::Relaxed);
            self.quota.measure_at_ms.store(0, Ordering::Relaxed);
        }
    }

    /// Measures what the folder's files take, if there is a quota and the last measurement is long enough ago: measuring
    /// takes a fiftieth of the time at most.
    pub async fn measure_if_due(&self, folder: &Path) -> Result<(), IoError> {
        let quota = &self.quota;
        let begun_ms = clock::now_ms();
        if quota.bytes.load(Ordering::Relaxed) == NO_QUOTA || begun_ms < quota.measure_at_ms.load(Ordering::Relaxed) {
            return Ok(());
        }
        let grown = quota.grown.load(Ordering::Relaxed);
        let measured = measure(folder).await?;
        quota.measured.store(measured, Ordering::Relaxed);
        // What was granted meanwhile may be in it or not: it is counted until the next time.
        quota.give_back(grown);
        let pause_ms = (clock::now_ms() - begun_ms).saturating_mul(MEASURE_PAUSE_TIMES);
        quota.measure_at_ms.store(clock::now_ms().saturating_add(pause_ms), Ordering::Relaxed);
        Ok(())
    }

    /// Takes the ballast away if the disk is as good as full, and puts it back once there is room for it twice.
    pub async fn look(&self, folder: &Path) -> Result<SpaceLook, IoError> {
        let ballast = folder.join(BALLAST);
        let size = self.ballast_bytes();
        let there = fs::stat(&ballast).await?.is_some_and(|found| found.allocated > 0);
        if !there && size == 0 {
            return Ok(SpaceLook::Nothing);
        }
        let free = fs::space(folder).await?.free;
        if there && (free < LOW_SPACE || size == 0) {
            fs::remove_file(&ballast).await?;
            return Ok(SpaceLook::BallastReleased { free });
        }
        if there || free < self.bytes().saturating_add(2 * size) {
            return Ok(SpaceLook::Nothing);
        }
        let file = DirectFile::open(&ballast, OpenMode::Create).await?;
        let made = file.preallocate(size).await;
        file.close().await?;
        match made {
            Ok(()) => Ok(SpaceLook::BallastMade),
            // Somebody was faster: not now.
            Err(error) if error.is_full() => {
                fs::remove_file(&ballast).await?;
                Ok(SpaceLook::Nothing)
            }
            Err(error) => Err(error),
        }
    }
}

/// Bytes that the files of a data folder take on the device. A folder at a time, so that the pool thread has other work in
/// between; what goes away meanwhile counts nothing.
async fn measure(folder: &Path) -> Result<u64, IoError> {
    // The ballast is space held back, not space used.
    let ballast = fs::stat(&folder.join(BALLAST)).await?.map_or(0, |found| found.allocated);
    let mut bytes = fs::taken(folder).await?.saturating_sub(ballast);
    for entry in fs::read_dir(folder).await? {
        if entry.is_dir {
            bytes += fs::taken(&folder.join(&entry.name)).await?;
        }
    }
    Ok(bytes)
}

/// Before a start writes anything: a full disk gets the ballast's space.
pub(crate) async fn make_room(folder: &Path) -> Result<(), IoError> {
    let ballast = folder.join(BALLAST);
    if fs::stat(&ballast).await?.is_some() && fs::space(folder).await?.free < LOW_SPACE {
        fs::remove_file(&ballast).await?;
    }
    Ok(())
}
