//! What a seed stands for: partitions and their settings, and for each life its faults and its end.

use std::collections::BTreeSet;

use log::{Durability, JournalConfig, LogConfig};
use runtime::sim::{Dice, Fault, Operation};

use super::shrink::Kept;

/// A whole run: some processes, one after the other, on one disk.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub partitions: Vec<LogConfig>,
    pub lives: u64,
    /// Log shards that the partitions are spread over, anew at each start.
    pub shards: u16,
    /// Turns of each actor in a life.
    pub turns: u64,
    pub chunk_bytes: usize,
    pub cache_bytes: usize,
    pub open_files: usize,
    /// Damage is dealt to old blocks.
    pub flips: bool,
    pub journal: Option<JournalConfig>,
    /// Writers only append a little at a time.
    pub calm: bool,
    /// Writers append all the time, some of it while a round is under way.
    pub steady: bool,
    /// Most bytes of a record of an ordinary append: batches that share a block, or that lie in two.
    pub record_bytes: u64,
    /// Partitions fall silent for so many microseconds at most, while the others drive the ring around.
    pub lull_us: u64,
}

/// How a life is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A clean stop.
    Stop,
    /// Killed after so many steps of the scheduler, if it lives that long.
    CrashAfter(u64),
    /// Killed with the so-manyth acknowledgement: what it promised has to be there already.
    CrashAcknowledging(u64),
    /// Killed when so many of a hundred turns of the writers are over: in the midst of work, however long that is.
    CrashWorking(u64),
}

#[derive(Clone, Debug)]
pub struct LifePlan {
    pub end: End,
    /// The machine loses its power with it, or after the stop.
    pub power_cut: bool,
    pub faults: Vec<Fault>,
}

fn pick<T: Copy>(dice: &mut Dice, from: &[T]) -> T {
    from[dice.below(from.len() as u64) as usize]
}

impl Scenario {
    pub fn throw(dice: &mut Dice) -> Scenario {
        let journal = (!dice.one_in(4)).then(|| journal(dice));
        // What is rolled often is seldom journalled.
        let long = journal.is_some() && !dice.one_in(3);
        let steady = long && !dice.one_in(3);
        // Some go on in the journal while one is written to its segment.
        let count = if steady { 3 + dice.below(3) } else { 1 + dice.below(5) };
        Scenario {
            partitions: (0..count).map(|_| settings(dice, long)).collect(),
            lives: 3 + dice.below(5),
            shards: if steady { 1 } else { 1 + dice.below(2) as u16 },
            turns: 10 + dice.below(50),
            chunk_bytes: pick(dice, &[16 << 10, 64 << 10]),
            cache_bytes: pick(dice, &[32 << 10, 256 << 10, 4 << 20]),
            open_files: pick(dice, &[2, 8, 64]),
            flips: dice.one_in(6),
            calm: long && dice.one_in(2),
            steady,
            record_bytes: pick(dice, &[200, 200, 1000, 3000]),
            lull_us: pick(dice, &[0, 20_000, 100_000]),
            journal,
        }
    }
}

/// Rings that a few rounds fill.
fn journal(dice: &mut Dice) -> JournalConfig {
    JournalConfig {
        file_bytes: pick(dice, &[32 << 10, 32 << 10, 64 << 10]),
        files_max: pick(dice, &[1, 2, 3, 5]),
        small_bytes: pick(dice, &[8 << 10, 32 << 10, 64 << 10]),
        memory_bytes: pick(dice, &[8 << 10, 32 << 10, 1 << 20]),
        after_commits: pick(dice, &[1, 1, 5]),
    }
}

fn settings(dice: &mut Dice, long: bool) -> LogConfig {
    let retains = dice.one_in(3);
    let compact = dice.one_in(3);
    let segment_jitter_ms = pick(dice, &[0, 1000]);
    LogConfig {
        compact,
        // Both policies, or compaction alone.
        cleanup_delete: !compact || dice.one_in(2),
        delete_retention_ms: pick(dice, &[0, 5_000, 60_000]),
        segment_bytes: if long { 1 << 20 } else { pick(dice, &[4 << 10, 16 << 10, 64 << 10, 256 << 10]) },
        segment_jitter_ms,
        index_interval_bytes: pick(dice, &[0, 200, 4096]),
        retention_ms: if retains && dice.one_in(2) { 30_000 } else { -1 },
        retention_bytes: if retains { 40_000 } else { -1 },
        file_delete_delay_ms: pick(dice, &[0, 5, 1000]),
        durability: Durability::Sync,
        gaps: compact || segment_jitter_ms == 0,
        ..LogConfig::default()
    }
}

