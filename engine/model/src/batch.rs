//! Record batch v2 as a view over borrowed bytes: header, CRC-32C, record walk. Nothing here allocates.
//!
//! On the produce way the replica parses the header once, checks the CRC once and walks the records of uncompressed
//! batches; on the fetch way nothing is parsed but headers at segment scans. Base offset and leader epoch lie outside
//! the CRC, so the broker patches them in place and never re-encodes a batch.

use std::fmt;

use crate::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use crate::varint;

/// Bytes before the first record.
pub const HEADER_LEN: usize = 61;
/// Bytes before those that `batch_length` counts: base offset and the length itself.
pub const LOG_OVERHEAD: usize = 12;
/// Where the magic byte lies, in every format of Kafka's.
pub const MAGIC_AT: usize = 16;
/// First byte that the CRC covers.
pub const CRC_FROM: usize = 21;

const ATTR_CODEC: i16 = 0x07;
const ATTR_LOG_APPEND_TIME: i16 = 0x08;
const ATTR_TRANSACTIONAL: i16 = 0x10;
const ATTR_CONTROL: i16 = 0x20;
const ATTR_DELETE_HORIZON: i16 = 0x40;

/// Why bytes are not a usable batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchError {
    /// Fewer bytes than the header or the batch's own length says.
    Cut,
    /// `batch_length` too small for a header, or negative.
    Length(i32),
    /// Magic 0, 1 (old formats) or an unknown one.
    Magic(i8),
    Crc {
        stored: u32,
        computed: u32,
    },
    /// Record count negative, or unlike the last offset delta.
    Count(i32),
    /// Codec number 5 to 7.
    Codec(i16),
    /// A record's lengths leave the batch, or its offset delta is not its index, or bytes are left over.
    Record(i32),
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BatchError::Cut => write!(f, "the record batch is cut short"),
            BatchError::Length(n) => write!(f, "a record batch cannot be {n} bytes long"),
            BatchError::Magic(m) => write!(f, "record format {m} is not supported, only 2 is"),
            BatchError::Crc { stored, computed } => {
                write!(f, "the record batch is damaged: its CRC is {stored:08x}, its bytes give {computed:08x}")
            }
            BatchError::Count(n) => write!(f, "the record batch's count {n} does not agree with its offsets"),
            BatchError::Codec(c) => write!(f, "compression codec {c} is unknown"),
            BatchError::Record(i) => write!(f, "record {i} of the batch is malformed"),
        }
    }
}

impl std::error::Error for BatchError {}

/// Compression codec of a batch, by its number in the attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    None = 0,
    Gzip = 1,
    Snappy = 2,
    Lz4 = 3,
    Zstd = 4,
}

impl Codec {
    pub fn from_attributes(attributes: i16) -> Result<Codec, BatchError> {
        Ok(match attributes & ATTR_CODEC {
            0 => Codec::None,
            1 => Codec::Gzip,
            2 => Codec::Snappy,
            3 => Codec::Lz4,
            4 => Codec::Zstd,
            other => return Err(BatchError::Codec(other)),
        })
    }
}

/// The fixed header of a batch, decoded. A plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: Offset,
    /// Bytes behind the length field itself.
    pub batch_length: i32,
    pub leader_epoch: LeaderEpoch,
    pub magic: i8,
    pub crc: u32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub base_timestamp_ms: i64,
    pub max_timestamp_ms: i64,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: i32,
    pub record_count: i32,
}

