//! A voter of the metadata quorum, without I/O: the metadata shard owns it, a driver moves its bytes.
//!
//! In come ticks, proposals and peers' messages; out come [`Ready`](crate::Ready)s: steps for the disk, messages, outcomes and
//! images. One round is on the disk at a time; what is proposed meanwhile shares the next one. The number of voters is
//! configuration: a lone voter goes the same way through election, journal and commit, its majority is just itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{NodeId, TopicId};
use raft::eraftpb::{ConfState, HardState};
use raft::{Config, RawNode, SnapshotStatus, StateRole};

use crate::command::{Command, Outcome};
use crate::disk_steps::DiskStep;
use crate::error::MetadataError;
use crate::image::Image;
use crate::journal_format::{Identity, JournalWriter, Recovered, splitmix};
use crate::limits::{
    MAX_COMMITTED_BYTES_PER_READY, MAX_PEER_ENTRIES_BYTES, MAX_PEER_INFLIGHT, MAX_PENDING_PROPOSALS,
    MAX_UNCOMMITTED_BYTES, MAX_VOTERS, SNAPSHOT_AFTER_BYTES, SNAPSHOT_AFTER_ENTRIES, SNAPSHOT_QUIET_ENTRIES,
};
use crate::peer::{PeerMessage, PeerMessageKind, to_node, to_raft};
use crate::peer_guard;
use crate::snapshot::EncodedSnapshot;
use crate::status::{QuorumStatus, VoterStatus};
use crate::storage::{JournalView, LogPosition};
use crate::stored;

/// How this node takes part.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    pub node: NodeId,
    /// The same list on every voter.
    pub voters: Vec<NodeId>,
    /// 22 characters: made at format, or that of the journal.
    pub cluster_id: Arc<str>,
    /// Random bits of this start: for the election timeout and new journals' nonces.
    pub seed: u64,
    pub election_ticks: usize,
    pub heartbeat_ticks: usize,
    pub snapshot_after_entries: u64,
    pub snapshot_after_bytes: u64,
    /// As `snapshot_after_entries`, while nothing changes.
    pub snapshot_quiet_entries: u64,
}

impl NodeConfig {
    pub fn new(node: NodeId, voters: Vec<NodeId>, cluster_id: Arc<str>, seed: u64) -> NodeConfig {
        NodeConfig {
            node,
            voters,
            cluster_id,
            seed,
            election_ticks: 10,
            heartbeat_ticks: 2,
            snapshot_after_entries: SNAPSHOT_AFTER_ENTRIES,
            snapshot_after_bytes: SNAPSHOT_AFTER_BYTES,
            snapshot_quiet_entries: SNAPSHOT_QUIET_ENTRIES,
        }
    }

    fn check(&self) -> Result<(), MetadataError> {
        let wrong = if TopicId::parse(&self.cluster_id).is_none() {
            "the cluster id is not 22 characters of URL-safe base64"
        } else if self.voters.is_empty() || self.voters.len() > MAX_VOTERS {
            "there are no voters or too many"
        } else if self.voters.iter().any(|node| node.0 < 0 || node.0 == i32::MAX) {
            "a voter's id is out of range"
        } else if self.voters.iter().enumerate().any(|(i, node)| self.voters[..i].contains(node)) {
            "a voter is named twice"
        } else if !self.voters.contains(&self.node) {
            "this node is not among the voters"
        } else if self.heartbeat_ticks == 0 || self.election_ticks <= self.heartbeat_ticks {
            "the election timeout must be longer than the heartbeat"
        } else {
            return Ok(());
        };
        Err(MetadataError::InvalidConfiguration(wrong))
    }

    /// Different for every voter, so that two never wait the same time again and again; within that the seed decides.
    fn election_timeout(&self) -> usize {
        let rank = self.voters.iter().filter(|node| **node < self.node).count();
        let slot = (self.election_ticks / self.voters.len()).max(1);
        self.election_ticks + rank * slot + (splitmix(self.seed) % slot as u64) as usize
    }

    fn raft(&self, applied: u64) -> Config {
        let timeout = self.election_timeout();
        Config {
            id: to_raft(self.node),
            election_tick: self.election_ticks,
            heartbeat_tick: self.heartbeat_ticks,
            // Not random: a simulator must be able to repeat it.
            min_election_tick: timeout,
            max_election_tick: timeout + 1,
            applied,
            max_size_per_msg: MAX_PEER_ENTRIES_BYTES,
            max_inflight_msgs: MAX_PEER_INFLIGHT,
            check_quorum: true,
            pre_vote: true,
            max_uncommitted_size: MAX_UNCOMMITTED_BYTES,
            max_committed_size_per_ready: MAX_COMMITTED_BYTES_PER_READY,
            ..Config::default()
        }
    }
}

