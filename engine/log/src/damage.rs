//! Damage inside what was durable: how it is recognised, and what is remembered of it.
//!
//! A batch's CRC guards neither its base offset nor its leader epoch. [`Order`] does: each batch has to begin where the one
//! before ended, where the index says, and with the epoch that the partition's history has there. Whoever walks batches
//! that were durable (reads, verified windows, the scrub) asks it, headers that are only passed over included.
//!
//! What is found becomes a [`DamagedRange`] of its partition, in memory: the range is refused, what lies below and above it
//! is served, appends go on. Nothing is written for it. The bytes on disk are the mark: a start finds them again before it
//! serves them, and a file that was put back from a copy needs no second place to be told. Budget: a comparison of numbers
//! for each batch; a search through the file only when damage is met for the first time.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use model::batch::{HEADER_LEN, MAGIC_AT};
use model::{BatchHeader, BatchView, LeaderEpoch, Offset};
use runtime::clock;

use crate::format::epochs::EpochEntry;
use crate::limits::{DAMAGE_TELL_MS, DAMAGE_TELLS, MAX_BATCH};

/// A range of a partition that answers with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRange {
    /// First offset of the segment that it lies in.
    pub segment_base: Offset,
    /// First damaged byte, and where the next sound batch begins (the segment's end when there is none).
    pub position: u64,
    pub until: u64,
    /// Offsets that are refused: from this one, below the other.
    pub from_offset: Offset,
    pub to_offset: Offset,
    pub why: String,
}

impl DamagedRange {
    pub fn holds(&self, offset: Offset) -> bool {
        (self.from_offset..self.to_offset).contains(&offset)
    }
}

/// What the next batch has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// It begins here.
    Begins(Offset),
    /// Its last offset, as an index has it.
    Ends(Offset),
}

/// The order of a segment's batches, as far as a walk has come.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    expect: Expect,
    gaps: bool,
    /// The segment's: no batch reaches beyond it.
    end: Offset,
    last_epoch: LeaderEpoch,
    /// Leaderships of the segment: the one that its first offset belongs to, if it is known, and those that begin in it.
    epochs: Arc<[EpochEntry]>,
}

impl Order {
    pub fn begins(at: Offset, end: Offset, gaps: bool, epochs: Arc<[EpochEntry]>) -> Order {
        Order { expect: Expect::Begins(at), gaps, end, last_epoch: LeaderEpoch::UNKNOWN, epochs }
    }

    /// The walk starts at a batch that an index has.
    #[must_use]
    pub fn ends(mut self, last_offset: Offset) -> Order {
        self.expect = Expect::Ends(last_offset);
        self
    }

    #[must_use]
    pub fn goes_on(mut self, at: Offset) -> Order {
        self.expect = Expect::Begins(at);
        self
    }

    /// Where the next batch begins, if that is known.
    pub fn next_offset(&self) -> Option<Offset> {
        match self.expect {
            Expect::Begins(offset) => Some(offset),
            Expect::Ends(_) => None,
        }
    }

    /// Takes the next batch's header; the error says what is wrong with it.
    pub fn take(&mut self, header: &BatchHeader) -> Result<(), String> {
        if header.last_offset_delta < 0 {
            return Err("a batch ends before it begins".to_string());
        }
        let base = header.base_offset;
        match self.expect {
            Expect::Begins(next) if base == next || (self.gaps && base > next) => {}
            Expect::Begins(next) => return Err(format!("offset {base} stands where {next} has to be")),
            Expect::Ends(last) if header.last_offset() == last => {}
            Expect::Ends(last) => {
                return Err(format!("a batch ends at offset {}, and the index has {last}", header.last_offset()));
            }
        }
        if header.next_offset() > self.end {
            return Err(format!("offset {} stands in a segment that ends at {}", header.last_offset(), self.end));
        }
        self.take_epoch(header)?;
        self.expect = Expect::Begins(header.next_offset());
        Ok(())
    }

    fn take_epoch(&mut self, header: &BatchHeader) -> Result<(), String> {
        let epoch = header.leader_epoch;
        if epoch.0 < 0 {
            return Ok(());
        }
        if epoch < self.last_epoch {
            return Err(format!("leader epoch {epoch} comes after {}", self.last_epoch));
        }
        let after = self.epochs.partition_point(|e| e.start_offset <= header.base_offset);
        let known = after.checked_sub(1).map(|i| self.epochs[i].epoch);
        if let Some(known) = known.filter(|known| *known != epoch) {
            return Err(format!("leader epoch {epoch} stands where {known} wrote"));
        }
        self.last_epoch = epoch;
        Ok(())
    }
}

/// What a walk over whole batches came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    /// So many bytes are whole, sound batches; the one behind them needs so many, or a header's.
    Sound {
        bytes: usize,
        need: usize,
    },
    Damaged {
        at: usize,
        why: String,
    },
}

/// Checks CRC and order of the batches in `bytes`.
pub(crate) fn walk(bytes: &[u8], order: &mut Order) -> Walked {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        if rest.len() < HEADER_LEN {
            return Walked::Sound { bytes: at, need: HEADER_LEN };
        }
        let header = match BatchHeader::parse(rest) {
            Ok(header) if header.size() <= MAX_BATCH => header,
            Ok(_) => return Walked::Damaged { at, why: "a batch is larger than any log takes".into() },
            Err(why) => return Walked::Damaged { at, why: why.to_string() },
        };
        let Some(batch) = rest.get(..header.size()) else {
            return Walked::Sound { bytes: at, need: header.size() };
        };
        // First, so that the order still says what has to stand here.
        if let Err(why) = (BatchView { header, bytes: batch }).check_crc() {
            return Walked::Damaged { at, why: why.to_string() };
        }
        if let Err(why) = order.take(&header) {
            return Walked::Damaged { at, why };
        }
        at += header.size();
    }
}

