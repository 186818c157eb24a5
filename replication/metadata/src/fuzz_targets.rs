//! Entry points for fuzzing: any bytes, no panic. One for each thing this crate reads.

use std::sync::Arc;

use model::NodeId;

use crate::journal_format::{self, Recovered};
use crate::node::{MetadataNode, NodeConfig};
use crate::peer::PeerMessage;
use crate::{stored, stored_image};

/// A journal of any bytes, recovered.
pub fn fuzz_log(data: &[u8]) {
    if let Ok(journal) = journal_format::read_journal(data) {
        assert!(journal.len <= data.len() as u64, "the valid part is a part");
    }
}

/// A snapshot and a command of any bytes.
pub fn fuzz_snapshot(data: &[u8]) {
    if let Ok(snapshot) = stored_image::decode_snapshot(data) {
        assert!(snapshot.image.version() <= snapshot.index);
    }
    let _ = stored::decode_command(data, 0);
}

/// A message of any bytes, and one of a right cover around any bytes; both stepped into one of three voters.
pub fn fuzz_peer_message(data: &[u8]) {
    let sealed = crate::peer::seal_payload(data);
    step_all([data, &sealed].into_iter().filter_map(|bytes| PeerMessage::decode(bytes).ok()));
}

/// Steps whatever it gets into one of three voters.
pub fn step_all(messages: impl IntoIterator<Item = PeerMessage>) {
    let voters = vec![NodeId(0), NodeId(1), NodeId(2)];
    let config = NodeConfig::new(NodeId(1), voters, Arc::from("AAAAAAAAAAAAAAAAAAAAAA"), 7);
    let Ok(mut node) = MetadataNode::new(config, Recovered::fresh()) else { return };
    for message in messages {
        let _ = node.step(message);
        loop {
            match node.take_ready() {
                Ok(Some(ready)) => node.persisted(ready.number),
                Ok(None) => break,
                // The end of this node: nobody may step it again.
                Err(_) => return,
            }
        }
    }
}
