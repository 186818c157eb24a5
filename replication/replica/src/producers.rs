//! What a partition remembers of idempotent producers (KIP-98, KIP-360): epoch and the last five batches of each.
//!
//! Owned by the replica on its shard. Changed only together with an append, so that it always describes the log up to
//! its end; snapshots of it are written when segments roll, and the rest is rebuilt from batch headers at start.
//! An unknown producer may start anywhere: its state may have expired, given way, or been lost to retention.
//!
//! The entries lie in the shard's [`ProducerStates`], which bounds them over all its partitions.

use std::rc::Rc;

use model::{BatchHeader, ErrorCode, Offset, ProducerEpoch, ProducerId};

use crate::limits::BATCHES_PER_PRODUCER;
use crate::producer_states::{ProducerStates, TableId};
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

/// One producer's state. `batches` is never empty, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    pub epoch: ProducerEpoch,
    /// Grows from one: most producers of a shard that is full of them wrote once.
    pub batches: Vec<BatchMemory>,
}

impl ProducerEntry {
    pub(crate) fn begin(epoch: ProducerEpoch, memory: BatchMemory) -> ProducerEntry {
        ProducerEntry { epoch, batches: vec![memory] }
    }

    pub(crate) fn push(&mut self, epoch: ProducerEpoch, memory: BatchMemory) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
        if self.batches.len() == BATCHES_PER_PRODUCER {
            self.batches.remove(0);
        }
        self.batches.push(memory);
    }
}

/// What the sequence numbers of a batch say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// No idempotent producer, or the next batch of one.
    Next,
    /// Seen before: answer with what was answered then.
    Duplicate(BatchMemory),
}

/// All producers of a partition: its part of the shard's states, which goes with it.
#[derive(Debug)]
pub struct ProducerTable {
    states: Rc<ProducerStates>,
    id: TableId,
}

/// On its own, under the bound of a whole shard: for tools.
impl Default for ProducerTable {
    fn default() -> ProducerTable {
        ProducerTable::within(&Rc::new(ProducerStates::default()))
    }
}

impl Drop for ProducerTable {
    fn drop(&mut self) {
        self.states.drop_table(self.id);
    }
}

impl PartialEq for ProducerTable {
    fn eq(&self, other: &ProducerTable) -> bool {
        self.to_vec() == other.to_vec()
    }
}

impl Eq for ProducerTable {}

/// The sequence number behind `sequence`: 2147483647 wraps to 0.
fn following(sequence: i32) -> i32 {
    if sequence == i32::MAX { 0 } else { sequence + 1 }
}

impl ProducerTable {
    /// An empty table within the shard's bound.
    pub fn within(states: &Rc<ProducerStates>) -> ProducerTable {
        ProducerTable { states: states.clone(), id: states.new_table() }
    }

    pub fn len(&self) -> usize {
        self.states.len_of(self.id)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every producer in the order of ids.
    pub fn for_each(&self, look: impl FnMut(ProducerId, &ProducerEntry)) {
        self.states.for_each(self.id, look);
    }

    pub fn to_vec(&self) -> Vec<(ProducerId, ProducerEntry)> {
        let mut all = Vec::with_capacity(self.len());
        self.for_each(|id, entry| all.push((id, entry.clone())));
        all
    }

    /// Judges a batch before it is appended. Changes nothing.
    pub fn check(&self, header: &BatchHeader) -> Result<Sequence, Refused> {
        if !header.has_producer() {
            return Ok(Sequence::Next);
        }
        let known = self.states.with(self.id, header.producer_id, |entry| judge(entry, header));
        known.unwrap_or(Ok(Sequence::Next))
    }

    /// Remembers an appended batch at its place in the log.
    pub fn remember(&self, header: &BatchHeader, first_offset: Offset, now_ms: i64) {
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
        self.restore(header.producer_id, header.producer_epoch, memory, now_ms);
    }

    /// Puts a batch behind those known of the producer; for snapshots and replay too.
    pub fn restore(&self, id: ProducerId, epoch: ProducerEpoch, memory: BatchMemory, now_ms: i64) {
        self.states.put(self.id, id, epoch, memory, now_ms);
    }

    /// Forgets producers of which this process saw nothing since `oldest_ms` (`producer.id.expiration.ms`).
    pub fn expire(&self, oldest_ms: i64) {
        self.states.expire(self.id, oldest_ms);
    }

    /// Forgets batches at or behind `end`: the log was cut there.
    pub fn truncate(&self, end: Offset) {
        self.states.truncate(self.id, end);
    }
}

fn judge(entry: &ProducerEntry, header: &BatchHeader) -> Result<Sequence, Refused> {
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
    match entry.batches.last() {
        Some(last) if following(last.last_sequence) != header.base_sequence => {
            Err(out_of_order("the sequence number does not follow the last one"))
        }
        _ => Ok(Sequence::Next),
    }
}

fn out_of_order(message: &'static str) -> Refused {
    Refused::new(ErrorCode::OutOfOrderSequenceNumber, message)
}

#[cfg(test)]
#[path = "producers_tests.rs"]
mod tests;