/// Takes the headers of batches that are passed over, up to the one at `until`, which is looked at too. The last may reach
/// beyond the bytes.
pub(crate) fn pass_over(bytes: &[u8], until: usize, order: &mut Order) -> Result<(), (usize, String)> {
    let mut at = 0;
    while at < until {
        let header = BatchHeader::parse(bytes.get(at..).unwrap_or_default()).map_err(|why| (at, why.to_string()))?;
        order.take(&header).map_err(|why| (at, why))?;
        at += header.size();
    }
    // The one that was to be read and was not: damaged offsets may be the reason.
    let next = bytes.get(until..).filter(|rest| rest.len() >= HEADER_LEN).map(BatchHeader::parse);
    match next {
        Some(Ok(header)) => order.clone().take(&header).map_err(|why| (until, why)),
        _ => Ok(()),
    }
}

/// A place where a batch may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// A whole batch, sound.
    Sound { at: usize, header: BatchHeader },
    /// A header that fits; the batch reaches beyond the bytes.
    Longer { at: usize, size: usize },
}

/// Looks for the first batch that may stand behind damage (`exact`: only at the first byte): offsets from `low` on and
/// below `high`, an epoch of the history, a sound CRC. `crc_bytes` is what may still be spent on CRCs: hostile bytes must not make it endless.
pub(crate) fn find_batch(
    bytes: &[u8],
    exact: bool,
    low: Offset,
    high: Offset,
    order: &Order,
    crc_bytes: &mut u64,
) -> Option<Candidate> {
    let places = (bytes.len() + 1).saturating_sub(HEADER_LEN);
    for at in 0..if exact { places.min(1) } else { places } {
        let rest = &bytes[at..];
        // The cheap look first: nearly every place fails it.
        if rest.get(MAGIC_AT) != Some(&2) {
            continue;
        }
        let Ok(header) = BatchHeader::parse(rest) else { continue };
        let mut behind = order.clone().goes_on(header.base_offset);
        let fits = header.base_offset >= low
            && header.next_offset() <= high
            && header.record_count >= 0
            && header.codec().is_ok()
            && header.size() <= MAX_BATCH
            && behind.take(&header).is_ok();
        if !fits {
            continue;
        }
        let Some(batch) = rest.get(..header.size()) else {
            return Some(Candidate::Longer { at, size: header.size() });
        };
        *crc_bytes = crc_bytes.saturating_sub(header.size() as u64);
        if (BatchView { header, bytes: batch }).check_crc().is_ok() {
            return Some(Candidate::Sound { at, header });
        }
        if *crc_bytes == 0 {
            return None;
        }
    }
    None
}

/// Counters of a shard, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageStats {
    /// Damaged ranges that were found since the start.
    pub damaged_ranges: u64,
    /// Partitions whose tail, behind the recovery point, ended in bytes that are no batch and no preallocated zeros.
    pub torn_tails: u64,
    /// What the scrub has read, and how often it came around.
    pub scrubbed_bytes: u64,
    pub scrub_passes: u64,
}

/// Counts and tells. One per shard.
#[derive(Debug, Default)]
pub(crate) struct DamageTally {
    stats: Cell<DamageStats>,
    told: Cell<u32>,
    told_since_ms: Cell<i64>,
}

impl DamageTally {
    pub fn stats(&self) -> DamageStats {
        self.stats.get()
    }

    pub fn count(&self, change: impl FnOnce(&mut DamageStats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    pub fn found(&self, path: &Path, range: &DamagedRange) {
        self.count(|s| s.damaged_ranges += 1);
        let (position, until, why) = (range.position, range.until, &range.why);
        let (from, to) = (range.from_offset, range.to_offset);
        self.tell(|| {
            format!(
                "{} is damaged from byte {position} to {until}: {why}. Offsets {from} to {} answer KAFKA_STORAGE_ERROR, \
                 everything else is served. Consumers go on from offset {to}; to have the records back, stop the broker \
                 and put a sound copy of the file there.",
                path.display(),
                to.0 - 1
            )
        });
    }

    /// A tail that a crash tore is normal when the power went; whoever finds records missing looks for this.
    pub fn torn(&self, path: &Path, end: Offset, position: u64, len: u64) {
        self.count(|s| s.torn_tails += 1);
        self.tell(|| {
            let path = path.display();
            format!(
                "{path} ends at offset {end}, byte {position} of {len}: what follows is no whole batch. A crash leaves \
                 that of a write that was under way, nothing of it was acknowledged to acks=all."
            )
        });
    }

    /// A few sentences for each while: a dying drive would fill the operator's log otherwise.
    fn tell(&self, sentence: impl FnOnce() -> String) {
        let now_ms = clock::now_ms();
        if now_ms - self.told_since_ms.get() >= DAMAGE_TELL_MS {
            self.told_since_ms.set(now_ms);
            self.told.set(0);
        }
        self.told.set(self.told.get() + 1);
        // Simulated disks are damaged in every other run.
        if self.told.get() > DAMAGE_TELLS || cfg!(feature = "sim") {
            return;
        }
        eprintln!("ringlog: {}", sentence());
    }
}

#[cfg(test)]
#[path = "damage_tests.rs"]
mod tests;
