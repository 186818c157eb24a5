//! What a node wants done next: one round of disk steps, messages, outcomes and the new image.
//!
//! Order matters and is fixed here: raft's view takes snapshot and entries in; committed entries are applied; then the bytes for
//! the disk are made. Outcomes come only from entries that raft calls committed, and it counts this node's own entries only
//! after [`MetadataNode::persisted`]: nothing is acknowledged before it is durable.

use std::sync::Arc;

use raft::StateRole;
use raft::eraftpb::Entry;

use crate::apply::apply;
use crate::disk_steps::{self, DiskStep};
use crate::error::MetadataError;
use crate::image::Image;
use crate::journal_format::{JournalWriter, splitmix};
use crate::limits::{SNAPSHOT_QUIET_PART, SNAPSHOT_QUIET_TICKS, SNAPSHOT_RETRY_TICKS};
use crate::node::{Committed, MetadataNode, ProposalResult, ProposalToken, Round};
use crate::peer::{PeerMessage, PeerMessageKind, to_raft};
use crate::snapshot::{EncodedSnapshot, SnapshotJob};
use crate::storage::LogPosition;
use crate::{stored, stored_image};

/// To be worked off at once, in any order but for `steps`, which are in order; then [`MetadataNode::persisted`].
#[derive(Debug, Default)]
pub struct Ready {
    pub number: u64,
    /// Empty when nothing must be durable; then `persisted` need not be called.
    pub steps: Vec<DiskStep>,
    /// May leave before the steps are done.
    pub messages: Vec<PeerMessage>,
    /// Publish `new_image` before these.
    pub outcomes: Vec<(ProposalToken, ProposalResult)>,
    pub new_image: Option<Arc<Image>>,
    /// To be run where blocking is allowed.
    pub snapshot_job: Option<SnapshotJob>,
}

impl MetadataNode {
    /// The next thing to do, or `None` until something happens: a round in flight to become durable, too. An error is the end of
    /// this node: it was told something agreed that it cannot read.
    pub fn take_ready(&mut self) -> Result<Option<Ready>, MetadataError> {
        if self.round.is_some() {
            return Ok(None);
        }
        let has_own = !self.startup.is_empty() || self.encoded.is_some() || !self.released.is_empty();
        if !has_own && !self.raw.has_ready() {
            // In the quiet there may be nothing to do but a snapshot.
            let job = self.snapshot_job();
            return Ok(job.map(|job| Ready { snapshot_job: Some(job), ..Ready::default() }));
        }
        let mut ready = Ready { steps: std::mem::take(&mut self.startup), ..Ready::default() };
        ready.messages = std::mem::take(&mut self.released);
        self.take_from_raft(&mut ready)?;
        self.fail_lost_proposals(&mut ready);
        ready.snapshot_job = self.snapshot_job();
        Ok(Some(ready))
    }

    fn take_from_raft(&mut self, ready: &mut Ready) -> Result<(), MetadataError> {
        let mut theirs = self.raw.ready();
        ready.number = theirs.number();
        let mut messages = to_peers(theirs.take_persisted_messages());
        ready.messages.extend(to_peers(theirs.take_messages()));
        let mut installed = None;
        if !theirs.snapshot().is_empty() {
            installed = Some(self.install(theirs.snapshot().data.to_vec(), ready)?);
        }
        let entries = theirs.take_entries();
        let committed = theirs.take_committed_entries();
        let view = self.raw.mut_store();
        view.append(&entries);
        if let Some(hard_state) = theirs.hs() {
            view.hard_state = hard_state.clone();
        }
        self.raw.advance_append_async(theirs);
        self.apply_committed(committed, ready)?;
        let is_installing = installed.is_some();
        if !is_installing {
            // Before a rotation drops what raft would otherwise read again; an installed snapshot must be durable first.
            self.advance_applied();
        }
        match installed.or_else(|| self.encoded.take()) {
            Some(snapshot) => self.rotate(snapshot, ready),
            None => self.append_frame(&entries, ready),
        }
        self.note_snapshots_sent(&ready.messages);
        if ready.steps.is_empty() {
            self.raw.on_persist_ready(ready.number);
            ready.messages.append(&mut messages);
        } else {
            self.round = Some(Round { number: ready.number, is_installing, messages });
        }
        Ok(())
    }

    /// A leader's snapshot replaces this node's state: it lacks entries that nobody has any more.
    fn install(&mut self, bytes: Vec<u8>, ready: &mut Ready) -> Result<EncodedSnapshot, MetadataError> {
        let snapshot = stored_image::decode_snapshot(&bytes)?;
        let position = LogPosition { index: snapshot.index, term: snapshot.term };
        let image = Arc::new(snapshot.image);
        let view = self.raw.mut_store();
        view.rebase(position);
        view.applied = position;
        view.image = Arc::clone(&image);
        self.encoded = None;
        ready.new_image = Some(image);
        Ok(EncodedSnapshot { index: position.index, term: position.term, bytes })
    }