/// Names a proposal of this node until its outcome comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProposalToken(pub u64);

/// A command that is durable on a majority and applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub outcome: Outcome,
    /// The image that shows it has this version or a later one.
    pub version: u64,
}

/// What becomes of a proposal. A refused command is `MetadataError::Rejected`.
pub type ProposalResult = Result<Committed, MetadataError>;

pub(crate) struct Proposal {
    pub(crate) term: u64,
    pub(crate) token: ProposalToken,
}

/// What is on its way to the disk.
pub(crate) struct Round {
    pub(crate) number: u64,
    /// A leader's snapshot is on its way to the disk: raft must not stand for election before it is there.
    pub(crate) is_installing: bool,
    /// May leave once the round is durable: votes and acknowledgements.
    pub(crate) messages: Vec<PeerMessage>,
}

/// See the module's comment. Sans-I/O; not shared.
pub struct MetadataNode {
    pub(crate) config: NodeConfig,
    pub(crate) identity: Identity,
    pub(crate) raw: RawNode<JournalView>,
    pub(crate) writer: JournalWriter,
    /// What the journal on disk says or will say after the round in flight.
    pub(crate) written: HardState,
    /// Base of the journal and snapshot on disk.
    pub(crate) written_base: u64,
    pub(crate) startup: Vec<DiskStep>,
    pub(crate) round: Option<Round>,
    /// Released by a round that became durable, not handed out yet.
    pub(crate) released: Vec<PeerMessage>,
    /// By index in raft's log. At most `MAX_PENDING_PROPOSALS`.
    pub(crate) proposals: BTreeMap<u64, Proposal>,
    next_token: u64,
    pub(crate) encoded: Option<EncodedSnapshot>,
    pub(crate) is_encoding: bool,
    pub(crate) snapshot_len: u64,
    /// Ticks left until a snapshot on its way to a peer counts as lost.
    pub(crate) snapshots_sent: BTreeMap<u64, u32>,
    /// The last entry at the last tick, and for how many ticks it has been that.
    pub(crate) quiet_since: (u64, u32),
}

impl MetadataNode {
    pub fn new(config: NodeConfig, recovered: Recovered) -> Result<MetadataNode, MetadataError> {
        config.check()?;
        let identity = Identity { cluster_id: Arc::clone(&config.cluster_id), node: config.node };
        if let Some(found) = recovered.identity().filter(|found| **found != identity) {
            return Err(MetadataError::ForeignJournal { cluster_id: found.cluster_id.to_string(), node: found.node });
        }
        let mut startup: Vec<DiskStep> = Vec::new();
        let (writer, hard_state, base, entries) = match recovered.journal {
            None => {
                let (writer, header) = JournalWriter::create(&identity, LogPosition::default(), splitmix(config.seed));
                startup.push(DiskStep::Replace { file: writer.file.clone(), bytes: header });
                (writer, HardState::default(), LogPosition::default(), Vec::new())
            }
            Some(journal) => {
                let writer = JournalWriter::resume(&journal);
                if journal.has_torn_tail {
                    startup.push(DiskStep::Truncate { file: writer.file.clone(), len: writer.len });
                }
                (writer, journal.hard_state, journal.base, journal.entries)
            }
        };
        startup.extend(recovered.stale.into_iter().map(|file| DiskStep::Remove { file }));
        let mut voters = ConfState::default();
        voters.set_voters(config.voters.iter().map(|node| to_raft(*node)).collect());
        let view = JournalView::new(hard_state.clone(), voters, base, entries, recovered.image);
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let raw = RawNode::new(&config.raft(base.index), view, &logger)?;
        Ok(MetadataNode {
            config,
            identity,
            raw,
            writer,
            written: hard_state,
            written_base: base.index,
            startup,
            round: None,
            released: Vec::new(),
            proposals: BTreeMap::new(),
            next_token: 0,
            encoded: None,
            is_encoding: false,
            snapshot_len: recovered.snapshot_len,
            snapshots_sent: BTreeMap::new(),
            quiet_since: (0, 0),
        })
    }

    /// Stands for election now instead of waiting for the timeout: what a lone voter does at its start.
    pub fn campaign(&mut self) -> Result<(), MetadataError> {
        if self.is_installing() {
            return Err(MetadataError::Busy);
        }
        Ok(self.raw.campaign()?)
    }

    fn is_installing(&self) -> bool {
        self.round.as_ref().is_some_and(|round| round.is_installing)
    }

