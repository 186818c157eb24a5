//! Builds uncompressed record batches: for internal topics, our own tools and tests. Never on the produce way.

use crate::batch::{CRC_FROM, HEADER_LEN, crc32c};
use crate::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId};
use crate::varint;

/// A record's header: key, and value or null.
pub type Header<'a> = (&'a [u8], Option<&'a [u8]>);

/// Accumulates records; `finish` gives the encoded batch with base offset 0 unless `base_offset` was set.
#[derive(Debug)]
pub struct BatchBuilder {
    records: Vec<u8>,
    count: i32,
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    attributes: i16,
    base_timestamp_ms: i64,
    max_timestamp_ms: i64,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    base_sequence: i32,
}

impl Default for BatchBuilder {
    fn default() -> BatchBuilder {
        BatchBuilder {
            records: Vec::new(),
            count: 0,
            base_offset: Offset::ZERO,
            leader_epoch: LeaderEpoch::UNKNOWN,
            attributes: 0,
            base_timestamp_ms: -1,
            max_timestamp_ms: -1,
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            base_sequence: -1,
        }
    }
}

impl BatchBuilder {
    pub fn new() -> BatchBuilder {
        BatchBuilder::default()
    }

    #[must_use]
    pub fn base_offset(mut self, offset: Offset) -> BatchBuilder {
        self.base_offset = offset;
        self
    }

    #[must_use]
    pub fn producer(mut self, id: ProducerId, epoch: ProducerEpoch, base_sequence: i32) -> BatchBuilder {
        self.producer_id = id;
        self.producer_epoch = epoch;
        self.base_sequence = base_sequence;
        self
    }

    /// Raw attribute bits, for tests of what the broker refuses.
    #[must_use]
    pub fn attributes(mut self, attributes: i16) -> BatchBuilder {
        self.attributes = attributes;
        self
    }

    #[must_use]
    pub fn record(self, timestamp_ms: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> BatchBuilder {
        self.record_with_headers(timestamp_ms, key, value, &[])
    }

    #[must_use]
    pub fn record_with_headers(
        mut self,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> BatchBuilder {
        self.push(timestamp_ms, key, value, headers);
        self
    }

    pub fn push(&mut self, timestamp_ms: i64, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header<'_>]) {
        if self.count == 0 {
            self.base_timestamp_ms = timestamp_ms;
        }
        self.max_timestamp_ms = self.max_timestamp_ms.max(timestamp_ms);
        let mut body = vec![0u8];
        varint::write_varlong(&mut body, timestamp_ms - self.base_timestamp_ms);
        varint::write_varint(&mut body, self.count);
        write_nullable(&mut body, key);
        write_nullable(&mut body, value);
        varint::write_varint(&mut body, headers.len() as i32);
        for (key, value) in headers {
            write_nullable(&mut body, Some(key));
            write_nullable(&mut body, *value);
        }
        varint::write_varint(&mut self.records, body.len() as i32);
        self.records.extend_from_slice(&body);
        self.count += 1;
    }

    pub fn len(&self) -> usize {
        self.count as usize
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes the encoded batch will have.
    pub fn encoded_len(&self) -> usize {
        HEADER_LEN + self.records.len()
    }

    pub fn finish(self) -> Vec<u8> {
        let records = self.records.clone();
        self.finish_with_payload(&records)
    }

    /// The batch around a payload that the caller compressed (its codec must be in `attributes`).
    pub fn finish_with_payload(&self, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_LEN + payload.len());
        out.extend_from_slice(&self.base_offset.0.to_be_bytes());
        out.extend_from_slice(&((HEADER_LEN - 12 + payload.len()) as i32).to_be_bytes());
        out.extend_from_slice(&self.leader_epoch.0.to_be_bytes());
        out.push(2);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.attributes.to_be_bytes());
        out.extend_from_slice(&(self.count - 1).to_be_bytes());
        out.extend_from_slice(&self.base_timestamp_ms.to_be_bytes());
        out.extend_from_slice(&self.max_timestamp_ms.to_be_bytes());
        out.extend_from_slice(&self.producer_id.0.to_be_bytes());
        out.extend_from_slice(&self.producer_epoch.0.to_be_bytes());
        out.extend_from_slice(&self.base_sequence.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(payload);
        let crc = crc32c(&out[CRC_FROM..]);
        out[17..21].copy_from_slice(&crc.to_be_bytes());
        out
    }

    /// The record section alone, for a caller that compresses it.
    pub fn payload(&self) -> &[u8] {
        &self.records
    }
}

fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => varint::write_varint(out, -1),
        Some(bytes) => {
            varint::write_varint(out, bytes.len() as i32);
            out.extend_from_slice(bytes);
        }
    }
}
