//! Record batches byte by byte (magic 2), valid by default, every field open to be wrong.

use std::io::Write;

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Where the part that the CRC covers begins.
const CRC_FROM: usize = 21;
/// Bytes before the records.
const HEADER: usize = 61;
/// Attribute bits.
pub const LOG_APPEND_TIME: i16 = 1 << 3;
pub const TRANSACTIONAL: i16 = 1 << 4;
pub const CONTROL: i16 = 1 << 5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i16)]
pub enum Codec {
    None = 0,
    Gzip = 1,
    /// Java's framing.
    SnappyXerial = 2,
    /// librdkafka's: one raw block. The same number on the wire.
    SnappyRaw = 0x102,
    Zstd = 4,
}

#[derive(Clone, Debug)]
pub struct Record {
    pub timestamp_delta: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
}

/// A batch to be encoded. What is `None` is computed.
#[derive(Clone, Debug)]
pub struct Batch {
    pub base_offset: i64,
    pub magic: i8,
    pub attributes: i16,
    pub codec: Codec,
    pub base_timestamp: i64,
    pub max_timestamp: Option<i64>,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub sequence: i32,
    pub records: Vec<Record>,
    pub last_offset_delta: Option<i32>,
    pub count: Option<i32>,
    pub crc: Option<u32>,
}

impl Batch {
    /// Records with these values, keyed by their position, stamped with the time of now.
    pub fn of(values: &[&str]) -> Self {
        let now = crate::requests::now_ms();
        Self::stamped(&vec![now; values.len()]).with_values(values)
    }

    /// `count` records of an idempotent producer.
    pub fn idempotent(producer_id: i64, producer_epoch: i16, sequence: i32, count: usize) -> Self {
        Batch { producer_id, producer_epoch, sequence, ..Self::of(&vec!["v"; count]) }
    }

    /// One record for each timestamp.
    pub fn stamped(timestamps: &[i64]) -> Self {
        let base = timestamps.first().copied().unwrap_or(0);
        let record = |(at, stamp): (usize, &i64)| Record {
            timestamp_delta: stamp - base,
            key: Some(format!("key-{at}").into_bytes()),
            value: Some(format!("value-{at}").into_bytes()),
        };
        Batch {
            base_offset: 0,
            magic: 2,
            attributes: 0,
            codec: Codec::None,
            base_timestamp: base,
            max_timestamp: None,
            producer_id: -1,
            producer_epoch: -1,
            sequence: -1,
            records: timestamps.iter().enumerate().map(record).collect(),
            last_offset_delta: None,
            count: None,
            crc: None,
        }
    }

    fn with_values(mut self, values: &[&str]) -> Self {
        for (record, value) in self.records.iter_mut().zip(values) {
            record.value = Some(value.as_bytes().to_vec());
        }
        self
    }

    pub fn with_codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    fn greatest_timestamp(&self) -> i64 {
        let stamps = self.records.iter().map(|record| self.base_timestamp + record.timestamp_delta);
        stamps.max().unwrap_or(-1)
    }

    pub fn encode(&self) -> Bytes {
        let count = self.records.len() as i32;
        let mut out = BytesMut::new();
        out.put_i64(self.base_offset);
        out.put_i32(0); // the length, below
        out.put_i32(-1); // leader epoch
        out.put_i8(self.magic);
        out.put_u32(0); // the CRC, below
        out.put_i16(self.attributes | (self.codec as i16 & 0x7));
        out.put_i32(self.last_offset_delta.unwrap_or(count - 1));
        out.put_i64(self.base_timestamp);
        out.put_i64(self.max_timestamp.unwrap_or_else(|| self.greatest_timestamp()));
        out.put_i64(self.producer_id);
        out.put_i16(self.producer_epoch);
        out.put_i32(self.sequence);
        out.put_i32(self.count.unwrap_or(count));
        out.put_slice(&compress(self.codec, &self.encode_records()));
        let length = (out.len() - 12) as i32;
        out[8..12].copy_from_slice(&length.to_be_bytes());
        let crc = self.crc.unwrap_or_else(|| crc32c(&out[CRC_FROM..]));
        out[17..21].copy_from_slice(&crc.to_be_bytes());
        out.freeze()
    }

