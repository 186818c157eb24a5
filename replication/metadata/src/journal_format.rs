//! The journal's format: `metadata-<base>.log` holds what raft must not forget since the snapshot at `base`.
//!
//! A file header (magic, cover, identity, base, nonce), then frames. A frame is everything one round persists: term, vote,
//! commit and entries; it is written at once and synced before the next one is written. So a bad frame with nothing valid
//! behind it is a write that a crash cut off, never acknowledged; a bad frame with a valid one behind it was durable once,
//! and is damage. A marker and a checksum salted with the file's random nonce keep anything a client can put into a command
//! from passing for a frame.

use std::sync::Arc;

use bytes::Bytes;
use model::{NodeId, TopicId};
use raft::eraftpb::{Entry, HardState};

use crate::byte_io::{Reader, put_byte_string, put_len};
use crate::disk_steps;
use crate::envelope::{self, Kind, Opened};
use crate::error::MetadataError;
use crate::image::Image;
use crate::limits::{MAX_COMMAND_LEN, MAX_FRAME_LEN, MAX_INDEX};
use crate::peer::raft_entry;
use crate::storage::LogPosition;
use crate::stored_image;

const MAGIC: &[u8; 8] = b"RINGMETA";
pub const JOURNAL_VERSION: u16 = 1;
const MARKER_LEN: usize = 8;
const CLUSTER_ID_LEN: usize = 22;
const HEADER_PAYLOAD_LEN: usize = CLUSTER_ID_LEN + 4 + 3 * 8;
/// Bytes before the first frame.
pub const HEADER_LEN: usize = MAGIC.len() + envelope::HEADER_LEN + HEADER_PAYLOAD_LEN;
const LEAST_ENTRY_LEN: usize = 20;

/// Whose journal it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cluster_id: Arc<str>,
    pub node: NodeId,
}

/// What a journal file says.
#[derive(Clone, Debug)]
pub struct Journal {
    pub identity: Identity,
    /// The snapshot that comes before it; index 0 for none.
    pub base: LogPosition,
    pub nonce: u64,
    pub(crate) hard_state: HardState,
    pub(crate) entries: Vec<Entry>,
    /// Bytes up to the end of the last whole frame.
    pub len: u64,
    /// Whether bytes follow that are no frame: a write that was cut off, or preallocated zeros.
    pub has_torn_tail: bool,
    pub(crate) next_sequence: u64,
}

/// Writes one journal file. Knows where its end is; the bytes go out as disk steps.
#[derive(Clone, Debug)]
pub(crate) struct JournalWriter {
    pub(crate) file: String,
    pub(crate) len: u64,
    nonce: u64,
    next_sequence: u64,
}

