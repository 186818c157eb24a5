//! One seed from its first process to its last: starts, checks, works, ends each, and cuts the power between them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use log::{DataDir, LogConfig, LogError, LogShard, LogShardConfig, PartitionLog, PartitionSpec};
use model::{LeaderEpoch, PartitionIndex, PartitionKey, TopicId};
use runtime::sim::{self, Config, Dice, Ended, Operation, Simulation};
use runtime::{ChunkPool, TaskGroup, fs, spawn};

use super::actors::Stage;
use super::expected::{Before, Expected};
use super::rings;
use super::scenario::{End, LifePlan, Scenario, Troubles};
use super::shrink::Kept;

const FOLDER: &str = "/var/data";

/// What a seed came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Hash of its trace.
    pub hash: u64,
    pub steps: u64,
    pub batches: u64,
    /// Rounds of the journal.
    pub rounds: u64,
    /// What is wrong, if anything is.
    pub violation: Option<String>,
    pub trace: Vec<String>,
}

/// What outlives a process.
struct Shared {
    scenario: Scenario,
    expected: Vec<Rc<RefCell<Expected>>>,
    shards: RefCell<Vec<Rc<LogShard>>>,
    /// Faults were dealt to the life under way.
    faulty: Cell<bool>,
    /// The last stop was clean and without a fault: the next start has to look at no log.
    was_clean: Cell<bool>,
    stopped: Cell<bool>,
    /// Acknowledgements of the life under way until it ends, and turns of its writers.
    acknowledgements_left: Rc<Cell<u64>>,
    turns_left: Rc<Cell<u64>>,
    batches: Cell<u64>,
    rounds: Cell<u64>,
}

/// A seed without some of its troubles; gives the others.
pub fn run_seed(seed: u64, keep_text: bool, without: &BTreeSet<usize>) -> (Outcome, Vec<Kept>) {
    let mut dice = Dice::new(seed ^ 0x5eed_5eed_5eed_5eed);
    let mut troubles = Troubles::new(without);
    let scenario = Scenario::throw(&mut dice).without(&mut troubles);
    let lives: Vec<(LifePlan, Dice)> = (0..scenario.lives)
        .map(|life| (LifePlan::throw(&mut dice).without(life, scenario.lives, &mut troubles), Dice::new(dice.number())))
        .collect();
    (run(seed, keep_text, scenario, lives), troubles.kept)
}

fn run(seed: u64, keep_text: bool, scenario: Scenario, lives: Vec<(LifePlan, Dice)>) -> Outcome {
    let shared = Rc::new(Shared {
        expected: scenario.partitions.iter().map(expectation).collect(),
        shards: RefCell::default(),
        faulty: Cell::new(false),
        was_clean: Cell::new(false),
        stopped: Cell::new(false),
        acknowledgements_left: Rc::default(),
        turns_left: Rc::default(),
        batches: Cell::new(0),
        rounds: Cell::new(0),
        scenario,
    });
    let mut simulation = Simulation::new(seed, Config { keep_text, step_limit: 3_000_000, ..Config::default() });
    let mut outcome = Outcome::default();
    for (life, (plan, dice)) in lives.into_iter().enumerate() {
        // The last one only looks.
        let last = life as u64 + 1 == shared.scenario.lives;
        let turns = if last { 2 } else { shared.scenario.turns };
        let violation = one_life(&mut simulation, &shared, plan, dice, turns);
        outcome.steps += simulation.steps();
        if violation.is_some() {
            outcome.violation = violation.map(|text| format!("life {}: {text}", life + 1));
            break;
        }
    }
    outcome.hash = simulation.trace_hash();
    outcome.batches = shared.batches.get();
    outcome.rounds = shared.rounds.get();
    outcome.trace = simulation.trace_lines();
    outcome
}

fn expectation(config: &LogConfig) -> Rc<RefCell<Expected>> {
    Rc::new(RefCell::new(Expected { compacts: config.compact, ..Expected::default() }))
}

fn one_life(
    simulation: &mut Simulation,
    shared: &Rc<Shared>,
    plan: LifePlan,
    dice: Dice,
    turns: u64,
) -> Option<String> {
    shared.faulty.set(!plan.faults.is_empty());
    shared.stopped.set(false);
    shared.acknowledgements_left.set(u64::MAX);
    shared.turns_left.set(u64::MAX);
    match plan.end {
        End::Stop => {}
        End::CrashAfter(steps) => simulation.crash_after(steps),
        End::CrashAcknowledging(count) => shared.acknowledgements_left.set(count),
        End::CrashWorking(hundredths) => {
            let all = shared.scenario.writer_turns(turns) * shared.scenario.partitions.len() as u64;
            shared.turns_left.set((all * hundredths / 100).max(1));
        }
    }
    plan.faults.iter().cloned().for_each(sim::inject);
    let ended = simulation.life(process(shared.clone(), dice, turns));
    let struck = sim::clear_faults();
    for shard in shared.shards.take() {
        shared.rounds.set(shared.rounds.get() + shard.stats().journal.rounds);
        shard.abandon();
    }
    let stopped = shared.stopped.get();
    shared.was_clean.set(stopped && struck == 0);
    // A sync that fails may take what was written, as a power cut does.
    let how = match (stopped, plan.power_cut || struck > 0) {
        (true, _) => Before::Stopped,
        (false, true) => Before::PowerCut,
        (false, false) => Before::Killed,
    };
    for expected in &shared.expected {
        let mut expected = expected.borrow_mut();
        expected.before = expected.before.max(how);
    }
    if plan.power_cut {
        simulation.power_cut();
    }
    match ended {
        Ended::Finished(()) | Ended::Crashed => None,
        Ended::Panicked(text) | Ended::Stuck(text) => Some(text),
    }
}

