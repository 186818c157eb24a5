//! What a journal writes: rounds, each one sequential write, and a small file that says which rounds count.
//!
//! A round is a header, a list of entries with their checksum in the header's, and the bytes of the entries one behind the
//! other, padded to a block. Entries are physical redo: these bytes at this position of that segment, or *void*: what
//! earlier rounds hold of this partition's segments below one is not to be applied any more.
//!
//! Every checksum is seeded with the start's random incarnation and the writer, which the header carries as well: an old
//! lap of the ring, another start's round and a produced payload that looks like a round all fail it. Bytes come from a
//! disk after a crash: nothing in them is believed before its checksum, and no count before it is held against the bytes
//! that are there.

use std::ops::Range;

use model::{Offset, PartitionIndex, PartitionKey, TopicId};

use crate::limits::{BLOCK, ROUND_ENTRIES};
use crate::mutants::{Mutant, active};

const MAGIC: u32 = u32::from_le_bytes(*b"RLJr");
const STATE_MAGIC: u32 = u32::from_le_bytes(*b"RLJs");
const VERSION: u16 = 1;
pub const HEADER_LEN: usize = 64;
pub const ENTRY_LEN: usize = 48;
const CRC_AT: usize = 60;

/// Whose rounds these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub incarnation: u64,
    pub writer: u16,
}

impl Owner {
    fn hasher(self) -> crc32fast::Hasher {
        if active(Mutant::IncarnationUnseeded) {
            return crc32fast::Hasher::new();
        }
        let seed = (self.incarnation as u32) ^ ((self.incarnation >> 32) as u32) ^ (u32::from(self.writer) << 7);
        crc32fast::Hasher::new_with_initial(seed)
    }
}

/// What a round says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    pub sequence: u64,
    /// Checksum of the header before; the first round of a start has 0.
    pub previous_crc: u32,
    /// Every round up to this was synced when this one was made.
    pub durable_through: u64,
    /// Rounds before this are in the segments, durably.
    pub oldest_needed: u64,
    pub entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: PartitionKey,
    pub action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Write {
        segment_base: Offset,
        position: u64,
        len: u32,
    },
    /// Earlier entries of segments below this one are not applied any more.
    Void {
        below: Offset,
    },
}

impl Entry {
    /// Bytes that it has in the payload.
    pub fn payload_len(&self) -> usize {
        match self.action {
            Action::Write { len, .. } => len as usize,
            Action::Void { .. } => 0,
        }
    }
}

/// Bytes of a round on disk, without the payload.
pub fn header_len(entries: usize) -> usize {
    HEADER_LEN + entries * ENTRY_LEN
}

/// Length of a whole round on disk.
pub fn round_len(entries: usize, payload: usize) -> u64 {
    ((header_len(entries) + payload) as u64).next_multiple_of(BLOCK)
}

/// A header with its entries, and the checksum that the next round has to name.
pub fn encode<'a>(owner: Owner, round: &Round, payload: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, u32) {
    assert!(round.entries.len() <= ROUND_ENTRIES, "a round of at most {ROUND_ENTRIES} entries");
    let mut hasher = owner.hasher();
    let mut payload_len = 0;
    for part in payload {
        hasher.update(part);
        payload_len += part.len();
    }
    let named: usize = round.entries.iter().map(Entry::payload_len).sum();
    assert!(named == payload_len, "a round holds what its entries name");
    let mut out = Vec::with_capacity(header_len(round.entries.len()));
    out.extend_from_slice(&MAGIC.to_le_bytes());
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&owner.writer.to_le_bytes());
    out.extend_from_slice(&owner.incarnation.to_le_bytes());
    out.extend_from_slice(&round.sequence.to_le_bytes());
    out.extend_from_slice(&round.durable_through.to_le_bytes());
    out.extend_from_slice(&round.oldest_needed.to_le_bytes());
    out.extend_from_slice(&round.previous_crc.to_le_bytes());
    out.extend_from_slice(&hasher.finalize().to_le_bytes());
    out.extend_from_slice(&(round.entries.len() as u32).to_le_bytes());
    out.extend_from_slice(&(payload_len as u32).to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    assert!(out.len() == HEADER_LEN, "the header's length");
    round.entries.iter().for_each(|entry| put_entry(&mut out, entry));
    let crc = header_crc(owner, &out);
    out[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
    (out, crc)
}

fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    let (kind, base, position, len) = match entry.action {
        Action::Write { segment_base, position, len } => (1u32, segment_base, position, len),
        Action::Void { below } => (2, below, 0, 0),
    };
    out.extend_from_slice(&entry.key.topic_id.0);
    out.extend_from_slice(&entry.key.partition.0.to_le_bytes());
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&base.0.to_le_bytes());
    out.extend_from_slice(&position.to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
}

/// Of header and entries, the checksum's own place taken for zeros.
fn header_crc(owner: Owner, bytes: &[u8]) -> u32 {
    let mut hasher = owner.hasher();
    hasher.update(&bytes[..CRC_AT]);
    hasher.update(&[0; 4]);
    hasher.update(&bytes[CRC_AT + 4..]);
    hasher.finalize()
}

/// A round as it was found. Its list can be believed; its bytes only if `payload_ok`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub round: Round,
    pub crc: u32,
    pub payload: Range<usize>,
    pub payload_ok: bool,
    /// Bytes from its beginning to where the next may begin.
    pub len: usize,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut out = [0; 4];
    out.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(out)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(out)
}

