//! Messages between the voters of the quorum, and their codec.
//!
//! Our own structure and bytes: nothing of protobuf is ever parsed from a network. Decoding checks bounds and form; whether a
//! message makes sense to this node is judged in [`crate::MetadataNode::step`].

use bytes::Bytes;
use model::NodeId;
use raft::eraftpb;

use crate::byte_io::{Reader, put_byte_string, put_len};
use crate::envelope::{self, Kind};
use crate::error::MetadataError;
use crate::limits::{MAX_COMMAND_LEN, MAX_PEER_CONTEXT_LEN, MAX_PEER_ENTRIES, MAX_SNAPSHOT_LEN};

pub const PEER_VERSION: u16 = 1;
/// Entries and a snapshot never share a message.
pub const MAX_PEER_MESSAGE_LEN: usize = MAX_SNAPSHOT_LEN + (1 << 20);
/// index, term and length.
const LEAST_ENTRY_LEN: usize = 20;
/// An entry's command with its cover.
const MAX_ENTRY_LEN: usize = MAX_COMMAND_LEN + envelope::HEADER_LEN;

/// Carries messages to other voters. The network implements it; losing, doubling and reordering is allowed.
pub trait PeerTransport {
    /// Sends to `message.to` or drops it. Never waits.
    fn send(&self, message: PeerMessage);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PeerMessageKind {
    Append = 1,
    AppendResponse = 2,
    RequestVote = 3,
    RequestVoteResponse = 4,
    Snapshot = 5,
    Heartbeat = 6,
    HeartbeatResponse = 7,
    TimeoutNow = 8,
    RequestPreVote = 9,
    RequestPreVoteResponse = 10,
}

const KINDS: [(PeerMessageKind, eraftpb::MessageType); 10] = [
    (PeerMessageKind::Append, eraftpb::MessageType::MsgAppend),
    (PeerMessageKind::AppendResponse, eraftpb::MessageType::MsgAppendResponse),
    (PeerMessageKind::RequestVote, eraftpb::MessageType::MsgRequestVote),
    (PeerMessageKind::RequestVoteResponse, eraftpb::MessageType::MsgRequestVoteResponse),
    (PeerMessageKind::Snapshot, eraftpb::MessageType::MsgSnapshot),
    (PeerMessageKind::Heartbeat, eraftpb::MessageType::MsgHeartbeat),
    (PeerMessageKind::HeartbeatResponse, eraftpb::MessageType::MsgHeartbeatResponse),
    (PeerMessageKind::TimeoutNow, eraftpb::MessageType::MsgTimeoutNow),
    (PeerMessageKind::RequestPreVote, eraftpb::MessageType::MsgRequestPreVote),
    (PeerMessageKind::RequestPreVoteResponse, eraftpb::MessageType::MsgRequestPreVoteResponse),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerEntry {
    pub index: u64,
    pub term: u64,
    /// An encoded command, or nothing: what a new leader begins with.
    pub data: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerSnapshot {
    pub index: u64,
    pub term: u64,
    pub data: Bytes,
}

/// A message of raft; the fields mean what they mean there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerMessage {
    pub kind: PeerMessageKind,
    pub from: NodeId,
    pub to: NodeId,
    pub term: u64,
    pub log_term: u64,
    pub index: u64,
    pub commit: u64,
    pub commit_term: u64,
    pub reject: bool,
    pub reject_hint: u64,
    pub context: Bytes,
    pub entries: Vec<PeerEntry>,
    pub snapshot: Option<PeerSnapshot>,
}

impl PeerMessage {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.kind as u8, u8::from(self.reject), u8::from(self.snapshot.is_some())];
        out.extend_from_slice(&self.from.0.to_le_bytes());
        out.extend_from_slice(&self.to.0.to_le_bytes());
        for number in [self.term, self.log_term, self.index, self.commit, self.commit_term, self.reject_hint] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        put_byte_string(&mut out, &self.context);
        put_len(&mut out, self.entries.len());
        for entry in &self.entries {
            put_positioned(&mut out, entry.index, entry.term, &entry.data);
        }
        if let Some(snapshot) = &self.snapshot {
            put_positioned(&mut out, snapshot.index, snapshot.term, &snapshot.data);
        }
        seal_payload(&out)
    }

    pub fn decode(bytes: &[u8]) -> Result<PeerMessage, MetadataError> {
        let opened = envelope::open_whole(bytes, Kind::PeerMessage, PEER_VERSION, 0, MAX_PEER_MESSAGE_LEN)
            .map_err(MetadataError::in_peer_message)?;
        let mut reader = Reader::new(opened.payload);
        let message = read_message(&mut reader).ok_or(MetadataError::InvalidPeerMessage("its form is broken"))?;
        if !reader.is_empty() {
            return Err(MetadataError::InvalidPeerMessage("bytes follow its end"));
        }
        Ok(message)
    }

