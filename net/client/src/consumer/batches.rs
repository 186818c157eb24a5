//! From fetched bytes to records: a cursor over the batches that one answer holds of one partition.
//!
//! The cursor owns nothing but ref-counted slices: of the answer's frame, or of the one batch it has inflated. Records are
//! slices of those, so none is copied. The bytes are a peer's, so every length and every offset is checked before it is
//! believed; inflation is bounded by `limits::MAX_INFLATED_BATCH_BYTES`.

use std::collections::BTreeSet;
use std::rc::Rc;

use bytes::Bytes;
use model::batch::{HEADER_LEN, RecordIter};
use model::{BatchError, BatchHeader, BatchView, Codec, Record, compression};

use super::limits;
use crate::{ClientError, ConsumerRecord, Header, TopicPartition};

/// How batches are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    pub check_crcs: bool,
    pub read_committed: bool,
}

/// A transaction that the broker says was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted {
    pub producer_id: i64,
    pub first_offset: i64,
}

/// Batches of one partition, and how far they are read.
#[derive(Clone, Debug)]
pub struct BatchCursor {
    partition: TopicPartition,
    data: Bytes,
    at: usize,
    next_offset: i64,
    /// Of the last batch that was read; -1: none yet.
    leader_epoch: i32,
    /// By first offset.
    aborted: Rc<[Aborted]>,
    aborted_at: usize,
    aborted_producers: BTreeSet<i64>,
    open: Option<OpenBatch>,
    options: ReadOptions,
    batches_seen: bool,
}

/// A batch in the midst of being read.
#[derive(Clone, Debug)]
struct OpenBatch {
    header: BatchHeader,
    /// Records, inflated.
    payload: Bytes,
    /// How much of it is read.
    at: usize,
    records_left: i32,
    /// Where the next record must at least lie.
    least_delta: i32,
}

impl OpenBatch {
    fn bytes_left(&self) -> usize {
        self.payload.len() - self.at
    }

    /// Offsets only go up, and stay within what the header says.
    fn takes(&self, record: &Record<'_>) -> bool {
        (self.least_delta..=self.header.last_offset_delta).contains(&record.offset_delta)
    }
}

/// What a batch holds, without looking at its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSummary {
    pub record_count: u64,
    pub first_offset: i64,
    pub last_offset: i64,
    pub max_timestamp_ms: i64,
    pub bytes: usize,
}

impl BatchCursor {
    /// `position` is where reading goes on: records below it are skipped.
    pub fn new(
        partition: TopicPartition,
        data: Bytes,
        position: i64,
        mut aborted: Vec<Aborted>,
        options: ReadOptions,
    ) -> BatchCursor {
        aborted.sort_by_key(|one| one.first_offset);
        BatchCursor {
            partition,
            data,
            at: 0,
            next_offset: position,
            leader_epoch: -1,
            aborted: aborted.into(),
            aborted_at: 0,
            aborted_producers: BTreeSet::new(),
            open: None,
            options,
            batches_seen: false,
        }
    }

    pub fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    /// Where reading goes on.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// Of the last batch read.
    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// Bytes of the answer that are not read yet.
    pub fn bytes_left(&self) -> usize {
        self.data.len() - self.at + self.open.as_ref().map_or(0, OpenBatch::bytes_left)
    }

    /// The offset behind the last whole batch, found by the headers alone: where the next fetch begins. `None` when there
    /// is no whole batch, or bytes that are none (reading tells what is wrong with them).
    pub fn end_offset(&self) -> Option<i64> {
        let mut rest = &self.data[..];
        let mut end = None;
        while let Ok(view) = BatchView::parse(rest) {
            if check_header(&view.header).is_err() {
                break;
            }
            end = Some(view.header.next_offset().0.max(self.next_offset));
            rest = &rest[view.header.size()..];
        }
        end
    }

    /// The next record; `None` at the end. An error leaves the cursor before what is damaged, and comes again.
    pub fn next_record(&mut self) -> Result<Option<ConsumerRecord>, ClientError> {
        loop {
            if self.open.is_none() && !self.open_batch()? {
                return Ok(None);
            }
            if let Some(record) = self.read_open()? {
                return Ok(Some(record));
            }
        }
    }

