//! What compaction keeps. A record stays when it lies behind what the offset map saw, or when it is the last of its key
//! and either has a value or is a tombstone whose delete horizon is not over. Kafka's rules, batch format 2 only.
//!
//! Transactions are not written by this broker yet, but a log may hold them. Their data is left alone, neither removed
//! nor counted as the newer value of a key, since nothing here knows whether it was committed; markers are never removed
//! unless [`Rules::empty_markers`] names them.

use std::collections::{BTreeMap, BTreeSet};

use model::rebuild::delete_horizon_ms;
use model::{BatchHeader, Offset, ProducerId, Record};

use super::offset_map::OffsetMap;

/// What a cleaning goes by besides its map.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// The clock when it began.
    pub now_ms: i64,
    pub delete_retention_ms: i64,
    /// Last offset of each producer that may still be asked for its last sequence number: that batch stays, if only empty.
    pub producers: BTreeMap<ProducerId, Offset>,
    /// Offsets of markers whose transactions hold no record any more. Whoever keeps account of transactions fills it.
    pub empty_markers: BTreeSet<Offset>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Keep,
    Drop,
}

/// What becomes of a control batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkerFate {
    Keep,
    /// Kept, and from now on with this delete horizon.
    KeepUntil(i64),
    Drop,
}

impl Rules {
    pub fn new_horizon_ms(&self) -> i64 {
        self.now_ms.saturating_add(self.delete_retention_ms)
    }

    pub fn record(&self, map: &OffsetMap, header: &BatchHeader, offset: Offset, record: &Record<'_>) -> Fate {
        if offset > map.latest() {
            return Fate::Keep;
        }
        // From when the topic was not compacted: no one can ask for it by key, and Kafka drops it too.
        let Some(key) = record.key else { return Fate::Drop };
        if map.get(key).is_some_and(|last| offset < last) {
            return Fate::Drop;
        }
        let over = delete_horizon_ms(header).is_some_and(|horizon_ms| self.now_ms >= horizon_ms);
        if record.value.is_none() && over { Fate::Drop } else { Fate::Keep }
    }

    /// Once its transaction holds nothing any more, a marker stays for `delete.retention.ms` like a tombstone.
    pub fn marker(&self, header: &BatchHeader) -> MarkerFate {
        if !self.empty_markers.contains(&header.base_offset) {
            return MarkerFate::Keep;
        }
        match delete_horizon_ms(header) {
            None => MarkerFate::KeepUntil(self.new_horizon_ms()),
            Some(horizon_ms) if self.now_ms >= horizon_ms => MarkerFate::Drop,
            Some(_) => MarkerFate::Keep,
        }
    }

    /// Whether the batch has to stay, if only without records, so that a producer's last sequence number survives.
    pub fn holds_last_sequence(&self, header: &BatchHeader) -> bool {
        header.has_producer() && self.producers.get(&header.producer_id) == Some(&header.last_offset())
    }
}
