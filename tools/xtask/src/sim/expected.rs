//! What a partition must hold: every batch as it was appended, how far it was acknowledged, and where the log may begin.
//! Lives on from one process to the next; a violation is a panic with a sentence, which ends the life.

use std::collections::BTreeMap;
use std::rc::Rc;

use log::{Appended, PartitionLog};
use model::BatchHeader;

use super::compacted::{self, Keyed};

#[derive(Clone, Debug)]
pub struct Batch {
    pub next: i64,
    /// Of all its records.
    pub timestamp_ms: i64,
    pub bytes: Rc<[u8]>,
    /// Its records, where the partition is compacted.
    pub keyed: Rc<[Keyed]>,
}

#[derive(Debug, Default)]
pub struct Expected {
    pub batches: BTreeMap<i64, Batch>,
    /// Where this process's appends have got to.
    pub end: i64,
    /// Acknowledged as durable, and as written.
    pub durable: i64,
    pub written: i64,
    /// The log start that was acknowledged, and the furthest that was asked for.
    pub start: i64,
    pub start_asked: i64,
    /// A retention check is under way: it may move the log start as far as the durable end.
    pub retaining: bool,
    /// A truncation to this offset is under way.
    pub cutting: Option<i64>,
    /// Durable end when the partition was first seen to have failed, in this life.
    pub failed_at: Option<i64>,
    /// A bit of it was flipped: it may refuse, but never lie.
    pub damaged: bool,
    /// A durable round of a journal was damaged: the partition may be refused, but never be short.
    pub refusable: bool,
    /// Counts truncations: a read that overlaps one proves nothing.
    pub generation: u64,
    pub epoch: i32,
    pub before: Before,
    /// Its records may be compacted away.
    pub compacts: bool,
    /// Offset of the last record of each key.
    pub latest: BTreeMap<[u8; 4], i64>,
    /// Offsets and times of the records that were there when the log was last read from its start to its end.
    pub present: Vec<(i64, i64)>,
}

/// How the processes since the last check ended, the worst of them, as far as the disk is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Before {
    #[default]
    Stopped,
    Killed,
    PowerCut,
}

impl Expected {
    /// `at`: the offset that the batch was to have.
    pub fn appended(&mut self, at: i64, appended: Appended, bytes: Vec<u8>) {
        // As it was built: the clock goes on meanwhile.
        let timestamp_ms = BatchHeader::parse(&bytes).map_or(-1, |header| header.max_timestamp_ms);
        let base = appended.base_offset.0;
        assert!(base == at && base >= self.end, "offset {base} was handed out, but the log ends at {}", self.end);
        let next = appended.next_offset.0;
        let keyed: Rc<[Keyed]> = if self.compacts { compacted::keyed(&bytes).into() } else { Rc::default() };
        self.latest.extend(keyed.iter().map(|record| (record.key, record.offset)));
        self.batches.insert(base, Batch { next, timestamp_ms, bytes: bytes.into(), keyed });
        self.end = next;
    }

    pub fn acknowledged_written(&mut self, next: i64) {
        self.written = self.written.max(next);
    }

    pub fn acknowledged(&mut self, next: i64, log: &PartitionLog) {
        if let Some(at) = self.failed_at {
            assert!(next <= at, "offset {next} was acknowledged after the partition had failed at {at}");
        }
        assert!(log.durable_end().0 >= next, "acknowledged, but not below the durable end");
        self.durable = self.durable.max(next);
        self.written = self.written.max(next);
    }

    pub fn failed(&mut self, log: &PartitionLog) {
        if log.failure().is_some() {
            self.failed_at.get_or_insert(log.durable_end().0);
        }
    }

