//! What a shard answers: plain values, sent to the asker's thread. Counters are since the process began.

use std::path::PathBuf;
use std::sync::Arc;

use log::LogShardStats;
use log::reserve::SpaceLimits;
use model::ErrorCode;
use runtime::histogram::Latencies;
use wire::ApiKey;

use crate::shard::CleanerStats;

#[derive(Clone, Debug, Default)]
pub struct ShardFigures {
    pub shard: usize,
    /// The longest that the shard did not answer its pulse, of late. See `stalls`.
    pub stall_us: u64,
    /// Vectors of messages sent to other shards.
    pub hops: u64,
    pub traffic: TrafficFigures,
    /// Connections now, since the start, and closed because of bytes that are not the protocol.
    pub connections: usize,
    pub accepted: u64,
    pub refused: u64,
    pub fetch_sessions: usize,
    pub log: LogShardStats,
    pub partitions: PartitionFigures,
    /// Producers whose sequences are remembered, and those forgotten for others' sake.
    pub producers: usize,
    pub producers_evicted: u64,
    pub groups: GroupFigures,
    pub cleaner: CleanerStats,
    /// Of shard 0.
    pub folders: Vec<FolderFigures>,
    /// Where they were asked for.
    pub rows: Vec<PartitionRow>,
    /// Open partitions beyond the bound on rows.
    pub rows_left_out: usize,
}

#[derive(Clone, Debug, Default)]
pub struct TrafficFigures {
    pub apis: Vec<ApiFigures>,
    /// Partitions of answers with an error, by code.
    pub produce_errors: Vec<(ErrorCode, u64)>,
    pub fetch_errors: Vec<(ErrorCode, u64)>,
    /// From a request's last byte to its answer's.
    pub produce: Latencies,
    pub fetch: Latencies,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// Bytes of batches in answers to Fetch.
    pub fetched_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiFigures {
    pub api: ApiKey,
    pub requests: u64,
    /// Requests that closed their connection.
    pub closed: u64,
}

/// Partitions of the shard, by what can be said of them. One may count in several places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionFigures {
    /// That the shard owns.
    pub led: usize,
    /// Of those, the ones in use since the start.
    pub open: usize,
    /// That could not be opened.
    pub unopened: usize,
    /// That take no more records because a write or a sync failed, or their folder did.
    pub failed: usize,
    /// Of which a range is refused.
    pub damaged: usize,
    /// That refuse records for want of space.
    pub full: usize,
    /// Durable in the journal and not yet in a segment's file.
    pub journal_debt_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupFigures {
    pub groups: usize,
    pub members: usize,
    /// Committed offsets.
    pub offsets: usize,
}

#[derive(Clone, Debug)]
pub struct FolderFigures {
    pub path: PathBuf,
    pub up: bool,
    /// That live there; `None` where there is one folder, for which nobody keeps the count.
    pub partitions: Option<usize>,
    /// Of its disk; `None` where it is down or did not say in time.
    pub total_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    pub limits: SpaceLimits,
    /// Partitions of which the journal lost acknowledged records.
    pub lost_partitions: usize,
}

#[derive(Clone, Debug)]
pub struct PartitionRow {
    pub topic: Arc<str>,
    pub partition: i32,
    pub log_start_offset: i64,
    pub high_watermark: i64,
    pub log_end_offset: i64,
    pub size_bytes: u64,
}
