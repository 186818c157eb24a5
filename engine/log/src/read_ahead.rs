//! Reading ahead of a reader that is behind: while what it got is being sent, the drive works on what it will ask for next.
//!
//! A direct read that begins where one ended before, and that its limits ended, makes the shard read on, with the same limits
//! and in the same way as the reader would have: parts, checked, in memory of their own. The reader's next call finds them
//! there, or waits for the rest of them. A reader that comes in time has the drive read nothing twice, and one that jumps about
//! has nothing read ahead.
//!
//! Owned by the shard, in memory only. Bounded by [`READ_AHEAD_BYTES`]: a reader that finds no room reads as before. What
//! nobody came for within [`READ_AHEAD_KEPT_MS`] makes room for others, and goes with the next look at idle partitions. A
//! truncation makes what was read before it void, whether it is under way or done; cleaned segments do not, since what they
//! replace was true. Parts are given out only below the bound of who asks.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use model::Offset;
use runtime::{Notify, clock};

use crate::limits::{READ_AHEAD_BYTES, READ_AHEAD_KEPT_MS, READ_AHEAD_LEAST, READ_AHEAD_MOST, READ_PARTS};
use crate::partition::PartitionLog;
use crate::partition::places::Place;
use crate::partition::read::{ReadSlices, Slice};
use crate::scan::{ReadLimits, select};

/// Whole batches that came by one direct read.
#[derive(Debug)]
struct Part {
    bytes: Bytes,
    first_offset: Offset,
    /// Where the next one begins.
    end: Place,
}

impl Part {
    fn into_slices(self) -> ReadSlices {
        let whole = ReadSlices::one(Slice::Bytes(self.bytes), self.first_offset, self.end.offset);
        ReadSlices { end: Some((self.end.segment_base, self.end.position)), ..whole }
    }
}

/// What is read ahead for one reader of a partition.
#[derive(Debug)]
struct Ahead {
    partition: u64,
    /// Truncations of the partition before the read.
    cuts: u64,
    /// Room it takes, in bytes, until its last part is taken.
    room: usize,
    /// Where the first part that is left begins, or the next one will.
    at: Cell<Offset>,
    parts: RefCell<VecDeque<Part>>,
    /// No part comes any more.
    is_over: Cell<bool>,
    changed: Notify,
    /// When it was begun or last asked for.
    used_ms: Cell<i64>,
}

impl Ahead {
    fn is_done(&self) -> bool {
        self.is_over.get() && self.parts.borrow().is_empty()
    }

    /// The first part, or as much of it as the limits allow.
    fn take(&self, limits: ReadLimits) -> Option<Part> {
        let mut parts = self.parts.borrow_mut();
        let part = parts.pop_front()?;
        if part.bytes.len() <= limits.max_bytes && part.end.offset <= limits.upper_bound {
            self.at.set(part.end.offset);
            return Some(part);
        }
        let found = select(&part.bytes, self.at.get(), limits);
        let (taken, rest) = (part.bytes.slice(found.start..found.end), part.bytes.slice(found.end..));
        let middle = Place { offset: found.next_offset, position: part.end.position - rest.len() as u64, ..part.end };
        if !rest.is_empty() {
            parts.push_front(Part { bytes: rest, first_offset: found.next_offset, ..part });
        }
        self.at.set(found.next_offset);
        Some(Part { bytes: taken, first_offset: found.first_offset, end: middle })
    }
}

/// All of a shard.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    all: RefCell<Vec<Rc<Ahead>>>,
}

impl ReadAhead {
    /// Gives up what nobody came for.
    pub fn drop_old(&self, now_ms: i64) {
        self.all.borrow_mut().retain(|ahead| now_ms - ahead.used_ms.get() < READ_AHEAD_KEPT_MS);
    }

    /// Room for one more, as far as there is any.
    fn begin(&self, log: &PartitionLog, at: Offset, room: usize) -> Option<Rc<Ahead>> {
        if self.find(log, at).is_some() {
            return None;
        }
        let now_ms = clock::now_ms();
        if self.taken() + room > READ_AHEAD_BYTES {
            self.drop_old(now_ms);
        }
        if self.taken() + room > READ_AHEAD_BYTES {
            return None;
        }
        let ahead = Rc::new(Ahead {
            partition: log.id,
            cuts: log.cuts.get(),
            room,
            at: Cell::new(at),
            parts: RefCell::default(),
            is_over: Cell::new(false),
            changed: Notify::new(),
            used_ms: Cell::new(now_ms),
        });
        self.all.borrow_mut().push(ahead.clone());
        Some(ahead)
    }

