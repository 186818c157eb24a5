//! What voter 1 of three hears: as a follower, as one that lags and gets a snapshot, as a candidate and leader. Recorded from
//! three nodes that talk to each other, because only messages that fit each other get far into raft.

use std::collections::VecDeque;

use metadata::envelope::HEADER_LEN;
use metadata::peer::PeerMessageKind;
use metadata::{MetadataNode, NodeConfig, PeerMessage, Recovered};
use model::NodeId;

use super::metadata::{CLUSTER, VOTERS, commands};

/// The voter whose place the target takes.
const LISTENER: NodeId = NodeId(1);

/// Ticks after which everybody has heard a heartbeat.
const TICKS: usize = 6;

/// Messages in a seed, at most: the target starts anew for each run.
const MOST_MESSAGES: usize = 60;

struct Quorum {
    nodes: Vec<MetadataNode>,
    network: VecDeque<PeerMessage>,
    heard: Vec<PeerMessage>,
    /// Whether the listener gets its messages.
    is_connected: bool,
}

impl Quorum {
    fn new(snapshot_after_entries: u64, is_connected: bool) -> Quorum {
        let voters: Vec<NodeId> = (0..VOTERS).map(NodeId).collect();
        let nodes = voters.iter().map(|node| {
            let mut config = NodeConfig::new(*node, voters.clone(), CLUSTER.into(), 7);
            config.snapshot_after_entries = snapshot_after_entries;
            MetadataNode::new(config, Recovered::fresh()).expect("the configuration is valid")
        });
        let mut quorum = Quorum { nodes: nodes.collect(), network: VecDeque::new(), heard: Vec::new(), is_connected };
        quorum.nodes[0].campaign().expect("a fresh node may stand for election");
        quorum.settle();
        quorum
    }

    /// Until nobody has anything left to say.
    fn settle(&mut self) {
        loop {
            self.nodes.iter_mut().for_each(|node| speak(node, &mut self.network));
            let Some(message) = self.network.pop_front() else { return };
            if message.to == LISTENER {
                if !self.is_connected {
                    continue;
                }
                self.heard.push(message.clone());
            }
            // A node may refuse what came too late.
            let _ = self.nodes[message.to.0 as usize].step(message);
        }
    }

    fn propose_all(&mut self) {
        for command in commands() {
            self.nodes[0].propose(&command).expect("node 0 leads");
            self.settle();
        }
    }

    fn tick(&mut self) {
        for _ in 0..TICKS {
            self.nodes.iter_mut().for_each(MetadataNode::tick);
            self.settle();
        }
    }
}

fn speak(node: &mut MetadataNode, network: &mut VecDeque<PeerMessage>) {
    while let Some(ready) = node.take_ready().expect("a healthy node goes on") {
        node.persisted(ready.number);
        network.extend(ready.messages);
        if let Some(job) = ready.snapshot_job {
            node.snapshot_encoded(job.run().expect("an image encodes"));
        }
    }
}

fn follower() -> Vec<PeerMessage> {
    let mut quorum = Quorum::new(u64::MAX, true);
    quorum.propose_all();
    quorum.tick();
    quorum.heard
}

fn laggard() -> Vec<PeerMessage> {
    let mut quorum = Quorum::new(5, false);
    quorum.propose_all();
    quorum.is_connected = true;
    quorum.tick();
    quorum.heard
}

fn leader() -> Vec<PeerMessage> {
    let mut quorum = Quorum::new(u64::MAX, true);
    let term = quorum.nodes[0].status().leader_epoch;
    let message = PeerMessage {
        kind: PeerMessageKind::TimeoutNow,
        from: NodeId(0),
        to: LISTENER,
        term,
        log_term: 0,
        index: 0,
        commit: 0,
        commit_term: 0,
        reject: false,
        reject_hint: 0,
        context: bytes::Bytes::new(),
        entries: Vec::new(),
        snapshot: None,
    };
    quorum.network.push_back(message);
    quorum.settle();
    quorum.tick();
    quorum.heard
}

/// Conversations, and how far the listener is to get by them.
pub fn conversations() -> [Vec<PeerMessage>; 3] {
    [follower(), laggard(), leader()]
}

/// Each message alone: with its cover, and the payload that the target covers itself.
pub fn messages() -> Vec<Vec<u8>> {
    let encoded = conversations().concat().iter().map(PeerMessage::encode).collect::<Vec<_>>();
    let payloads = encoded.iter().map(|bytes| bytes[HEADER_LEN..].to_vec()).collect();
    [encoded.clone(), payloads].concat()
}

/// Beginnings of conversations: for each message its payload behind its length.
pub fn sequences() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for conversation in conversations() {
        let whole = conversation.len().min(MOST_MESSAGES);
        for count in [3, 6, 12, whole] {
            let begun = &conversation[..count.min(whole)];
            inputs.push(begun.iter().flat_map(framed).collect());
        }
    }
    inputs
}

fn framed(message: &PeerMessage) -> Vec<u8> {
    let payload = message.encode().split_off(HEADER_LEN);
    [&(payload.len() as u32).to_le_bytes()[..], &payload].concat()
}
