//! Every bound of the coordinator, in one place. Kafka leaves most of these open; a broker that must not be brought down
//! by one client cannot.

/// Groups of one internal partition. A join or commit that would make one more is refused with POLICY_VIOLATION.
pub const MAX_GROUPS: usize = 250_000;

/// Committed offsets of one internal partition, all groups together. Further partitions get POLICY_VIOLATION.
pub const MAX_OFFSETS: usize = 5_000_000;

/// Members of a group, whatever `group.max.size` allows (Kafka's default is unlimited).
pub const MAX_MEMBERS_PER_GROUP: usize = 50_000;

/// Members that have been given an id but have not come back with it. Each is dropped after its session timeout.
pub const MAX_PENDING_MEMBERS_PER_GROUP: usize = 10_000;

/// Protocols (assignors) that a member may list. Java's consumer lists two.
pub const MAX_PROTOCOLS_PER_MEMBER: usize = 64;

/// Bytes of all the protocols' metadata of a member. It is held in memory and, for the chosen one, in each record.
pub const MAX_PROTOCOL_METADATA_BYTES: usize = 1 << 20;

/// Longest string that the records' 16-bit length can say.
pub const MAX_STRING_BYTES: usize = i16::MAX as usize;

/// Bytes of the client id or instance id that go into a generated member id, so that it stays a legal string.
pub const MAX_MEMBER_ID_PREFIX_BYTES: usize = 4096;

/// Appends whose result is not in yet. Commits beyond it get COORDINATOR_NOT_AVAILABLE, which clients retry.
pub const MAX_APPENDS_IN_FLIGHT: usize = 10_000;

/// Records of one append made by clean-up (expiry, deletion): larger ones are cut into several.
pub const MAX_RECORDS_PER_APPEND: usize = 1_000;

/// Timers that one call of `on_timer` fires; what is left stays due.
pub const MAX_TIMERS_PER_CALL: usize = 256;

/// Offsets and groups that one slice of the expiry check visits before it gives the core back.
pub const EXPIRY_VISITS_PER_SLICE: usize = 2_000;

/// Time a new member has until its first rebalance completes (Kafka's constant): such a member sends no heartbeats yet.
pub const NEW_MEMBER_JOIN_TIMEOUT_MS: i64 = 5 * 60 * 1000;

/// Shortest wait before a rebalance that nobody joined is tried again, so that a rebalance timeout of 0 cannot spin.
pub const MIN_RETRY_REBALANCE_MS: i64 = 100;
