//! Who works on a partition during a life: one writer, one reader, one janitor, at random and at the same time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use log::{LogError, LogShard, PartitionLog, Patch, ReadLimits, Scrub, ScrubLimits};
use model::batch::patch_position;
use model::builder::BatchBuilder;
use model::{LeaderEpoch, Offset};
use runtime::sim::{self, Dice};
use runtime::{TaskGroup, clock};

use super::expected::Expected;

/// One partition during one life.
pub struct Stage {
    pub shard: Rc<LogShard>,
    pub log: Rc<PartitionLog>,
    pub expected: Rc<RefCell<Expected>>,
    /// Faults were dealt to this life: operations may fail.
    pub faulty: bool,
    /// Only small appends and waits: what the journal is for.
    pub calm: bool,
    /// An append every few hundred microseconds: while the round before is under way.
    pub steady: bool,
    /// Most bytes of a record of an ordinary append.
    pub record_bytes: u64,
    /// Longest time of doing nothing at all, 0 where it never comes to that.
    pub lull_us: u64,
    pub retains: bool,
    pub compacts: bool,
    /// High watermark of a compacted partition: nothing above it is cleaned, nothing below it is cut.
    pub bound: Cell<i64>,
    /// A truncation and the janitor keep out of each other's way.
    pub busy: Cell<bool>,
    pub acknowledgements: TaskGroup,
    /// The process is killed with the last of these.
    pub acknowledgements_left: Rc<Cell<u64>>,
    pub turns_left: Rc<Cell<u64>>,
}

fn below(dice: &mut Dice, low: i64, high: i64) -> i64 {
    low + dice.below((high - low).max(0) as u64 + 1) as i64
}

impl Stage {
    /// An error that this life's faults explain; any other is a violation.
    pub fn allow(&self, what: &str, error: &LogError) {
        self.expected.borrow_mut().failed(&self.log);
        let damaged = self.expected.borrow().damaged;
        let explained = match error {
            LogError::Overloaded => true,
            // What a failed sync took is gone before the partition knows of it.
            LogError::Corrupt { .. } => damaged || self.faulty,
            LogError::Storage(_) | LogError::Full(_) | LogError::Io(_) => self.faulty,
            _ => false,
        };
        assert!(explained, "cannot {what}: {error}");
        sim::note("error", [0, 0], || format!("{what}: {error}"));
    }

    pub async fn write(self: Rc<Self>, mut dice: Dice, turns: u64) {
        for _ in 0..turns {
            self.count_turn();
            if self.log.failure().is_some() {
                self.after_failure(&mut dice);
                return;
            }
            if self.lull_us > 0 && dice.one_in(25) {
                clock::sleep(Duration::from_micros(dice.below(self.lull_us))).await;
            }
            if self.steady && !dice.one_in(8) {
                self.append_some(&mut dice).await;
                clock::sleep(Duration::from_micros(dice.below(600))).await;
                continue;
            }
            let turn = if self.calm { dice.below(85) } else { dice.below(100) };
            match turn {
                0..=59 => self.append_some(&mut dice).await,
                60..=69 => self.acknowledgements.wait().await,
                70..=84 => clock::sleep(Duration::from_micros(dice.below(3000))).await,
                85..=88 => self.roll().await,
                89..=92 => self.truncate(&mut dice).await,
                93..=94 => self.raise_epoch(),
                95 => sim::jump_wall(below(&mut dice, -40_000, 40_000)),
                96..=97 => clock::sleep(Duration::from_secs(12)).await,
                _ => self.snapshot(&mut dice).await,
            }
        }
        self.acknowledgements.wait().await;
    }

