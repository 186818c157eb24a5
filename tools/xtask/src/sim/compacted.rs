//! What is right for a compacted partition: every record read was written, at its offset and in order; one that is missing
//! has a newer one of its key, or is a tombstone; and all of them together make the table of keys that was written.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use log::{CleanLimits, ReadLimits};
use model::rebuild::RawRecords;
use model::{BatchView, Offset};
use runtime::clock;
use runtime::sim::{self, Dice};

use super::actors::Stage;
use super::expected::Expected;

/// A record as far as its key is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyed {
    pub offset: i64,
    pub time_ms: i64,
    pub key: [u8; 4],
    pub is_tombstone: bool,
    /// Of its value.
    pub sum: u64,
}

/// The records of a batch; packed ones are not used here.
pub fn keyed(bytes: &[u8]) -> Vec<Keyed> {
    let batch = BatchView::parse(bytes).unwrap_or_else(|error| panic!("a batch cannot be read: {error}"));
    let header = batch.header;
    let one = |record: Result<(model::Record<'_>, &[u8]), model::BatchError>| {
        let (record, _) =
            record.unwrap_or_else(|error| panic!("a record at {} is broken: {error}", header.base_offset));
        let sum = |value: &[u8]| value.iter().fold(value.len() as u64, |sum, b| sum.wrapping_mul(31) + u64::from(*b));
        Keyed {
            offset: header.base_offset.0 + i64::from(record.offset_delta),
            time_ms: header.base_timestamp_ms + record.timestamp_delta_ms,
            key: record.key.and_then(|key| key.try_into().ok()).unwrap_or_default(),
            is_tombstone: record.value.is_none(),
            sum: record.value.map_or(0, sum),
        }
    };
    RawRecords::of(&batch).map(one).collect()
}

/// What is left once later records replaced earlier ones: key and offset.
fn table(records: impl Iterator<Item = Keyed>) -> BTreeMap<[u8; 4], i64> {
    let mut table = BTreeMap::new();
    for record in records {
        if record.is_tombstone {
            table.remove(&record.key);
        } else {
            table.insert(record.key, record.offset);
        }
    }
    table
}

impl Expected {
    fn may_be_missing(&self, record: &Keyed) -> bool {
        record.is_tombstone || self.latest.get(&record.key).is_some_and(|last| *last > record.offset)
    }

    fn check_missing(&self, records: &[Keyed]) {
        for record in records {
            assert!(self.may_be_missing(record), "the last record of key {:?} is missing: {record:?}", record.key);
        }
    }

    /// Checks batches that a read returned. Gives where the next read has to begin.
    pub fn check_compacted(&self, from: i64, mut bytes: &[u8]) -> Option<i64> {
        let mut at = from;
        while !bytes.is_empty() {
            let batch = match BatchView::parse(bytes) {
                Ok(batch) if batch.check_crc().is_ok() => batch,
                // A flipped bit of an offset is seen by nobody.
                _ if self.damaged => return None,
                _ => panic!("bytes behind offset {at} are no batch"),
            };
            let base = batch.header.base_offset.0;
            let written = self.batches.get(&base).filter(|b| b.next == batch.header.next_offset().0 && b.next > at);
            let Some(written) = written.filter(|_| !self.damaged) else {
                assert!(self.damaged, "a batch at {base} was read behind {at} that nobody wrote");
                return None;
            };
            for (_, between) in self.batches.range(at..base.max(at)) {
                self.check_missing(&between.keyed);
            }
            let found = keyed(batch.bytes);
            let mut left = written.keyed.iter().copied().peekable();
            for record in &found {
                let skipped: Vec<Keyed> = std::iter::from_fn(|| left.next_if(|w| w.offset < record.offset)).collect();
                self.check_missing(&skipped);
                assert!(left.next() == Some(*record), "the record at {} is not what was written", record.offset);
            }
            self.check_missing(&left.collect::<Vec<_>>());
            bytes = &bytes[batch.bytes.len()..];
            at = written.next;
        }
        Some(at)
    }
}

impl Stage {
    /// Reads the log from its start to its end: the table of keys has to be the one that was written. `false` when a fault
    /// kept it from being read.
    pub async fn check_table(&self) -> bool {
        let (start, end) = (self.log.log_start_offset().0, self.log.log_end_offset().0);
        let limits = ReadLimits { max_bytes: 50_000, min_one_batch: true, upper_bound: Offset(i64::MAX) };
        let (mut at, mut read) = (start, Vec::new());
        while at < end {
            let Ok(part) = self.log.read(Offset(at), limits).await else {
                assert!(self.faulty, "{} cannot be read at {at}", self.log.topic());
                return false;
            };
            assert!(part.next_offset.0 > at, "nothing is read at offset {at}");
            for slice in &part.slices {
                let Ok(bytes) = slice.load().await else { return false };
                let mut rest = &bytes[..];
                while let Ok(batch) = BatchView::parse(rest) {
                    read.extend(keyed(batch.bytes).into_iter().filter(|record| record.offset >= start));
                    rest = &rest[batch.bytes.len()..];
                }
            }
            at = part.next_offset.0;
        }
        let mut expected = self.expected.borrow_mut();
        let written = expected.batches.values().flat_map(|b| b.keyed.iter().copied()).filter(|r| r.offset >= start);
        let (found, wanted) = (table(read.iter().copied()), table(written));
        assert!(found == wanted, "the table of keys is {found:?}, not {wanted:?}");
        expected.present = read.iter().map(|record| (record.offset, record.time_ms)).collect();
        true
    }

    /// The high watermark follows the durable end, now and then.
    pub fn raise_bound(&self, durable: i64) {
        if self.compacts && durable % 3 != 0 && self.expected.borrow().cutting.is_none() {
            self.bound.set(self.bound.get().max(durable));
            self.log.set_retention_bound(Offset(self.bound.get()));
        }
    }

    pub async fn clean(self: Rc<Self>, mut dice: Dice, turns: u64) {
        self.log.set_retention_bound(Offset(self.bound.get()));
        for _ in 0..turns / 2 {
            clock::sleep(Duration::from_micros(dice.below(15_000))).await;
            if self.log.failure().is_some() {
                return;
            }
            // Short segments, so that several become one.
            if dice.one_in(2) {
                self.roll().await;
            }
            let limits = CleanLimits {
                map_bytes: if dice.one_in(3) { 0 } else { 1 << 20 },
                piece_bytes: 4096 << dice.below(5),
                ..CleanLimits::default()
            };
            match self.log.cleanable(clock::wall_ms()).await {
                Ok(None) => continue,
                Ok(Some(_)) => {}
                Err(error) => self.allow("look for what is dirty", &error),
            }
            match self.log.clean(limits, BTreeMap::new(), clock::wall_ms()).await {
                Ok(cleaned) => sim::note("cleaned", [0, 0], || format!("{}: {cleaned:?}", self.log.topic())),
                Err(error) => self.allow("clean", &error),
            }
        }
    }
}
