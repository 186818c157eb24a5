//! The simulated back end (feature `sim`): one thread, seeded scheduler, virtual time, a disk in memory. The same seed
//! gives the same run, byte for byte; [`Simulation::trace_hash`] says so.
//!
//! A [`Simulation`] is a machine. [`Simulation::life`] runs a process on it; when that has ended the machine may lose its
//! power ([`Simulation::power_cut`]) or not (a kill leaves everything that was written), and the next life finds the
//! disk as it is then. Faults are dealt with [`inject`]; a crash comes at a step ([`Simulation::crash_after`]) or when a
//! task calls [`crash`].
//!
//! What is here: tasks, clock, randomness, files, small file work, page cache, events. Sockets, mailbox, pulse and the
//! start of shards are not yet: the modules `net`, `mailbox`, `pulse`, `shard`, `checks` and `signals` are absent with
//! the feature, so it builds the crates up to `engine/log` and `replication/replica`.
//!
//! The disk is harder than most real ones: names are lost unless their directory was synced, any page of an unsynced
//! write may be missing, after a failed sync what it was to write may be
//! gone for good. What it does not do: tear a 4 KiB page, lie about a
//! sync, or run work of the pool thread in the order in which it was asked for.

pub(crate) mod crash;
pub(crate) mod disk;
pub(crate) mod executor;
pub(crate) mod plan;
pub(crate) mod step;
pub(crate) mod world;

use std::marker::PhantomData;
use std::path::Path;
use std::rc::Rc;

pub use executor::Ended;
pub use plan::{Fault, Operation};
pub use world::Dice;

use world::{World, with};

/// Steps after which a life counts as stuck, where nothing else is set.
const STEP_LIMIT: u64 = 20_000_000;

#[derive(Clone, Debug)]
pub struct Config {
    /// Keep the newest lines of the trace as text. The hash is the same either way.
    pub keep_text: bool,
    /// Steps that one life may take.
    pub step_limit: u64,
    /// After a power cut space that was reserved and never written may hold old data of other files.
    pub old_data: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { keep_text: false, step_limit: STEP_LIMIT, old_data: true }
    }
}

/// A machine. One at a time on a thread.
#[derive(Debug)]
pub struct Simulation {
    _not_send: PhantomData<Rc<()>>,
}

impl Simulation {
    pub fn new(seed: u64, config: Config) -> Simulation {
        world::install(World::new(seed, config));
        Simulation { _not_send: PhantomData }
    }

    /// Runs a process until its main task ends, or it crashes. Everything it had in memory is gone then.
    pub fn life<T: 'static>(&mut self, main: impl Future<Output = T> + 'static) -> Ended<T> {
        with(|world| {
            world.life += 1;
            world.disk.locks.clear();
            let life = world.life;
            world.note("life", [life, 0], || format!("{life} begins"));
        });
        let ended = executor::run(main);
        with(|world| {
            world.disk.all_came_back();
            world.disk.collect();
        });
        ended
    }

    /// The next life crashes after so many steps.
    pub fn crash_after(&mut self, steps: u64) {
        with(|world| world.tasks.crash_at = Some(steps));
    }

    /// The machine loses power and what was not synced, or any part of it.
    pub fn power_cut(&mut self) {
        with(|world| {
            world.note("power cut", [0, 0], String::new);
            let old_data = world.config.old_data;
            world.disk.power_cut(&mut world.dice, old_data);
        });
    }

    pub fn trace_hash(&self) -> u64 {
        with(|world| world.trace.hash())
    }

    /// The newest lines of the trace, if text is kept.
    pub fn trace_lines(&self) -> Vec<String> {
        with(|world| world.trace.lines())
    }

    /// Steps of the last life.
    pub fn steps(&self) -> u64 {
        with(|world| world.tasks.steps)
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        world::remove();
    }
}

/// Runs one process on a machine of its own and gives its result; anything else than an end is a panic.
pub fn run<T: 'static>(seed: u64, config: Config, main: impl Future<Output = T> + 'static) -> T {
    match Simulation::new(seed, config).life(main) {
        Ended::Finished(value) => value,
        Ended::Crashed => panic!("seed {seed}: the process crashed"),
        Ended::Panicked(text) | Ended::Stuck(text) => panic!("seed {seed}: {text}"),
    }
}

/// Ends the process that runs now at its next step.
pub fn crash() {
    with(|world| world.tasks.crash_at = Some(0));
}

/// Adds a fault to the disk.
pub fn inject(fault: Fault) {
    with(|world| {
        world.note("fault", [fault.passes, fault.times], || format!("{fault:?}"));
        world.plan.faults.push(fault);
    });
}

/// Takes all faults back. Gives how many struck since the last call.
pub fn clear_faults() -> u64 {
    with(|world| {
        world.plan.faults.clear();
        std::mem::take(&mut world.plan.struck)
    })
}

/// How often an operation was asked for on files with this extension.
pub fn counted(operation: Operation, extension: &str) -> u64 {
    with(|world| world.plan.counted(operation, extension))
}

/// Flips a bit of a file in what is durable; says whether there was one to flip.
pub fn flip_bit(path: &Path) -> bool {
    with(|world| {
        let flipped = world.disk.flip_bit(path, &mut world.dice);
        world.note("flip", [u64::from(flipped), 0], || path.display().to_string());
        flipped
    })
}

/// Flips a bit of this byte of a file in what is durable; says whether it was.
pub fn flip_at(path: &Path, position: u64) -> bool {
    with(|world| {
        let flipped = world.disk.flip_at(path, position, &mut world.dice);
        world.note("flip", [u64::from(flipped), position], || path.display().to_string());
        flipped
    })
}

/// Moves the wall clock.
pub fn jump_wall(ms: i64) {
    with(|world| world.wall_offset_ms += ms);
}

/// A line of the workload's own in the trace. The text is made only where text is kept.
pub fn note(kind: &'static str, numbers: [u64; 2], text: impl FnOnce() -> String) {
    with(|world| world.note(kind, numbers, text));
}

#[cfg(test)]
#[path = "sim_tests.rs"]
mod tests;
