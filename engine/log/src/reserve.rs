//! Space that is held back, so that a full disk brakes producers and breaks nothing.
//!
//! Two layers. A client's partition takes no new space once less than the reserve would stay free: what is left is for
//! what frees space or must not stop, the internal topics, the metadata, indexes and checkpoints. And a ballast file lies
//! in the folder for when other programs fill the disk to its last byte: taking it away lets a start, or a running node,
//! write what it must.
//!
//! The figure is shared by all shards; only one of them minds the ballast. A crash leaves the ballast there, gone or (cut
//! short) smaller, and each is seen at the next look.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime::{DirectFile, IoError, OpenMode, fs};

use crate::limits::{BALLAST_MAX, BALLAST_OF_RESERVE, BLOCK, LOW_SPACE};

pub const BALLAST: &str = "ringlog.ballast";

#[derive(Debug)]
pub(crate) struct Reserve {
    bytes: AtomicU64,
    /// Space that was granted and is not taken yet, of all shards: the file system does not know of it.
    granted: AtomicU64,
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
        Reserve { bytes: AtomicU64::new(bytes), granted: AtomicU64::new(0) }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
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
        let reserve = self.bytes();
        if reserve == 0 {
            return Some(grant);
        }
        // A disk whose space cannot be asked for is judged by what it says to the write itself.
        let free = fs::space(folder).await.map_or(u64::MAX, |space| space.free);
        (free >= reserve.saturating_add(granted)).then_some(grant)
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

/// Before a start writes anything: a full disk gets the ballast's space.
pub(crate) async fn make_room(folder: &Path) -> Result<(), IoError> {
    let ballast = folder.join(BALLAST);
    if fs::stat(&ballast).await?.is_some() && fs::space(folder).await?.free < LOW_SPACE {
        fs::remove_file(&ballast).await?;
    }
    Ok(())
}
