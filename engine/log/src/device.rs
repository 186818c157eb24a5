//! The drive as one shard uses it: how large a write may be, how many writes and syncs are in flight at once, and how
//! long one takes. On the produce way, between the two stages.
//!
//! Owned by the shard and never `Send`. Every direct write and every sync of a segment's file holds one slot for as long
//! as the kernel has it. Whoever waits for a slot holds no other slot and no memory, which reads want too. The budget is
//! [`DeviceLimits::queue_depth`] slots. Reads take none: they are bounded by their bytes.
//!
//! A sync waits behind every byte that the drive was asked for before it: beside 8 MiB of reads some ten milliseconds. So while
//! anybody in the process writes, reads are small and few at once ([`READ_BESIDE_WRITES`]): two of 128 KiB for each shard, and
//! a sync gets its turn after those. Else they are as large as one operation may be, which costs less. The same goes for
//! writes that nobody waits for ([`CALM_WRITE`]): the destager's, while its journal has memory for what comes.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime::clock;
use runtime::sync::{Budget, BudgetGuard};

use crate::limits::{
    BLOCK, CALM_WRITES, IO_MAX, QUEUE_DEPTH, QUEUE_DEPTH_MAX, READ_BATCHES, READ_BESIDE_WRITES, READS_BESIDE_WRITES,
    READS_GIVE_WAY_MS, STALL_MIN_US, STALL_TELL_MS, STALL_TIMES,
};

/// When anybody last wrote. Shared by the shards of a process, as the drives are.
#[derive(Clone, Debug, Default)]
pub struct WriteClock(Arc<AtomicU64>);

impl WriteClock {
    /// Told now and then only: all shards' cores read this.
    fn note(&self) {
        let (at, now) = (self.0.load(Ordering::Relaxed), clock::now_ns());
        if at == 0 || now.saturating_sub(at) > READS_GIVE_WAY_MS * 1_000_000 / 10 {
            // Later than zero, which is never.
            self.0.store(now.max(1), Ordering::Relaxed);
        }
    }

    fn is_recent(&self, now_ns: u64) -> bool {
        let at = self.0.load(Ordering::Relaxed);
        at > 0 && now_ns.saturating_sub(at) < READS_GIVE_WAY_MS * 1_000_000
    }
}

/// What a shard may ask of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Largest direct write: a multiple of the block, at most [`IO_MAX`].
    pub write_max_bytes: usize,
    /// Writes and syncs in flight, and partitions of a round that are worked on at once.
    pub queue_depth: usize,
    /// A write or a sync that takes longer counts as a stall of the drive; `None` measures nothing.
    pub stall_after_us: Option<u64>,
}

impl Default for DeviceLimits {
    fn default() -> DeviceLimits {
        DeviceLimits { write_max_bytes: IO_MAX as usize, queue_depth: QUEUE_DEPTH, stall_after_us: None }
    }
}

/// From which time on a write counts as a stall, where one usually takes `expected_write_us`. Not at all where that is 0,
/// not measured.
pub fn stall_after_us(expected_write_us: u64) -> Option<u64> {
    (expected_write_us > 0).then(|| expected_write_us.saturating_mul(STALL_TIMES).max(STALL_MIN_US))
}

/// What was asked of the drive so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    pub writes: u64,
    pub syncs: u64,
    pub largest_write_bytes: usize,
    /// Writes that were their own syncs: they count as both.
    pub durable_writes: u64,
    /// Direct reads; those through the page cache are not counted.
    pub reads: u64,
    /// Writes and syncs in flight at once, at most.
    pub most_in_flight: usize,
    /// Writes and syncs that took longer than [`DeviceLimits::stall_after_us`].
    pub stalls: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// Of this many bytes.
    Write(usize),
    Sync,
    /// A write of this many bytes and its sync as one.
    DurableWrite(usize),
}

