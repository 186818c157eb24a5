//! # One partition's log
//!
//! Segments, appender, indexes, reader, batch cache, recovery, retention. No network protocol, no leadership: epochs
//! come as plain numbers, batches come validated.
//!
//! **Produce.** [`PartitionLog::append`] copies a batch once into the tail chunk, patches it there and returns (stage
//! one, *ordered*). The shard's committer writes and syncs whatever is pending, all partitions together, and moves the
//! partition's written and durable ends; [`PartitionLog::wait_written`] (`acks=1`) and [`PartitionLog::wait_durable`]
//! (`acks=all`) resolve then (stage two, *done*).
//!
//! **Fetch.** [`PartitionLog::read`] gives whole batches: chunks by reference, verified file ranges for `sendfile`, or
//! direct reads.
//!
//! **Compaction.** [`PartitionLog::cleanable`] says whether a cleaning is worth it, [`PartitionLog::clean`] does one; who
//! calls decides when.
//!
//! **Rule.** Each partition has one contiguous durable end. Nothing above it is acknowledged to `acks=all` or shown.
//!
//! Ownership: a [`LogShard`] and its [`PartitionLog`]s live on one shard and are never `Send`. A [`DataDir`] is opened
//! once per start and shared. Order of a stop: `LogShard::stop_clean` on every shard, then `DataDir::close_clean`.
//!
//! Files are Apache Kafka's byte for byte after a clean stop; the checkpoint, lock and identity files of the data folder
//! are our own ([`data_dir`]).

#![forbid(unsafe_code)]

mod cache;
mod committer;
mod compact;
mod config;
mod damage;
pub mod data_dir;
mod device;
mod error;
mod figures;
mod file_table;
mod folder_failure;
pub mod folders;
pub mod format;
pub mod fuzz_targets;
mod index_cache;
pub mod journal;
pub mod limits;
#[cfg(feature = "mutants")]
pub mod mutants;
#[cfg(not(feature = "mutants"))]
mod mutants;
mod partition;
mod read_ahead;
pub mod reserve;
mod scan;
mod scrub;
mod segment;
mod shard;
mod shard_dir;
mod tail;
pub mod versions;
mod watermark;

pub use compact::{CleanLimits, Cleanable, Cleaned};
pub use config::{Appended, Durability, LogConfig, PartitionSpec, Patch, Placement, StartMode, Timestamps};
pub use damage::{DamageStats, DamagedRange};
pub use data_dir::{DataDir, FoundPartition};
pub use device::{DeviceLimits, DeviceStats, WriteClock, stall_after_us};
pub use error::{DataDirError, LogError};
pub use figures::{AppendStats, WayStats};
pub use folders::{DataDirs, FolderSpec};
pub use format::checkpoint::CheckpointEntry;
pub use format::identity::{DirectoryId, Identity};
pub use journal::{JournalConfig, JournalStats, RingStats};
pub use partition::PartitionLog;
pub use partition::read::{ReadSlices, Slice};
pub use partition::retention::Retained;
pub use partition::roll::Rolled;
pub use partition::scan_headers::HeaderScan;
pub use partition::time_lookup::TimeHit;
pub use scan::ReadLimits;
pub use scrub::{Scrub, ScrubLimits};
pub use segment::Fill;
pub use shard::{LogShard, LogShardConfig, LogShardStats, Opened};

#[cfg(all(test, not(feature = "sim")))]
mod tests;
