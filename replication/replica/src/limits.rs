//! Every bound of this crate, by name.

/// Batches remembered for each producer, so that a retry finds its first answer (Kafka's number too).
pub const BATCHES_PER_PRODUCER: usize = 5;
/// Producers remembered for each partition; beyond it the one that was silent longest is forgotten.
pub const MAX_PRODUCERS_PER_PARTITION: usize = 20_000;
/// Refused records named in one answer.
pub const MAX_NAMED_RECORDS: usize = 10_000;
/// Largest producer snapshot that is read back, in bytes: five entries for each producer, and a header.
pub const MAX_SNAPSHOT_BYTES: usize = MAX_PRODUCERS_PER_PARTITION * BATCHES_PER_PRODUCER * 48 + 64;
