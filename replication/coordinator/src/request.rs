//! What the driver hands in. Owned values: they cross from the connection's shard to the coordinator's.
//!
//! Version differences of the protocol are plain fields here; the handlers know the versions.

use crate::member::Protocol;
use bytes::Bytes;
use model::{LeaderEpoch, Offset, TopicId};

#[derive(Clone, Debug)]
pub struct JoinRequest {
    pub group_id: String,
    /// Empty for a member that has none yet.
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub client_id: String,
    /// As Kafka shows it: `/127.0.0.1`.
    pub client_host: String,
    pub session_timeout_ms: i32,
    /// Negative (v0 has no such field): the session timeout.
    pub rebalance_timeout_ms: i32,
    pub protocol_type: String,
    /// In the order of the member's preference.
    pub protocols: Vec<Protocol>,
    /// v4 and later: a dynamic member is first given an id and must come back with it.
    pub requires_known_member_id: bool,
    /// v9 and later: the answer can say that the leader shall not assign (KIP-814).
    pub supports_skip_assignment: bool,
    /// Fresh random bits, of which a member id is made if one is needed.
    pub random: u128,
}

#[derive(Clone, Debug)]
pub struct SyncRequest {
    pub group_id: String,
    pub generation_id: i32,
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    /// Member id and assignment; only the leader's count.
    pub assignments: Vec<(String, Bytes)>,
}

/// Borrowed: a heartbeat is answered on the spot.
#[derive(Clone, Copy, Debug)]
pub struct HeartbeatRequest<'a> {
    pub group_id: &'a str,
    pub generation_id: i32,
    pub member_id: &'a str,
    pub group_instance_id: Option<&'a str>,
}

#[derive(Clone, Debug)]
pub struct LeaveRequest {
    pub group_id: String,
    /// One member below v3.
    pub members: Vec<LeavingMember>,
}

#[derive(Clone, Debug)]
pub struct LeavingMember {
    /// May be empty when the instance id is given.
    pub member_id: String,
    pub group_instance_id: Option<String>,
}

#[derive(Clone, Debug)]
pub struct CommitRequest {
    pub group_id: String,
    /// -1 for a consumer outside any generation.
    pub generation_id: i32,
    pub member_id: String,
    pub group_instance_id: Option<String>,
    /// v2 to v4 may ask for a retention of their own; negative is none.
    pub retention_time_ms: i64,
    /// Topics that exist: the caller has answered the others.
    pub topics: Vec<CommitTopic>,
}

#[derive(Clone, Debug)]
pub struct CommitTopic {
    pub name: String,
    pub topic_id: TopicId,
    pub partitions: Vec<CommitPartition>,
}

#[derive(Clone, Debug)]
pub struct CommitPartition {
    pub partition: i32,
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    /// Null is stored as the empty string.
    pub metadata: Option<String>,
}

#[derive(Clone, Debug)]
pub struct DeleteOffsetsRequest {
    pub group_id: String,
    /// Topic name and partitions; the caller has answered topics that do not exist.
    pub topics: Vec<(String, Vec<i32>)>,
}
