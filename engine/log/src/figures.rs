//! What a shard's logs count for metrics: batches that found their place, and what each way of committing wrote and synced.
//!
//! Owned by the shard, plain numbers that its tasks add to between awaits; off the data path but for one addition for each
//! batch. In memory only. A reader gets copies ([`crate::LogShardStats`]).

use std::cell::Cell;

use runtime::clock;
use runtime::histogram::{Histogram, Latencies};

/// Batches that were appended since the start, those of internal topics too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendStats {
    pub batches: u64,
    pub records: u64,
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct AppendTally(Cell<AppendStats>);

impl AppendTally {
    #[inline]
    pub fn add(&self, records: u64, bytes: u64) {
        let AppendStats { batches, records: before, bytes: bytes_before } = self.0.get();
        self.0.set(AppendStats { batches: batches + 1, records: before + records, bytes: bytes_before + bytes });
    }

    pub fn stats(&self) -> AppendStats {
        self.0.get()
    }
}

/// What one way of committing did since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayStats {
    pub rounds: u64,
    /// Bytes of batches; what is written besides to fill blocks is not counted.
    pub written_bytes: u64,
    /// Those of them that no round of the journal had before: they became durable this way.
    pub first_bytes: u64,
    /// How long its syncs took.
    pub syncs: Latencies,
}

/// What a committer counts beside its rounds.
#[derive(Debug, Default)]
pub(crate) struct WayTally {
    written_bytes: Cell<u64>,
    first_bytes: Cell<u64>,
    syncs: Histogram,
}

impl WayTally {
    pub fn wrote(&self, bytes: u64, first_bytes: u64) {
        self.written_bytes.set(self.written_bytes.get() + bytes);
        self.first_bytes.set(self.first_bytes.get() + first_bytes);
    }

    /// Does `sync` and counts how long it took if it succeeded.
    pub async fn time<T, E>(&self, sync: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        timed(&self.syncs, sync).await
    }

    pub fn stats(&self, rounds: u64) -> WayStats {
        let (written_bytes, first_bytes) = (self.written_bytes.get(), self.first_bytes.get());
        WayStats { rounds, written_bytes, first_bytes, syncs: self.syncs.snapshot() }
    }
}

/// Two reads of the clock for a sync of the drive.
pub(crate) async fn timed<T, E>(histogram: &Histogram, sync: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let began_ns = clock::now_ns();
    let result = sync.await;
    if result.is_ok() {
        histogram.record(clock::now_ns() - began_ns);
    }
    result
}
