//! Every bound of the metadata quorum, by name.

/// Longest topic name, as in Kafka.
pub const MAX_TOPIC_NAME_LEN: usize = 249;
/// Partitions that one command may create: Kafka refuses larger batches with a policy violation too.
pub const MAX_PARTITIONS_PER_COMMAND: usize = 10_000;
/// Partitions of a topic.
pub const MAX_PARTITIONS_PER_TOPIC: usize = 100_000;
/// Replicas of a partition.
pub const MAX_REPLICAS: usize = 128;
/// Configuration entries of one resource.
pub const MAX_CONFIGS_PER_RESOURCE: usize = 1_000;
/// Bytes of one configuration key or value.
pub const MAX_CONFIG_TEXT_LEN: usize = 65_536;
/// Bytes of a host or rack name.
pub const MAX_HOST_LEN: usize = 1_024;
/// Producer ids in one block.
pub const MAX_PRODUCER_ID_BLOCK: u32 = 1_000_000;
/// Ids in the block that a broker asks for, as in Kafka.
pub const PRODUCER_ID_BLOCK: u32 = 1_000;

/// Bytes of one encoded command.
pub const MAX_COMMAND_LEN: usize = 4 << 20;
/// Proposals waiting for their outcome.
pub const MAX_PENDING_PROPOSALS: usize = 16_384;
/// Bytes proposed and not yet committed.
pub const MAX_UNCOMMITTED_BYTES: u64 = 32 << 20;
/// Bytes of committed entries handed out at once.
pub const MAX_COMMITTED_BYTES_PER_READY: u64 = 8 << 20;

/// Bytes of a frame in the journal. A frame holds what one round persists: `MAX_UNCOMMITTED_BYTES` bounds it on a leader,
/// `MAX_PEER_INFLIGHT` messages on a follower.
pub const MAX_FRAME_LEN: usize = 512 << 20;
/// Bytes of a journal file read at a start: far beyond where a snapshot makes a new one.
pub const MAX_JOURNAL_LEN: usize = 4 << 30;
/// Bytes of an encoded snapshot: some two million partitions.
pub const MAX_SNAPSHOT_LEN: usize = 256 << 20;

/// Bytes of entries in one message to a peer.
pub const MAX_PEER_ENTRIES_BYTES: u64 = 1 << 20;
/// Entries in one message from a peer.
pub const MAX_PEER_ENTRIES: usize = 65_536;
/// Messages with entries on their way to one peer.
pub const MAX_PEER_INFLIGHT: usize = 64;
/// Bytes of the context that raft puts into a message.
pub const MAX_PEER_CONTEXT_LEN: usize = 64;
/// Voters of the quorum.
pub const MAX_VOTERS: usize = 9;
/// Ticks after which an unanswered snapshot counts as lost and is sent again.
pub const SNAPSHOT_RETRY_TICKS: u32 = 100;
/// Largest index and term taken from a file or a peer: far beyond a lifetime, far below an overflow.
pub const MAX_INDEX: u64 = 1 << 56;

/// Entries applied since the last snapshot after which the next one is made.
pub const SNAPSHOT_AFTER_ENTRIES: u64 = 10_000;
/// Bytes of the journal after which the next snapshot is made (or the snapshot's own size where that is more).
pub const SNAPSHOT_AFTER_BYTES: u64 = 16 << 20;
/// Once nothing has been proposed for so many ticks, so few entries are enough: small as they are, they were made among
/// much that has gone since, and each may keep a page of memory that is otherwise free.
pub const SNAPSHOT_QUIET_TICKS: u32 = 20;
pub const SNAPSHOT_QUIET_ENTRIES: u64 = 500;
/// But not for less of a journal than this part of the snapshot that it would replace.
pub const SNAPSHOT_QUIET_PART: u64 = 8;
