//! What the quorum looks like from this node, for DescribeQuorum and for readiness at a start.

use model::NodeId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumStatus {
    pub leader: Option<NodeId>,
    /// The raft term, which is Kafka's leader epoch of the metadata quorum.
    pub leader_epoch: u64,
    pub is_leader: bool,
    /// Next index after the last committed one, as Kafka counts offsets.
    pub high_watermark: u64,
    /// Index of the last entry applied to the image.
    pub applied: u64,
    /// Whether this node leads and has applied everything earlier leaders committed: only then is its image current.
    pub is_current_leader: bool,
    /// In the order of their ids. Only the leader knows the log ends of others.
    pub voters: Vec<VoterStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoterStatus {
    pub node: NodeId,
    /// Next index after the last durable entry; `None` when this node does not know.
    pub log_end_offset: Option<u64>,
}