impl Operation {
    fn bytes(self) -> usize {
        match self {
            Operation::Write(len) | Operation::DurableWrite(len) => len,
            Operation::Sync => 0,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Device {
    limits: DeviceLimits,
    slots: Rc<Budget>,
    /// Memory of direct I/O, shared with the shard's reads.
    memory: Rc<Budget>,
    writes: WriteClock,
    /// Bytes of reads beside writes.
    reads: Rc<Budget>,
    /// Bytes of writes that have time.
    calm: Rc<Budget>,
    /// Counted apart from the slots, so that a slot that is not waited for shows.
    in_flight: Cell<usize>,
    stats: Cell<DeviceStats>,
    told: RefCell<StallLog>,
}

impl Device {
    pub fn new(limits: DeviceLimits, memory: Rc<Budget>, writes: WriteClock) -> Device {
        let write = limits.write_max_bytes as u64;
        assert!(write.is_multiple_of(BLOCK) && (BLOCK..=IO_MAX).contains(&write), "a write is whole blocks: {write}");
        assert!((1..=QUEUE_DEPTH_MAX).contains(&limits.queue_depth), "a depth in bounds: {}", limits.queue_depth);
        let slots = Budget::new(limits.queue_depth);
        let (reads, calm) = (Budget::new(READS_BESIDE_WRITES), Budget::new(CALM_WRITES));
        let (stats, told) = (Cell::default(), RefCell::default());
        Device { limits, slots, memory, writes, reads, calm, in_flight: Cell::new(0), stats, told }
    }

    pub fn limits(&self) -> DeviceLimits {
        self.limits
    }

    pub fn stats(&self) -> DeviceStats {
        self.stats.get()
    }

    /// Does `work`, one write or one sync of a file in the data folder `folder`, once a slot is free.
    pub async fn run<T>(&self, folder: &Path, operation: Operation, work: impl Future<Output = T>) -> T {
        let _slot = self.slots.take(1).await;
        self.run_apart(folder, operation, work).await
    }

    /// The same without waiting for a slot: the journal's own, for which many partitions wait and of which there are few.
    pub async fn run_apart<T>(&self, folder: &Path, operation: Operation, work: impl Future<Output = T>) -> T {
        let _memory = self.memory.take(operation.bytes()).await;
        let _counted = self.begins(operation);
        let Some(limit_us) = self.limits.stall_after_us else { return work.await };
        let began_ns = clock::now_ns();
        let result = work.await;
        let took_us = (clock::now_ns() - began_ns) / 1000;
        if took_us > limit_us {
            self.stalled(folder, took_us, limit_us);
        }
        result
    }

    /// Whether reads make way: somebody wrote a moment ago, or waits for a write of this shard, however long that takes.
    pub fn is_written_to(&self) -> bool {
        self.in_flight.get() > 0 || self.writes.is_recent(clock::now_ns())
    }

    /// Largest read that should be asked of the drive now, where batches have so many bytes.
    pub fn read_max(&self, batch: usize) -> u64 {
        if self.is_written_to() {
            (READ_BATCHES * batch as u64).next_multiple_of(BLOCK).clamp(READ_BESIDE_WRITES, IO_MAX)
        } else {
            IO_MAX
        }
    }

    /// Waits for the turn of a read, which ends when what is returned goes.
    pub async fn read_turn(&self, bytes: usize) -> Option<BudgetGuard> {
        if self.is_written_to() { Some(self.reads.take(bytes).await) } else { None }
    }

    /// Waits for the turn of a write that has time, which ends when what is returned goes.
    pub async fn calm_turn(&self, bytes: usize) -> BudgetGuard {
        self.calm.take(bytes).await
    }

    /// Does `work`, one direct read of so many bytes, in its turn. What is larger than one operation is read by several, one
    /// after the other.
    pub async fn read<T>(&self, bytes: usize, work: impl Future<Output = T>) -> T {
        let bytes = bytes.min(IO_MAX as usize);
        let _turn = self.read_turn(bytes).await;
        let _memory = self.memory.take(bytes).await;
        let stats = self.stats.get();
        self.stats.set(DeviceStats { reads: stats.reads + 1, ..stats });
        work.await
    }

    fn begins(&self, operation: Operation) -> InFlight<'_> {
        self.writes.note();
        let mut stats = self.stats.get();
        stats.writes += u64::from(!matches!(operation, Operation::Sync));
        stats.syncs += u64::from(!matches!(operation, Operation::Write(_)));
        stats.durable_writes += u64::from(matches!(operation, Operation::DurableWrite(_)));
        stats.largest_write_bytes = stats.largest_write_bytes.max(operation.bytes());
        self.in_flight.set(self.in_flight.get() + 1);
        stats.most_in_flight = stats.most_in_flight.max(self.in_flight.get());
        self.stats.set(stats);
        InFlight(self)
    }

    fn stalled(&self, folder: &Path, took_us: u64, limit_us: u64) {
        let mut stats = self.stats.get();
        stats.stalls += 1;
        self.stats.set(stats);
        let stalls = self.told.borrow_mut().stalled(took_us, clock::now_ms());
        if let Some(Stalls { count, longest_us }) = stalls {
            eprintln!(
                "ringlog: the drive under {} stalls: {count} {} took longer than {} ms, the longest {} ms",
                folder.display(),
                if count == 1 { "write or sync" } else { "writes or syncs" },
                limit_us / 1000,
                longest_us / 1000
            );
        }
    }
}

/// One operation that the kernel has.
struct InFlight<'a>(&'a Device);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
        self.0.writes.note();
    }
}

/// Stalls since they were told last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stalls {
    count: u64,
    longest_us: u64,
}

/// When to tell: at once, then no sooner than [`STALL_TELL_MS`] after the last time, with what has gathered.
#[derive(Debug, Default)]
struct StallLog {
    told_at_ms: Option<i64>,
    untold: Stalls,
}

impl StallLog {
    /// Counts one, and gives what to tell if it is time.
    fn stalled(&mut self, took_us: u64, now_ms: i64) -> Option<Stalls> {
        self.untold.count += 1;
        self.untold.longest_us = self.untold.longest_us.max(took_us);
        if self.told_at_ms.is_some_and(|at| now_ms - at < STALL_TELL_MS) {
            return None;
        }
        self.told_at_ms = Some(now_ms);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