fn be<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`: length and magic are checked, the CRC is not. The batch's own bytes
    /// need not all be there (see [`BatchView::parse`]).
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        if bytes.len() <= MAGIC_AT {
            return Err(BatchError::Cut);
        }
        let magic = bytes[MAGIC_AT] as i8;
        let batch_length = i32::from_be_bytes(be(bytes, 8));
        if magic != 2 {
            return Err(if batch_length <= 0 { BatchError::Length(batch_length) } else { BatchError::Magic(magic) });
        }
        if batch_length < (HEADER_LEN - LOG_OVERHEAD) as i32 {
            return Err(BatchError::Length(batch_length));
        }
        if bytes.len() < HEADER_LEN {
            return Err(BatchError::Cut);
        }
        Ok(BatchHeader {
            base_offset: Offset(i64::from_be_bytes(be(bytes, 0))),
            batch_length,
            leader_epoch: LeaderEpoch(i32::from_be_bytes(be(bytes, 12))),
            magic,
            crc: u32::from_be_bytes(be(bytes, 17)),
            attributes: i16::from_be_bytes(be(bytes, 21)),
            last_offset_delta: i32::from_be_bytes(be(bytes, 23)),
            base_timestamp_ms: i64::from_be_bytes(be(bytes, 27)),
            max_timestamp_ms: i64::from_be_bytes(be(bytes, 35)),
            producer_id: ProducerId(i64::from_be_bytes(be(bytes, 43))),
            producer_epoch: ProducerEpoch(i16::from_be_bytes(be(bytes, 51))),
            base_sequence: i32::from_be_bytes(be(bytes, 53)),
            record_count: i32::from_be_bytes(be(bytes, 57)),
        })
    }

    /// Bytes of the whole batch.
    pub fn size(&self) -> usize {
        LOG_OVERHEAD + self.batch_length as usize
    }

    pub fn last_offset(&self) -> Offset {
        self.base_offset.plus(i64::from(self.last_offset_delta))
    }

    pub fn next_offset(&self) -> Offset {
        self.last_offset().plus(1)
    }

    pub fn codec(&self) -> Result<Codec, BatchError> {
        Codec::from_attributes(self.attributes)
    }

    pub fn is_log_append_time(&self) -> bool {
        self.attributes & ATTR_LOG_APPEND_TIME != 0
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes & ATTR_TRANSACTIONAL != 0
    }

    pub fn is_control(&self) -> bool {
        self.attributes & ATTR_CONTROL != 0
    }

    /// With a delete horizon the base timestamp holds that horizon and not a record's time (KIP-534).
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & ATTR_DELETE_HORIZON != 0
    }

    pub fn has_producer(&self) -> bool {
        self.producer_id != ProducerId::NONE
    }

    /// Sequence number of the last record: wraps from 2147483647 to 0.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return self.base_sequence;
        }
        ((i64::from(self.base_sequence) + i64::from(self.last_offset_delta)) & i64::from(i32::MAX)) as i32
    }
}

/// One whole batch in borrowed bytes. `bytes.len()` is exactly the batch's size.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    pub header: BatchHeader,
    pub bytes: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// The batch at the start of `bytes`; what follows it is ignored. The CRC is not checked.
    pub fn parse(bytes: &'a [u8]) -> Result<BatchView<'a>, BatchError> {
        let header = BatchHeader::parse(bytes)?;
        let bytes = bytes.get(..header.size()).ok_or(BatchError::Cut)?;
        Ok(BatchView { header, bytes })
    }

    pub fn check_crc(&self) -> Result<(), BatchError> {
        let computed = crc32c(&self.bytes[CRC_FROM..]);
        if computed == self.header.crc { Ok(()) } else { Err(BatchError::Crc { stored: self.header.crc, computed }) }
    }

    /// The record section as stored (compressed or not).
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }

    /// Walks the records of an uncompressed batch. For compressed ones inflate the payload and use [`RecordIter::new`].
    pub fn records(&self) -> RecordIter<'a> {
        RecordIter::new(self.payload(), self.header.record_count)
    }
}

/// One record, borrowed from its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub timestamp_delta_ms: i64,
    pub offset_delta: i32,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    /// Number of headers; walk them with [`HeaderIter`].
    pub header_count: i32,
    headers: &'a [u8],
}

impl<'a> Record<'a> {
    pub fn headers(&self) -> HeaderIter<'a> {
        HeaderIter { bytes: self.headers, left: self.header_count }
    }
}

/// Walks a record section; stops after the first error.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    bytes: &'a [u8],
    index: i32,
    count: i32,
    failed: bool,
}

impl<'a> RecordIter<'a> {
    pub fn new(bytes: &'a [u8], count: i32) -> RecordIter<'a> {
        RecordIter { bytes, index: 0, count, failed: false }
    }

    /// Bytes behind the records walked so far; anything left after `count` records makes the batch malformed.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    fn step(&mut self) -> Option<Record<'a>> {
        let mut pos = 0;
        let length = usize::try_from(varint::read_varint(self.bytes, &mut pos)?).ok()?;
        let body = self.bytes.get(pos..pos.checked_add(length)?)?;
        let record = parse_record(body)?;
        self.bytes = &self.bytes[pos + length..];
        Some(record)
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.index >= self.count {
            return None;
        }
        let item = self.step().ok_or(BatchError::Record(self.index));
        self.failed = item.is_err();
        self.index += 1;
        Some(item)
    }
}

fn read_nullable<'a>(bytes: &'a [u8], pos: &mut usize) -> Option<Option<&'a [u8]>> {
    let length = varint::read_varint(bytes, pos)?;
    if length == -1 {
        return Some(None);
    }
    let end = pos.checked_add(usize::try_from(length).ok()?)?;
    let slice = bytes.get(*pos..end)?;
    *pos = end;
    Some(Some(slice))
}

fn parse_record(body: &[u8]) -> Option<Record<'_>> {
    body.first()?; // attributes: no bit is in use
    let mut pos = 1;
    let timestamp_delta_ms = varint::read_varlong(body, &mut pos)?;
    let offset_delta = varint::read_varint(body, &mut pos)?;
    let key = read_nullable(body, &mut pos)?;
    let value = read_nullable(body, &mut pos)?;
    let header_count = varint::read_varint(body, &mut pos)?;
    let headers = &body[pos..];
    let mut walk = HeaderIter { bytes: headers, left: header_count };
    if header_count < 0 {
        return None;
    }
    while walk.left > 0 {
        walk.step()?;
    }
    walk.bytes.is_empty().then_some(Record { timestamp_delta_ms, offset_delta, key, value, header_count, headers })
}

/// Walks a record's headers. The record was checked whole when it was read, so it never fails.
#[derive(Clone, Debug)]
pub struct HeaderIter<'a> {
    bytes: &'a [u8],
    left: i32,
}

impl<'a> HeaderIter<'a> {
    fn step(&mut self) -> Option<(&'a [u8], Option<&'a [u8]>)> {
        let mut pos = 0;
        let key = read_nullable(self.bytes, &mut pos)??;
        let value = read_nullable(self.bytes, &mut pos)?;
        self.bytes = &self.bytes[pos..];
        self.left -= 1;
        Some((key, value))
    }
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left <= 0 { None } else { self.step() }
    }
}

/// CRC-32C (Castagnoli), as record batches carry it.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Writes the base offset and the leader epoch that the log gives to a batch. Both lie outside the CRC.
pub fn patch_position(batch: &mut [u8], base_offset: Offset, leader_epoch: LeaderEpoch) {
    assert!(batch.len() >= HEADER_LEN, "a batch was validated before it is patched");
    batch[0..8].copy_from_slice(&base_offset.0.to_be_bytes());
    batch[12..16].copy_from_slice(&leader_epoch.0.to_be_bytes());
}

/// Sets the max timestamp (and, for LogAppendTime, the attribute bit), then the CRC anew.
pub fn patch_max_timestamp(batch: &mut [u8], max_timestamp_ms: i64, log_append_time: bool) {
    assert!(batch.len() >= HEADER_LEN, "a batch was validated before it is patched");
    let mut attributes = i16::from_be_bytes([batch[21], batch[22]]);
    if log_append_time {
        attributes |= ATTR_LOG_APPEND_TIME;
    } else {
        attributes &= !ATTR_LOG_APPEND_TIME;
    }
    batch[21..23].copy_from_slice(&attributes.to_be_bytes());
    batch[35..43].copy_from_slice(&max_timestamp_ms.to_be_bytes());
    let crc = crc32c(&batch[CRC_FROM..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
