//! Log compaction: of the records of a key only the last stays, and a tombstone not for ever.
//!
//! **A cleaning** of one partition: the dirty section (what was appended since the last one and is closed, durable and
//! below what the replica allows) goes into an offset map as far as that has room; then all closed segments up to its
//! end are written anew, in groups that fit one segment, oldest first, without what [`rules`] drops. Each group takes the
//! place of the old segments in one decision ([`replace`]); how far the log is clean is written last ([`point`]).
//!
//! **Who owns what.** A cleaning owns its map, its `*.cleaned` files and the flag [`CompactState::running`]; there is one
//! at a time for a partition. The list of segments belongs to whoever holds *upkeep*: a retention check, DeleteRecords, or
//! the short swap of a group. Truncation, close and deletion first say that they come (`cutting`, `closed`) and wait until
//! no cleaning runs; a cleaning looks for that between two pieces and makes way. Appends, rolls and fetches go on all the
//! while. A fetch of a closed segment reads the swap's version before and after and begins again if it moved: it must not
//! go by the old index in the new file, and it never waits longer than for some renames.
//!
//! **A crash** leaves `*.cleaned` files (removed at the next start), or a plan (finished at the next start), or nothing.
//! Groups are swapped oldest first: what a key's newer record or tombstone hides is gone before that may go.
//!
//! **Memory**: the map, as large as the keys need and as asked at most; one piece each of old and new bytes; what one batch
//! inflates to. **Time**: bytes are hashed, checked, inflated and packed on the pool thread, a piece at a time; the shard
//! itself walks the headers of a piece.

mod map_pass;
mod offset_map;
mod pace;
mod pass;
mod point;
mod replace;
mod rewrite;
mod rules;
mod section;
mod sink;
mod sip;
mod source;
mod swap;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use model::Offset;

pub(crate) use point::POINT_FILE;
pub(crate) use replace::finish_replacement;
pub use section::Cleanable;

use crate::error::LogError;
use crate::partition::PartitionLog;
use point::CleanPoint;

/// What a cleaning may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanLimits {
    /// `log.cleaner.dedupe.buffer.size`, this shard's share of it.
    pub map_bytes: usize,
    /// `log.cleaner.io.buffer.load.factor`.
    pub map_load: f64,
    /// `log.cleaner.io.buffer.size`: bytes read at once.
    pub piece_bytes: usize,
    /// `log.cleaner.io.max.bytes.per.second`, read and written together.
    pub bytes_per_second: f64,
}

impl Default for CleanLimits {
    fn default() -> CleanLimits {
        CleanLimits { map_bytes: 128 << 20, map_load: 0.9, piece_bytes: 512 << 10, bytes_per_second: f64::MAX }
    }
}

/// What a cleaning did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Below this everything was looked at.
    pub cleaned_to: Offset,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub kept_records: u64,
    pub dropped_records: u64,
    /// Segments before and after, of those that were looked at.
    pub segments_before: usize,
    pub segments_after: usize,
}

/// A group's change of files.
#[derive(Debug, Default)]
enum Swap {
    #[default]
    None,
    /// Files and list do not agree for the moment.
    Running,
    /// They will not before the next start.
    Stuck(LogError),
}

/// A partition's part of this module.
#[derive(Debug, Default)]
pub(crate) struct CompactState {
    /// A cleaning is under way.
    running: Cell<bool>,
    /// Someone changes the list of closed segments.
    upkeep: Cell<bool>,
    swap: RefCell<Swap>,
    /// Counts beginnings of swaps.
    version: Cell<u64>,
    /// `None` until it was read.
    point: Cell<Option<CleanPoint>>,
    /// First dirty segment and the time of its first batch, once that was asked for.
    first_dirty: Cell<Option<(Offset, i64)>>,
}

/// One cleaning, as long as it lives.
struct Cleaning(Rc<PartitionLog>);

impl Drop for Cleaning {
    fn drop(&mut self) {
        self.0.compact.running.set(false);
        self.0.settled.notify();
    }
}

/// The right to change the list of closed segments.
pub(crate) struct Upkeep(Rc<PartitionLog>);

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.0.compact.upkeep.set(false);
        self.0.settled.notify();
    }
}

impl PartitionLog {
    /// `None` when one runs already.
    fn begin_cleaning(&self) -> Option<Cleaning> {
        (!self.compact.running.replace(true)).then(|| Cleaning(self.me()))
    }

    /// Whether a cleaning is under way.
    pub fn is_being_cleaned(&self) -> bool {
        self.compact.running.get()
    }

    /// Whether a cleaning may go on. [`LogError::Closed`] means that it makes way.
    pub(crate) fn may_clean(&self) -> Result<(), LogError> {
        if self.closed.get() || self.deleted.get() || self.cutting.get() || self.shard.is_cleaning_held() {
            return Err(LogError::Closed);
        }
        self.failure().map_or(Ok(()), Err)
    }

    /// Waits for the end of a cleaning. Who calls it has said before that no other may begin.
    pub(crate) async fn cleaning_over(&self) {
        loop {
            let seen = self.settled.version();
            if !self.compact.running.get() {
                return;
            }
            self.settled.changed_since(seen).await;
        }
    }

    pub(crate) async fn lock_upkeep(&self) -> Upkeep {
        loop {
            let seen = self.settled.version();
            if !self.compact.upkeep.replace(true) {
                return Upkeep(self.me());
            }
            self.settled.changed_since(seen).await;
        }
    }

    /// For a look into closed segments: which version of them it is. Waits while files and list do not agree.
    pub(crate) async fn closed_version(&self) -> Result<u64, LogError> {
        loop {
            let seen = self.settled.version();
            match &*self.compact.swap.borrow() {
                Swap::None => return Ok(self.compact.version.get()),
                Swap::Stuck(error) => return Err(error.clone()),
                Swap::Running => {}
            }
            self.settled.changed_since(seen).await;
        }
    }

    /// Whether no swap is under way.
    pub(crate) fn is_unswapped(&self) -> bool {
        matches!(*self.compact.swap.borrow(), Swap::None)
    }

    /// Whether what was found since is of one version.
    pub(crate) fn is_closed_version(&self, version: u64) -> bool {
        self.compact.version.get() == version && self.is_unswapped()
    }
}

/// Where tests end a process: the step that is reached with the count at zero fails, and all after it.
#[cfg(all(test, not(feature = "sim")))]
pub(crate) mod stop {
    use std::cell::Cell;
    use std::io;
    use std::path::Path;

    use runtime::IoError;

    thread_local! {
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    pub fn after(steps: Option<u32>) {
        LEFT.set(steps);
    }

    pub(in crate::compact) fn step(dir: &Path) -> Result<(), IoError> {
        match LEFT.get() {
            None => Ok(()),
            Some(0) => Err(IoError::new("stopped at", dir, io::Error::other("by a test"))),
            Some(left) => {
                LEFT.set(Some(left - 1));
                Ok(())
            }
        }
    }
}

#[cfg(not(all(test, not(feature = "sim"))))]
pub(crate) mod stop {
    use std::path::Path;

    use runtime::IoError;

    #[inline]
    pub(in crate::compact) fn step(_dir: &Path) -> Result<(), IoError> {
        Ok(())
    }
}
