//! Every bound of the producer that is not a setting.

/// Partitions of one topic that the producer keeps a queue for.
pub const MAX_PARTITIONS: usize = 1 << 20;
/// Topics that one producer writes to.
pub const MAX_TOPICS: usize = 1 << 16;
/// An idempotent producer's brokers remember this many batches of a partition, so no more may be in flight.
pub const MAX_IN_FLIGHT_IDEMPOTENT: usize = 5;
/// Requests in flight to one node at most, whatever is set.
pub const MAX_IN_FLIGHT: usize = 1024;
/// Buffers and lists of tags that are kept for the next batch.
pub const MAX_FREE_BUFFERS: usize = 64;
/// A batch's buffer starts at least this large and grows.
pub const MIN_BUFFER_BYTES: usize = 512;
/// The driver looks again after this long even if nothing happened.
pub const MAX_SLEEP_MS: i64 = 60_000;
/// A broker may ask for no longer a pause than this.
pub const MAX_THROTTLE_MS: i64 = 30_000;
/// Doublings of the back-off; its cap is reached long before.
pub const MAX_BACKOFF_DOUBLINGS: u32 = 20;
/// A compressed batch of ours inflates to no more than this when it has to be split.
pub const MAX_INFLATED_BYTES: usize = 1 << 30;
/// How much longer than `delivery_timeout_ms` a close waits for the last records to be late, in milliseconds.
pub const CLOSE_GRACE_MS: i64 = 500;