    /// Steps over a whole batch. The rest of one that was begun counts as one.
    pub fn next_batch(&mut self) -> Result<Option<BatchSummary>, ClientError> {
        if let Some(open) = self.open.take() {
            self.next_offset = self.next_offset.max(open.header.next_offset().0);
            return Ok(Some(BatchSummary {
                record_count: u64::try_from(open.records_left).unwrap_or(0),
                first_offset: open.header.base_offset.0 + i64::from(open.least_delta),
                last_offset: open.header.last_offset().0,
                max_timestamp_ms: open.header.max_timestamp_ms,
                bytes: open.bytes_left(),
            }));
        }
        let Some((header, bytes)) = self.step()? else { return Ok(None) };
        let first_offset = header.base_offset.0.max(self.next_offset);
        let in_range = header.last_offset().0 - first_offset + 1;
        self.next_offset = header.next_offset().0;
        Ok(Some(BatchSummary {
            record_count: i64::from(header.record_count).min(in_range) as u64,
            first_offset,
            last_offset: header.last_offset().0,
            max_timestamp_ms: header.max_timestamp_ms,
            bytes: bytes.len(),
        }))
    }

    /// A cursor over what lies between this one and `end`, which came from it.
    pub(crate) fn up_to(mut self, end: &BatchCursor) -> BatchCursor {
        self.data.truncate(end.at);
        self
    }

    /// Finds the next batch with data for us: past what lies below the position, control batches, aborted transactions.
    fn step(&mut self) -> Result<Option<(BatchHeader, Bytes)>, ClientError> {
        loop {
            let Some((header, bytes)) = self.peek()? else { return Ok(None) };
            self.batches_seen = true;
            let is_below = header.last_offset().0 < self.next_offset;
            if !is_below && self.options.check_crcs {
                let view = BatchView { header, bytes: &bytes };
                view.check_crc().map_err(|error| self.fault(&error))?;
            }
            let is_wanted = !self.is_aborted(&header, &bytes) && !header.is_control() && !is_below;
            self.at += bytes.len();
            if is_wanted {
                self.leader_epoch = header.leader_epoch.0;
                return Ok(Some((header, bytes)));
            }
            if !is_below {
                self.leader_epoch = header.leader_epoch.0;
                self.next_offset = header.next_offset().0;
            }
        }
    }

    /// The batch at the cursor. A tail that is cut is no error: brokers cut answers at a byte, not at a batch.
    fn peek(&self) -> Result<Option<(BatchHeader, Bytes)>, ClientError> {
        let rest = &self.data[self.at..];
        if rest.is_empty() {
            return Ok(None);
        }
        match BatchView::parse(rest) {
            Ok(view) => {
                check_header(&view.header).map_err(|error| self.fault(&error))?;
                Ok(Some((view.header, self.data.slice(self.at..self.at + view.bytes.len()))))
            }
            Err(BatchError::Cut) if self.batches_seen => Ok(None),
            Err(BatchError::Cut) => Err(ClientError::BadAnswer {
                reason: format!("{}: the answer holds no whole record batch", self.place()),
            }),
            Err(error) => Err(self.fault(&error)),
        }
    }

    /// Whether the batch belongs to an aborted transaction; keeps account of those that are open here.
    fn is_aborted(&mut self, header: &BatchHeader, bytes: &Bytes) -> bool {
        if !self.options.read_committed || !header.has_producer() {
            return false;
        }
        while let Some(one) = self.aborted.get(self.aborted_at)
            && one.first_offset <= header.last_offset().0
        {
            self.aborted_producers.insert(one.producer_id);
            self.aborted_at += 1;
        }
        let producer_id = header.producer_id.0;
        if header.is_control() {
            if is_abort_marker(header, bytes) {
                self.aborted_producers.remove(&producer_id);
            }
            return false;
        }
        header.is_transactional() && self.aborted_producers.contains(&producer_id)
    }

    fn open_batch(&mut self) -> Result<bool, ClientError> {
        let before = self.at;
        let Some((header, bytes)) = self.step()? else { return Ok(false) };
        let payload = match inflated(&header, &bytes) {
            Ok(payload) => payload,
            Err(reason) => {
                // Only this batch is damaged: those before it that held nothing for us stay behind.
                self.at = (self.at - bytes.len()).max(before);
                return Err(self.fault(&reason));
            }
        };
        self.open = Some(OpenBatch { header, payload, at: 0, records_left: header.record_count, least_delta: 0 });
        Ok(true)
    }

