//! # A partition on this core
//!
//! [`Replica`] owns what one shard knows of one partition besides its log: leader epoch, idempotent producers, log
//! start, high watermark, and who waits for it to move. It decides what may be appended and what may be seen.
//!
//! On the produce way: epoch and sequence are checked, the batch is validated, the log gives it offsets and copies it
//! once; the caller then waits for the written end (`acks=1`) or the high watermark (`acks=all`). On the fetch way:
//! reads are bounded by the high watermark and never touch record bytes.
//!
//! The high watermark is the smallest end among the in-sync replicas; with one replica it is the log's durable end.
//!
//! * [`validate`]: what a client's batch must be.
//! * [`producers`], [`producer_states`], [`snapshot`]: sequence numbers, in memory, over all partitions of a shard under
//!   one bound, and in Apache Kafka's snapshot format.
//! * `append`, `fetch`, `offsets`, `lifecycle`: the replica, split by input.

mod append;
mod error;
mod fetch;
pub mod fuzz_targets;
mod lifecycle;
pub mod limits;
pub mod mutants;
mod offsets;
pub mod producer_states;
pub mod producers;
pub mod snapshot;
pub mod validate;

pub use append::{Placed, ProduceError};
pub use error::ReplicaError;
pub use fetch::{FetchLimits, Fetched};
pub use lifecycle::{Replica, ReplicaSpec, log_config};
pub use offsets::{Listed, OffsetQuery};
pub use producer_states::ProducerStates;
pub use validate::Refused;
