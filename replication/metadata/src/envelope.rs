//! The cover of everything this crate writes: kind, version, length and CRC-32 in front of a payload.
//!
//! `rkyv` has no schema evolution and trusts its bytes more than a disk deserves; so each payload says what it is, in which
//! version, and is checked before anybody looks inside. A newer version is a named error, not a misread.

/// kind u16, version u16, payload length u32, CRC u32; little-endian.
pub const HEADER_LEN: usize = 12;

/// What is inside. Numbers are for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    Command = 0x4301,
    Snapshot = 0x5302,
    PeerMessage = 0x5003,
    JournalHeader = 0x4804,
    JournalFrame = 0x4605,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvelopeError {
    Incomplete,
    WrongKind,
    TooLong,
    Checksum,
    TrailingBytes,
    Newer { version: u16, newest: u16 },
}

impl EnvelopeError {
    pub(crate) fn what(self) -> &'static str {
        match self {
            EnvelopeError::Incomplete => "it is incomplete",
            EnvelopeError::WrongKind => "it is of another kind",
            EnvelopeError::TooLong => "its length is out of bounds",
            EnvelopeError::Checksum => "its checksum is wrong",
            EnvelopeError::TrailingBytes => "bytes follow its end",
            EnvelopeError::Newer { .. } => "its version is newer",
        }
    }
}

/// A payload whose checksum was right and whose version is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    pub version: u16,
    pub payload: &'a [u8],
    /// What follows the payload.
    pub rest: &'a [u8],
}

/// Covers `payload`. `salt` goes into the checksum: bytes sealed with another one do not pass for ours.
pub fn seal(kind: Kind, version: u16, salt: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_LEN + payload.len());
    seal_into(&mut out, kind, version, salt, payload);
    out
}

pub fn seal_into(out: &mut Vec<u8>, kind: Kind, version: u16, salt: u64, payload: &[u8]) {
    assert!(version > 0, "versions count from 1");
    let start = out.len();
    out.extend_from_slice(&(kind as u16).to_le_bytes());
    out.extend_from_slice(&version.to_le_bytes());
    crate::byte_io::put_len(out, payload.len());
    let crc = checksum(salt, &out[start..], payload);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(payload);
}

/// Opens what begins at the front of `bytes`.
pub fn open(bytes: &[u8], kind: Kind, newest: u16, salt: u64, max_len: usize) -> Result<Opened<'_>, EnvelopeError> {
    let mut reader = crate::byte_io::Reader::new(bytes);
    let fields = (|| Some((reader.u16()?, reader.u16()?, reader.u32()?, reader.u32()?)))();
    let (found, version, len, crc) = fields.ok_or(EnvelopeError::Incomplete)?;
    if found != kind as u16 {
        return Err(EnvelopeError::WrongKind);
    }
    let len = usize::try_from(len).ok().filter(|len| *len <= max_len).ok_or(EnvelopeError::TooLong)?;
    let (payload, rest) = bytes[HEADER_LEN..].split_at_checked(len).ok_or(EnvelopeError::Incomplete)?;
    if checksum(salt, &bytes[..HEADER_LEN - 4], payload) != crc {
        return Err(EnvelopeError::Checksum);
    }
    if version == 0 || version > newest {
        return Err(EnvelopeError::Newer { version, newest });
    }
    Ok(Opened { version, payload, rest })
}

/// Opens bytes that are one envelope and nothing else.
pub fn open_whole(
    bytes: &[u8],
    kind: Kind,
    newest: u16,
    salt: u64,
    max_len: usize,
) -> Result<Opened<'_>, EnvelopeError> {
    let opened = open(bytes, kind, newest, salt, max_len)?;
    if opened.rest.is_empty() { Ok(opened) } else { Err(EnvelopeError::TrailingBytes) }
}

fn checksum(salt: u64, head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(head);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