    /// Whether this node is the only voter.
    pub fn is_lone_voter(&self) -> bool {
        self.config.voters.len() == 1
    }

    /// Time passes. A tick is a tenth of the shortest election timeout unless configured otherwise.
    pub fn tick(&mut self) {
        if !self.is_installing() {
            self.raw.tick();
        }
        let last = self.raw.store().last();
        let ticks = if last == self.quiet_since.0 { self.quiet_since.1.saturating_add(1) } else { 0 };
        self.quiet_since = (last, ticks);
        let mut lost = Vec::new();
        self.snapshots_sent.retain(|peer, ticks_left| {
            *ticks_left -= 1;
            if *ticks_left == 0 {
                lost.push(*peer);
            }
            *ticks_left > 0
        });
        for peer in lost {
            self.raw.report_snapshot(peer, SnapshotStatus::Failure);
        }
    }

    /// Takes in a peer's message. An error means that it was dropped; the node is as before.
    pub fn step(&mut self, message: PeerMessage) -> Result<(), MetadataError> {
        peer_guard::check(&self.raw, &message)?;
        if message.kind == PeerMessageKind::TimeoutNow && self.is_installing() {
            return Err(MetadataError::Busy);
        }
        let message = message.into_raft(&self.raw.store().voters);
        Ok(self.raw.step(message)?)
    }

    /// The transport could not reach `node`: sends carefully until it answers.
    pub fn report_unreachable(&mut self, node: NodeId) {
        self.raw.report_unreachable(to_raft(node));
    }

    /// Proposes a command where this node leads. The outcome comes in a later `Ready`.
    pub fn propose(&mut self, command: &Command) -> Result<ProposalToken, MetadataError> {
        if self.raw.raft.state != StateRole::Leader {
            return Err(MetadataError::NotLeader { leader: self.leader() });
        }
        if self.proposals.len() >= MAX_PENDING_PROPOSALS {
            return Err(MetadataError::Busy);
        }
        let bytes = stored::encode_command(command)?;
        let index = self.raw.raft.raft_log.last_index() + 1;
        self.raw.propose(Vec::new(), bytes)?;
        assert_eq!(self.raw.raft.raft_log.last_index(), index, "a leader appends what it proposes");
        let token = ProposalToken(self.next_token);
        self.next_token += 1;
        self.proposals.insert(index, Proposal { term: self.raw.raft.term, token });
        Ok(token)
    }

    /// A snapshot that a `Ready` asked for. The next round brings it to disk.
    pub fn snapshot_encoded(&mut self, encoded: EncodedSnapshot) {
        assert!(self.is_encoding, "a snapshot was asked for");
        self.is_encoding = false;
        // A peer's snapshot may have overtaken it.
        if encoded.index > self.raw.store().base.index {
            self.encoded = Some(encoded);
        }
    }

    /// The steps of `Ready` number `number` are done.
    pub fn persisted(&mut self, number: u64) {
        let Some(round) = self.round.take() else { return };
        assert_eq!(round.number, number, "one round is in flight at a time");
        self.raw.on_persist_ready(number);
        self.released.extend(round.messages);
        self.advance_applied();
    }

    pub(crate) fn advance_applied(&mut self) {
        let applied = self.raw.store().applied.index;
        self.raw.advance_apply_to(applied);
    }

    /// The newest image of this node; only a current leader's is the cluster's newest.
    pub fn image(&self) -> &Arc<Image> {
        &self.raw.store().image
    }

    pub fn node(&self) -> NodeId {
        self.config.node
    }

    fn leader(&self) -> Option<NodeId> {
        (self.raw.raft.leader_id != raft::INVALID_ID).then(|| to_node(self.raw.raft.leader_id))
    }

    pub fn status(&self) -> QuorumStatus {
        let raft = &self.raw.raft;
        let applied = self.raw.store().applied.index;
        let is_leader = raft.state == StateRole::Leader;
        let mut voters: Vec<VoterStatus> = raft
            .prs()
            .iter()
            .map(|(id, progress)| {
                let durable = if *id == raft.id { Some(raft.raft_log.persisted) } else { None };
                let known = if is_leader { Some(progress.matched) } else { durable };
                VoterStatus { node: to_node(*id), log_end_offset: known.map(|index| index + 1) }
            })
            .collect();
        voters.sort_unstable_by_key(|voter| voter.node);
        QuorumStatus {
            leader: self.leader(),
            leader_epoch: raft.term,
            is_leader,
            high_watermark: raft.raft_log.committed + 1,
            applied,
            is_current_leader: is_leader && raft.commit_to_current_term() && applied == raft.raft_log.committed,
            voters,
        }
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