    fn encode_records(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for (offset_delta, record) in self.records.iter().enumerate() {
            let mut one = vec![0];
            put_varint(&mut one, record.timestamp_delta);
            put_varint(&mut one, offset_delta as i64);
            put_bytes(&mut one, record.key.as_deref());
            put_bytes(&mut one, record.value.as_deref());
            put_varint(&mut one, 0); // headers
            put_varint(&mut all, one.len() as i64);
            all.extend_from_slice(&one);
        }
        all
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    put_varint(out, bytes.map_or(-1, |bytes| bytes.len() as i64));
    out.extend_from_slice(bytes.unwrap_or(b""));
}

fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest > 0x7f {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn get_varint(from: &mut Bytes) -> i64 {
    let mut value = 0u64;
    for shift in (0..).step_by(7) {
        let byte = from.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn compress(codec: Codec, records: &[u8]) -> Vec<u8> {
    match codec {
        Codec::None => records.to_vec(),
        Codec::Gzip => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            out.write_all(records).and_then(|()| out.finish()).expect("memory takes every write")
        }
        Codec::SnappyRaw => snappy(records),
        Codec::SnappyXerial => {
            let block = snappy(records);
            let mut out = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
            out.extend_from_slice(&(block.len() as u32).to_be_bytes());
            out.extend_from_slice(&block);
            out
        }
        Codec::Zstd => zstd::encode_all(records, 0).expect("memory takes every write"),
    }
}

fn snappy(records: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(records).expect("small enough for snappy")
}

pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// A batch as a fetch returned it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetched {
    pub base_offset: i64,
    pub leader_epoch: i32,
    pub crc_holds: bool,
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub sequence: i32,
    pub count: i32,
    /// The records as they stand in the batch.
    pub payload: Bytes,
}

/// The whole batches at the beginning of `bytes`; a last one that was cut is left out.
pub fn read(mut bytes: Bytes) -> Vec<Fetched> {
    let mut batches = Vec::new();
    while bytes.len() >= HEADER {
        let length = 12 + i32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
        if length > bytes.len() {
            break;
        }
        batches.push(read_one(bytes.split_to(length)));
    }
    batches
}

fn read_one(mut bytes: Bytes) -> Fetched {
    let covered = bytes.slice(CRC_FROM..);
    let base_offset = bytes.get_i64();
    bytes.advance(4);
    let leader_epoch = bytes.get_i32();
    assert_eq!(bytes.get_i8(), 2, "magic");
    Fetched {
        base_offset,
        leader_epoch,
        crc_holds: bytes.get_u32() == crc32c(&covered),
        attributes: bytes.get_i16(),
        last_offset_delta: bytes.get_i32(),
        base_timestamp: bytes.get_i64(),
        max_timestamp: bytes.get_i64(),
        producer_id: bytes.get_i64(),
        producer_epoch: bytes.get_i16(),
        sequence: bytes.get_i32(),
        count: bytes.get_i32(),
        payload: bytes,
    }
}

/// The values of an uncompressed batch's records, with their offsets.
pub fn values(batch: &Fetched) -> Vec<(i64, String)> {
    let mut rest = batch.payload.clone();
    let mut values = Vec::new();
    for _ in 0..batch.count {
        let length = get_varint(&mut rest) as usize;
        let mut record = rest.split_to(length);
        record.advance(1);
        let _timestamp = get_varint(&mut record);
        let offset = batch.base_offset + get_varint(&mut record);
        let key = get_varint(&mut record).max(0) as usize;
        record.advance(key);
        let value = get_varint(&mut record).max(0) as usize;
        values.push((offset, String::from_utf8_lossy(&record[..value]).into_owned()));
    }
    values
}
