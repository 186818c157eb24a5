//! # One event and its two encodings
//!
//! **JSON**: one flat object without spaces, the fields in this order:
//! `{"session":"16 hex digits","visitor":"10.1.2.3","ts":ms,"type":"click|cart|order","item":n,"path":"...",`
//! `"agent":"...","status":n,"bytes":n,"duration_ms":n,"referrer":"..."}`; `referrer` is left out when the visitor came
//! directly. All its text is ours and needs no escapes.
//!
//! **Compact**: 36 bytes, big-endian, what the aggregates need and no text:
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 1 | version, 1 (never 0x7b, the brace that begins JSON) |
//! | 1 | 1 | kind: 0 click, 1 cart, 2 order |
//! | 2 | 2 | status |
//! | 4 | 4 | item |
//! | 8 | 8 | session |
//! | 16 | 8 | event time, ms since 1970, signed |
//! | 24 | 4 | visitor, an IPv4 address |
//! | 28 | 4 | bytes of the answer |
//! | 32 | 4 | milliseconds to answer |
//!
//! No state; encoding appends to the caller's buffer and allocates only when that has to grow.

use super::profile;

/// The version byte of the compact encoding.
pub const COMPACT_VERSION: u8 = 1;
/// The size of a compact event.
pub const COMPACT_BYTES: usize = 36;

/// What the visitor did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Kind {
    /// Looked at an item.
    Click = 0,
    /// Put an item into the cart.
    Cart = 1,
    /// Bought an item.
    Order = 2,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Click, Kind::Cart, Kind::Order];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Click => "click",
            Kind::Cart => "cart",
            Kind::Order => "order",
        }
    }
}

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    #[default]
    Json,
    Compact,
}

/// One event, whichever way it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub session_key: u64,
    /// An IPv4 address in 10.0.0.0/8.
    pub visitor: u32,
    pub kind: Kind,
    pub item: u32,
    /// Event time, milliseconds since 1970.
    pub at_ms: i64,
    pub status: u16,
    /// Bytes of the answer.
    pub bytes: u32,
    pub duration_ms: u32,
}

/// The text of an event, which only JSON carries.
#[derive(Debug, Clone, Copy)]
pub struct Dressing {
    pub agent: &'static str,
    /// The line is filled up to about this size by the referrer, which is left out when there is no room for one.
    pub line_bytes: usize,
    /// Which of the filling words comes first.
    pub words_from: usize,
}

impl Event {
    /// The key of the record: the session as 16 hexadecimal digits, the same text as in the JSON.
    #[must_use]
    pub fn key(&self) -> [u8; 16] {
        hex(self.session_key)
    }

    /// Appends the event as JSON.
    pub fn write_json(&self, dressing: &Dressing, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(b"{\"session\":\"");
        out.extend_from_slice(&self.key());
        out.extend_from_slice(b"\",\"visitor\":\"");
        write_address(self.visitor, out);
        out.extend_from_slice(b"\",\"ts\":");
        if self.at_ms < 0 {
            out.push(b'-');
        }
        write_number(self.at_ms.unsigned_abs(), out);
        out.extend_from_slice(b",\"type\":\"");
        out.extend_from_slice(self.kind.name().as_bytes());
        out.extend_from_slice(b"\",\"item\":");
        write_number(u64::from(self.item), out);
        out.extend_from_slice(b",\"path\":\"");
        out.extend_from_slice(self.page().as_bytes());
        write_number(u64::from(self.item), out);
        out.extend_from_slice(b"\",\"agent\":\"");
        out.extend_from_slice(dressing.agent.as_bytes());
        out.extend_from_slice(b"\",\"status\":");
        write_number(u64::from(self.status), out);
        out.extend_from_slice(b",\"bytes\":");
        write_number(u64::from(self.bytes), out);
        out.extend_from_slice(b",\"duration_ms\":");
        write_number(u64::from(self.duration_ms), out);
        let used = out.len() - start;
        write_referrer(dressing.line_bytes.saturating_sub(used + 1), dressing.words_from, out);
        out.push(b'}');
    }

    /// Appends the event in the compact layout.
    pub fn write_compact(&self, out: &mut Vec<u8>) {
        let mut bytes = [0_u8; COMPACT_BYTES];
        bytes[0] = COMPACT_VERSION;
        bytes[1] = self.kind as u8;
        bytes[2..4].copy_from_slice(&self.status.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.item.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.session_key.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.at_ms.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.visitor.to_be_bytes());
        bytes[28..32].copy_from_slice(&self.bytes.to_be_bytes());
        bytes[32..36].copy_from_slice(&self.duration_ms.to_be_bytes());
        out.extend_from_slice(&bytes);
    }

    /// Beginning of the page that was asked for; the item's number follows.
    fn page(&self) -> &'static str {
        match self.kind {
            Kind::Click => profile::product_page(self.item),
            Kind::Cart => profile::CART_PAGE,
            Kind::Order => profile::ORDER_PAGE,
        }
    }
}

fn write_referrer(room: usize, words_from: usize, out: &mut Vec<u8>) {
    const FRAME: &[u8] = b",\"referrer\":\"";
    let Some(text_room) = room.checked_sub(FRAME.len() + 1) else { return };
    let fitting = |beginning: &&&str| beginning.len() <= text_room;
    let choices = profile::REFERRERS.iter().take_while(fitting).count();
    if choices == 0 {
        return;
    }
    // Short beginnings before long queries would look odd, so the longest two that fit take turns.
    let beginning = profile::REFERRERS[choices - 1 - (words_from >> 8 & 1).min(choices - 1)];
    out.extend_from_slice(FRAME);
    out.extend_from_slice(beginning.as_bytes());
    let mut left = text_room - beginning.len();
    for word in profile::WORDS.iter().cycle().skip(words_from % profile::WORDS.len()) {
        if left == 0 {
            break;
        }
        let taken = left.min(word.len());
        out.extend_from_slice(&word.as_bytes()[..taken]);
        left -= taken;
    }
    out.push(b'"');
}

fn write_address(address: u32, out: &mut Vec<u8>) {
    for (index, part) in address.to_be_bytes().into_iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        write_number(u64::from(part), out);
    }
}

/// Appends `value` in decimal, two digits a division.
fn write_number(mut value: u64, out: &mut Vec<u8>) {
    const PAIRS: [[u8; 2]; 100] = pairs();
    let mut digits = [0_u8; 20];
    let mut from = digits.len();
    while value >= 10 {
        from -= 2;
        digits[from..from + 2].copy_from_slice(&PAIRS[(value % 100) as usize]);
        value /= 100;
    }
    if value > 0 || from == digits.len() {
        from -= 1;
        digits[from] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[from..]);
}

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
}

fn hex(value: u64) -> [u8; 16] {
    std::array::from_fn(|index| b"0123456789abcdef"[(value >> (60 - 4 * index)) as usize & 15])
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
