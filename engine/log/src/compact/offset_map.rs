//! The offset map: for each key of the dirty section the offset of its last record. Bounded by bytes: 24 for a key, as a
//! hash of 128 bits and the offset; open addressing, never more than the load that was asked for.
//!
//! Owned by one cleaning, which hands it to the pool thread and back. Gone with it.

use model::Offset;

use super::sip::Sip;

/// Bytes of a slot: two words of hash, one of the offset.
pub(crate) const SLOT_BYTES: usize = 24;
const WORDS: usize = 3;
/// Fewest slots: probing needs one that is free.
const SLOTS_MIN: usize = 16;

#[derive(Debug)]
pub(crate) struct OffsetMap {
    sip: Sip,
    /// Hash, hash, offset + 1. An offset word of 0 is a free slot, so that fresh memory needs no writing.
    words: Vec<u64>,
    slots: usize,
    most: usize,
    len: usize,
    /// Last offset that was looked at: what lies behind it is not judged.
    latest: Offset,
}

/// The map holds as many keys as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl OffsetMap {
    /// Room for `keys` keys, as far as `max_bytes` at a load of `load` (above 0, at most 1) allow. `latest` is where the
    /// dirty section begins.
    pub fn new(max_bytes: usize, load: f64, keys: u64, seed: [u8; 16], latest: Offset) -> OffsetMap {
        let load = load.clamp(0.1, 0.95);
        let wanted = (keys as f64 / load) as usize + 1;
        let slots = wanted.min(max_bytes / SLOT_BYTES).max(SLOTS_MIN);
        let most = ((slots as f64 * load) as usize).clamp(1, slots - 1);
        OffsetMap { sip: Sip::new(seed), words: vec![0; slots * WORDS], slots, most, len: 0, latest }
    }

    pub fn latest(&self) -> Offset {
        self.latest
    }

    /// Everything up to `offset` was looked at.
    pub fn looked_to(&mut self, offset: Offset) {
        self.latest = self.latest.max(offset);
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Offsets come in order: the newer one of a key replaces the older.
    pub fn put(&mut self, key: &[u8], offset: Offset) -> Result<(), Full> {
        let hash = self.sip.hash(key);
        let at = self.slot_of(hash);
        if self.words[at + 2] == 0 {
            if self.len >= self.most {
                return Err(Full);
            }
            self.len += 1;
        }
        self.words[at..at + WORDS].copy_from_slice(&[hash[0], hash[1], offset.0 as u64 + 1]);
        self.latest = self.latest.max(offset);
        Ok(())
    }

    pub fn get(&self, key: &[u8]) -> Option<Offset> {
        if self.len == 0 {
            return None;
        }
        match self.words[self.slot_of(self.sip.hash(key)) + 2] {
            0 => None,
            stored => Some(Offset(stored as i64 - 1)),
        }
    }

    /// Place of the hash's slot, or of the free one where it belongs.
    fn slot_of(&self, hash: [u64; 2]) -> usize {
        let mut slot = (hash[0] % self.slots as u64) as usize;
        loop {
            let at = slot * WORDS;
            if self.words[at + 2] == 0 || self.words[at..at + 2] == hash {
                return at;
            }
            slot = if slot + 1 == self.slots { 0 } else { slot + 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_is_full_at_its_load_and_still_answers() {
        let mut map = OffsetMap::new(100 * SLOT_BYTES, 0.9, 1 << 40, [1; 16], Offset(-1));
        for key in 0u32..90 {
            map.put(&key.to_be_bytes(), Offset(i64::from(key))).unwrap();
        }
        assert_eq!(map.put(b"one more", Offset(90)), Err(Full));
        assert_eq!(map.latest(), Offset(89));
        // Known keys still move on.
        map.put(&7u32.to_be_bytes(), Offset(91)).unwrap();
        assert_eq!((map.len(), map.get(&7u32.to_be_bytes()), map.get(b"one more")), (90, Some(Offset(91)), None));
    }

    #[test]
    fn it_takes_no_more_memory_than_its_keys_need() {
        let map = OffsetMap::new(1 << 30, 0.9, 100, [1; 16], Offset(-1));
        assert!(map.words.len() < 500);
        assert_eq!(map.get(b"anything"), None);
    }

    #[test]
    fn it_agrees_with_a_tree() {
        let mut map = OffsetMap::new(1 << 20, 0.9, 5000, [3; 16], Offset(-1));
        let mut tree = BTreeMap::new();
        for offset in 0..20_000i64 {
            let key = (offset * 7919 % 4999).to_le_bytes();
            map.put(&key, Offset(offset)).unwrap();
            tree.insert(key, Offset(offset));
        }
        assert_eq!(map.len(), tree.len());
        assert!(tree.iter().all(|(key, offset)| map.get(key) == Some(*offset)));
    }
}
