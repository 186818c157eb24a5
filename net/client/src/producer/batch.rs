//! One record batch on its way: open while records come in, sealed when it is first sent, stamped with the producer's
//! sequence, and stamped anew when that changes.
//!
//! Records are encoded straight into one buffer that has room for the batch header in front, so a record costs no
//! allocation and is copied once. Sizes are exact before compression, which is what `batch_size` and
//! `max_request_size` are held against.

use bytes::{Bytes, BytesMut};
use model::batch::{CRC_FROM, HEADER_LEN, LOG_OVERHEAD, crc32c};
use model::compression::deflate;
use model::{BatchView, Codec, varint};

use crate::Header;

/// A record as the encoder takes it; everything is borrowed.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: &'a [Header],
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
}

impl RecordRef<'_> {
    /// Bytes behind the offset delta: key, value and headers with their lengths.
    pub fn body_len(&self) -> usize {
        let headers: usize =
            self.headers.iter().map(|h| nullable_len(Some(&h.key)) + nullable_len(h.value.as_deref())).sum();
        nullable_len(self.key) + nullable_len(self.value) + varlong_len(self.headers.len() as i64) + headers
    }
}

/// Who writes, and from which sequence number on; -1 in all for a producer without idempotence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
}

impl Stamp {
    pub const NONE: Stamp = Stamp { producer_id: -1, producer_epoch: -1, base_sequence: -1 };

    /// The sequence number behind `records` records: wraps from 2147483647 to 0.
    pub fn next_sequence(&self, records: u32) -> i32 {
        sequence_plus(self.base_sequence, records)
    }
}

pub fn sequence_plus(sequence: i32, records: u32) -> i32 {
    ((i64::from(sequence) + i64::from(records)) & i64::from(i32::MAX)) as i32
}

/// An open batch.
#[derive(Debug)]
pub struct Builder {
    buffer: BytesMut,
    records: u32,
    base_timestamp_ms: i64,
    max_timestamp_ms: i64,
}

impl Builder {
    /// Takes an empty buffer.
    pub fn new(mut buffer: BytesMut) -> Builder {
        assert!(buffer.is_empty(), "a batch starts in an empty buffer");
        buffer.resize(HEADER_LEN, 0);
        Builder { buffer, records: 0, base_timestamp_ms: 0, max_timestamp_ms: -1 }
    }

    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    pub fn records(&self) -> u32 {
        self.records
    }

    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Moves into a larger buffer and gives the old one back, empty.
    pub fn move_to(&mut self, mut larger: BytesMut) -> BytesMut {
        assert!(
            larger.is_empty() && larger.capacity() >= self.buffer.len(),
            "a batch moves into an empty, larger buffer"
        );
        larger.extend_from_slice(&self.buffer);
        let mut old = std::mem::replace(&mut self.buffer, larger);
        old.clear();
        old
    }

    /// Bytes that the next record would take, from its time and [`RecordRef::body_len`].
    pub fn record_len(&self, timestamp_ms: i64, body_len: usize) -> usize {
        let length = self.inner_len(timestamp_ms, body_len);
        varlong_len(length as i64) + length
    }

    fn inner_len(&self, timestamp_ms: i64, body_len: usize) -> usize {
        1 + varlong_len(self.timestamp_delta_ms(timestamp_ms)) + varlong_len(i64::from(self.records)) + body_len
    }

    fn timestamp_delta_ms(&self, timestamp_ms: i64) -> i64 {
        if self.records == 0 { 0 } else { timestamp_ms.wrapping_sub(self.base_timestamp_ms) }
    }

    pub fn push(&mut self, record: &RecordRef<'_>, body_len: usize) {
        self.begin_record(record.timestamp_ms, body_len);
        put_nullable(&mut self.buffer, record.key);
        put_nullable(&mut self.buffer, record.value);
        put_varlong(&mut self.buffer, record.headers.len() as i64);
        for header in record.headers {
            put_nullable(&mut self.buffer, Some(&header.key));
            put_nullable(&mut self.buffer, header.value.as_deref());
        }
    }

    /// A record whose part behind the offset delta is encoded already: for splits.
    pub fn push_encoded(&mut self, timestamp_ms: i64, body: &[u8]) {
        self.begin_record(timestamp_ms, body.len());
        self.buffer.extend_from_slice(body);
    }

    fn begin_record(&mut self, timestamp_ms: i64, body_len: usize) {
        let length = self.inner_len(timestamp_ms, body_len);
        let delta_ms = self.timestamp_delta_ms(timestamp_ms);
        if self.records == 0 {
            self.base_timestamp_ms = timestamp_ms;
        }
        self.max_timestamp_ms = self.max_timestamp_ms.max(timestamp_ms);
        put_varlong(&mut self.buffer, length as i64);
        self.buffer.extend_from_slice(&[0]);
        put_varlong(&mut self.buffer, delta_ms);
        put_varlong(&mut self.buffer, i64::from(self.records));
        self.records += 1;
    }

