//! Indexes and verified windows of closed segments in memory, bounded by bytes, least recently used first out.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use model::Offset;

use crate::file_table::FileKey;
use crate::format::index::IndexEntry;
use crate::format::time_index::TimeEntry;

/// A bounded map: the value's size in bytes is given with it.
#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    limit: usize,
    state: RefCell<State<K, V>>,
}

#[derive(Debug)]
struct State<K, V> {
    by_key: BTreeMap<K, Slot<V>>,
    by_use: BTreeMap<u64, K>,
    clock: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Slot<V> {
    value: Rc<V>,
    bytes: usize,
    used: u64,
}

impl<K: Ord + Copy, V> Lru<K, V> {
    pub fn new(limit: usize) -> Lru<K, V> {
        let state = State { by_key: BTreeMap::new(), by_use: BTreeMap::new(), clock: 0, bytes: 0 };
        Lru { limit, state: RefCell::new(state) }
    }

    pub fn get(&self, key: K) -> Option<Rc<V>> {
        let mut state = self.state.borrow_mut();
        state.clock += 1;
        let now = state.clock;
        let slot = state.by_key.get_mut(&key)?;
        let value = slot.value.clone();
        let before = std::mem::replace(&mut slot.used, now);
        state.by_use.remove(&before);
        state.by_use.insert(now, key);
        Some(value)
    }

    /// The entry with the largest key in `low..=high`.
    pub fn last_in(&self, low: K, high: K) -> Option<Rc<V>> {
        let key = *self.state.borrow().by_key.range(low..=high).next_back()?.0;
        self.get(key)
    }

    pub fn insert(&self, key: K, value: V, bytes: usize) -> Rc<V> {
        self.remove(key);
        let value = Rc::new(value);
        let mut state = self.state.borrow_mut();
        state.clock += 1;
        let now = state.clock;
        state.by_key.insert(key, Slot { value: value.clone(), bytes, used: now });
        state.by_use.insert(now, key);
        state.bytes += bytes;
        while state.bytes > self.limit && state.by_key.len() > 1 {
            let Some((_, oldest)) = state.by_use.pop_first() else { break };
            if let Some(slot) = state.by_key.remove(&oldest) {
                state.bytes -= slot.bytes;
            }
        }
        value
    }

    pub fn remove(&self, key: K) {
        let mut state = self.state.borrow_mut();
        if let Some(slot) = state.by_key.remove(&key) {
            state.by_use.remove(&slot.used);
            state.bytes -= slot.bytes;
        }
    }

    pub fn remove_range(&self, low: K, high: K) {
        let keys: Vec<K> = self.state.borrow().by_key.range(low..=high).map(|(key, _)| *key).collect();
        for key in keys {
            self.remove(key);
        }
    }

    /// Removes what `keep` refuses among the keys in `low..=high`.
    pub fn retain_in(&self, low: K, high: K, keep: impl Fn(&V) -> bool) {
        let refused = |(key, slot): (&K, &Slot<V>)| (!keep(&slot.value)).then_some(*key);
        let keys: Vec<K> = self.state.borrow().by_key.range(low..=high).filter_map(refused).collect();
        for key in keys {
            self.remove(key);
        }
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.state.borrow().bytes
    }
}

/// A range of a closed segment whose CRCs were checked, with places where a read may begin or end.
#[derive(Debug)]
pub(crate) struct VerifiedWindow {
    pub end: u64,
    pub first_offset: Offset,
    pub next_offset: Offset,
    pub verified_at_ms: i64,
    /// Starts of batches, thinned: (offset from which the batch counts, position). The first is the window's start.
    pub marks: Vec<(Offset, u64)>,
}

/// All that is remembered of closed segments.
#[derive(Debug)]
pub(crate) struct SegmentMemory {
    pub indexes: Lru<FileKey, Vec<IndexEntry>>,
    pub time_indexes: Lru<FileKey, Vec<TimeEntry>>,
    /// By segment and the window's first offset.
    pub windows: Lru<(u64, Offset, Offset), VerifiedWindow>,
}

impl SegmentMemory {
    /// Half of the bytes for offset indexes, a quarter each for the other two.
    pub fn new(bytes: usize) -> SegmentMemory {
        SegmentMemory { indexes: Lru::new(bytes / 2), time_indexes: Lru::new(bytes / 4), windows: Lru::new(bytes / 4) }
    }

    pub fn forget_segment(&self, key: FileKey) {
        self.indexes.remove(key);
        self.time_indexes.remove(key);
        self.windows.remove_range((key.0, key.1, Offset(i64::MIN)), (key.0, key.1, Offset(i64::MAX)));
    }

    pub fn forget_log(&self, log: u64) {
        let (low, high) = (Offset(i64::MIN), Offset(i64::MAX));
        self.indexes.remove_range((log, low), (log, high));
        self.time_indexes.remove_range((log, low), (log, high));
        self.windows.remove_range((log, low, low), (log, high, high));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bytes_are_bounded_and_the_largest_key_is_found() {
        let lru = Lru::new(10);
        lru.insert((1, 0), 'a', 4);
        lru.insert((1, 5), 'b', 4);
        assert_eq!(*lru.last_in((1, 0), (1, 4)).unwrap(), 'a');
        lru.insert((1, 9), 'c', 4);
        assert_eq!(lru.get((1, 5)), None);
        assert_eq!(lru.bytes(), 8);
        lru.remove_range((1, 0), (1, 9));
        assert_eq!(lru.bytes(), 0);
        lru.insert((2, 0), 'd', 100);
        assert_eq!(*lru.get((2, 0)).unwrap(), 'd');
    }
}