impl JournalWriter {
    /// A new file: the writer and the bytes of its header.
    pub(crate) fn create(identity: &Identity, base: LogPosition, nonce: u64) -> (JournalWriter, Vec<u8>) {
        let mut payload = Vec::with_capacity(HEADER_PAYLOAD_LEN);
        payload.extend_from_slice(identity.cluster_id.as_bytes());
        payload.extend_from_slice(&identity.node.0.to_le_bytes());
        for number in [base.index, base.term, nonce] {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        assert_eq!(payload.len(), HEADER_PAYLOAD_LEN, "cluster ids have 22 characters");
        let mut header = MAGIC.to_vec();
        envelope::seal_into(&mut header, Kind::JournalHeader, JOURNAL_VERSION, 0, &payload);
        let writer = JournalWriter {
            file: disk_steps::journal_name(base.index),
            len: header.len() as u64,
            nonce,
            next_sequence: 0,
        };
        (writer, header)
    }

    pub(crate) fn resume(journal: &Journal) -> JournalWriter {
        JournalWriter {
            file: disk_steps::journal_name(journal.base.index),
            len: journal.len,
            nonce: journal.nonce,
            next_sequence: journal.next_sequence,
        }
    }

    /// The next frame, to be written at the `len` of before the call.
    pub(crate) fn frame(&mut self, hard_state: &HardState, entries: &[Entry]) -> Vec<u8> {
        let mut payload = Vec::new();
        for number in [self.next_sequence, hard_state.term, hard_state.vote, hard_state.commit] {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        put_len(&mut payload, entries.len());
        for entry in entries {
            payload.extend_from_slice(&entry.index.to_le_bytes());
            payload.extend_from_slice(&entry.term.to_le_bytes());
            put_byte_string(&mut payload, &entry.data);
        }
        assert!(payload.len() <= MAX_FRAME_LEN, "a round is bounded");
        let mut frame = marker(self.nonce, self.len).to_vec();
        envelope::seal_into(&mut frame, Kind::JournalFrame, JOURNAL_VERSION, self.nonce, &payload);
        self.next_sequence += 1;
        self.len += frame.len() as u64;
        frame
    }
}

/// Eight bytes that only this file has at this offset.
fn marker(nonce: u64, offset: u64) -> [u8; MARKER_LEN] {
    splitmix(nonce ^ splitmix(offset)).to_le_bytes()
}

/// A bijection that spreads bits; not for secrets of value.
pub(crate) fn splitmix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Reads a journal from any bytes. A torn tail is no error; damage before a valid frame is.
pub fn read_journal(bytes: &[u8]) -> Result<Journal, MetadataError> {
    let mut journal = read_header(bytes)?;
    loop {
        let offset = journal.len;
        let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        if rest.is_empty() {
            return Ok(journal);
        }
        match open_frame(rest, journal.nonce, offset) {
            Ok(frame) => {
                read_frame(&mut journal, frame.payload)
                    .map_err(|what| MetadataError::DamagedJournal { offset, what })?;
                journal.len += (rest.len() - frame.rest.len()) as u64;
            }
            Err(newer @ MetadataError::NewerVersion { .. }) => return Err(newer),
            Err(damage) if has_frame_after(rest, journal.nonce, offset) => return Err(damage),
            Err(_) => {
                journal.has_torn_tail = true;
                return Ok(journal);
            }
        }
    }
}

fn read_header(bytes: &[u8]) -> Result<Journal, MetadataError> {
    let damaged = |what| MetadataError::DamagedJournal { offset: 0, what };
    let covered = bytes.strip_prefix(MAGIC).ok_or(damaged("it does not begin like a metadata journal"))?;
    let header = envelope::open(covered, Kind::JournalHeader, JOURNAL_VERSION, 0, HEADER_PAYLOAD_LEN)
        .map_err(|error| MetadataError::in_journal(error, 0))?;
    let mut reader = Reader::new(header.payload);
    let fields = (|| {
        let cluster_id = std::str::from_utf8(reader.take(CLUSTER_ID_LEN)?).ok()?;
        TopicId::parse(cluster_id)?;
        let identity = Identity { cluster_id: cluster_id.into(), node: NodeId(reader.i32()?) };
        Some((identity, LogPosition { index: reader.u64()?, term: reader.u64()? }, reader.u64()?))
    })();
    let (identity, base, nonce) = fields.ok_or(damaged("its header is broken"))?;
    if base.index > MAX_INDEX || base.term > MAX_INDEX || identity.node.0 < 0 {
        return Err(damaged("its header is impossible"));
    }
    let hard_state = HardState { term: base.term, commit: base.index, ..HardState::default() };
    let len = HEADER_LEN as u64;
    Ok(Journal { identity, base, nonce, hard_state, entries: Vec::new(), len, has_torn_tail: false, next_sequence: 0 })
}

fn open_frame(bytes: &[u8], nonce: u64, offset: u64) -> Result<Opened<'_>, MetadataError> {
    let covered = bytes
        .strip_prefix(&marker(nonce, offset))
        .ok_or(MetadataError::DamagedJournal { offset, what: "a frame has no marker" })?;
    envelope::open(covered, Kind::JournalFrame, JOURNAL_VERSION, nonce, MAX_FRAME_LEN)
        .map_err(|error| MetadataError::in_journal(error, offset))
}

/// Whether a whole frame begins anywhere behind the front of `bytes`, which lie at `offset`. Markers are compared first, and
/// only real frames have them: the scan is linear.
fn has_frame_after(bytes: &[u8], nonce: u64, offset: u64) -> bool {
    (1..bytes.len()).any(|at| match open_frame(&bytes[at..], nonce, offset + at as u64) {
        Ok(_) | Err(MetadataError::NewerVersion { .. }) => true,
        Err(_) => false,
    })
}

fn read_frame(journal: &mut Journal, payload: &[u8]) -> Result<(), &'static str> {
    let mut reader = Reader::new(payload);
    let frame = (|| {
        let sequence = reader.u64()?;
        let (term, vote, commit) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let hard_state = HardState { term, vote, commit, ..HardState::default() };
        let count = reader.count(LEAST_ENTRY_LEN, usize::MAX)?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let (index, term) = (reader.u64()?, reader.u64()?);
            let data = reader.byte_string(MAX_COMMAND_LEN + envelope::HEADER_LEN)?;
            entries.push(raft_entry(index, term, Bytes::copy_from_slice(data)));
        }
        reader.is_empty().then_some((sequence, hard_state, entries))
    })();
    let (sequence, hard_state, entries) = frame.ok_or("a frame's form is broken")?;
    if sequence != journal.next_sequence {
        return Err("a frame is missing");
    }
    put_entries(journal, entries)?;
    put_hard_state(journal, hard_state)?;
    journal.next_sequence += 1;
    Ok(())
}