fn key(number: usize) -> PartitionKey {
    PartitionKey { topic_id: TopicId::from_random([number as u8 + 1; 16]), partition: PartitionIndex(0) }
}

/// The whole process: start, check, work, stop.
async fn process(shared: Rc<Shared>, mut dice: Dice, turns: u64) {
    let flipped = shared.scenario.flips && rings::flip(Path::new(FOLDER), &mut dice).await;
    if flipped {
        shared.expected.iter().for_each(|expected| expected.borrow_mut().refusable = true);
    }
    let dir = match DataDir::open(Path::new(FOLDER)).await {
        Ok(dir) => dir,
        Err(error) => {
            // The flip may have come before a start that did not get this far.
            let refusable = shared.expected.iter().any(|expected| expected.borrow().refusable);
            if refusable && error.to_string().contains("was durable and is damaged") {
                // The operator does as the sentence says and goes on without what was in the ring.
                rings::move_away(Path::new(FOLDER), shared.faulty.get()).await;
                shared.expected.iter().for_each(|expected| expected.borrow_mut().damaged = true);
                return;
            }
            assert!(shared.faulty.get(), "the folder cannot be opened: {error}");
            return;
        }
    };
    let clean = shared.was_clean.get();
    assert!(!clean || dir.was_clean(), "the stop was clean, but the start does not think so");
    if shared.scenario.flips && dice.one_in(2) {
        flip(&shared, &mut dice).await;
    }
    let shards: Vec<Rc<LogShard>> = (0..shared.scenario.shards).map(|writer| shard(&shared.scenario, writer)).collect();
    *shared.shards.borrow_mut() = shards.clone();
    let looks = || sim::counted(Operation::Open, "log") + sim::counted(Operation::Read, "log");
    let before = looks();
    let mut stages = Vec::new();
    for number in 0..shared.scenario.partitions.len() {
        // A partition's shard is free to change at a start.
        let shard = &shards[dice.below(shards.len() as u64) as usize];
        if let Some(log) = open(&shared, &dir, shard, number).await {
            stages.push(stage(&shared, shard, log, number));
        }
    }
    assert!(!clean || looks() == before, "a start after a clean stop looked into a log");
    for stage in &stages {
        check(stage, &mut dice).await;
    }
    work(&stages, &mut dice, turns, shared.scenario.writer_turns(turns)).await;
    shared
        .batches
        .set(shared.batches.get() + stages.iter().map(|s| s.expected.borrow().batches.len() as u64).sum::<u64>());
    stop(&shared, &dir, &shards, stages).await;
}

fn shard(scenario: &Scenario, writer: u16) -> Rc<LogShard> {
    let mut config = LogShardConfig::new(writer, ChunkPool::new(1 << 20));
    config.chunk_bytes = scenario.chunk_bytes;
    config.cache_bytes = scenario.cache_bytes;
    config.open_files = scenario.open_files;
    config.io_bytes = 1 << 20;
    config.journal = scenario.journal;
    LogShard::new(config)
}

async fn open(shared: &Shared, dir: &Arc<DataDir>, shard: &Rc<LogShard>, number: usize) -> Option<Rc<PartitionLog>> {
    let spec = PartitionSpec {
        data_dir: dir.clone(),
        topic: format!("topic{number}"),
        key: key(number),
        config: shared.scenario.partitions[number],
        uses_reserve: false,
    };
    match shard.open_partition(spec, dir.start_mode(key(number))).await {
        Ok(opened) => {
            let (snapshot, end) = (opened.producer_snapshot.map(|(at, _)| at), opened.log.log_end_offset());
            assert!(
                snapshot.is_none_or(|at| at <= end),
                "a snapshot of {snapshot:?} is given to a log that ends at {end}"
            );
            let marks = opened.log.damaged_ranges();
            assert!(
                marks.is_empty() || shared.expected[number].borrow().damaged,
                "topic{number} is opened with damage that nobody did: {marks:?}"
            );
            Some(opened.log)
        }
        Err(error) => {
            let explained = match &error {
                LogError::BadFolder { .. } if shared.expected[number].borrow().refusable => true,
                LogError::Corrupt { .. } | LogError::BadFolder { .. } => shared.expected[number].borrow().damaged,
                LogError::Io(_) | LogError::Full(_) | LogError::Storage(_) => shared.faulty.get(),
                _ => false,
            };
            assert!(explained, "topic{number} cannot be opened: {error}");
            None
        }
    }
}

