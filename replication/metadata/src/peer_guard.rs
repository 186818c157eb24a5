//! What a peer's message must satisfy before raft sees it.
//!
//! The crate `raft` ends the process on messages that no correct peer sends (a commit beyond the log, an entry in conflict with a
//! committed one). A peer whose disk was lost or swapped sends exactly those, and must not take the others down with it.

use raft::{RawNode, StateRole, Storage};

use crate::error::MetadataError;
use crate::limits::MAX_INDEX;
use crate::peer::{PeerMessage, PeerMessageKind, to_raft};
use crate::storage::JournalView;
use crate::stored_image;

/// Why `message` must not be stepped into `node`, if anything.
pub(crate) fn check(node: &RawNode<JournalView>, message: &PeerMessage) -> Result<(), MetadataError> {
    judge(node, message).map_err(MetadataError::InvalidPeerMessage)
}

fn judge(node: &RawNode<JournalView>, message: &PeerMessage) -> Result<(), &'static str> {
    let raft = &node.raft;
    if to_raft(message.to) != raft.id || message.from == message.to {
        return Err("it is not for this node");
    }
    if raft.prs().get(to_raft(message.from)).is_none() {
        return Err("its sender is no voter");
    }
    let numbers = [message.log_term, message.index, message.commit, message.commit_term, message.reject_hint];
    if message.term == 0 || message.term > MAX_INDEX || numbers.iter().any(|number| *number > MAX_INDEX) {
        return Err("its term or an index is impossible");
    }
    if (message.kind != PeerMessageKind::Append && !message.entries.is_empty())
        || (message.kind == PeerMessageKind::Snapshot) != message.snapshot.is_some()
    {
        return Err("it carries what its kind does not");
    }
    match message.kind {
        PeerMessageKind::Append => check_append(node, message),
        PeerMessageKind::Snapshot => check_snapshot(message),
        PeerMessageKind::Heartbeat if message.commit > raft.raft_log.last_index() => {
            Err("it commits what this node does not hold")
        }
        PeerMessageKind::AppendResponse if message.term == raft.term && message.index > raft.raft_log.last_index() => {
            Err("it acknowledges what was never sent")
        }
        // A vote that arrives before this candidate's own log is durable answers no request that was sent.
        PeerMessageKind::RequestVoteResponse
            if raft.state == StateRole::Candidate && raft.raft_log.persisted != raft.raft_log.last_index() =>
        {
            Err("it answers no request")
        }
        _ => Ok(()),
    }
}

fn check_append(node: &RawNode<JournalView>, message: &PeerMessage) -> Result<(), &'static str> {
    let log = &node.raft.raft_log;
    if node.raft.term == message.term && node.raft.state == StateRole::Leader {
        return Err("this node leads in its term");
    }
    if message.log_term == 0 && message.index > 0 {
        return Err("it follows an entry without a term");
    }
    let mut term = message.log_term;
    for (entry, index) in message.entries.iter().zip(message.index + 1..) {
        if entry.index != index || entry.term < term || entry.term > message.term || entry.term == 0 {
            return Err("its entries are not a log");
        }
        if index <= log.committed && log.term(index).is_ok_and(|ours| ours != entry.term && ours != 0) {
            return Err("it contradicts a committed entry");
        }
        term = entry.term;
    }
    let store = node.store();
    let base_term = store.first_index().and_then(|first| store.term(first - 1)).unwrap_or(0);
    // Below the snapshot nothing is left to compare: a correct leader's terms there are those we committed.
    if message.index >= log.committed && message.log_term < base_term {
        return Err("its log contradicts the snapshot");
    }
    Ok(())
}

fn check_snapshot(message: &PeerMessage) -> Result<(), &'static str> {
    let Some(snapshot) = &message.snapshot else { return Err("its snapshot is missing") };
    let Ok(decoded) = stored_image::decode_snapshot(&snapshot.data) else {
        return Err("its snapshot cannot be read");
    };
    if decoded.index != snapshot.index || decoded.term != snapshot.term || snapshot.term > message.term {
        return Err("its snapshot is another one");
    }
    Ok(())
}