    /// Reads what nobody may ask for; finds nothing that was not done.
    pub async fn scrub(self: Rc<Self>, turns: u64) {
        let mut scrub = Scrub::new();
        for _ in 0..turns {
            scrub.step(&self.shard, ScrubLimits { interval_ms: 1, bytes_per_s: u64::MAX }).await;
            clock::sleep(Duration::from_micros(500)).await;
        }
        scrub.stop().await;
        let marks = self.log.damaged_ranges();
        let explained = marks.is_empty() || self.expected.borrow().damaged || self.faulty;
        assert!(explained, "{} has damage that nobody did: {marks:?}", self.log.topic());
    }

    fn after_failure(&self, dice: &mut Dice) {
        self.expected.borrow_mut().failed(&self.log);
        let refused = self.log.append(&self.batch(dice, 1), Patch::leader(LeaderEpoch(self.expected.borrow().epoch)));
        assert!(refused.is_err(), "a partition took an append after it had failed");
    }

    async fn append_some(self: &Rc<Self>, dice: &mut Dice) {
        self.shard.wait_room().await;
        let (count, most) = match if self.calm || self.steady { dice.below(70) } else { dice.below(100) } {
            0..=9 => (40, 100),
            10..=69 => (1 + dice.below(6), self.record_bytes),
            70..=89 => (1 + dice.below(4), 3000),
            90..=97 => (1 + dice.below(2), 20_000),
            _ => (1, 150_000),
        };
        let mut last = None;
        for _ in 0..count {
            let mut bytes = self.batch(dice, most);
            let (end, epoch) = (self.expected.borrow().end, LeaderEpoch(self.expected.borrow().epoch));
            let mut patch = Patch::leader(epoch);
            let mut at = end;
            if dice.one_in(20) {
                // As a follower, whose leader may have left a gap where the topic is compacted.
                let gap = dice.below(3) as i64;
                at += if self.log.config().gaps { gap } else { 0 };
                patch_position(&mut bytes, Offset(at), epoch);
                patch = Patch::as_stored();
            }
            match self.log.append(&bytes, patch) {
                Ok(appended) => {
                    patch_position(&mut bytes, appended.base_offset, epoch);
                    sim::note("append", [appended.base_offset.0 as u64, bytes.len() as u64], || {
                        format!(
                            "{} {}..{}: {} bytes",
                            self.log.topic(),
                            appended.base_offset,
                            appended.next_offset,
                            bytes.len()
                        )
                    });
                    self.expected.borrow_mut().appended(at, appended, bytes);
                    last = Some(appended.next_offset);
                }
                Err(error) => {
                    self.allow("append", &error);
                    clock::sleep(Duration::from_millis(300)).await;
                    break;
                }
            }
        }
        if let Some(next) = last {
            self.clone().acknowledge(next);
        }
    }

    fn acknowledge(self: Rc<Self>, next: Offset) {
        let group = self.acknowledgements.clone();
        group.spawn("acknowledge", async move {
            match self.log.wait_written(next).await {
                Ok(()) => self.expected.borrow_mut().acknowledged_written(next.0),
                Err(error) => return self.allow("write", &error),
            }
            match self.log.wait_durable(next).await {
                Ok(()) => {
                    sim::note("durable", [next.0 as u64, 0], || format!("{} {next}", self.log.topic()));
                    self.expected.borrow_mut().acknowledged(next.0, &self.log);
                    self.count_acknowledgement();
                    self.raise_bound(next.0);
                }
                Err(error) => self.allow("sync", &error),
            }
        });
    }

    fn count_acknowledgement(&self) {
        count_down(&self.acknowledgements_left);
    }

    fn count_turn(&self) {
        count_down(&self.turns_left);
    }

    fn batch(&self, dice: &mut Dice, most: u64) -> Vec<u8> {
        if self.compacts { keyed_batch(dice, most) } else { batch(dice, most) }
    }

    pub async fn roll(&self) {
        let later_ms = clock::wall_ms() + 30 * 24 * 3_600_000;
        if let Err(error) = self.log.roll_if_due(later_ms).await {
            self.allow("roll", &error);
        }
    }