fn stage(shared: &Shared, shard: &Rc<LogShard>, log: Rc<PartitionLog>, number: usize) -> Rc<Stage> {
    let config = shared.scenario.partitions[number];
    let log_end = log.log_end_offset().0;
    Rc::new(Stage {
        shard: shard.clone(),
        log,
        expected: shared.expected[number].clone(),
        faulty: shared.faulty.get(),
        calm: shared.scenario.calm,
        steady: shared.scenario.steady,
        record_bytes: shared.scenario.record_bytes,
        lull_us: shared.scenario.lull_us,
        retains: config.retention_bytes >= 0 || config.retention_ms >= 0,
        compacts: config.compact,
        bound: Cell::new(log_end),
        busy: Cell::new(false),
        acknowledgements: TaskGroup::new(),
        acknowledgements_left: shared.acknowledgements_left.clone(),
        turns_left: shared.turns_left.clone(),
    })
}

/// Everything that was acknowledged is there, and nothing else.
async fn check(stage: &Rc<Stage>, dice: &mut Dice) {
    let (start, end) = (stage.log.log_start_offset().0, stage.log.log_end_offset().0);
    sim::note("check", [start as u64, end as u64], || format!("{} {start}..{end}", stage.log.topic()));
    if !stage.expected.borrow().damaged {
        stage.expected.borrow().check_ends(&stage.log);
    }
    stage.expected.borrow_mut().take_over(&stage.log);
    let mut at = start;
    while at < end {
        match stage.read_once(at, 50_000).await {
            Some(next) if next > at => at = next,
            stopped => {
                let excused = stage.expected.borrow().damaged || (stage.faulty && stopped.is_none());
                assert!(excused, "{}: nothing is read at offset {at}, the log ends at {end}", stage.log.topic());
                break;
            }
        }
    }
    if !stage.expected.borrow().damaged && (!stage.compacts || stage.check_table().await) {
        stage.look_up(dice).await;
    }
    let epoch = {
        let mut expected = stage.expected.borrow_mut();
        expected.epoch += 1;
        expected.epoch
    };
    stage.log.begin_epoch(LeaderEpoch(epoch));
}

/// Damages a block of a segment that is not the last, before anyone looks at it.
async fn flip(shared: &Shared, dice: &mut Dice) {
    let number = dice.below(shared.expected.len() as u64) as usize;
    let folder = Path::new(FOLDER).join(format!("topic{number}-0"));
    let Ok(listing) = fs::read_dir(&folder).await else { return };
    let mut names: Vec<String> = listing.into_iter().map(|e| e.name).filter(|n| n.ends_with(".log")).collect();
    names.pop();
    if names.is_empty() {
        return;
    }
    let name = &names[dice.below(names.len() as u64) as usize];
    if sim::flip_bit(&folder.join(name)) {
        shared.expected[number].borrow_mut().damaged = true;
    }
}

async fn work(stages: &[Rc<Stage>], dice: &mut Dice, turns: u64, writer_turns: u64) {
    let mut tasks = Vec::new();
    for stage in stages {
        let [first, second, third] = [dice.number(), dice.number(), dice.number()].map(Dice::new);
        if stage.compacts {
            tasks.push(spawn("cleaner", stage.clone().clean(Dice::new(dice.number()), turns)));
        }
        tasks.push(spawn("writer", stage.clone().write(first, writer_turns)));
        tasks.push(spawn("reader", stage.clone().read(second, turns)));
        tasks.push(spawn("janitor", stage.clone().tidy(third, turns)));
        tasks.push(spawn("scrub", stage.clone().scrub(turns)));
    }
    for task in tasks {
        let _ = task.join().await;
    }
}

async fn stop(shared: &Shared, dir: &Arc<DataDir>, shards: &[Rc<LogShard>], stages: Vec<Rc<Stage>>) {
    let failed = stages.iter().any(|stage| stage.log.failure().is_some());
    let all_open = stages.len() == shared.scenario.partitions.len();
    drop(stages);
    let mut stopped = Ok(());
    for shard in shards {
        let result = shard.stop_clean().await;
        stopped = stopped.and(result);
    }
    if stopped.is_ok() {
        stopped = dir.close_clean().await;
    }
    match stopped {
        Ok(()) => shared.stopped.set(!failed && all_open),
        Err(error) => assert!(failed || shared.faulty.get() || !all_open, "a clean stop failed: {error}"),
    }
}