    /// The next record of the open batch that lies at or above the position; closes the batch at its end.
    fn read_open(&mut self) -> Result<Option<ConsumerRecord>, ClientError> {
        let Some(open) = self.open.as_mut() else { return Ok(None) };
        while open.records_left > 0 {
            let mut walk = RecordIter::new(&open.payload[open.at..], 1);
            let record = match walk.next() {
                Some(Ok(record)) if open.takes(&record) => record,
                _ => {
                    let index = open.header.record_count - open.records_left;
                    return Err(self.fault(&BatchError::Record(index)));
                }
            };
            open.at = open.payload.len() - walk.rest().len();
            open.records_left -= 1;
            open.least_delta = record.offset_delta.saturating_add(1);
            let offset = open.header.base_offset.0 + i64::from(record.offset_delta);
            if offset >= self.next_offset {
                let made = owned_record(&self.partition, &open.header, offset, &record, &open.payload);
                self.next_offset = offset + 1;
                if open.records_left == 0 {
                    self.close_batch();
                }
                return Ok(Some(made));
            }
        }
        self.close_batch();
        Ok(None)
    }

    /// Compaction may have taken a batch's last records, so the position goes by the header.
    fn close_batch(&mut self) {
        if let Some(open) = self.open.take() {
            self.next_offset = self.next_offset.max(open.header.next_offset().0);
        }
    }

    fn place(&self) -> String {
        format!("partition {} of {} at offset {}", self.partition.partition, self.partition.topic, self.next_offset)
    }

    fn fault(&self, reason: &dyn std::fmt::Display) -> ClientError {
        ClientError::BadAnswer { reason: format!("{}: {reason}", self.place()) }
    }
}

/// What the header alone can get wrong.
fn check_header(header: &BatchHeader) -> Result<(), BatchError> {
    let fits = header.last_offset_delta >= 0
        && header.record_count >= 0
        && i64::from(header.record_count) <= i64::from(header.last_offset_delta) + 1;
    let in_range =
        header.base_offset.0 >= 0 && header.base_offset.0 <= i64::MAX - 1 - i64::from(header.last_offset_delta.max(0));
    if fits && in_range { Ok(()) } else { Err(BatchError::Count(header.record_count)) }
}

fn inflated(header: &BatchHeader, bytes: &Bytes) -> Result<Bytes, String> {
    let payload = bytes.slice(HEADER_LEN..);
    let codec = header.codec().map_err(|error| error.to_string())?;
    if codec == Codec::None {
        return Ok(payload);
    }
    let mut out = Vec::new();
    compression::inflate(codec, &payload, limits::MAX_INFLATED_BATCH_BYTES, &mut out)
        .map_err(|error| error.to_string())?;
    Ok(out.into())
}

/// A control record's key: version, then type; 0 is abort, 1 commit.
fn is_abort_marker(header: &BatchHeader, bytes: &Bytes) -> bool {
    let view = BatchView { header: *header, bytes };
    match view.records().next() {
        Some(Ok(Record { key: Some(key), .. })) => key.get(2..4) == Some(&[0, 0]),
        _ => false,
    }
}

fn owned_record(
    partition: &TopicPartition,
    header: &BatchHeader,
    offset: i64,
    record: &Record<'_>,
    payload: &Bytes,
) -> ConsumerRecord {
    let is_log_append_time = header.is_log_append_time();
    let timestamp_ms = match is_log_append_time {
        true => header.max_timestamp_ms,
        false => header.base_timestamp_ms.saturating_add(record.timestamp_delta_ms),
    };
    ConsumerRecord {
        topic: partition.topic.clone(),
        partition: partition.partition,
        offset,
        leader_epoch: header.leader_epoch.0,
        timestamp_ms,
        is_log_append_time,
        key: record.key.map(|key| payload.slice_ref(key)),
        value: record.value.map(|value| payload.slice_ref(value)),
        headers: record
            .headers()
            .map(|(key, value)| Header {
                key: payload.slice_ref(key),
                value: value.map(|value| payload.slice_ref(value)),
            })
            .collect(),
    }
}

#[cfg(test)]
#[path = "batches_tests.rs"]
mod tests;
