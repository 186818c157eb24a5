//! What a replica answers when it cannot do what was asked, and the protocol's number for it.

use std::fmt;

use log::LogError;
use model::ErrorCode;

use crate::snapshot::SnapshotError;

/// Operating errors of this crate.
#[derive(Clone, Debug)]
pub enum ReplicaError {
    Log(LogError),
    /// The producer snapshot was written by a newer version; the partition is left as it is.
    NewerSnapshot(i16),
    /// The request's leader epoch is older than this leader's.
    FencedEpoch,
    /// The request's leader epoch is newer than this leader's.
    UnknownEpoch,
    /// This broker does not lead the partition.
    NotLeader,
    /// The answer did not come within the request's time.
    TimedOut,
}

impl ReplicaError {
    pub fn code(&self) -> ErrorCode {
        match self {
            ReplicaError::FencedEpoch => ErrorCode::FencedLeaderEpoch,
            ReplicaError::UnknownEpoch => ErrorCode::UnknownLeaderEpoch,
            ReplicaError::NotLeader => ErrorCode::NotLeaderOrFollower,
            ReplicaError::TimedOut => ErrorCode::RequestTimedOut,
            ReplicaError::NewerSnapshot(_) => ErrorCode::KafkaStorageError,
            ReplicaError::Log(error) => match error {
                LogError::OffsetOutOfRange { .. } => ErrorCode::OffsetOutOfRange,
                LogError::BadBatch(_) => ErrorCode::CorruptMessage,
                LogError::Closed => ErrorCode::NotLeaderOrFollower,
                // Retriable for every client, like a full or failing disk in Kafka.
                _ => ErrorCode::KafkaStorageError,
            },
        }
    }
}

impl fmt::Display for ReplicaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplicaError::Log(error) => error.fmt(f),
            ReplicaError::NewerSnapshot(version) => SnapshotError::Newer(*version).fmt(f),
            ReplicaError::TimedOut => write!(f, "the disk did not confirm the write within the request's time"),
            other => f.write_str(other.code().sentence()),
        }
    }
}

impl std::error::Error for ReplicaError {}

impl From<LogError> for ReplicaError {
    fn from(error: LogError) -> ReplicaError {
        ReplicaError::Log(error)
    }
}