impl LifePlan {
    pub fn throw(dice: &mut Dice) -> LifePlan {
        let end = if dice.below(10) < 3 {
            End::Stop
        } else if dice.one_in(3) {
            End::CrashWorking(1 + dice.below(100))
        } else if dice.one_in(3) {
            let most = 1 << (3 + dice.below(8));
            End::CrashAcknowledging(1 + dice.below(most))
        } else {
            // Early ones too: within the start, within the first append.
            let most = 1 << (4 + dice.below(12));
            End::CrashAfter(1 + dice.below(most))
        };
        let faults =
            if dice.below(10) < 3 { (0..1 + dice.below(3)).map(|_| fault(dice)).collect() } else { Vec::new() };
        LifePlan { end, power_cut: dice.below(4) < 3, faults }
    }
}

/// Everything bad that a seed plans, numbered; some of it is left out.
pub struct Troubles<'a> {
    without: &'a BTreeSet<usize>,
    next: usize,
    pub kept: Vec<Kept>,
}

impl Troubles<'_> {
    pub fn new(without: &BTreeSet<usize>) -> Troubles<'_> {
        Troubles { without, next: 0, kept: Vec::new() }
    }

    /// Whether the next one stays.
    fn keeps(&mut self, says: String) -> bool {
        let at = self.next;
        self.next += 1;
        let keeps = !self.without.contains(&at);
        if keeps {
            self.kept.push((at, says));
        }
        keeps
    }
}

impl Scenario {
    /// Turns of a writer where others take so many.
    pub fn writer_turns(&self, turns: u64) -> u64 {
        if self.steady { 4 * turns } else { turns }
    }

    /// Without what is left out of it.
    pub fn without(mut self, troubles: &mut Troubles<'_>) -> Scenario {
        self.flips = self.flips && troubles.keeps("bits flip in old blocks".to_string());
        self
    }
}

impl LifePlan {
    /// The same; the last of all lives has no troubles.
    pub fn without(mut self, life: u64, lives: u64, troubles: &mut Troubles<'_>) -> LifePlan {
        if life + 1 == lives {
            return LifePlan { end: End::Stop, power_cut: false, faults: Vec::new() };
        }
        let mut keeps = |what: &dyn std::fmt::Debug| troubles.keeps(format!("life {}: {what:?}", life + 1));
        if self.end != End::Stop && !keeps(&self.end) {
            self.end = End::Stop;
        }
        self.power_cut = self.power_cut && keeps(&"power cut");
        self.faults.retain(|fault| keeps(fault));
        self
    }
}

fn fault(dice: &mut Dice) -> Fault {
    let (operation, path_part, errno) = pick(
        dice,
        &[
            // More often than others: it is the one that a log can get wrong without anybody seeing it.
            (Operation::Sync, ".log", libc::EIO),
            (Operation::Sync, ".log", libc::EIO),
            (Operation::Sync, ".log", libc::EIO),
            (Operation::Sync, ".log", libc::EIO),
            (Operation::Write, ".log", libc::EIO),
            (Operation::Write, ".log", libc::ENOSPC),
            (Operation::Sync, ".ring", libc::EIO),
            (Operation::Write, ".ring", libc::EIO),
            (Operation::Remove, ".ring", libc::EIO),
            (Operation::Write, ".state", libc::ENOSPC),
            (Operation::Reserve, ".log", libc::ENOSPC),
            (Operation::Truncate, ".log", libc::EIO),
            (Operation::Read, ".log", libc::EIO),
            (Operation::Open, ".log", libc::EIO),
            (Operation::Write, ".index", libc::ENOSPC),
            (Operation::Sync, "index", libc::EIO),
            (Operation::Write, "checkpoint", libc::ENOSPC),
            (Operation::Sync, "checkpoint", libc::EIO),
            (Operation::Rename, "checkpoint", libc::EIO),
            (Operation::SyncDir, "", libc::EIO),
            (Operation::Create, "", libc::ENOSPC),
            (Operation::Remove, "", libc::EIO),
            (Operation::List, "", libc::EIO),
            (Operation::Write, "cleaned", libc::EIO),
            (Operation::Sync, "cleaned", libc::EIO),
            (Operation::Rename, "cleaned", libc::EIO),
            (Operation::Sync, "ringlog.replace", libc::EIO),
            (Operation::Rename, "ringlog.replace", libc::EIO),
            (Operation::Remove, "ringlog.replace", libc::EIO),
            (Operation::Write, "ringlog.cleaner", libc::ENOSPC),
        ],
    );
    let passes = 1 << dice.below(8);
    let times = if dice.one_in(3) { 3 } else { 1 };
    Fault { operation, path_part: path_part.to_owned(), passes: dice.below(passes), times, errno }
}