    fn raise_epoch(&self) {
        let epoch = {
            let mut expected = self.expected.borrow_mut();
            expected.epoch += 1;
            expected.epoch
        };
        self.log.begin_epoch(LeaderEpoch(epoch));
    }

    async fn truncate(&self, dice: &mut Dice) {
        self.acknowledgements.wait().await;
        if self.busy.replace(true) || self.log.failure().is_some() {
            return;
        }
        let (start, end) = (self.log.log_start_offset().0, self.log.log_end_offset().0);
        let low = start.max(end - 60).max(if self.compacts { self.bound.get() } else { 0 });
        let to = below(dice, low, end);
        self.expected.borrow_mut().cutting = Some(to);
        sim::note("truncate", [to as u64, 0], || format!("{} to {to}", self.log.topic()));
        match self.log.truncate_to(Offset(to)).await {
            Ok(()) => self.expected.borrow_mut().truncated(&self.log),
            Err(error) => self.truncation_failed(&error),
        }
        self.busy.set(false);
    }

    /// Whatever it got to: both the old end and the new one are right at the next start.
    fn truncation_failed(&self, error: &LogError) {
        self.allow("truncate", error);
        self.expected.borrow_mut().generation += 1;
    }

    async fn snapshot(&self, dice: &mut Dice) {
        let bytes = vec![7; dice.below(5000) as usize];
        if let Err(error) = self.log.put_producer_snapshot(self.log.log_end_offset(), bytes).await {
            self.allow("store a snapshot", &error);
        }
    }

    pub async fn tidy(self: Rc<Self>, mut dice: Dice, turns: u64) {
        for _ in 0..turns / 4 {
            clock::sleep(Duration::from_micros(dice.below(30_000))).await;
            if self.log.failure().is_some() {
                return;
            }
            if self.busy.replace(true) {
                continue;
            }
            if self.retains && dice.one_in(2) {
                self.retain().await;
            } else if dice.one_in(3) {
                self.delete_records(&mut dice).await;
            }
            self.busy.set(false);
        }
    }

    async fn retain(&self) {
        self.expected.borrow_mut().retaining = true;
        match self.log.apply_retention(clock::wall_ms()).await {
            Ok(retained) => {
                let mut expected = self.expected.borrow_mut();
                // One that found nothing to do says where the log starts, but vouches for nothing.
                if retained.deleted_segments > 0 {
                    expected.start = expected.start.max(retained.log_start_offset.0);
                }
                expected.start_asked = expected.start_asked.max(retained.log_start_offset.0);
                expected.retaining = false;
            }
            Err(error) => self.allow("apply retention", &error),
        }
    }

    async fn delete_records(&self, dice: &mut Dice) {
        let (start, durable) = (self.log.log_start_offset().0, self.log.durable_end().0);
        let to = below(dice, start, start + (durable - start) / 2);
        {
            let mut expected = self.expected.borrow_mut();
            expected.start_asked = expected.start_asked.max(to);
        }
        sim::note("delete", [to as u64, 0], || format!("{} before {to}", self.log.topic()));
        match self.log.delete_records_before(Offset(to)).await {
            Ok(log_start) => {
                sim::note("deleted", [log_start.0 as u64, 0], || format!("{} before {log_start}", self.log.topic()));
                let mut expected = self.expected.borrow_mut();
                expected.start = expected.start.max(log_start.0);
            }
            Err(error) => self.allow("delete records", &error),
        }
    }

    /// Somewhere, often near the end, which truncations move; then mostly on from there.
    pub async fn read(self: Rc<Self>, mut dice: Dice, turns: u64) {
        let mut next = None;
        for _ in 0..turns {
            clock::sleep(Duration::from_micros(dice.below(8000))).await;
            let (start, end) = (self.log.log_start_offset().0, self.log.log_end_offset().0);
            let low = if dice.one_in(2) { start.max(end - 80) } else { start };
            let from = match next {
                Some(next) if !dice.one_in(4) => next,
                _ => below(&mut dice, low, end),
            };
            let most = if dice.one_in(2) { 60_000 } else { 3_000 };
            let max_bytes = 1 + dice.below(most) as usize;
            next = self.read_once(from, max_bytes).await;
        }
    }

