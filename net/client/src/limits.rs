//! Every bound of the client.

/// The largest answer that is read, in bytes.
pub const MAX_ANSWER_BYTES: usize = 256 << 20;
/// Requests under way on one connection.
pub const MAX_IN_FLIGHT_PER_LINK: usize = 1024;
/// Bootstrap addresses.
pub const MAX_BOOTSTRAP: usize = 64;
/// Brokers that one Metadata answer may name.
pub const MAX_BROKERS: usize = 10_000;
/// Addresses of one name that are tried, one after the other.
pub const MAX_ADDRESSES_PER_NAME: usize = 16;
/// Bytes read from a socket at once, while no larger answer is announced.
pub const READ_BYTES: usize = 64 << 10;
/// An answer's buffer grows in steps of this size as its bytes arrive, whatever its prefix announces.
pub const ANSWER_GROWTH_BYTES: usize = 1 << 20;
/// How far a back-off is doubled.
pub const MAX_BACKOFF_DOUBLINGS: u32 = 16;
/// Milliseconds for which a topic that the brokers do not know is asked for again: one that was just made is not known to
/// every broker yet.
pub const UNKNOWN_TOPIC_MS: i64 = 1_000;
/// The same where asking makes the topic.
pub const AUTO_CREATED_TOPIC_MS: i64 = 5_000;
/// Longest single sleep of the task that keeps the metadata fresh, milliseconds.
pub const MAX_METADATA_SLEEP_MS: i64 = 3_600_000;
