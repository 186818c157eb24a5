//! The idempotent producers of all partitions of a shard, under one bound (`ringlog.producer.state.max`).
//!
//! Owned by the shard; each partition's [`ProducerTable`](crate::producers::ProducerTable) is a part of it. When it is
//! full, the producer that was silent longest gives way, whatever its partition: what it sees afterwards is what an
//! unknown producer sees (KIP-360). Nothing here is on disk; a crash loses what the partitions rebuild from their logs.
//!
//! Budget: a known producer's next batch is one look-up and one comparison. Its place in the order of silence is renewed
//! only when an eighth of the bound has come in behind it, so producers that are active never lose it, and those that
//! write while nobody new comes cost nothing.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use model::{Offset, ProducerEpoch, ProducerId};

use crate::limits::{PLACE_RENEWALS_PER_BOUND, PRODUCERS_PER_SHARD};
use crate::producers::{BatchMemory, ProducerEntry};

/// Which partition's table. Never used twice in a process.
pub(crate) type TableId = u64;

type Key = (TableId, ProducerId);

#[derive(Debug)]
struct Slot {
    entry: ProducerEntry,
    /// Its key in `order`.
    place: u64,
    /// By the broker's clock: batches' timestamps are the clients' and may say anything.
    last_seen_ms: i64,
}

/// See the module.
#[derive(Debug)]
pub struct ProducerStates {
    max: usize,
    slots: RefCell<BTreeMap<Key, Slot>>,
    /// From the longest silent on; each slot has one place.
    order: RefCell<BTreeMap<u64, Key>>,
    next_place: Cell<u64>,
    next_table: Cell<TableId>,
    evicted: Cell<u64>,
}

impl Default for ProducerStates {
    fn default() -> ProducerStates {
        ProducerStates::new(PRODUCERS_PER_SHARD)
    }
}

impl ProducerStates {
    pub fn new(max: usize) -> ProducerStates {
        assert!(max > 0, "the table of properties gives a bound above 0");
        ProducerStates {
            max,
            slots: RefCell::default(),
            order: RefCell::default(),
            next_place: Cell::new(0),
            next_table: Cell::new(0),
            evicted: Cell::new(0),
        }
    }

    /// Producers of all partitions.
    pub fn len(&self) -> usize {
        self.slots.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Producers that gave way so far.
    pub fn evicted(&self) -> u64 {
        self.evicted.get()
    }

    pub(crate) fn new_table(&self) -> TableId {
        let id = self.next_table.get();
        self.next_table.set(id + 1);
        id
    }

    pub(crate) fn len_of(&self, table: TableId) -> usize {
        self.slots.borrow().range(of(table)).count()
    }

    pub(crate) fn for_each(&self, table: TableId, mut look: impl FnMut(ProducerId, &ProducerEntry)) {
        for ((_, id), slot) in self.slots.borrow().range(of(table)) {
            look(*id, &slot.entry);
        }
    }

    pub(crate) fn with<T>(&self, table: TableId, id: ProducerId, look: impl FnOnce(&ProducerEntry) -> T) -> Option<T> {
        self.slots.borrow().get(&(table, id)).map(|slot| look(&slot.entry))
    }

    pub(crate) fn put(&self, table: TableId, id: ProducerId, epoch: ProducerEpoch, memory: BatchMemory, now_ms: i64) {
        let key = (table, id);
        let (slots, order) = (&mut *self.slots.borrow_mut(), &mut *self.order.borrow_mut());
        if let Some(slot) = slots.get_mut(&key) {
            slot.entry.push(epoch, memory);
            slot.last_seen_ms = now_ms;
            if self.next_place.get() - slot.place > self.renew_after() {
                order.remove(&slot.place);
                slot.place = self.take_place();
                order.insert(slot.place, key);
            }
            return;
        }
        if slots.len() >= self.max
            && let Some((_, silent)) = order.pop_first()
        {
            let gone = slots.remove(&silent);
            assert!(gone.is_some(), "every place is a slot's");
            self.evicted.set(self.evicted.get() + 1);
        }
        let place = self.take_place();
        order.insert(place, key);
        slots.insert(key, Slot { entry: ProducerEntry::begin(epoch, memory), place, last_seen_ms: now_ms });
        assert!(slots.len() == order.len() && slots.len() <= self.max, "the bound holds");
    }

    fn take_place(&self) -> u64 {
        let place = self.next_place.get();
        self.next_place.set(place + 1);
        place
    }

    fn renew_after(&self) -> u64 {
        (self.max / PLACE_RENEWALS_PER_BOUND) as u64
    }

    pub(crate) fn expire(&self, table: TableId, oldest_ms: i64) {
        self.retain(table, |slot| slot.last_seen_ms >= oldest_ms);
    }

    pub(crate) fn truncate(&self, table: TableId, end: Offset) {
        self.retain(table, |slot| {
            slot.entry.batches.retain(|b| b.last_offset < end);
            !slot.entry.batches.is_empty()
        });
    }

    pub(crate) fn drop_table(&self, table: TableId) {
        self.retain(table, |_| false);
    }

    fn retain(&self, table: TableId, mut keep: impl FnMut(&mut Slot) -> bool) {
        let mut slots = self.slots.borrow_mut();
        let gone: Vec<(Key, u64)> =
            slots.range_mut(of(table)).filter_map(|(&key, slot)| (!keep(slot)).then_some((key, slot.place))).collect();
        let mut order = self.order.borrow_mut();
        for (key, place) in gone {
            slots.remove(&key);
            order.remove(&place);
        }
    }
}

/// The keys of one table.
fn of(table: TableId) -> std::ops::RangeInclusive<Key> {
    (table, ProducerId(i64::MIN))..=(table, ProducerId(i64::MAX))
}

#[cfg(test)]
#[path = "producer_states_tests.rs"]
mod tests;
