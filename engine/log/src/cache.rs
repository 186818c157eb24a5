//! The batch cache's budget: every chunk of every partition of the shard, oldest first. What a chunk holds belongs to
//! its partition; this only decides who gives one back.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use crate::limits::EVICT_LOOKS;
use crate::partition::PartitionLog;

/// What came of the request to give a chunk back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    Freed(usize),
    /// Not written yet, or not the partition's oldest.
    NotYet,
    Gone,
}

#[derive(Debug)]
pub(crate) struct ChunkCache {
    limit: usize,
    used: Cell<usize>,
    live: Cell<usize>,
    queue: RefCell<VecDeque<(Weak<PartitionLog>, u64)>>,
}

impl ChunkCache {
    pub fn new(limit: usize) -> ChunkCache {
        ChunkCache { limit, used: Cell::new(0), live: Cell::new(0), queue: RefCell::default() }
    }

    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// A partition took a chunk. Call [`Self::shrink`] once no partition is borrowed.
    pub fn added(&self, log: Weak<PartitionLog>, chunk: u64, capacity: usize) {
        self.used.set(self.used.get() + capacity);
        self.live.set(self.live.get() + 1);
        self.queue.borrow_mut().push_back((log, chunk));
    }

    /// A partition gave back chunks by itself.
    pub fn released(&self, chunks: usize, bytes: usize) {
        self.used.set(self.used.get() - bytes);
        self.live.set(self.live.get() - chunks);
        let mut queue = self.queue.borrow_mut();
        if queue.len() > 2 * self.live.get() + 1024 {
            queue.retain(|(log, chunk)| log.upgrade().is_some_and(|log| log.holds_chunk(*chunk)));
        }
    }

    pub fn is_over(&self) -> bool {
        self.used.get() > self.limit
    }

    /// Takes the oldest chunks back until the budget holds, as far as their partitions can let go.
    pub fn shrink(&self) {
        let mut looks = 0;
        while self.is_over() && looks < EVICT_LOOKS {
            looks += 1;
            let Some((log, chunk)) = self.queue.borrow_mut().pop_front() else { return };
            let Some(owner): Option<Rc<PartitionLog>> = log.upgrade() else { continue };
            match owner.evict_chunk(chunk) {
                Evicted::Freed(bytes) => {
                    self.used.set(self.used.get() - bytes);
                    self.live.set(self.live.get() - 1);
                }
                Evicted::NotYet => self.queue.borrow_mut().push_back((log, chunk)),
                Evicted::Gone => {}
            }
        }
    }
}
