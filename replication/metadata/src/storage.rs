//! What raft reads back: the entries behind the snapshot, in memory. The metadata shard owns it, inside the node.
//!
//! Its bound is the journal's: entries go when a snapshot covers them. It runs ahead of the disk by one round; raft is told
//! what is durable by numbers, never by looking here.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Storage, StorageError};

use crate::image::Image;
use crate::peer::raft_snapshot;
use crate::stored_image;

/// A position in raft's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    pub index: u64,
    pub term: u64,
}

pub(crate) struct JournalView {
    pub(crate) hard_state: HardState,
    pub(crate) voters: ConfState,
    /// The last entry covered by the snapshot in force.
    pub(crate) base: LogPosition,
    /// Those after `base`, without gaps.
    entries: Vec<Entry>,
    /// The state after entry `applied`, for peers that need a snapshot.
    pub(crate) image: Arc<Image>,
    pub(crate) applied: LogPosition,
    encoded: RefCell<Option<(LogPosition, Bytes)>>,
}

impl JournalView {
    pub(crate) fn new(
        hard_state: HardState,
        voters: ConfState,
        base: LogPosition,
        entries: Vec<Entry>,
        image: Arc<Image>,
    ) -> JournalView {
        JournalView { hard_state, voters, base, entries, image, applied: base, encoded: RefCell::new(None) }
    }

    pub(crate) fn last(&self) -> u64 {
        self.base.index + self.entries.len() as u64
    }

    /// Appends `entries`, over those of the same index and all that follow.
    pub(crate) fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        assert!(first.index > self.base.index && first.index <= self.last() + 1, "raft appends without gaps");
        self.entries.truncate(self.position(first.index));
        self.entries.extend_from_slice(entries);
    }

    /// Drops what a snapshot at `base` covers; everything, when the snapshot is from elsewhere.
    pub(crate) fn rebase(&mut self, base: LogPosition) {
        assert!(base.index >= self.base.index, "snapshots go forward");
        if base.index <= self.last() && self.term(base.index) == Ok(base.term) {
            self.entries.drain(..self.position(base.index + 1));
        } else {
            self.entries.clear();
        }
        // Thousands of entries went: their places would be a megabyte that nobody uses for long.
        self.entries.shrink_to_fit();
        self.base = base;
    }

    /// Entries after `index`.
    pub(crate) fn after(&self, index: u64) -> &[Entry] {
        &self.entries[self.position(index + 1).min(self.entries.len())..]
    }

    fn position(&self, index: u64) -> usize {
        assert!(index > self.base.index, "entries begin behind the snapshot");
        (index - self.base.index - 1) as usize
    }
}

impl Storage for JournalView {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard_state.clone(), self.voters.clone()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.base.index {
            return Err(Error::Store(StorageError::Compacted));
        }
        if high > self.last() + 1 || low > high {
            return Err(Error::Store(StorageError::Unavailable));
        }
        let mut entries = self.entries[self.position(low)..self.position(high)].to_vec();
        raft::util::limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index == self.base.index {
            return Ok(self.base.term);
        }
        if index < self.base.index {
            return Err(Error::Store(StorageError::Compacted));
        }
        let entry = self.entries.get(self.position(index));
        entry.map(|entry| entry.term).ok_or(Error::Store(StorageError::Unavailable))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.base.index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    /// Made of what is applied: raft asks only for peers that lag behind `base`, and the image is at hand.
    fn snapshot(&self, request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        if self.applied.index == 0 || self.applied.index < request_index {
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        }
        let mut encoded = self.encoded.borrow_mut();
        let data = match &*encoded {
            Some((position, data)) if *position == self.applied => data.clone(),
            _ => {
                let bytes = stored_image::encode_snapshot(self.applied.index, self.applied.term, &self.image)
                    .map_err(|_| Error::Store(StorageError::SnapshotTemporarilyUnavailable))?;
                let data = Bytes::from(bytes);
                *encoded = Some((self.applied, data.clone()));
                data
            }
        };
        Ok(raft_snapshot(self.applied.index, self.applied.term, data, &self.voters))
    }
}