    /// Ends the batch: compresses it if that makes it smaller, and writes all of the header but the stamp. Also gives
    /// the buffer that compression left over.
    pub fn seal(self, codec: Codec, scratch: &mut Vec<u8>) -> (Sealed, Option<BytesMut>) {
        assert!(self.records > 0, "an empty batch is never sent");
        let Builder { mut buffer, records, base_timestamp_ms, max_timestamp_ms } = self;
        let plain_len = buffer.len() - HEADER_LEN;
        let smaller =
            codec != Codec::None && deflate(codec, &buffer[HEADER_LEN..], scratch).is_ok() && scratch.len() < plain_len;
        let mut left = None;
        if smaller {
            let mut compressed = BytesMut::with_capacity(HEADER_LEN + scratch.len());
            compressed.resize(HEADER_LEN, 0);
            compressed.extend_from_slice(scratch);
            buffer.clear();
            left = Some(std::mem::replace(&mut buffer, compressed));
        }
        let codec = if smaller { codec } else { Codec::None };
        let length = (buffer.len() - LOG_OVERHEAD) as i32;
        buffer[8..12].copy_from_slice(&length.to_be_bytes());
        buffer[12..16].copy_from_slice(&(-1i32).to_be_bytes());
        buffer[16] = 2;
        buffer[21..23].copy_from_slice(&(codec as i16).to_be_bytes());
        buffer[23..27].copy_from_slice(&(records as i32 - 1).to_be_bytes());
        buffer[27..35].copy_from_slice(&base_timestamp_ms.to_be_bytes());
        buffer[35..43].copy_from_slice(&max_timestamp_ms.to_be_bytes());
        buffer[57..61].copy_from_slice(&(records as i32).to_be_bytes());
        (Sealed { buffer }, left)
    }
}

/// A batch that is whole but for its stamp.
#[derive(Debug)]
pub struct Sealed {
    buffer: BytesMut,
}

impl Sealed {
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// A stamped batch that is to be stamped anew. Copied only where a connection still holds it.
    pub fn again(bytes: Bytes) -> Sealed {
        Sealed { buffer: bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..])) }
    }

    pub fn stamp(mut self, stamp: Stamp) -> Bytes {
        self.buffer[43..51].copy_from_slice(&stamp.producer_id.to_be_bytes());
        self.buffer[51..53].copy_from_slice(&stamp.producer_epoch.to_be_bytes());
        self.buffer[53..57].copy_from_slice(&stamp.base_sequence.to_be_bytes());
        let crc = crc32c(&self.buffer[CRC_FROM..]);
        self.buffer[17..21].copy_from_slice(&crc.to_be_bytes());
        self.buffer.freeze()
    }
}

/// One of the batches that a larger one was cut into.
#[derive(Debug)]
pub struct Piece {
    /// Index of its first record in the whole.
    pub first: u32,
    pub builder: Builder,
}

/// Cuts a batch of ours into smaller ones of at most `size` bytes before compression and at most half its records, in
/// order. `None` when it has one record or (never) cannot be read.
pub fn split(bytes: &[u8], size: usize, max_inflated: usize) -> Option<Vec<Piece>> {
    let view = BatchView::parse(bytes).ok()?;
    let records = u32::try_from(view.header.record_count).ok()?;
    if records < 2 {
        return None;
    }
    let mut inflated = Vec::new();
    let plain = match view.header.codec().ok()? {
        Codec::None => view.payload(),
        codec => {
            model::compression::inflate(codec, view.payload(), max_inflated, &mut inflated).ok()?;
            &inflated
        }
    };
    let mut walk = EncodedRecords { bytes: plain, at: 0, base_timestamp_ms: view.header.base_timestamp_ms };
    let mut pieces: Vec<Piece> = Vec::new();
    for first in 0..records {
        let left = plain.len() - walk.at;
        let (timestamp_ms, body) = walk.next()?;
        let fits = pieces.last().is_some_and(|piece| {
            piece.builder.records() < records.div_ceil(2)
                && piece.builder.len() + piece.builder.record_len(timestamp_ms, body.len()) <= size
        });
        if !fits {
            // Not more than what is left: the pieces are charged with their capacity.
            let capacity = size.max(HEADER_LEN + body.len() + 32).min(HEADER_LEN + left + 32);
            let builder = Builder::new(BytesMut::with_capacity(capacity));
            pieces.push(Piece { first, builder });
        }
        pieces.last_mut()?.builder.push_encoded(timestamp_ms, body);
    }
    Some(pieces)
}

/// Walks records and keeps what is behind the offset delta as it is.
struct EncodedRecords<'a> {
    bytes: &'a [u8],
    at: usize,
    base_timestamp_ms: i64,
}

impl<'a> EncodedRecords<'a> {
    fn next(&mut self) -> Option<(i64, &'a [u8])> {
        let length = usize::try_from(varint::read_varint(self.bytes, &mut self.at)?).ok()?;
        let end = self.at.checked_add(length)?;
        let mut at = self.at + 1;
        let delta_ms = varint::read_varlong(self.bytes, &mut at)?;
        varint::read_varint(self.bytes, &mut at)?;
        let body = self.bytes.get(at..end)?;
        self.at = end;
        Some((self.base_timestamp_ms.wrapping_add(delta_ms), body))
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn varlong_len(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// The same bytes as a 32-bit varint where the value fits.
fn put_varlong(out: &mut BytesMut, value: i64) {
    let mut value = zigzag(value);
    let mut bytes = [0; 10];
    let mut len = 0;
    while value >= 0x80 {
        bytes[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = value as u8;
    out.extend_from_slice(&bytes[..=len]);
}

fn nullable_len(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varlong_len(bytes.len() as i64) + bytes.len())
}

fn put_nullable(out: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varlong(out, -1),
        Some(bytes) => {
            put_varlong(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
