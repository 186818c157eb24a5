//! What may change the cluster's state, what comes of it, and why it may be refused.
//!
//! A command is proposed on any shard, agreed by the quorum and judged once, when it is applied: callers may check before to
//! answer sooner, but only the answer of [`crate::apply`] counts.

use std::fmt;
use std::sync::Arc;

use model::{ErrorCode, LeaderEpoch, NodeId, PartitionIndex, ProducerId, TopicId};

use crate::image::{ConfigResource, Incarnation};

/// A change of the cluster's state. [`crate::stored`] has the form in which it is agreed and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The first command of a cluster. Repeating it with the same id changes nothing.
    FormatCluster {
        cluster_id: Arc<str>,
        features: Vec<(Arc<str>, i16)>,
    },
    SetFeature {
        name: Arc<str>,
        level: i16,
    },
    RegisterBroker {
        node: NodeId,
        incarnation: Incarnation,
        host: Arc<str>,
        port: u16,
        rack: Option<Arc<str>>,
    },
    CreateTopic {
        name: Arc<str>,
        id: TopicId,
        /// Replicas by partition index; the first of each leads.
        assignments: Vec<Vec<NodeId>>,
        configs: Vec<(Arc<str>, Arc<str>)>,
    },
    DeleteTopic {
        id: TopicId,
    },
    AddPartitions {
        id: TopicId,
        /// The number of partitions that the proposer saw, so that two who want five do not make seven.
        first: PartitionIndex,
        assignments: Vec<Vec<NodeId>>,
    },
    AlterConfigs {
        resource: ConfigResource,
        change: ConfigChange,
    },
    AllocateProducerIds {
        node: NodeId,
        block_len: u32,
    },
    /// Raises the leader epoch of every partition that `node` leads: one command at each of its starts, before its first
    /// append, because after a crash offsets may be handed out again.
    RaiseLeaderEpochs {
        node: NodeId,
    },
    /// Asked by the leader of the partition.
    ChangeIsr {
        id: TopicId,
        partition: PartitionIndex,
        leader: NodeId,
        leader_epoch: LeaderEpoch,
        partition_epoch: i32,
        isr: Vec<NodeId>,
    },
    ChangeLeader {
        id: TopicId,
        partition: PartitionIndex,
        partition_epoch: i32,
        /// `NodeId::NONE` when nobody may lead.
        leader: NodeId,
        /// Allows a replica outside the ISR, which then is the whole ISR.
        unclean: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigChange {
    /// These entries and no others (AlterConfigs).
    Replace(Vec<(Arc<str>, Arc<str>)>),
    /// In order, all or none (IncrementalAlterConfigs).
    Incremental(Vec<(Arc<str>, ConfigOp)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigOp {
    Set(Arc<str>),
    Delete,
    /// Adds the comma-separated items that are missing. `default` is what the entry holds while it is not set.
    Append {
        items: Arc<str>,
        default: Arc<str>,
    },
    /// Takes comma-separated items out.
    Subtract {
        items: Arc<str>,
        default: Arc<str>,
    },
}

/// What a command that was not refused did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    BrokerRegistered { epoch: i64 },
    TopicCreated { id: TopicId },
    ProducerIds { first: ProducerId, len: u32 },
    EpochsRaised { partitions: u64 },
    PartitionChanged { leader_epoch: LeaderEpoch, partition_epoch: i32 },
}

/// Why a command changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    NotFormatted,
    InvalidClusterId,
    ClusterIdMismatch { current: Arc<str> },
    InvalidFeature,
    InvalidBroker(&'static str),
    UnknownBroker(NodeId),
    TopicExists { id: TopicId },
    TopicIdInUse,
    InvalidTopicName(&'static str),
    NameCollision { existing: Arc<str> },
    UnknownTopic,
    UnknownPartition,
    InvalidPartitions(&'static str),
    InvalidReplicaAssignment(&'static str),
    TooManyPartitions,
    InvalidConfig(&'static str),
    StaleLeaderEpoch { current: LeaderEpoch },
    StalePartitionEpoch { current: i32 },
    InvalidIsr(&'static str),
    IneligibleLeader,
    InvalidBlock,
    Exhausted(&'static str),
}

impl Rejection {
    /// The protocol's number for it.
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Rejection::NotFormatted | Rejection::Exhausted(_) => ErrorCode::UnknownServerError,
            Rejection::InvalidClusterId | Rejection::ClusterIdMismatch { .. } => ErrorCode::InconsistentClusterId,
            Rejection::InvalidFeature => ErrorCode::FeatureUpdateFailed,
            Rejection::InvalidBroker(_) => ErrorCode::InvalidRegistration,
            Rejection::UnknownBroker(_) => ErrorCode::BrokerIdNotRegistered,
            Rejection::TopicExists { .. } => ErrorCode::TopicAlreadyExists,
            Rejection::InvalidTopicName(_) | Rejection::NameCollision { .. } => ErrorCode::InvalidTopicException,
            Rejection::UnknownTopic => ErrorCode::UnknownTopicId,
            Rejection::UnknownPartition => ErrorCode::UnknownTopicOrPartition,
            Rejection::InvalidPartitions(_) => ErrorCode::InvalidPartitions,
            Rejection::InvalidReplicaAssignment(_) => ErrorCode::InvalidReplicaAssignment,
            Rejection::TooManyPartitions => ErrorCode::PolicyViolation,
            Rejection::InvalidConfig(_) => ErrorCode::InvalidConfig,
            Rejection::StaleLeaderEpoch { .. } => ErrorCode::FencedLeaderEpoch,
            Rejection::StalePartitionEpoch { .. } => ErrorCode::InvalidUpdateVersion,
            Rejection::IneligibleLeader => ErrorCode::EligibleLeadersNotAvailable,
            Rejection::TopicIdInUse | Rejection::InvalidIsr(_) | Rejection::InvalidBlock => ErrorCode::InvalidRequest,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::NotFormatted => f.write_str("The cluster is not formatted yet."),
            Rejection::InvalidClusterId => f.write_str("The cluster id is not 22 characters of URL-safe base64."),
            Rejection::ClusterIdMismatch { current } => write!(f, "The cluster is {current}."),
            Rejection::InvalidFeature => f.write_str("The feature's name is empty or its level negative."),
            Rejection::InvalidBroker(why) => write!(f, "The broker cannot register: {why}."),
            Rejection::UnknownBroker(node) => write!(f, "Broker {node} is not registered."),
            Rejection::TopicExists { .. } => f.write_str("A topic of this name exists."),
            Rejection::TopicIdInUse => f.write_str("The topic id is zero or belongs to another topic."),
            Rejection::InvalidTopicName(why) => write!(f, "The topic name is invalid: {why}."),
            Rejection::NameCollision { existing } => {
                write!(f, "The topic name differs from the existing topic {existing} only in '.' and '_'.")
            }
            Rejection::UnknownTopic => f.write_str("No topic has this id."),
            Rejection::UnknownPartition => f.write_str("The topic has no such partition."),
            Rejection::InvalidPartitions(why) => write!(f, "The partitions are invalid: {why}."),
            Rejection::InvalidReplicaAssignment(why) => write!(f, "The replica assignment is invalid: {why}."),
            Rejection::TooManyPartitions => f.write_str("The request would create too many partitions at once."),
            Rejection::InvalidConfig(why) => write!(f, "The configuration is invalid: {why}."),
            Rejection::StaleLeaderEpoch { current } => write!(f, "The partition's leader epoch is {current}."),
            Rejection::StalePartitionEpoch { current } => write!(f, "The partition's epoch is {current}."),
            Rejection::InvalidIsr(why) => write!(f, "The in-sync replicas are invalid: {why}."),
            Rejection::IneligibleLeader => f.write_str("The broker is not among the replicas that may lead."),
            Rejection::InvalidBlock => f.write_str("The length of the producer-id block is out of range."),
            Rejection::Exhausted(what) => write!(f, "No more {what} are left."),
        }
    }
}

impl std::error::Error for Rejection {}
