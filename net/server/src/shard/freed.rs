//! When memory that went with deleted partitions goes back to the operating system.
//!
//! What thousands of partitions held is freed in small pieces, in the arenas of many threads, and the allocator keeps it.
//! Asking it to give that back takes milliseconds in which it holds each arena's lock, so it is done on the pool's thread
//! and only when nothing has been deleted for a while. More than once, because a partition's memory comes free in steps:
//! its own at once, its commands with the metadata's next snapshot, its chunks bit by bit, its folder's name after
//! `file.delete.delay.ms`.
//!
//! Every shard hears of every deletion. The memory is the process's, so shard 0 alone looks after it.

use std::cell::Cell;
use std::rc::Rc;

use runtime::clock;

use super::Shard;
use crate::limits::{TRIM_AFTER_DELETIONS, TRIM_LOOK_MS, TRIM_QUIET_MS};

/// What went, and how often it was trimmed since.
#[derive(Debug, Default)]
pub(super) struct Freed {
    partitions: Cell<usize>,
    last_ms: Cell<i64>,
    trims: Cell<usize>,
}

impl Freed {
    /// Partitions were deleted.
    pub fn add(&self, partitions: usize, now_ms: i64) {
        self.partitions.set(self.partitions.get().saturating_add(partitions));
        self.last_ms.set(now_ms);
        self.trims.set(0);
    }

    /// Whether it is time for a trim, which then counts as done.
    fn takes_trim(&self, now_ms: i64) -> bool {
        let trims = self.trims.get();
        let quiet_ms = now_ms - self.last_ms.get();
        if self.partitions.get() < TRIM_AFTER_DELETIONS || quiet_ms < TRIM_QUIET_MS[trims] {
            return false;
        }
        if trims + 1 == TRIM_QUIET_MS.len() {
            self.partitions.set(0);
            self.trims.set(0);
        } else {
            self.trims.set(trims + 1);
        }
        true
    }
}

impl Shard {
    /// Runs until the shard stops. Of shard 0.
    pub async fn mind_freed_memory(self: Rc<Self>) {
        while !self.is_stopping() {
            self.pause_ms(TRIM_LOOK_MS).await;
            if self.freed.takes_trim(clock::now_ms()) {
                let _ = runtime::spawn_blocking(runtime::buffers::give_back).await;
            }
        }
    }
}

#[cfg(test)]
#[path = "freed_tests.rs"]
mod tests;
