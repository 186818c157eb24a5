//! What a partition remembers of idempotent producers (KIP-98, KIP-360): epoch and the last five batches of each.
//!
//! Owned by the replica on its shard. Changed only together with an append, so that it always describes the log up to
//! its end; snapshots of it are written when segments roll, and the rest is rebuilt from batch headers at start.
//! An unknown producer may start anywhere: its state may have expired or been lost to retention.

use std::collections::{BTreeMap, VecDeque};

use model::{BatchHeader, ErrorCode, Offset, ProducerEpoch, ProducerId};

use crate::limits::{BATCHES_PER_PRODUCER, MAX_PRODUCERS_PER_PARTITION};
use crate::validate::Refused;

/// One remembered batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMemory {
    pub first_sequence: i32,
    pub last_sequence: i32,
    pub first_offset: Offset,
    pub last_offset: Offset,
    pub timestamp_ms: i64,
}

/// One producer's state. `batches` is never empty once the entry exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    pub epoch: ProducerEpoch,
    pub batches: VecDeque<BatchMemory>,
}

/// What the sequence numbers of a batch say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// No idempotent producer, or the next batch of one.
    Next,
    /// Seen before: answer with what was answered then.
    Duplicate(BatchMemory),
}

/// All producers of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerTable {
    entries: BTreeMap<ProducerId, ProducerEntry>,
}

/// The sequence number behind `sequence`: 2147483647 wraps to 0.
fn following(sequence: i32) -> i32 {
    if sequence == i32::MAX { 0 } else { sequence + 1 }
}

impl ProducerTable {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (ProducerId, &ProducerEntry)> {
        self.entries.iter().map(|(&id, entry)| (id, entry))
    }

    /// Judges a batch before it is appended. Changes nothing.
    pub fn check(&self, header: &BatchHeader) -> Result<Sequence, Refused> {
        if !header.has_producer() {
            return Ok(Sequence::Next);
        }
        let Some(entry) = self.entries.get(&header.producer_id) else { return Ok(Sequence::Next) };
        if header.producer_epoch < entry.epoch {
            return Err(Refused::new(
                ErrorCode::InvalidProducerEpoch,
                "the producer's epoch is older than the last one seen",
            ));
        }
        if header.producer_epoch > entry.epoch {
            if header.base_sequence == 0 {
                return Ok(Sequence::Next);
            }
            return Err(out_of_order("a new producer epoch begins at sequence number 0"));
        }
        let last_sequence = header.last_sequence();
        let same = |b: &&BatchMemory| b.first_sequence == header.base_sequence && b.last_sequence == last_sequence;
        if let Some(seen) = entry.batches.iter().rev().find(same) {
            return Ok(Sequence::Duplicate(*seen));
        }
        match entry.batches.back() {
            Some(last) if following(last.last_sequence) != header.base_sequence => {
                Err(out_of_order("the sequence number does not follow the last one"))
            }
            _ => Ok(Sequence::Next),
        }
    }

    /// Remembers an appended batch at its place in the log.
    pub fn remember(&mut self, header: &BatchHeader, first_offset: Offset) {
        if !header.has_producer() || header.is_control() {
            return;
        }
        let memory = BatchMemory {
            first_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            first_offset,
            last_offset: first_offset.plus(i64::from(header.last_offset_delta)),
            timestamp_ms: header.max_timestamp_ms,
        };
        self.restore(header.producer_id, header.producer_epoch, memory);
    }

    /// Puts a batch behind those known of the producer; for snapshots and replay too.
    pub fn restore(&mut self, id: ProducerId, epoch: ProducerEpoch, memory: BatchMemory) {
        if !self.entries.contains_key(&id) && self.entries.len() >= MAX_PRODUCERS_PER_PARTITION {
            self.forget_most_silent();
        }
        let entry = self.entries.entry(id).or_insert_with(|| ProducerEntry { epoch, batches: VecDeque::new() });
        if entry.epoch != epoch {
            entry.epoch = epoch;
            entry.batches.clear();
        }
        if entry.batches.len() == BATCHES_PER_PRODUCER {
            entry.batches.pop_front();
        }
        entry.batches.push_back(memory);
    }

    fn forget_most_silent(&mut self) {
        let last_offset = |e: &ProducerEntry| e.batches.back().map_or(Offset(-1), |b| b.last_offset);
        let silent = self.entries.iter().min_by_key(|(_, entry)| last_offset(entry)).map(|(&id, _)| id);
        if let Some(id) = silent {
            self.entries.remove(&id);
        }
    }

    /// Forgets producers that wrote nothing since `oldest_ms` (`producer.id.expiration.ms`).
    pub fn expire(&mut self, oldest_ms: i64) {
        self.entries.retain(|_, entry| entry.batches.back().is_some_and(|b| b.timestamp_ms >= oldest_ms));
    }

    /// Forgets batches at or behind `end`: the log was cut there.
    pub fn truncate(&mut self, end: Offset) {
        self.entries.retain(|_, entry| {
            entry.batches.retain(|b| b.last_offset < end);
            !entry.batches.is_empty()
        });
    }
}

fn out_of_order(message: &'static str) -> Refused {
    Refused::new(ErrorCode::OutOfOrderSequenceNumber, message)
}

#[cfg(test)]
#[path = "producers_tests.rs"]
mod tests;
