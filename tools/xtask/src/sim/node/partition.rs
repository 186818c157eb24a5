//! What is known of one partition from what its clients were told. Offsets are dense: nothing here is compacted and there
//! are no transactions.

use std::collections::BTreeMap;
use std::ops::Range;

use super::payload::Id;

/// How much an acknowledgement promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Whatever happens but damage.
    Durable,
    /// Unless the machine loses its power or the disk fails.
    Written,
}

#[derive(Debug, Default)]
pub struct Partition {
    pub name: String,
    acknowledged: BTreeMap<i64, (Id, Promise)>,
    /// What lay below a high watermark: it stays.
    seen: BTreeMap<i64, (Id, i32)>,
    places: BTreeMap<Id, i64>,
    /// Largest that anybody was shown.
    pub high_watermark: i64,
    /// Records before this may be gone.
    pub deletable: i64,
    pub retains: bool,
    /// Leader epoch and the life that showed it.
    epoch: Option<(i32, usize)>,
}

impl Partition {
    pub fn new(name: String, retains: bool) -> Partition {
        Partition { name, retains, ..Partition::default() }
    }

    pub fn acknowledge(&mut self, id: Id, offset: i64, promise: Promise) {
        let name = &self.name;
        if let Some((other, _)) = self.seen.get(&offset) {
            assert!(*other == id, "{name}: {id} is acknowledged at offset {offset}, where {other} was read");
        }
        if let Some((other, before)) = self.acknowledged.insert(offset, (id, promise)) {
            assert!(other == id, "{name}: offset {offset} is given to {other} and to {id}");
            if before == Promise::Durable {
                self.acknowledged.insert(offset, (id, before));
            }
        }
    }

    /// What was only written may be gone, and its offsets may be given again.
    pub fn weaken(&mut self) {
        self.acknowledged.retain(|_, (_, promise)| *promise == Promise::Durable);
    }

    /// A record that a reader was given. `once`: its producer is idempotent.
    pub fn see(&mut self, id: Id, offset: i64, leader_epoch: i32, once: bool) {
        let name = &self.name;
        if let Some((other, _)) = self.acknowledged.get(&offset) {
            assert!(*other == id, "{name}: {id} is read at offset {offset}, which was acknowledged for {other}");
        }
        if let Some((other, epoch)) = self.seen.insert(offset, (id, leader_epoch)) {
            assert!(other == id, "{name}: offset {offset} was {other} and is {id}");
            assert!(epoch == leader_epoch, "{name}: the epoch of offset {offset} was {epoch} and is {leader_epoch}");
        }
        let place = *self.places.entry(id).or_insert(offset);
        assert!(place == offset || !once, "{name}: {id} is there twice, at offsets {place} and {offset}");
        self.high_watermark = self.high_watermark.max(offset + 1);
    }

    /// A reader that expected `expected` was given `offset`. `to_end`: it goes on at the end when its place is gone.
    pub fn follow(&self, expected: i64, offset: i64, to_end: bool) {
        let name = &self.name;
        assert!(offset >= expected, "{name}: after offset {} came {offset}", expected - 1);
        let excused = self.retains || offset <= self.deletable || (to_end && expected < self.deletable);
        assert!(offset == expected || excused, "{name}: after offset {} came {offset}, not {expected}", expected - 1);
    }

    /// The end as a broker tells it, asked for when `before` was the largest known.
    pub fn tell_end(&mut self, before: i64, end: i64) {
        assert!(end >= before, "{}: the high watermark was {before} and is {end}", self.name);
        self.high_watermark = self.high_watermark.max(end);
    }

    /// Leader epochs rise with every start and never fall.
    pub fn tell_epoch(&mut self, epoch: i32, life: usize) {
        let name = &self.name;
        if let Some((known, known_life)) = self.epoch {
            if life > known_life {
                assert!(epoch > known, "{name}: leader epoch {known} of life {known_life} is {epoch} in life {life}");
            } else if life < known_life {
                return;
            }
            assert!(epoch >= known, "{name}: the leader epoch fell from {known} to {epoch}");
        }
        self.epoch = Some((epoch, life));
    }

    /// The last look read everything from `start` to the high watermark `end` but for `refused`, where there is damage.
    pub fn close(&self, start: i64, end: i64, refused: &[Range<i64>]) {
        let name = &self.name;
        assert!(
            self.retains || start <= self.deletable,
            "{name} begins at {start}, and only what is before {} was to go",
            self.deletable
        );
        if let Some((offset, (id, _))) = self.acknowledged.range(end.max(start)..).next() {
            panic!("{name}: {id} was acknowledged at offset {offset}, and the log ends at {end}");
        }
        for (offset, (id, _)) in self.acknowledged.range(start..end.max(start)) {
            let refused = refused.iter().any(|range| range.contains(offset));
            assert!(
                refused || self.seen.contains_key(offset),
                "{name}: {id} was acknowledged at offset {offset} and is not there"
            );
        }
        let mut last = i32::MIN;
        for (offset, (_, epoch)) in self.seen.range(start..end.max(start)) {
            assert!(*epoch >= last, "{name}: the epoch falls from {last} to {epoch} at offset {offset}");
            last = *epoch;
        }
    }

    /// Records in order of their offsets.
    pub fn in_order(&self) -> impl Iterator<Item = (i64, Id)> {
        self.seen.iter().map(|(offset, (id, _))| (*offset, *id))
    }

    pub fn records(&self) -> u64 {
        self.seen.len() as u64
    }
}