/// Whose round begins here and which, by its first bytes alone: nothing of it is to be believed yet.
pub fn claims(bytes: &[u8]) -> Option<(Owner, u64)> {
    if bytes.len() < HEADER_LEN || u32_at(bytes, 0) != MAGIC {
        return None;
    }
    Some((Owner { writer: u16_at(bytes, 6), incarnation: u64_at(bytes, 8) }, u64_at(bytes, 16)))
}

/// The round that begins with `bytes`, if one of `owner` does.
pub fn decode(owner: Owner, bytes: &[u8]) -> Option<Found> {
    if bytes.len() < HEADER_LEN || u32_at(bytes, 0) != MAGIC || u16_at(bytes, 4) != VERSION {
        return None;
    }
    let ours = u16_at(bytes, 6) == owner.writer && u64_at(bytes, 8) == owner.incarnation;
    if !ours && !active(Mutant::IncarnationUnseeded) {
        return None;
    }
    let count = u32_at(bytes, 48) as usize;
    if count > ROUND_ENTRIES || header_len(count) > bytes.len() {
        return None;
    }
    let head = &bytes[..header_len(count)];
    let crc = u32_at(bytes, CRC_AT);
    if header_crc(owner, head) != crc {
        return None;
    }
    let entries: Option<Vec<Entry>> = head[HEADER_LEN..].chunks_exact(ENTRY_LEN).map(entry).collect();
    let entries = entries?;
    let payload_len = u32_at(bytes, 52) as usize;
    if entries.iter().map(|e| e.payload_len() as u64).sum::<u64>() != payload_len as u64 {
        return None;
    }
    let payload = head.len()..head.len() + payload_len;
    let payload_ok = bytes.get(payload.clone()).is_some_and(|bytes| {
        let mut hasher = owner.hasher();
        hasher.update(bytes);
        hasher.finalize() == u32_at(head, 44)
    });
    let round = Round {
        sequence: u64_at(bytes, 16),
        previous_crc: u32_at(bytes, 40),
        durable_through: u64_at(bytes, 24),
        oldest_needed: u64_at(bytes, 32),
        entries,
    };
    let len = round_len(round.entries.len(), payload_len) as usize;
    Some(Found { round, crc, payload, payload_ok, len })
}

fn entry(bytes: &[u8]) -> Option<Entry> {
    let mut id = [0; 16];
    id.copy_from_slice(&bytes[..16]);
    let partition = PartitionIndex(u32_at(bytes, 16) as i32);
    let key = PartitionKey { topic_id: TopicId(id), partition };
    let (base, position) = (Offset(u64_at(bytes, 24) as i64), u64_at(bytes, 32));
    let action = match u32_at(bytes, 20) {
        1 if position <= crate::limits::MAX_SEGMENT => {
            Action::Write { segment_base: base, position, len: u32_at(bytes, 40) }
        }
        2 => Action::Void { below: base },
        _ => return None,
    };
    Some(Entry { key, action })
}

/// The same bytes with the marks and checksums of a round of `owner`, as far as there is one: most inputs of the fuzzer would
/// fail them.
pub fn sealed(owner: Owner, damaged: &[u8]) -> Vec<u8> {
    let mut bytes = damaged.to_vec();
    if bytes.len() < HEADER_LEN {
        return bytes;
    }
    bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
    bytes[6..8].copy_from_slice(&owner.writer.to_le_bytes());
    bytes[8..16].copy_from_slice(&owner.incarnation.to_le_bytes());
    let list = header_len((u32_at(&bytes, 48) as usize).min(ROUND_ENTRIES)).min(bytes.len());
    let payload_end = list.saturating_add(u32_at(&bytes, 52) as usize).min(bytes.len());
    let mut hasher = owner.hasher();
    hasher.update(&bytes[list..payload_end]);
    let payload_crc = hasher.finalize();
    bytes[44..48].copy_from_slice(&payload_crc.to_le_bytes());
    let crc = header_crc(owner, &bytes[..list]);
    bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Length of a state file.
pub const STATE_LEN: usize = 28;

/// The file that says whose rounds count, and in how many files of the ring they may be. There is none while no round
/// counts.
pub fn encode_state(owner: Owner, files: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(STATE_LEN);
    out.extend_from_slice(&STATE_MAGIC.to_le_bytes());
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&owner.writer.to_le_bytes());
    out.extend_from_slice(&owner.incarnation.to_le_bytes());
    out.extend_from_slice(&files.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
    out
}

/// The state's version, where it is newer than ours and the CRC at its end says that it was written so.
pub fn newer_version(state: &[u8]) -> Option<u32> {
    let end = state.len().checked_sub(4).filter(|end| *end >= 6 && u32_at(state, 0) == STATE_MAGIC)?;
    let whole = crc32fast::hash(&state[..end]) == u32_at(state, end);
    Some(u32::from(u16_at(state, 4))).filter(|version| whole && *version > u32::from(VERSION))
}

/// The sentence says what is wrong with the file.
pub fn decode_state(bytes: &[u8]) -> Result<(Owner, u32), &'static str> {
    if bytes.len() < STATE_LEN || u32_at(bytes, 0) != STATE_MAGIC {
        return Err("it is not the state of a journal");
    }
    let crc = bytes.len() - 4;
    if crc32fast::hash(&bytes[..crc]) != u32_at(bytes, crc) {
        return Err("its checksum does not match");
    }
    if u16_at(bytes, 4) != VERSION || bytes.len() != STATE_LEN {
        return Err("it was written by a newer version");
    }
    Ok((Owner { writer: u16_at(bytes, 6), incarnation: u64_at(bytes, 8) }, u32_at(bytes, 16)))
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
