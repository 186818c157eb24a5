//! Makes checksums right again after an input was damaged: otherwise nearly every damaged input would end at its first
//! check, and what lies behind it would never be tried. Lengths and counts stay as damaged, except where noted.

use metadata::envelope::{self, Kind};
use metadata::journal_format;
use metadata::peer::{PEER_VERSION, PeerMessage};
use metadata::stored::COMMAND_VERSION;
use metadata::stored_image::SNAPSHOT_VERSION;
use model::batch::{CRC_FROM, HEADER_LEN, LOG_OVERHEAD, crc32c};

const BATCH_LEN_AT: usize = 8;
const BATCH_CRC_AT: usize = 17;
/// Version and CRC of a producer snapshot lie before what the CRC covers.
const PRODUCERS_FROM: usize = 6;
const JOURNAL_MARKER_LEN: usize = 8;
const JOURNAL_MAGIC: &[u8] = b"RINGMETA";

/// One batch. Its length becomes that of the input, which must be one batch to get further.
pub fn batch(damaged: &[u8]) -> Vec<u8> {
    let mut bytes = damaged.to_vec();
    if bytes.len() >= HEADER_LEN {
        let len = (bytes.len() - LOG_OVERHEAD) as i32;
        bytes[BATCH_LEN_AT..BATCH_LEN_AT + 4].copy_from_slice(&len.to_be_bytes());
        seal_batch(&mut bytes);
    }
    bytes
}

/// Batches behind each other, as far as their lengths make sense.
pub fn segment(damaged: &[u8]) -> Vec<u8> {
    let mut bytes = damaged.to_vec();
    let mut at = 0;
    while let Some(rest) = bytes.get_mut(at..).filter(|rest| rest.len() >= HEADER_LEN) {
        let len = i32::from_be_bytes([rest[8], rest[9], rest[10], rest[11]]);
        let size = usize::try_from(len).map_or(0, |len| len + LOG_OVERHEAD);
        if size < HEADER_LEN || size > rest.len() {
            break;
        }
        seal_batch(&mut rest[..size]);
        at += size;
    }
    bytes
}

fn seal_batch(batch: &mut [u8]) {
    let crc = crc32c(&batch[CRC_FROM..]);
    batch[BATCH_CRC_AT..CRC_FROM].copy_from_slice(&crc.to_be_bytes());
}

/// A producer snapshot.
pub fn producers(damaged: &[u8]) -> Vec<u8> {
    let mut bytes = damaged.to_vec();
    if bytes.len() >= PRODUCERS_FROM {
        let crc = crc32c(&bytes[PRODUCERS_FROM..]);
        bytes[2..PRODUCERS_FROM].copy_from_slice(&crc.to_be_bytes());
    }
    bytes
}

/// The log's checkpoint: its last four bytes are the checksum.
pub fn checkpoint(damaged: &[u8]) -> Vec<u8> {
    let body = &damaged[..damaged.len().saturating_sub(4)];
    [body, &crc32fast::hash(body).to_le_bytes()].concat()
}

/// A round of the journal's ring at the beginning of a file.
pub fn ring(damaged: &[u8]) -> Vec<u8> {
    log::journal::format::sealed(log::journal::format::Owner { incarnation: 0, writer: 0 }, damaged)
}

/// The identity of a data folder: its last line is the checksum.
pub fn identity(damaged: &[u8]) -> Vec<u8> {
    let end = damaged.windows(4).position(|window| window == b"crc=").unwrap_or(damaged.len());
    let body = &damaged[..end];
    [body, format!("crc={:08x}\n", crc32fast::hash(body)).as_bytes()].concat()
}

/// A cover around what lies behind the old one.
fn covered(kind: Kind, version: u16, damaged: &[u8]) -> Vec<u8> {
    envelope::seal(kind, version, 0, damaged.get(envelope::HEADER_LEN..).unwrap_or(damaged))
}

pub fn metadata_snapshot(damaged: &[u8]) -> Vec<u8> {
    covered(Kind::Snapshot, SNAPSHOT_VERSION, damaged)
}

pub fn command(damaged: &[u8]) -> Vec<u8> {
    covered(Kind::Command, COMMAND_VERSION, damaged)
}

/// A metadata journal: header, then frames with their markers, each frame cut where the file ends.
pub fn journal(damaged: &[u8]) -> Vec<u8> {
    let front = JOURNAL_MAGIC.len() + envelope::HEADER_LEN;
    let Some((header, mut frames)) = damaged.split_at_checked(journal_format::HEADER_LEN) else {
        return damaged.to_vec();
    };
    let payload = &header[front..];
    let nonce = payload.last_chunk::<8>().map_or(0, |nonce| u64::from_le_bytes(*nonce));
    let mut out = JOURNAL_MAGIC.to_vec();
    envelope::seal_into(&mut out, Kind::JournalHeader, journal_format::JOURNAL_VERSION, 0, payload);
    while frames.len() > JOURNAL_MARKER_LEN + envelope::HEADER_LEN {
        let (cover, rest) = frames[JOURNAL_MARKER_LEN..].split_at(envelope::HEADER_LEN);
        let len = u32::from_le_bytes([cover[4], cover[5], cover[6], cover[7]]) as usize;
        let (payload, after) = rest.split_at(len.min(rest.len()));
        out.extend(journal_marker(nonce, out.len() as u64));
        envelope::seal_into(&mut out, Kind::JournalFrame, journal_format::JOURNAL_VERSION, nonce, payload);
        frames = after;
    }
    out
}

/// As the journal makes it from its nonce and the frame's place.
fn journal_marker(nonce: u64, offset: u64) -> [u8; JOURNAL_MARKER_LEN] {
    splitmix(nonce ^ splitmix(offset)).to_le_bytes()
}

fn splitmix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Messages out of payloads behind their lengths; those that cannot be read are left out. Commands and snapshots within
/// are covered anew, so that they are applied.
pub fn peer_messages(mut damaged: &[u8]) -> Vec<PeerMessage> {
    let mut messages = Vec::new();
    while let Some((len, rest)) = damaged.split_first_chunk::<4>() {
        let (payload, after) = rest.split_at((u32::from_le_bytes(*len) as usize).min(rest.len()));
        if let Ok(message) = PeerMessage::decode(&envelope::seal(Kind::PeerMessage, PEER_VERSION, 0, payload)) {
            messages.push(resealed(message));
        }
        damaged = after;
    }
    messages
}

fn resealed(mut message: PeerMessage) -> PeerMessage {
    for entry in message.entries.iter_mut().filter(|entry| !entry.data.is_empty()) {
        entry.data = command(&entry.data).into();
    }
    if let Some(snapshot) = &mut message.snapshot {
        snapshot.data = metadata_snapshot(&snapshot.data).into();
    }
    message
}

/// Batches behind a byte that says how they are read.
pub fn behind_the_first_byte(bytes: &[u8]) -> Vec<u8> {
    match bytes.split_first() {
        Some((first, batches)) => [&[*first][..], &segment(batches)].concat(),
        None => Vec::new(),
    }
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
