#![allow(clippy::unwrap_used)]
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::fuzz_targets::fuzz_peer_message;

fn messages() -> impl Strategy<Value = PeerMessage> {
    let numbers = prop::array::uniform6(prop_oneof![0..6u64, any::<u64>()]);
    let entries = vec((0..8u64, 0..4u64, vec(any::<u8>(), 0..20)), 0..4);
    (0..KINDS.len(), any::<bool>(), -1..4i32, -1..4i32, numbers, entries, any::<bool>()).prop_map(
        |(kind, reject, from, to, n, entries, has_snapshot)| PeerMessage {
            kind: KINDS[kind].0,
            reject,
            from: NodeId(from),
            to: NodeId(to),
            term: n[0],
            log_term: n[1],
            index: n[2],
            commit: n[3],
            commit_term: n[4],
            reject_hint: n[5],
            context: Bytes::from_static(b"ctx"),
            entries: entries
                .into_iter()
                .map(|(index, term, data)| PeerEntry { index, term, data: data.into() })
                .collect(),
            snapshot: has_snapshot.then(|| PeerSnapshot { index: 4, term: 1, data: Bytes::from_static(b"snap") }),
        },
    )
}

#[test]
fn node_zero_has_a_raft_id() {
    assert_eq!((to_raft(NodeId(0)), to_node(1)), (1, NodeId(0)));
    assert_eq!((to_raft(NodeId::NONE), to_node(0)), (raft::INVALID_ID, NodeId::NONE));
    assert_eq!(to_node(u64::MAX), NodeId::NONE);
}

#[test]
fn a_newer_version_is_named() {
    let bytes = envelope::seal(Kind::PeerMessage, PEER_VERSION + 1, 0, b"x");
    assert!(matches!(PeerMessage::decode(&bytes), Err(MetadataError::NewerVersion { version: 2, newest: 1, .. })));
}

#[test]
fn a_count_beyond_the_bytes_reserves_nothing() {
    let mut payload = vec![1, 0, 0];
    payload.extend_from_slice(&[0; 8 + 48 + 4]);
    payload.extend_from_slice(&u32::MAX.to_le_bytes());
    assert!(PeerMessage::decode(&seal_payload(&payload)).is_err());
}

proptest! {
    #[test]
    fn every_message_comes_back_as_it_was(message in messages()) {
        prop_assert_eq!(PeerMessage::decode(&message.encode()).unwrap(), message);
    }

    #[test]
    fn any_bytes_are_read_or_refused(payload in vec(any::<u8>(), 0..300)) {
        fuzz_peer_message(&payload);
    }

    /// Well-formed nonsense: raft would end the process on some of it.
    #[test]
    fn any_message_is_taken_or_refused(messages in vec(messages(), 1..12)) {
        crate::fuzz_targets::step_all(messages);
    }
}