    fn apply_committed(&mut self, committed: Vec<Entry>, ready: &mut Ready) -> Result<(), MetadataError> {
        for entry in committed {
            let proposal = self.proposals.remove(&entry.index);
            let view = self.raw.mut_store();
            assert_eq!(entry.index, view.applied.index + 1, "entries are applied in order");
            view.applied = LogPosition { index: entry.index, term: entry.term };
            if entry.data.is_empty() {
                continue;
            }
            let command = stored::decode_command(&entry.data, entry.index)?;
            let result = match apply(&view.image, entry.index, &command) {
                Ok((image, outcome)) => {
                    view.image = Arc::new(image);
                    ready.new_image = Some(Arc::clone(&view.image));
                    Ok(Committed { outcome, version: entry.index })
                }
                Err(rejection) => Err(MetadataError::Rejected(rejection)),
            };
            if let Some(proposal) = proposal {
                let ours = proposal.term == entry.term;
                ready.outcomes.push((proposal.token, if ours { result } else { Err(MetadataError::LeadershipLost) }));
            }
        }
        Ok(())
    }

    /// Commit alone is not worth a write: raft finds it out again.
    fn append_frame(&mut self, entries: &[Entry], ready: &mut Ready) {
        let hard_state = self.raw.store().hard_state.clone();
        let same_vote = hard_state.term == self.written.term && hard_state.vote == self.written.vote;
        if entries.is_empty() && same_vote {
            return;
        }
        let offset = self.writer.len;
        let bytes = self.writer.frame(&hard_state, entries);
        self.written = hard_state;
        ready.steps.push(DiskStep::Append { file: self.writer.file.clone(), offset, bytes });
    }

    /// A snapshot and a new journal behind it take the place of the old pair. The new journal holds all that is still needed, this
    /// round's entries too.
    fn rotate(&mut self, snapshot: EncodedSnapshot, ready: &mut Ready) {
        let base = LogPosition { index: snapshot.index, term: snapshot.term };
        let old = (self.writer.file.clone(), self.written_base);
        let view = self.raw.mut_store();
        view.rebase(base);
        let mut hard_state = view.hard_state.clone();
        hard_state.commit = hard_state.commit.max(base.index);
        let nonce = splitmix(self.config.seed ^ splitmix(base.index));
        let (mut writer, mut bytes) = JournalWriter::create(&self.identity, base, nonce);
        bytes.extend(writer.frame(&hard_state, self.raw.store().after(base.index)));
        self.snapshot_len = snapshot.bytes.len() as u64;
        ready.steps.push(DiskStep::Replace { file: disk_steps::snapshot_name(base.index), bytes: snapshot.bytes });
        ready.steps.push(DiskStep::Replace { file: writer.file.clone(), bytes });
        ready.steps.push(DiskStep::Remove { file: old.0 });
        if old.1 > 0 {
            ready.steps.push(DiskStep::Remove { file: disk_steps::snapshot_name(old.1) });
        }
        self.writer = writer;
        self.written = hard_state;
        self.written_base = base.index;
    }

    /// Who leads no longer cannot tell what becomes of its proposals.
    fn fail_lost_proposals(&mut self, ready: &mut Ready) {
        let raft = &self.raw.raft;
        let term = if raft.state == StateRole::Leader { Some(raft.term) } else { None };
        self.proposals.retain(|_, proposal| {
            let kept = term == Some(proposal.term);
            if !kept {
                ready.outcomes.push((proposal.token, Err(MetadataError::LeadershipLost)));
            }
            kept
        });
    }

    fn snapshot_job(&mut self) -> Option<SnapshotJob> {
        let view = self.raw.store();
        let entries = view.applied.index - view.base.index;
        let is_due = entries >= self.config.snapshot_after_entries
            || self.writer.len >= self.config.snapshot_after_bytes.max(self.snapshot_len)
            || (self.quiet_since.1 >= SNAPSHOT_QUIET_TICKS
                && entries >= self.config.snapshot_quiet_entries
                && self.writer.len >= self.snapshot_len / SNAPSHOT_QUIET_PART);
        if self.is_encoding || self.encoded.is_some() || entries == 0 || !is_due {
            return None;
        }
        let job = SnapshotJob { index: view.applied.index, term: view.applied.term, image: Arc::clone(&view.image) };
        self.is_encoding = true;
        Some(job)
    }

    fn note_snapshots_sent(&mut self, messages: &[PeerMessage]) {
        for message in messages.iter().filter(|message| message.kind == PeerMessageKind::Snapshot) {
            self.snapshots_sent.insert(to_raft(message.to), SNAPSHOT_RETRY_TICKS);
        }
    }
}

fn to_peers(messages: Vec<raft::eraftpb::Message>) -> Vec<PeerMessage> {
    messages.into_iter().filter_map(PeerMessage::from_raft).collect()
}
