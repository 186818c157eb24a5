//! The simulated back end (feature `sim`): one thread, seeded scheduler, virtual time, a disk in memory. The same seed
//! gives the same run, byte for byte; [`Simulation::trace_hash`] says so.
//!
//! A [`Simulation`] is a machine. [`Simulation::life`] runs a process on it; when that has ended the machine may lose its
//! power ([`Simulation::power_cut`]) or not (a kill leaves everything that was written), and the next life finds the
//! disk as it is then. Faults are dealt with [`inject`]; a crash comes at a step ([`Simulation::crash_after`]) or when a
//! task calls [`crash`].
//!
//! A life may start further processes ([`Process`]): a broker that is killed and started again while its clients live on.
//! Shards are sets of tasks of a process, interleaved at every wait. The network delays, resets, falls silent and stalls as
//! [`inject_network`] says, and does everything in pieces anyway.
//!
//! What is here: tasks, clock, randomness, files, small file work, page cache, events, mailbox, shards, sockets. Signals are
//! not: nobody sends any.
//!
//! The disk is harder than most real ones: names are lost unless their directory was synced, any page of an unsynced
//! write may be missing, after a failed sync what it was to write may be
//! gone for good. What it does not do: tear a 4 KiB page, lie about a
//! sync, or run work of the pool thread in the order in which it was asked for.

pub(crate) mod crash;
pub(crate) mod disk;
pub(crate) mod executor;
pub(crate) mod plan;
pub(crate) mod process;
pub(crate) mod quiet;
pub(crate) mod step;
pub(crate) mod wires;
pub(crate) mod world;

use std::marker::PhantomData;
use std::path::Path;
use std::rc::Rc;

pub use executor::Ended;
pub use plan::{Fault, Operation};
pub use process::{Death, Process, ProcessEnd};
pub use quiet::Quiet;
pub use wires::{NetworkFault, NetworkFaultKind};
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
            let life = world.life;
            world.note("life", [life, 0], || format!("{life} begins"));
        });
        let ended = executor::run(main);
        with(|world| world.disk.collect());
        ended
    }

    /// The next life crashes after so many steps.
    pub fn crash_after(&mut self, steps: u64) {
        with(|world| world.tasks.crash_at = Some(steps));
    }

    /// The machine loses power and what was not synced, or any part of it.
    pub fn power_cut(&mut self) {
        power_cut();
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

/// The machine whose disk it is loses power. Its process is to have ended, by [`Death::PowerCut`].
pub fn power_cut() {
    with(|world| {
        world.note("power cut", [0, 0], String::new);
        let old_data = world.config.old_data;
        world.disk.power_cut(&mut world.dice, old_data);
    });
}

/// Adds a fault to the network.
pub fn inject_network(fault: NetworkFault) {
    with(|world| {
        world.note("fault", [fault.connection, fault.after_bytes], || format!("{fault:?}"));
        world.deal_network_fault(fault);
    });
}

/// Takes all faults of the network back, but for connections that are silent already. Gives how many struck.
pub fn clear_network_faults() -> u64 {
    with(world::World::clear_network_faults)
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

/// After `passes` writes to log files with `path_part` in their path, one lands one page behind its place and is called
/// done; [`clear_faults`] counts it.
pub fn lead_astray(path_part: &str, passes: u64) {
    with(|world| world.plan.astray = Some((path_part.to_string(), passes)));
}

/// Writes that are still to go astray never will.
pub fn astray_is_over() {
    with(|world| world.plan.astray = None);
}

/// At the end of the process that runs now: to take apart what holds itself in memory. Nothing else runs then.
pub fn at_process_end(work: impl FnOnce() + 'static) {
    with(|world| {
        let process = world.tasks.current.process;
        if let Some(running) = world.tasks.processes.get_mut(&process) {
            running.at_end.push(Box::new(work));
        }
    });
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
#[path = "process_tests.rs"]
mod process_tests;
#[cfg(test)]
#[path = "sim_tests.rs"]
mod tests;