    /// `None` for kinds that raft keeps to itself.
    pub(crate) fn from_raft(mut message: eraftpb::Message) -> Option<PeerMessage> {
        let kind = KINDS.iter().find(|(_, theirs)| *theirs == message.get_msg_type())?.0;
        let snapshot = (kind == PeerMessageKind::Snapshot).then(|| {
            let mut snapshot = message.take_snapshot();
            let metadata = snapshot.get_metadata();
            PeerSnapshot { index: metadata.index, term: metadata.term, data: std::mem::take(&mut snapshot.data) }
        });
        let entries = message.take_entries().into_iter().map(|mut entry| PeerEntry {
            index: entry.index,
            term: entry.term,
            data: std::mem::take(&mut entry.data),
        });
        Some(PeerMessage {
            kind,
            from: to_node(message.from),
            to: to_node(message.to),
            term: message.term,
            log_term: message.log_term,
            index: message.index,
            commit: message.commit,
            commit_term: message.commit_term,
            reject: message.reject,
            reject_hint: message.reject_hint,
            entries: entries.collect(),
            context: std::mem::take(&mut message.context),
            snapshot,
        })
    }

    pub(crate) fn into_raft(self, voters: &eraftpb::ConfState) -> eraftpb::Message {
        let mut message = eraftpb::Message::default();
        for (ours, theirs) in KINDS {
            if ours == self.kind {
                message.set_msg_type(theirs);
            }
        }
        message.from = to_raft(self.from);
        message.to = to_raft(self.to);
        message.term = self.term;
        message.log_term = self.log_term;
        message.index = self.index;
        message.commit = self.commit;
        message.commit_term = self.commit_term;
        message.reject = self.reject;
        message.reject_hint = self.reject_hint;
        message.context = self.context;
        let entries: Vec<eraftpb::Entry> =
            self.entries.into_iter().map(|e| raft_entry(e.index, e.term, e.data)).collect();
        message.set_entries(entries.into());
        if let Some(snapshot) = self.snapshot {
            message.set_snapshot(raft_snapshot(snapshot.index, snapshot.term, snapshot.data, voters));
        }
        message
    }
}

pub(crate) fn seal_payload(payload: &[u8]) -> Vec<u8> {
    envelope::seal(Kind::PeerMessage, PEER_VERSION, 0, payload)
}

/// raft's ids begin at 1, Kafka's at 0.
pub(crate) fn to_raft(node: NodeId) -> u64 {
    u64::try_from(i64::from(node.0) + 1).unwrap_or(raft::INVALID_ID)
}

pub(crate) fn to_node(id: u64) -> NodeId {
    match i32::try_from(id) {
        Ok(id) if id > 0 => NodeId(id - 1),
        _ => NodeId::NONE,
    }
}

pub(crate) fn raft_entry(index: u64, term: u64, data: Bytes) -> eraftpb::Entry {
    eraftpb::Entry { index, term, data, ..eraftpb::Entry::default() }
}

pub(crate) fn raft_snapshot(index: u64, term: u64, data: Bytes, voters: &eraftpb::ConfState) -> eraftpb::Snapshot {
    let mut snapshot = eraftpb::Snapshot { data, ..eraftpb::Snapshot::default() };
    let metadata = snapshot.mut_metadata();
    metadata.index = index;
    metadata.term = term;
    metadata.set_conf_state(voters.clone());
    snapshot
}

fn put_positioned(out: &mut Vec<u8>, index: u64, term: u64, data: &[u8]) {
    out.extend_from_slice(&index.to_le_bytes());
    out.extend_from_slice(&term.to_le_bytes());
    put_byte_string(out, data);
}

fn read_message(reader: &mut Reader<'_>) -> Option<PeerMessage> {
    let kind = reader.u8()?;
    let kind = KINDS.iter().find(|(ours, _)| *ours as u8 == kind)?.0;
    let (reject, has_snapshot) = (read_bool(reader)?, read_bool(reader)?);
    let mut message = PeerMessage {
        kind,
        reject,
        from: NodeId(reader.i32()?),
        to: NodeId(reader.i32()?),
        term: reader.u64()?,
        log_term: reader.u64()?,
        index: reader.u64()?,
        commit: reader.u64()?,
        commit_term: reader.u64()?,
        reject_hint: reader.u64()?,
        context: Bytes::copy_from_slice(reader.byte_string(MAX_PEER_CONTEXT_LEN)?),
        entries: Vec::new(),
        snapshot: None,
    };
    for _ in 0..reader.count(LEAST_ENTRY_LEN, MAX_PEER_ENTRIES)? {
        let (index, term, data) = read_positioned(reader, MAX_ENTRY_LEN)?;
        message.entries.push(PeerEntry { index, term, data });
    }
    if has_snapshot {
        let (index, term, data) = read_positioned(reader, MAX_SNAPSHOT_LEN + envelope::HEADER_LEN)?;
        message.snapshot = Some(PeerSnapshot { index, term, data });
    }
    Some(message)
}

fn read_bool(reader: &mut Reader<'_>) -> Option<bool> {
    match reader.u8()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn read_positioned(reader: &mut Reader<'_>, max_len: usize) -> Option<(u64, u64, Bytes)> {
    Some((reader.u64()?, reader.u64()?, Bytes::copy_from_slice(reader.byte_string(max_len)?)))
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
