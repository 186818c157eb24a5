//! Every bound of the groups' driver, by name.

/// Longest that a request waits for its coordinator to be loaded before it is told COORDINATOR_LOAD_IN_PROGRESS.
pub const LOAD_WAIT_MS: i64 = 5_000;
/// Longest that a request waits for the topic of committed offsets, which another request is making, to be seen here.
pub const TOPIC_WAIT_MS: i64 = 5_000;
/// Milliseconds between two looks for it.
pub const TOPIC_LOOK_MS: u64 = 5;
/// Bytes read and replayed between two turns of the shard's other tasks while loading.
pub const LOAD_READ_BYTES: usize = 256 << 10;
/// Largest record section that a compressed batch of the internal topic may inflate to, in bytes.
pub const MAX_INFLATED_BYTES: usize = 64 << 20;
/// Records of one append go into batches of about this size, in bytes.
pub const BATCH_BYTES: usize = 900 << 10;
/// Largest single record (a group with very many members), with its batch header, in bytes.
pub const MAX_RECORD_BYTES: usize = 32 << 20;
/// Groups of one request that are asked about at once.
pub const GROUPS_AT_ONCE: usize = 128;
/// Sentences printed for records that one load leaves out; the rest is counted.
pub const PRINTED_PER_LOAD: u64 = 5;

/// Milliseconds until a coordinator that could not be loaded is tried again.
pub const RELOAD_AFTER_MS: i64 = 1_000;
