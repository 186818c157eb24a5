//! What a log is told from above: its settings, where it lies, and how a batch is to be patched. Plain values.

use std::sync::Arc;

use model::{LeaderEpoch, Offset, PartitionKey};

use crate::data_dir::DataDir;
use crate::format::checkpoint::CheckpointEntry;

/// When an append counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Written and synced to the device.
    #[default]
    Sync,
    /// With the append itself; writes go out all the same, syncs do not. Kafka's default, for comparisons.
    Memory,
}

/// A partition's settings, from its topic's configuration. -1 means without limit where Kafka has it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    pub segment_bytes: u64,
    pub segment_ms: i64,
    pub segment_jitter_ms: i64,
    pub segment_index_bytes: u64,
    pub index_interval_bytes: u64,
    pub retention_ms: i64,
    pub retention_bytes: i64,
    pub file_delete_delay_ms: i64,
    /// cleanup.policy names `delete`; without it neither time nor size cuts the log.
    pub cleanup_delete: bool,
    /// cleanup.policy names `compact`.
    pub compact: bool,
    pub delete_retention_ms: i64,
    pub min_compaction_lag_ms: i64,
    pub max_compaction_lag_ms: i64,
    /// Offsets may be missing between batches: the topic is compacted, or its leader's log is. Elsewhere a gap is damage.
    pub gaps: bool,
    pub durability: Durability,
}

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: 7 * 24 * 3_600_000,
            retention_bytes: -1,
            file_delete_delay_ms: 60_000,
            cleanup_delete: true,
            compact: false,
            delete_retention_ms: 24 * 3_600_000,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            gaps: false,
            durability: Durability::Sync,
        }
    }
}

impl LogConfig {
    /// When a segment rolls by time: a compacted topic's no later than its records have to be compacted.
    pub(crate) fn roll_ms(&self) -> i64 {
        if self.compact { self.segment_ms.min(self.max_compaction_lag_ms) } else { self.segment_ms }
    }
}

/// Which partition, and where.
#[derive(Clone, Debug)]
pub struct PartitionSpec {
    pub data_dir: Arc<DataDir>,
    pub topic: String,
    pub key: PartitionKey,
    pub config: LogConfig,
    /// Of an internal topic: it may take the space that is held back.
    pub uses_reserve: bool,
}

/// How a partition is opened; [`DataDir::start_mode`] says which.
#[derive(Clone, Debug)]
pub enum StartMode {
    /// The folder was closed cleanly: this entry is the whole truth, the partition's files are not touched.
    Clean(Box<CheckpointEntry>),
    /// The tail is scanned, from the entry's recovery point if there is one.
    Unclean(Option<Box<CheckpointEntry>>),
}

/// Who decides a batch's offsets and epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A leader's append: the next offset, and this epoch.
    Leader(LeaderEpoch),
    /// A follower's append: what the leader wrote.
    AsStored,
}

/// What to do with a batch's timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timestamps {
    Keep,
    /// CreateTime whose max timestamp in the header was wrong.
    SetMax(i64),
    /// message.timestamp.type=LogAppendTime.
    LogAppendTime(i64),
}

/// Changes made to the copy of a batch in the tail chunk, never to the caller's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    pub placement: Placement,
    pub timestamps: Timestamps,
}

impl Patch {
    pub fn leader(epoch: LeaderEpoch) -> Patch {
        Patch { placement: Placement::Leader(epoch), timestamps: Timestamps::Keep }
    }

    pub fn as_stored() -> Patch {
        Patch { placement: Placement::AsStored, timestamps: Timestamps::Keep }
    }

    #[must_use]
    pub fn with_timestamps(mut self, timestamps: Timestamps) -> Patch {
        self.timestamps = timestamps;
        self
    }
}

/// Where an append went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: Offset,
    pub last_offset: Offset,
    pub next_offset: Offset,
}