    fn find(&self, log: &PartitionLog, at: Offset) -> Option<Rc<Ahead>> {
        let all = self.all.borrow();
        all.iter().find(|ahead| ahead.partition == log.id && ahead.at.get() == at).cloned()
    }

    fn remove(&self, ahead: &Rc<Ahead>) {
        self.all.borrow_mut().retain(|other| !Rc::ptr_eq(other, ahead));
    }

    fn holds(&self, ahead: &Rc<Ahead>) -> bool {
        self.all.borrow().iter().any(|other| Rc::ptr_eq(other, ahead))
    }

    #[cfg(test)]
    pub fn is_reading(&self) -> bool {
        self.all.borrow().iter().any(|ahead| !ahead.is_over.get())
    }

    /// Bytes of room in use.
    pub fn taken(&self) -> usize {
        self.all.borrow().iter().map(|ahead| ahead.room).sum()
    }
}

impl PartitionLog {
    /// The part that was read ahead for a reader at `at`; waits for it while it is under way. `None`: the reader reads.
    pub(crate) async fn take_ahead(&self, at: Offset, limits: ReadLimits) -> Option<ReadSlices> {
        let store = &self.shard.read_ahead;
        let ahead = store.find(self, at)?;
        ahead.used_ms.set(clock::now_ms());
        loop {
            let seen = ahead.changed.version();
            if ahead.cuts != self.cuts.get() {
                store.remove(&ahead);
                return None;
            }
            // Another reader at the same place took what this one waited for.
            if ahead.at.get() != at {
                return None;
            }
            if let Some(part) = ahead.take(limits) {
                if ahead.is_done() {
                    store.remove(&ahead);
                }
                self.places.note(part.end);
                return Some(part.into_slices());
            }
            if ahead.is_over.get() {
                store.remove(&ahead);
                return None;
            }
            ahead.changed.changed_since(seen).await;
        }
    }

    /// Reads on for a reader that will go on at `at`.
    pub(crate) fn begin_ahead(&self, at: Offset, limits: ReadLimits) {
        // A batch that does not fit would be read for nothing, each time.
        let batch = self.batch_read.get();
        let Some(log) = self.me.upgrade().filter(|_| !self.shard.is_stopping() && batch <= READ_AHEAD_MOST) else {
            return;
        };
        let max_bytes = limits.max_bytes.clamp(READ_AHEAD_LEAST, READ_AHEAD_MOST).max(batch);
        let limits = ReadLimits { max_bytes, min_one_batch: false, ..limits };
        let Some(ahead) = self.shard.read_ahead.begin(self, at, limits.max_bytes) else { return };
        self.shard.tasks.spawn("read-ahead", async move {
            log.read_ahead(&ahead, limits).await;
            ahead.is_over.set(true);
            ahead.changed.notify();
            if ahead.is_done() {
                log.shard.read_ahead.remove(&ahead);
            }
        });
    }

    /// Until the limits, the end of what is on disk and not in memory, an error, which the reader will meet itself, or until
    /// nobody wants it. In as many parts as a reader takes at once.
    async fn read_ahead(&self, ahead: &Rc<Ahead>, mut left: ReadLimits) {
        let (mut at, mut bytes) = (ahead.at.get(), 0);
        for _ in 0..READ_PARTS {
            if !self.goes_on(at, left, bytes) || !self.is_on_disk_only(at) || self.check_range(at).is_err() {
                return;
            }
            let Ok(read) = self.read_disk(at, left).await else { return };
            let is_wanted = self.shard.read_ahead.holds(ahead) && ahead.cuts == self.cuts.get();
            // Without a place it came from the page cache, where it is no news, or there was nothing.
            let ([Slice::Bytes(part)], Some(end)) = (read.slices.as_slice(), self.places.find(read.next_offset)) else {
                return;
            };
            if !is_wanted || self.shard.is_stopping() {
                return;
            }
            let part = Part { bytes: part.clone(), first_offset: read.first_offset, end };
            ahead.parts.borrow_mut().push_back(part);
            if bytes > 0 {
                self.places.pass(at);
            }
            (at, bytes) = (read.next_offset, bytes + read.bytes);
            left.max_bytes = left.max_bytes.saturating_sub(read.bytes);
            ahead.changed.notify();
        }
    }
}
