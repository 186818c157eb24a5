//! Every bound of the consumer.

/// No Fetch is sent while this many bytes lie read ahead. One answer per node may come on top of it.
pub const READ_AHEAD_BYTES: usize = 32 << 20;
/// What an entry that lies read ahead counts for besides its bytes, so that many small ones are bounded too.
pub const READ_AHEAD_OVERHEAD_BYTES: usize = 512;
/// Fetched records below this many bytes are copied out: a slice keeps the whole read buffer (about 64 KiB) that it lies in.
pub const COPY_BELOW_BYTES: usize = 8 << 10;
/// A batch may inflate to this much, not more.
pub const MAX_INFLATED_BATCH_BYTES: usize = 128 << 20;
/// Faults of partitions that wait for the next poll; of one partition there is one at most, and later ones are told
/// again by the next try.
pub const MAX_FAULTS: usize = 64;
/// Bytes of a group's id, a member's static id, a rack.
pub const MAX_NAME_BYTES: usize = 4096;
/// Topics of one subscription.
pub const MAX_SUBSCRIBED_TOPICS: usize = 10_000;
/// Records of one poll.
pub const MAX_POLL_RECORDS: usize = 1 << 20;
/// Members that a group's leader spreads partitions over.
pub const MAX_MEMBERS: usize = 10_000;
/// Partitions of one assignment: what a leader's assignment or our own may hold.
pub const MAX_ASSIGNED_PARTITIONS: usize = 1 << 20;
/// How long the commits before a rebalance or a close are waited for, all together; the group waits for us meanwhile.
pub const RELEASE_COMMIT_TIMEOUT_MS: i64 = 5_000;
/// How long a last goodbye to the coordinator may take.
pub const LEAVE_TIMEOUT_MS: i64 = 2_000;
/// What the coordinator may take over a rebalance timeout before a JoinGroup is given up.
pub const JOIN_GRACE_MS: i64 = 5_000;
/// How long a follower that the leader named is preferred.
pub const PREFERRED_REPLICA_MS: i64 = 300_000;
/// How long a follower that the leader named just now may take to be connected to.
pub const FOLLOWER_PATIENCE_MS: i64 = 1_000;
/// How long the leader itself is read from after a follower was of no use.
pub const FOLLOWER_AVOIDED_MS: i64 = 30_000;
/// The longest sleep of a poll: whatever was not announced is looked at again then.
pub const MAX_NAP_MS: i64 = 1_000;
/// How soon a node is looked at again whose connection was not up.
pub const NOT_CONNECTED_RETRY_MS: i64 = 5;