    /// Checks batches that a read returned, one behind the other, from the one that holds `from`. Gives where the next
    /// read has to begin; `None` where a flipped bit of an offset keeps from knowing.
    pub fn check_read(&self, from: i64, mut bytes: &[u8]) -> Option<i64> {
        if self.compacts {
            return self.check_compacted(from, bytes);
        }
        let mut at = from;
        while !bytes.is_empty() {
            let found = self.batches.range(..=at).next_back().filter(|(_, batch)| batch.next > at);
            // Where a follower's leader had a gap, the next one.
            let found = found.or_else(|| self.batches.range(at..).next());
            if self.damaged && found.is_none_or(|(_, batch)| !bytes.starts_with(&batch.bytes)) {
                assert!(self.is_known(bytes), "at offset {at} bytes were read that nobody wrote");
                return None;
            }
            let Some((base, batch)) = found else { panic!("a batch at offset {at} was read that nobody wrote") };
            let Some(head) = bytes.get(..batch.bytes.len()) else {
                panic!("the batch at {base} was read with {} bytes instead of {}", bytes.len(), batch.bytes.len())
            };
            assert!(*head == *batch.bytes, "the batch at {base} was read with other bytes than were written");
            bytes = &bytes[head.len()..];
            at = batch.next;
        }
        Some(at)
    }

    /// Base offset and leader epoch lie outside of a batch's CRC: a flipped bit there is found by nobody. What the CRC
    /// guards has to be what was written.
    fn is_known(&self, bytes: &[u8]) -> bool {
        let mut all = self.batches.values().map(|batch| &batch.bytes);
        all.any(|known| bytes.get(17..known.len()).is_some_and(|body| *body == known[17..]))
    }

    /// The log's ends after a start, against what the life before was told.
    pub fn check_ends(&self, log: &PartitionLog) {
        let (start, end) = (log.log_start_offset().0, log.log_end_offset().0);
        let mut least_start = self.start;
        let mut least = match self.before {
            Before::Stopped => self.end,
            Before::Killed => self.written,
            Before::PowerCut => self.durable,
        };
        if let Some(cut) = self.cutting {
            // A batch that holds the offset goes whole.
            let floor = self.batches.range(..cut).rfind(|(_, b)| b.next <= cut).map_or(0, |(_, batch)| batch.next);
            least = least.min(floor);
            least_start = least_start.min(floor);
        }
        assert!(end >= least, "the log ends at {end}, but {least} was acknowledged ({:?})", self.before);
        assert!(end <= self.end, "the log ends at {end}, but nobody wrote beyond {}", self.end);
        assert!(start >= least_start, "the log start is back at {start}, but {} was acknowledged", self.start);
        let most = if self.retaining { self.start_asked.max(end) } else { self.start_asked };
        assert!(start <= most, "the log starts at {start}, but nothing asked for more than {most}");
    }

    /// Offset and time of the first record at or after a time that readers can see.
    pub fn first_at(&self, timestamp_ms: i64) -> Option<(i64, i64)> {
        if self.compacts {
            return self.present.iter().find(|(_, at_ms)| *at_ms >= timestamp_ms).copied();
        }
        let mut seen = self.batches.iter().filter(|(_, batch)| batch.next > self.start);
        let (base, batch) = seen.find(|(_, batch)| batch.timestamp_ms >= timestamp_ms)?;
        Some(((*base).max(self.start), batch.timestamp_ms))
    }

    /// The process goes on from what the log holds.
    pub fn take_over(&mut self, log: &PartitionLog) {
        self.end = log.log_end_offset().0;
        self.forget_beyond_end();
        self.durable = self.end;
        self.written = self.end;
        self.start = log.log_start_offset().0;
        self.start_asked = self.start;
        self.retaining = false;
        self.cutting = None;
        self.failed_at = None;
        self.before = Before::Stopped;
        self.generation += 1;
    }

    fn forget_beyond_end(&mut self) {
        self.batches.retain(|_, batch| batch.next <= self.end);
        let records = self.batches.values().flat_map(|batch| batch.keyed.iter());
        self.latest = records.map(|record| (record.key, record.offset)).collect();
    }

    pub fn truncated(&mut self, log: &PartitionLog) {
        let asked = self.cutting.take();
        self.end = log.log_end_offset().0;
        assert!(asked.is_none_or(|asked| self.end <= asked), "the log was cut at {}, not at {asked:?}", self.end);
        self.forget_beyond_end();
        // A batch that held the log start went whole.
        self.start = self.start.min(self.end);
        self.durable = self.durable.min(self.end);
        self.written = self.written.min(self.end);
        self.generation += 1;
    }
}
