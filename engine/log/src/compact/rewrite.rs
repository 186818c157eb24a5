//! The work on batches: filling the offset map from the dirty section, and making a cleaned segment's bytes, index and time
//! index from old ones. Pure: whole batches in, bytes out. Both are values that the cleaning hands to the pool thread for
//! a piece at a time. Every batch's CRC is checked before anything is believed: a damaged one ends the cleaning.

use model::compression::{deflate, inflate};
use model::rebuild::{RawRecords, delete_horizon_ms, emptied, move_timestamp, with_delete_horizon, write_batch};
use model::{BatchHeader, BatchView, Codec, Offset, Record};

use super::offset_map::OffsetMap;
use super::rules::{Fate, MarkerFate, Rules};
use crate::format::index::IndexEntry;
use crate::format::time_index::TimeEntry;
use crate::limits::{CLEAN_SCRATCH_KEPT, INFLATE_MAX};
use crate::segment::{Fill, NO_TIMESTAMP};

/// Where in a piece, and why it cannot be cleaned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub at: usize,
    pub why: String,
}

/// What a cleaning did to records, and what it leaves for later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub kept_records: u64,
    pub dropped_records: u64,
    pub dropped_batches: u64,
    /// Something differs from the old bytes.
    pub changed: bool,
    /// Earliest delete horizon of a tombstone that stayed.
    pub next_horizon_ms: Option<i64>,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.kept_records += other.kept_records;
        self.dropped_records += other.dropped_records;
        self.dropped_batches += other.dropped_batches;
        self.changed |= other.changed;
        self.next_horizon_ms = earlier(self.next_horizon_ms, other.next_horizon_ms);
    }
}

