//! What comes out: answers to tickets, and records for the log.

use bytes::Bytes;
use model::{ErrorCode, TopicId};
use std::sync::Arc;

/// The caller's name for a request that waits. Never reused while unanswered; answered exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Names an append until its result comes back. Ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppendId(pub u64);

/// Key and value of a record; a value of `None` is a tombstone.
pub type RecordBytes = (Vec<u8>, Option<Vec<u8>>);

/// What the driver must do, in the order it was handed out.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Send this answer. If the connection is gone, drop it: the session timeout deals with the member.
    Reply { ticket: Ticket, response: Response },
    /// Write these records to the partition, in this order and after all earlier appends, in one batch or several, and
    /// report with `append_done` once all are durable (as `acks=all` understands it) or one has failed.
    Append { append_id: AppendId, records: Vec<RecordBytes> },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    Join(JoinResponse),
    Sync(SyncResponse),
    Leave(LeaveResponse),
    /// One entry a topic of the request, in its order.
    Commit(Vec<CommitTopicResult>),
    /// Group id and result, in the order of the request.
    DeleteGroups(Vec<(String, ErrorCode)>),
    DeleteOffsets {
        error: ErrorCode,
        /// Topic name, then partition and result; empty when `error` is one.
        topics: Vec<(String, Vec<(i32, ErrorCode)>)>,
    },
}

impl Response {
    /// The same answer after its records could not be written: nothing of it holds.
    pub(crate) fn failed(self, error: ErrorCode) -> Response {
        match self {
            Response::Join(join) => Response::Join(JoinResponse::error(join.member_id, error)),
            Response::Sync(_) => Response::Sync(SyncResponse::error(error)),
            Response::Leave(_) => Response::Leave(LeaveResponse { error, members: Vec::new() }),
            Response::Commit(mut topics) => {
                for result in topics.iter_mut().flat_map(|t| t.partitions.iter_mut()) {
                    result.1 = error;
                }
                Response::Commit(topics)
            }
            Response::DeleteGroups(mut groups) => {
                for result in groups.iter_mut().filter(|g| g.1 == ErrorCode::None) {
                    result.1 = error;
                }
                Response::DeleteGroups(groups)
            }
            Response::DeleteOffsets { .. } => Response::DeleteOffsets { error, topics: Vec::new() },
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct JoinResponse {
    pub error: ErrorCode,
    /// -1 with an error.
    pub generation_id: i32,
    pub protocol_type: Option<String>,
    /// Below v7 the caller sends null as the empty string.
    pub protocol_name: Option<String>,
    pub leader: Arc<str>,
    pub skip_assignment: bool,
    pub member_id: Arc<str>,
    /// For the leader only.
    pub members: Vec<JoinMember>,
}

impl JoinResponse {
    pub(crate) fn error(member_id: Arc<str>, error: ErrorCode) -> JoinResponse {
        JoinResponse {
            error,
            generation_id: -1,
            protocol_type: None,
            protocol_name: None,
            leader: Arc::from(""),
            skip_assignment: false,
            member_id,
            members: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct JoinMember {
    pub member_id: Arc<str>,
    pub group_instance_id: Option<Arc<str>>,
    pub metadata: Bytes,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SyncResponse {
    pub error: ErrorCode,
    pub protocol_type: Option<String>,
    pub protocol_name: Option<String>,
    pub assignment: Bytes,
}

impl SyncResponse {
    pub(crate) fn error(error: ErrorCode) -> SyncResponse {
        SyncResponse { error, protocol_type: None, protocol_name: None, assignment: Bytes::new() }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct LeaveResponse {
    pub error: ErrorCode,
    /// One a member of the request. Below v3 the caller answers with the first one's error.
    pub members: Vec<LeftMember>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LeftMember {
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub error: ErrorCode,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CommitTopicResult {
    pub name: String,
    pub topic_id: TopicId,
    pub partitions: Vec<(i32, ErrorCode)>,
}