    /// Looks a time up and checks what comes.
    pub async fn look_up(&self, dice: &mut Dice) {
        let times: Vec<i64> = self.expected.borrow().batches.values().map(|batch| batch.timestamp_ms).collect();
        if times.is_empty() {
            return;
        }
        let wanted_ms = times[dice.below(times.len() as u64) as usize] + below(dice, -2, 2);
        match self.log.offset_for_time(wanted_ms, Offset(i64::MAX)).await {
            Ok(hit) => {
                let hit = hit.map(|hit| (hit.offset.0, hit.timestamp_ms));
                let right = self.expected.borrow().first_at(wanted_ms);
                assert!(hit == right, "time {wanted_ms} was found at {hit:?}, not at {right:?}");
            }
            Err(error) => self.allow("look a time up", &error),
        }
    }

    /// Reads and checks; gives where the next read continues.
    pub async fn read_once(&self, from: i64, max_bytes: usize) -> Option<i64> {
        // Above the durable end a failed sync may have brought back what lay there before; nobody is shown that.
        let upper_bound = if self.faulty { self.log.durable_end() } else { Offset(i64::MAX) };
        let limits = ReadLimits { max_bytes, min_one_batch: true, upper_bound };
        let generation = self.expected.borrow().generation;
        let mut bytes = Vec::new();
        let result = async {
            let read = self.log.read(Offset(from), limits).await?;
            for slice in &read.slices {
                bytes.extend_from_slice(&slice.load().await?);
            }
            Ok(read)
        };
        match result.await {
            Ok(read) => {
                let expected = self.expected.borrow();
                if generation != expected.generation || expected.cutting.is_some() {
                    return None;
                }
                let next = expected.check_read(from, &bytes)?;
                assert!(next == read.next_offset.0, "a read from {from} ends at {next}, but says {}", read.next_offset);
                Some(next)
            }
            Err(LogError::OffsetOutOfRange { log_start_offset, log_end_offset, .. })
                if from < log_start_offset.0 || from > log_end_offset.0 =>
            {
                None
            }
            Err(error) => {
                let moved = generation != self.expected.borrow().generation || self.expected.borrow().cutting.is_some();
                if !moved {
                    self.allow("read", &error);
                }
                None
            }
        }
    }
}

/// The process is killed at nought.
fn count_down(left: &Cell<u64>) {
    left.set(left.get().saturating_sub(1));
    if left.get() == 0 {
        sim::crash();
    }
}

/// A batch of records with few keys, every fifth without a value.
fn keyed_batch(dice: &mut Dice, most: u64) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for _ in 0..1 + dice.below(4) {
        let key = [b'k', b'e', b'y', dice.below(12) as u8];
        let value = vec![dice.below(256) as u8; dice.below(most) as usize];
        let value = if dice.one_in(5) { None } else { Some(&value[..]) };
        builder.push(clock::wall_ms(), Some(&key), value, &[]);
    }
    builder.finish()
}

/// A batch of one to three records with random values of up to `most` bytes.
fn batch(dice: &mut Dice, most: u64) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    // One time for all of them: reading the clock takes time, and a millisecond may end between two records.
    let wall_ms = clock::wall_ms();
    for _ in 0..1 + dice.below(3) {
        let mut value = vec![0; dice.below(most) as usize];
        let fill = dice.number().to_le_bytes();
        for (i, byte) in value.iter_mut().enumerate() {
            *byte = fill[i % 8].wrapping_add((i / 8) as u8);
        }
        builder.push(wall_ms, Some(&fill[..4]), Some(&value), &[]);
    }
    builder.finish()
}
