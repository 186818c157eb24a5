//! # The words everybody shares
//!
//! Ids, offsets, epochs, the record-batch view, CRC-32C, varints, error codes and the one table of configuration
//! properties. The lowest crate: no I/O, no clock, no randomness, nothing that knows a socket, a disk or a cluster.
//!
//! * [`ids`]: newtypes for what is numbered.
//! * [`batch`] and [`builder`]: record batch v2, read without allocation and written for our own use.
//! * [`varint`]: zig-zag and unsigned variable-length integers.
//! * [`rebuild`]: batches made anew from a part of another, for compaction.
//! * [`compression`]: inflating and deflating record sections, always under a cap.
//! * [`config`]: the one table of configuration properties and what is read off it.
//! * [`error_code`]: Kafka's numbers, the only place that has them.

pub mod batch;
pub mod builder;
pub mod compression;
pub mod config;
pub mod error_code;
pub mod fuzz_targets;
pub mod ids;
pub mod rebuild;
pub mod varint;

pub use batch::{BatchError, BatchHeader, BatchView, Codec, Record};
pub use error_code::ErrorCode;
pub use ids::{LeaderEpoch, NodeId, Offset, PartitionIndex, PartitionKey, ProducerEpoch, ProducerId, ShardId, TopicId};
