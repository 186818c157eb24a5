//! ListOffsets by time: the first segment whose largest timestamp reaches the wanted one, its time index, then the
//! batches up to the exact record. Compressed batches are inflated on the pool thread.

use bytes::Bytes;
use model::batch::RecordIter;
use model::compression::inflate;
use model::{BatchHeader, BatchView, Codec, LeaderEpoch, Offset};
use runtime::spawn_blocking;

use super::PartitionLog;
use super::segments::SegmentRef;
use crate::error::LogError;
use crate::limits::{INFLATE_MAX, IO_MAX};
use crate::scan::ReadLimits;
use crate::segment::NO_TIMESTAMP;

/// A record found by its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeHit {
    pub offset: Offset,
    pub timestamp_ms: i64,
    pub leader_epoch: LeaderEpoch,
}

impl PartitionLog {
    /// The first record at or after `timestamp_ms`, if it lies below the bound.
    pub async fn offset_for_time(&self, timestamp_ms: i64, upper_bound: Offset) -> Result<Option<TimeHit>, LogError> {
        loop {
            let version = self.closed_version().await?;
            let result = self.find_time(timestamp_ms, upper_bound).await;
            if self.is_closed_version(version) {
                return result;
            }
        }
    }

    async fn find_time(&self, timestamp_ms: i64, upper_bound: Offset) -> Result<Option<TimeHit>, LogError> {
        self.load_segments().await?;
        for segment in self.closed_refs() {
            if segment.next_offset <= self.log_start_offset() {
                continue;
            }
            if self.max_timestamp_of(segment).await? >= timestamp_ms {
                return self.find_from(segment, timestamp_ms, upper_bound).await;
            }
        }
        for (segment, max_timestamp_ms) in self.open_refs() {
            if max_timestamp_ms >= timestamp_ms {
                return self.find_from(segment, timestamp_ms, upper_bound).await;
            }
        }
        Ok(None)
    }

    /// The earliest record with the largest timestamp, if it lies below the bound. `None` for an empty log and for one
    /// without timestamps.
    pub async fn max_timestamp_hit(&self, upper_bound: Offset) -> Result<Option<TimeHit>, LogError> {
        loop {
            let version = self.closed_version().await?;
            let result = self.find_largest(upper_bound).await;
            if self.is_closed_version(version) {
                return result;
            }
        }
    }

    async fn find_largest(&self, upper_bound: Offset) -> Result<Option<TimeHit>, LogError> {
        self.load_segments().await?;
        let mut largest = NO_TIMESTAMP;
        for segment in self.closed_refs() {
            if segment.next_offset > self.log_start_offset() {
                largest = largest.max(self.max_timestamp_of(segment).await?);
            }
        }
        largest = self.open_refs().into_iter().map(|(_, max)| max).fold(largest, i64::max);
        if largest == NO_TIMESTAMP {
            return Ok(None);
        }
        self.find_time(largest, upper_bound).await
    }

    /// Scans from the place that the segment's time index gives. The record may lie in a later segment, where the log
    /// start has moved past it in this one.
    async fn find_from(
        &self,
        segment: SegmentRef,
        timestamp_ms: i64,
        upper_bound: Offset,
    ) -> Result<Option<TimeHit>, LogError> {
        let log_start = self.log_start_offset();
        let mut from = self.time_start(segment, timestamp_ms).await?.max(log_start);
        let limits = ReadLimits { max_bytes: IO_MAX as usize, min_one_batch: true, upper_bound: Offset(i64::MAX) };
        loop {
            let read = self.read(from, limits).await?;
            for slice in &read.slices {
                let bytes = slice.load().await?;
                if let Some(hit) = find_in(bytes, timestamp_ms, log_start).await? {
                    return Ok((hit.offset < upper_bound).then_some(hit));
                }
            }
            if read.next_offset <= from || read.next_offset >= upper_bound {
                return Ok(None);
            }
            from = read.next_offset;
        }
    }
}

/// Looks through whole batches for the first record at or after the time.
async fn find_in(bytes: Bytes, timestamp_ms: i64, log_start: Offset) -> Result<Option<TimeHit>, LogError> {
    let mut at = 0;
    while at < bytes.len() {
        let header = match BatchView::parse(&bytes[at..]) {
            Ok(batch) => batch.header,
            Err(why) => return Err(LogError::Io(why.to_string().into())),
        };
        let batch = bytes.slice(at..at + header.size());
        at += header.size();
        if header.max_timestamp_ms < timestamp_ms || header.last_offset() < log_start {
            continue;
        }
        let compressed = header.codec().is_ok_and(|codec| codec != Codec::None);
        let hit = if compressed {
            let work = move || find_in_batch(&batch, timestamp_ms, log_start);
            spawn_blocking(work).await.map_err(|panic| LogError::Io(panic.to_string().into()))?
        } else {
            find_in_batch(&batch, timestamp_ms, log_start)
        };
        match hit {
            Ok(Some(hit)) => return Ok(Some(hit)),
            Ok(None) => {}
            Err(why) => return Err(LogError::Io(why.into())),
        }
    }
    Ok(None)
}

fn find_in_batch(bytes: &[u8], timestamp_ms: i64, log_start: Offset) -> Result<Option<TimeHit>, String> {
    let batch = BatchView::parse(bytes).map_err(|e| e.to_string())?;
    let header = batch.header;
    let hit = |offset, timestamp_ms| TimeHit { offset, timestamp_ms, leader_epoch: header.leader_epoch };
    let has_all = i64::from(header.record_count) == i64::from(header.last_offset_delta) + 1;
    if header.is_log_append_time() && has_all {
        // Every record of it has the batch's time.
        return Ok(Some(hit(header.base_offset.max(log_start), header.max_timestamp_ms)));
    }
    match header.codec().map_err(|e| e.to_string())? {
        Codec::None => {
            first_record(batch.records(), &header, timestamp_ms, log_start).map(|f| f.map(|(o, t)| hit(o, t)))
        }
        codec => {
            let mut out = Vec::new();
            inflate(codec, batch.payload(), INFLATE_MAX, &mut out).map_err(|e| e.to_string())?;
            let records = RecordIter::new(&out, header.record_count);
            first_record(records, &header, timestamp_ms, log_start).map(|f| f.map(|(o, t)| hit(o, t)))
        }
    }
}

fn first_record(
    records: RecordIter<'_>,
    header: &BatchHeader,
    timestamp_ms: i64,
    log_start: Offset,
) -> Result<Option<(Offset, i64)>, String> {
    for record in records {
        let record = record.map_err(|e| e.to_string())?;
        let offset = header.base_offset.plus(i64::from(record.offset_delta));
        let time = match header.is_log_append_time() {
            true => header.max_timestamp_ms,
            false => header.base_timestamp_ms.saturating_add(record.timestamp_delta_ms),
        };
        if time >= timestamp_ms && offset >= log_start {
            return Ok(Some((offset, time)));
        }
    }
    Ok(None)
}