fn earlier(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Calls `work` for each batch of a piece, checked.
fn each_batch(piece: &[u8], mut work: impl FnMut(usize, &BatchView<'_>) -> Result<(), String>) -> Result<(), Damage> {
    let mut at = 0;
    while at < piece.len() {
        let damaged = |why: String| Damage { at, why };
        let batch = BatchView::parse(&piece[at..]).map_err(|e| damaged(e.to_string()))?;
        batch.check_crc().map_err(|e| damaged(e.to_string()))?;
        work(at, &batch).map_err(damaged)?;
        at += batch.bytes.len();
    }
    Ok(())
}

/// The record section in the clear: the batch's own bytes, or `scratch`.
fn section<'a>(batch: &BatchView<'a>, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], String> {
    match batch.header.codec().map_err(|e| e.to_string())? {
        Codec::None => Ok(batch.payload()),
        codec => {
            if scratch.capacity() > CLEAN_SCRATCH_KEPT {
                *scratch = Vec::new();
            }
            inflate(codec, batch.payload(), INFLATE_MAX, scratch).map_err(|e| e.to_string())?;
            Ok(scratch)
        }
    }
}

fn offset_of(header: &BatchHeader, record: &Record<'_>) -> Result<Offset, String> {
    if (0..=header.last_offset_delta).contains(&record.offset_delta) {
        return Ok(header.base_offset.plus(i64::from(record.offset_delta)));
    }
    Err(format!("a record's offset lies outside of its batch at {}", header.base_offset))
}

/// Fills the map from the dirty section.
#[derive(Debug)]
pub(crate) struct Indexer {
    pub map: OffsetMap,
    /// Where the dirty section begins: older records of its first segment were seen before.
    pub from: Offset,
    /// The map can hold no more: the section ends before the first key that did not fit.
    pub is_full: bool,
    scratch: Vec<u8>,
}

impl Indexer {
    pub fn new(map: OffsetMap, from: Offset) -> Indexer {
        Indexer { map, from, is_full: false, scratch: Vec::new() }
    }

    pub fn take_piece(&mut self, piece: &[u8]) -> Result<(), Damage> {
        each_batch(piece, |_, batch| if self.is_full { Ok(()) } else { self.take(batch) })
    }

    fn take(&mut self, batch: &BatchView<'_>) -> Result<(), String> {
        let header = &batch.header;
        if !header.is_control() && !header.is_transactional() && header.last_offset() >= self.from {
            let mut records = RawRecords::new(section(batch, &mut self.scratch)?, header);
            for record in records.by_ref() {
                let (record, _) = record.map_err(|e| e.to_string())?;
                let offset = offset_of(header, &record)?;
                let Some(key) = record.key.filter(|_| offset >= self.from) else { continue };
                if self.map.put(key, offset).is_err() {
                    self.is_full = true;
                    return Ok(());
                }
            }
        }
        self.map.looked_to(header.last_offset());
        Ok(())
    }
}

/// Makes one cleaned segment.
#[derive(Debug)]
pub(crate) struct Rewriter {
    pub map: OffsetMap,
    pub rules: Rules,
    base_offset: Offset,
    interval: u64,
    pub fill: Fill,
    pub index: Vec<IndexEntry>,
    pub times: Vec<TimeEntry>,
    /// Bytes made and not yet taken.
    pub out: Vec<u8>,
    pub tally: Tally,
    scratch: Vec<u8>,
    records: Vec<u8>,
}

/// What a walk over a batch found.
struct Walked {
    kept: i32,
    dropped: i32,
    max_timestamp_ms: i64,
    tombstones: bool,
}

impl Rewriter {
    pub fn new(map: OffsetMap, rules: Rules, base_offset: Offset, interval: u64) -> Rewriter {
        Rewriter {
            map,
            rules,
            base_offset,
            interval,
            fill: Fill::empty(base_offset),
            index: Vec::new(),
            times: Vec::new(),
            out: Vec::new(),
            tally: Tally::default(),
            scratch: Vec::new(),
            records: Vec::new(),
        }
    }

    /// `is_last`: the piece ends with the last batch of its group, which stays, if only empty: a log must not end earlier
    /// than it did.
    pub fn take_piece(&mut self, piece: &[u8], is_last: bool) -> Result<(), Damage> {
        each_batch(piece, |at, batch| self.take(batch, is_last && at + batch.bytes.len() == piece.len()))
    }

    fn take(&mut self, batch: &BatchView<'_>, ends_group: bool) -> Result<(), String> {
        let header = &batch.header;
        if header.is_control() {
            return match self.rules.marker(header) {
                MarkerFate::Keep => self.keep(batch),
                MarkerFate::KeepUntil(horizon_ms) => self.keep_until(batch, horizon_ms),
                MarkerFate::Drop => self.drop_all(batch, ends_group),
            };
        }
        if header.is_transactional() {
            return self.keep(batch);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut kept = std::mem::take(&mut self.records);
        let result = match section(batch, &mut scratch) {
            Ok(section) => self.take_records(batch, section, &mut kept, ends_group),
            Err(why) => Err(why),
        };
        self.scratch = scratch;
        self.records = if kept.capacity() > CLEAN_SCRATCH_KEPT { Vec::new() } else { kept };
        result
    }

    fn take_records(
        &mut self,
        batch: &BatchView<'_>,
        section: &[u8],
        kept: &mut Vec<u8>,
        ends_group: bool,
    ) -> Result<(), String> {
        let header = &batch.header;
        let walked = self.walk(header, section, kept)?;
        self.tally.kept_records += u64::from(walked.kept.unsigned_abs());
        self.tally.dropped_records += u64::from(walked.dropped.unsigned_abs());
        if walked.kept == 0 {
            return self.drop_all(batch, ends_group);
        }
        let horizon_ms = delete_horizon_ms(header);
        let new_horizon_ms = (walked.tombstones && horizon_ms.is_none()).then(|| self.rules.new_horizon_ms());
        if walked.tombstones {
            self.tally.next_horizon_ms = earlier(self.tally.next_horizon_ms, new_horizon_ms.or(horizon_ms));
        }
        if walked.dropped == 0 && new_horizon_ms.is_none() {
            return self.keep(batch);
        }
        let mut made = BatchHeader { record_count: walked.kept, ..*header };
        if !header.is_log_append_time() {
            made.max_timestamp_ms = walked.max_timestamp_ms;
        }
        if let Some(horizon_ms) = new_horizon_ms {
            *kept = moved(kept, &made, horizon_ms)?;
            made = with_delete_horizon(&made, horizon_ms);
        }
        self.write(&made, kept)
    }

    /// Gathers the bytes of the records that stay.
    fn walk(&self, header: &BatchHeader, section: &[u8], kept: &mut Vec<u8>) -> Result<Walked, String> {
        kept.clear();
        let mut walked = Walked { kept: 0, dropped: 0, max_timestamp_ms: NO_TIMESTAMP, tombstones: false };
        let mut records = RawRecords::new(section, header);
        for record in records.by_ref() {
            let (record, raw) = record.map_err(|e| e.to_string())?;
            let offset = offset_of(header, &record)?;
            if self.rules.record(&self.map, header, offset, &record) == Fate::Drop {
                walked.dropped += 1;
                continue;
            }
            walked.kept += 1;
            let time_ms = header.base_timestamp_ms.saturating_add(record.timestamp_delta_ms);
            walked.max_timestamp_ms = walked.max_timestamp_ms.max(time_ms);
            // Its time begins with the cleaning that saw it.
            walked.tombstones |= record.value.is_none() && offset <= self.map.latest();
            kept.extend_from_slice(raw);
        }
        if records.is_at_end() { Ok(walked) } else { Err("bytes are left behind its last record".to_string()) }
    }

    fn drop_all(&mut self, batch: &BatchView<'_>, ends_group: bool) -> Result<(), String> {
        let header = &batch.header;
        if !ends_group && !self.rules.holds_last_sequence(header) {
            self.tally.changed = true;
            self.tally.dropped_batches += 1;
            return Ok(());
        }
        if header.record_count == 0 {
            return self.keep(batch);
        }
        self.write(&emptied(header), &[])
    }

    /// Byte for byte.
    fn keep(&mut self, batch: &BatchView<'_>) -> Result<(), String> {
        self.account(&batch.header)?;
        self.out.extend_from_slice(batch.bytes);
        Ok(())
    }

    /// A marker whose time begins to run. Markers are never compressed.
    fn keep_until(&mut self, batch: &BatchView<'_>, horizon_ms: i64) -> Result<(), String> {
        let records = moved(batch.payload(), &batch.header, horizon_ms)?;
        self.tally.next_horizon_ms = earlier(self.tally.next_horizon_ms, Some(horizon_ms));
        self.write(&with_delete_horizon(&batch.header, horizon_ms), &records)
    }

    fn write(&mut self, header: &BatchHeader, records: &[u8]) -> Result<(), String> {
        self.tally.changed = true;
        let start = self.out.len();
        match header.codec().map_err(|e| e.to_string())? {
            Codec::None => write_batch(header, records, &mut self.out),
            codec => {
                let mut packed = Vec::new();
                deflate(codec, records, &mut packed).map_err(|e| e.to_string())?;
                write_batch(header, &packed, &mut self.out);
            }
        }
        let made = BatchHeader::parse(&self.out[start..]).map_err(|e| e.to_string())?;
        self.account(&made)
    }

    fn account(&mut self, header: &BatchHeader) -> Result<(), String> {
        let Some(entries) = self.fill.add(self.base_offset, header, self.interval) else {
            return Err("the cleaned segment would be larger than a segment can be".to_string());
        };
        if let Some(entries) = entries {
            self.index.push(entries.index);
            self.times.extend(entries.time);
        }
        Ok(())
    }
}

/// Records relative to `horizon_ms` instead of the base timestamp.
fn moved(records: &[u8], header: &BatchHeader, horizon_ms: i64) -> Result<Vec<u8>, String> {
    let by_ms = header.base_timestamp_ms.wrapping_sub(horizon_ms);
    let mut out = Vec::with_capacity(records.len() + records.len() / 8);
    for record in RawRecords::new(records, header) {
        let (_, raw) = record.map_err(|e| e.to_string())?;
        move_timestamp(raw, by_ms, &mut out).ok_or("a record cannot be read again")?;
    }
    Ok(out)
}

#[cfg(all(test, not(feature = "sim")))]
#[path = "rewrite_tests.rs"]
mod tests;
