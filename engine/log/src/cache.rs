//! The batch cache's budget: every chunk of every partition of the shard, oldest first. What a chunk holds belongs to
//! its partition; this only decides who gives one back, and how large the next one may be: half-filled chunks of all
//! partitions together leave most of the budget to what the journal pins and readers come for.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use crate::limits::{CHUNK_MIN, EVICT_LOOKS, EVICT_MISSES, ROWS_SHARE, STALE_ROWS};
use crate::partition::PartitionLog;

/// What came of the request to give a chunk back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    Freed {
        bytes: usize,
        /// It was the partition's only one.
        last: bool,
    },
    /// Not written yet, or not the partition's oldest.
    NotYet,
    Gone,
}

#[derive(Debug)]
pub(crate) struct ChunkCache {
    limit: usize,
    used: Cell<usize>,
    live: Cell<usize>,
    /// Partitions with a chunk at all.
    rows: Cell<usize>,
    /// Also chunks that their partitions gave back by themselves, at most [`STALE_ROWS`] more than there are live ones:
    /// an entry keeps its partition's memory from being freed, and its neighbours' pages with it.
    queue: RefCell<VecDeque<(Weak<PartitionLog>, u64)>>,
}

impl ChunkCache {
    pub fn new(limit: usize) -> ChunkCache {
        ChunkCache { limit, used: Cell::new(0), live: Cell::new(0), rows: Cell::new(0), queue: RefCell::default() }
    }

    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Largest chunk that a partition's next one should be: its share of what half-filled chunks may take. Every partition
    /// with a chunk is taken to be as busy as this one.
    pub fn fair_chunk(&self) -> usize {
        let share = self.limit / ROWS_SHARE / self.rows.get().max(1);
        // Chunks are powers of two: the one below.
        1 << share.max(CHUNK_MIN).ilog2()
    }

    /// A partition took a chunk, its `first` where it had none. Call [`Self::shrink`] once no partition is borrowed.
    pub fn added(&self, log: Weak<PartitionLog>, chunk: u64, capacity: usize, first: bool) {
        self.used.set(self.used.get() + capacity);
        self.live.set(self.live.get() + 1);
        self.rows.set(self.rows.get() + usize::from(first));
        self.queue.borrow_mut().push_back((log, chunk));
    }

    /// A partition gave back chunks by itself; `all` it had, or some.
    pub fn released(&self, chunks: usize, bytes: usize, all: bool) {
        self.used.set(self.used.get() - bytes);
        self.live.set(self.live.get() - chunks);
        self.rows.set(self.rows.get() - usize::from(all && chunks > 0));
        let mut queue = self.queue.borrow_mut();
        if queue.len() > 2 * self.live.get() + STALE_ROWS {
            queue.retain(|(log, chunk)| log.upgrade().is_some_and(|log| log.holds_chunk(*chunk)));
            let room = 2 * queue.len() + STALE_ROWS;
            queue.shrink_to(room);
        }
    }

    pub fn is_over(&self) -> bool {
        self.used.get() > self.limit
    }

    /// Takes the oldest chunks back until the budget holds, as far as their partitions can let go. Each look is at another
    /// partition's memory: after a few that were in vain it is left to those who write to give back their own.
    pub fn shrink(&self) {
        let mut misses = 0;
        for _ in 0..EVICT_LOOKS {
            if !self.is_over() || misses == EVICT_MISSES {
                return;
            }
            let Some((log, chunk)) = self.queue.borrow_mut().pop_front() else { return };
            let Some(owner): Option<Rc<PartitionLog>> = log.upgrade() else { continue };
            match owner.evict_chunk(chunk) {
                Evicted::Freed { bytes, last } => self.released(1, bytes, last),
                Evicted::NotYet => {
                    misses += 1;
                    self.queue.borrow_mut().push_back((log, chunk));
                }
                Evicted::Gone => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_many_partitions_are_smaller_and_grow_again_when_they_are_few() {
        let cache = ChunkCache::new(64 << 20);
        assert_eq!(cache.fair_chunk(), 16 << 20);
        for chunk in 0..64 {
            cache.added(Weak::new(), chunk, CHUNK_MIN, true);
        }
        assert_eq!(cache.fair_chunk(), 256 << 10);
        cache.added(Weak::new(), 64, CHUNK_MIN, false);
        assert_eq!(cache.fair_chunk(), 256 << 10, "a second chunk makes no second partition");
        for chunk in 65..2000 {
            cache.added(Weak::new(), chunk, CHUNK_MIN, true);
        }
        assert_eq!(cache.fair_chunk(), CHUNK_MIN, "never below the smallest");
        cache.released(1, CHUNK_MIN, false);
        for _ in 0..1998 {
            cache.released(1, CHUNK_MIN, true);
        }
        cache.released(0, 0, true);
        assert_eq!(cache.fair_chunk(), 16 << 20);
        assert_eq!(cache.used(), CHUNK_MIN);
    }

    #[test]
    fn chunks_given_back_leave_the_queue() {
        let cache = ChunkCache::new(64 << 20);
        for chunk in 0..10_000 {
            cache.added(Weak::new(), chunk, CHUNK_MIN, true);
        }
        for left in (0..10_000).rev() {
            cache.released(1, CHUNK_MIN, true);
            assert!(cache.queue.borrow().len() <= 2 * left + STALE_ROWS);
        }
        assert!(cache.queue.borrow().capacity() <= 4 * STALE_ROWS, "nor does its own memory stay");
    }
}
