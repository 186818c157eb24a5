//! Every bound of this crate, by name.

/// Batches remembered for each producer, so that a retry finds its first answer (Kafka's number too).
pub const BATCHES_PER_PRODUCER: usize = 5;
/// Producers remembered for each partition; beyond it the one that was silent longest is forgotten.
pub const MAX_PRODUCERS_PER_PARTITION: usize = 20_000;
/// Refused records named in one answer.
pub const MAX_NAMED_RECORDS: usize = 10_000;