fn put_entries(journal: &mut Journal, entries: Vec<Entry>) -> Result<(), &'static str> {
    let Some(first) = entries.first() else { return Ok(()) };
    let (base, commit) = (journal.base.index, journal.hard_state.commit);
    let last = base + journal.entries.len() as u64;
    if first.index <= commit.max(base) || first.index > last + 1 {
        return Err("an entry is out of order");
    }
    journal.entries.truncate((first.index - base - 1) as usize);
    let mut before = journal.entries.last().map_or(journal.base, |e| LogPosition { index: e.index, term: e.term });
    for entry in entries {
        if entry.index != before.index + 1 || entry.term < before.term || entry.term > MAX_INDEX {
            return Err("an entry is out of order");
        }
        before = LogPosition { index: entry.index, term: entry.term };
        journal.entries.push(entry);
    }
    Ok(())
}

fn put_hard_state(journal: &mut Journal, hard_state: HardState) -> Result<(), &'static str> {
    let last = journal.base.index + journal.entries.len() as u64;
    let last_term = journal.entries.last().map_or(journal.base.term, |entry| entry.term);
    if hard_state.term < journal.hard_state.term || hard_state.term < last_term || hard_state.term > MAX_INDEX {
        return Err("a term goes backwards");
    }
    if hard_state.commit < journal.hard_state.commit || hard_state.commit > last {
        return Err("the commit index is out of range");
    }
    journal.hard_state = hard_state;
    Ok(())
}

/// What a node starts from.
#[derive(Clone, Debug)]
pub struct Recovered {
    pub(crate) journal: Option<Journal>,
    pub(crate) image: Arc<Image>,
    pub(crate) snapshot_len: u64,
    /// Files of the folder that no start needs again.
    pub(crate) stale: Vec<String>,
}

impl Recovered {
    /// Nothing on disk yet.
    pub fn fresh() -> Recovered {
        Recovered { journal: None, image: Arc::default(), snapshot_len: 0, stale: Vec::new() }
    }

    /// Whose journal it is; `None` when there is none yet.
    pub fn identity(&self) -> Option<&Identity> {
        self.journal.as_ref().map(|journal| &journal.identity)
    }

    /// The state of the last snapshot. Newer commands follow once the quorum says they are committed.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }
}

/// Puts together what the files of a [`disk_steps::RecoveryPlan`] say. `snapshot` is the file that the journal's name asks for.
pub fn recover(
    plan: &disk_steps::RecoveryPlan,
    journal: Option<&[u8]>,
    snapshot: Option<&[u8]>,
) -> Result<Recovered, MetadataError> {
    let stale = plan.stale.clone();
    let (Some(name), Some(bytes)) = (&plan.journal, journal) else {
        return Ok(Recovered { stale, ..Recovered::fresh() });
    };
    let journal = read_journal(bytes)?;
    if disk_steps::journal_name(journal.base.index) != *name {
        return Err(MetadataError::DamagedJournal { offset: 0, what: "its name and its header disagree" });
    }
    if journal.base.index == 0 {
        return Ok(Recovered { journal: Some(journal), stale, ..Recovered::fresh() });
    }
    let bytes =
        snapshot.ok_or_else(|| MetadataError::MissingFile { name: disk_steps::snapshot_name(journal.base.index) })?;
    let snapshot = stored_image::decode_snapshot(bytes)?;
    if (LogPosition { index: snapshot.index, term: snapshot.term }) != journal.base {
        return Err(MetadataError::DamagedSnapshot { what: "it does not belong to the journal" });
    }
    let snapshot_len = bytes.len() as u64;
    Ok(Recovered { journal: Some(journal), image: Arc::new(snapshot.image), snapshot_len, stale })
}

#[cfg(test)]
#[path = "journal_format_tests.rs"]
mod tests;
