//! Every bound of this crate, by name.

/// Batches remembered for each producer, so that a retry finds its first answer (Kafka's number too).
pub const BATCHES_PER_PRODUCER: usize = 5;
/// Producers remembered by a shard where nothing else is configured (`ringlog.producer.state.max`); beyond it the one
/// that was silent longest gives way.
pub const PRODUCERS_PER_SHARD: usize = 50_000;
/// The most that may be configured, and that a snapshot may hold: [`log`]'s bound of a snapshot file fits it.
pub const PRODUCERS_PER_SHARD_MAX: usize = 1_000_000;
/// A producer's place in the order of silence is renewed so many times at most while the bound's number of new ones comes.
pub const PLACE_RENEWALS_PER_BOUND: usize = 8;
/// Refused records named in one answer.
pub const MAX_NAMED_RECORDS: usize = 10_000;
