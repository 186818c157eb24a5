//! What can go wrong in this crate, one enum. A refused command is a [`Rejection`]; the rest are operating errors.

use std::fmt;

use model::NodeId;

use crate::command::Rejection;
use crate::envelope::EnvelopeError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataError {
    /// The command was agreed, applied and refused.
    Rejected(Rejection),
    /// Nothing was proposed: ask `leader`.
    NotLeader {
        leader: Option<NodeId>,
    },
    /// Nothing was proposed: too much waits already.
    Busy,
    /// Nothing was proposed.
    CommandTooLarge {
        len: usize,
    },
    /// The command was proposed and may or may not be applied.
    LeadershipLost,
    DamagedJournal {
        offset: u64,
        what: &'static str,
    },
    DamagedSnapshot {
        what: &'static str,
    },
    /// A committed command cannot be read: this node cannot follow any further.
    DamagedCommand {
        index: u64,
    },
    MissingFile {
        name: String,
    },
    /// Written by a newer Ringlog.
    NewerVersion {
        what: &'static str,
        version: u16,
        newest: u16,
    },
    ForeignJournal {
        cluster_id: String,
        node: NodeId,
    },
    InvalidPeerMessage(&'static str),
    InvalidConfiguration(&'static str),
    Encoding,
    Raft(String),
    /// A step on disk failed: nothing of its round may be believed.
    Disk(String),
    /// The driver ended; what was proposed may or may not be applied.
    Stopped,
}

impl MetadataError {
    pub(crate) fn in_journal(error: EnvelopeError, offset: u64) -> MetadataError {
        match error {
            EnvelopeError::Newer { version, newest } => {
                MetadataError::NewerVersion { what: "metadata journal", version, newest }
            }
            other => MetadataError::DamagedJournal { offset, what: other.what() },
        }
    }

    pub(crate) fn in_snapshot(error: EnvelopeError) -> MetadataError {
        match error {
            EnvelopeError::Newer { version, newest } => {
                MetadataError::NewerVersion { what: "metadata snapshot", version, newest }
            }
            other => MetadataError::DamagedSnapshot { what: other.what() },
        }
    }

    pub(crate) fn in_peer_message(error: EnvelopeError) -> MetadataError {
        match error {
            EnvelopeError::Newer { version, newest } => {
                MetadataError::NewerVersion { what: "message of a metadata peer", version, newest }
            }
            other => MetadataError::InvalidPeerMessage(other.what()),
        }
    }
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetadataError::Rejected(rejection) => rejection.fmt(f),
            MetadataError::NotLeader { leader: Some(node) } => write!(f, "Node {node} leads the metadata quorum."),
            MetadataError::NotLeader { leader: None } => f.write_str("The metadata quorum has no leader."),
            MetadataError::Busy => f.write_str("Too many metadata changes wait for their turn."),
            MetadataError::CommandTooLarge { len } => write!(f, "A metadata change of {len} bytes is too large."),
            MetadataError::LeadershipLost => {
                f.write_str("This node lost the metadata leadership; the change may or may not have been made.")
            }
            MetadataError::DamagedJournal { offset, what } => {
                write!(f, "The metadata journal is damaged at byte {offset}: {what}.")
            }
            MetadataError::DamagedSnapshot { what } => write!(f, "The metadata snapshot is damaged: {what}."),
            MetadataError::DamagedCommand { index } => write!(f, "The metadata command at {index} cannot be read."),
            MetadataError::MissingFile { name } => write!(f, "The metadata file {name} is missing."),
            MetadataError::NewerVersion { what, version, newest } => {
                write!(f, "The {what} has version {version}; this Ringlog knows versions up to {newest}.")
            }
            MetadataError::ForeignJournal { cluster_id, node } => {
                write!(f, "The metadata journal belongs to node {node} of cluster {cluster_id}.")
            }
            MetadataError::InvalidPeerMessage(what) => write!(f, "A metadata peer sent an invalid message: {what}."),
            MetadataError::InvalidConfiguration(what) => write!(f, "The metadata quorum cannot start: {what}."),
            MetadataError::Encoding => f.write_str("A metadata value could not be encoded."),
            MetadataError::Disk(what) => write!(f, "The metadata could not be kept on disk: {what}."),
            MetadataError::Stopped => f.write_str("The metadata of this node has stopped."),
            MetadataError::Raft(what) => write!(f, "The metadata quorum failed: {what}."),
        }
    }
}

impl std::error::Error for MetadataError {}

impl From<raft::Error> for MetadataError {
    fn from(error: raft::Error) -> MetadataError {
        match error {
            raft::Error::ProposalDropped => MetadataError::Busy,
            other => MetadataError::Raft(other.to_string()),
        }
    }
}
