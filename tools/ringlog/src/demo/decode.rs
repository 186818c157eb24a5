//! # Events read back
//!
//! Either encoding, told apart by the first byte. The bytes come from a topic anybody can write to: whatever is wrong
//! with them is an error, text fields are skipped over unread, and neither memory nor time depends on more than
//! [`MAX_EVENT_BYTES`]. No state.

use std::fmt;
use std::net::Ipv4Addr;

use super::event::{COMPACT_BYTES, COMPACT_VERSION, Event, Kind};
use super::limits::{MAX_AT_MS, MAX_EVENT_BYTES};

/// Why bytes are not an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    Empty,
    TooLong { bytes: usize },
    UnknownVersion(u8),
    WrongLength { bytes: usize },
    UnknownKind(u8),
    NotJson(String),
    BadSession,
    BadVisitor,
    TimeOutOfRange(i64),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Empty => write!(f, "the event is empty"),
            DecodeError::TooLong { bytes } => {
                write!(f, "the event has {bytes} bytes, more than the {MAX_EVENT_BYTES} that are read")
            }
            DecodeError::UnknownVersion(version) => {
                write!(f, "the event begins with byte {version}: neither JSON nor the compact layout of version 1")
            }
            DecodeError::WrongLength { bytes } => {
                write!(f, "the compact event has {bytes} bytes instead of {COMPACT_BYTES}")
            }
            DecodeError::UnknownKind(kind) => write!(f, "the event's kind {kind} is none of click, cart and order"),
            DecodeError::NotJson(reason) => write!(f, "the event is not a JSON event of this demo: {reason}"),
            DecodeError::BadSession => write!(f, "the event's session is not 16 hexadecimal digits"),
            DecodeError::BadVisitor => write!(f, "the event's visitor is not an IPv4 address"),
            DecodeError::TimeOutOfRange(at_ms) => write!(f, "the event's time {at_ms} ms is not in 1970 to 9999"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Reads one event in either encoding.
pub fn decode(bytes: &[u8]) -> Result<Event, DecodeError> {
    if bytes.len() > MAX_EVENT_BYTES {
        return Err(DecodeError::TooLong { bytes: bytes.len() });
    }
    let event = match bytes.first() {
        None => return Err(DecodeError::Empty),
        Some(b'{') => decode_json(bytes)?,
        Some(&COMPACT_VERSION) => decode_compact(bytes)?,
        Some(&other) => return Err(DecodeError::UnknownVersion(other)),
    };
    if !(0..=MAX_AT_MS).contains(&event.at_ms) {
        return Err(DecodeError::TimeOutOfRange(event.at_ms));
    }
    Ok(event)
}

fn decode_compact(bytes: &[u8]) -> Result<Event, DecodeError> {
    let bytes: &[u8; COMPACT_BYTES] = bytes.try_into().map_err(|_| DecodeError::WrongLength { bytes: bytes.len() })?;
    let kind = Kind::ALL.get(usize::from(bytes[1])).copied().ok_or(DecodeError::UnknownKind(bytes[1]))?;
    Ok(Event {
        kind,
        status: u16::from_be_bytes(part(bytes, 2)),
        item: u32::from_be_bytes(part(bytes, 4)),
        session_key: u64::from_be_bytes(part(bytes, 8)),
        at_ms: i64::from_be_bytes(part(bytes, 16)),
        visitor: u32::from_be_bytes(part(bytes, 24)),
        bytes: u32::from_be_bytes(part(bytes, 28)),
        duration_ms: u32::from_be_bytes(part(bytes, 32)),
    })
}

fn part<const N: usize>(bytes: &[u8; COMPACT_BYTES], from: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[from + index])
}

/// What is read of the JSON; other fields are skipped.
#[derive(serde::Deserialize)]
struct JsonEvent<'a> {
    session: &'a str,
    visitor: &'a str,
    ts: i64,
    #[serde(rename = "type")]
    kind: Kind,
    item: u32,
    status: u16,
    bytes: u32,
    duration_ms: u32,
}

fn decode_json(bytes: &[u8]) -> Result<Event, DecodeError> {
    let json: JsonEvent<'_> = serde_json::from_slice(bytes).map_err(|error| DecodeError::NotJson(error.to_string()))?;
    Ok(Event {
        session_key: session_key(json.session).ok_or(DecodeError::BadSession)?,
        visitor: json.visitor.parse::<Ipv4Addr>().map_err(|_| DecodeError::BadVisitor)?.to_bits(),
        kind: json.kind,
        item: json.item,
        at_ms: json.ts,
        status: json.status,
        bytes: json.bytes,
        duration_ms: json.duration_ms,
    })
}

fn session_key(text: &str) -> Option<u64> {
    let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if digits { u64::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
