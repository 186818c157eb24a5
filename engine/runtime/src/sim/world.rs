//! Everything that a simulation is made of, in one value of the thread that runs it: time, dice, tasks, disk, network, trace.
//!
//! Nothing is polled, dropped or woken while the world is borrowed: those call back into it.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::task::Waker;

use super::Config;
use super::disk::Disk;
use super::executor::Tasks;
use super::plan::{Operation, Plan};
use super::wires::Net;

/// Seeded dice (splitmix64): small, fast, and the same on every machine.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is above zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        self.number() % bound
    }

    /// True once in `times` on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// What happened, as a running checksum, and as text where it was asked for.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    lines: Option<VecDeque<String>>,
}

/// Lines of the trace that are kept.
pub(crate) const TRACE_LINES: usize = 200_000;

impl Trace {
    pub fn new(keep_text: bool) -> Trace {
        Trace { hash: 0xcbf2_9ce4_8422_2325, lines: keep_text.then(VecDeque::new) }
    }

    pub fn add(&mut self, now_ns: u64, kind: &'static str, numbers: [u64; 2], text: impl FnOnce() -> String) {
        for byte in kind.bytes() {
            self.mix(u64::from(byte));
        }
        self.mix(now_ns);
        self.mix(numbers[0]);
        self.mix(numbers[1]);
        if let Some(lines) = &mut self.lines {
            let text = text();
            // A task that wakes and wakes would push out what led to that.
            if lines.back().is_some_and(|last| last.get(14..).is_some_and(|last| last == format!("{kind} {text}"))) {
                return;
            }
            if lines.len() >= TRACE_LINES {
                lines.pop_front();
            }
            lines.push_back(format!("{:>13.6} {kind} {}", now_ns as f64 / 1e9, text));
        }
    }

    fn mix(&mut self, number: u64) {
        self.hash = (self.hash ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.iter().flatten().cloned().collect()
    }
}

#[derive(Debug)]
pub(crate) struct World {
    pub config: Config,
    pub dice: Dice,
    pub now_ns: u64,
    pub wall_offset_ms: i64,
    /// Number of the process that runs now.
    pub life: u64,
    pub tasks: Tasks,
    pub timers: BTreeMap<(u64, u64), Waker>,
    pub next_timer: u64,
    pub disk: Disk,
    pub net: Net,
    pub plan: Plan,
    pub trace: Trace,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

pub(crate) fn install(world: World) {
    let before = WORLD.replace(Some(world));
    assert!(before.is_none(), "a thread runs one simulation at a time");
}

pub(crate) fn remove() {
    drop(WORLD.take());
}

/// `None` outside of a simulation, where values that outlived it are dropped.
pub(crate) fn try_with<T>(work: impl FnOnce(&mut World) -> T) -> Option<T> {
    WORLD.with_borrow_mut(|world| world.as_mut().map(work))
}

pub(crate) fn with<T>(work: impl FnOnce(&mut World) -> T) -> T {
    match try_with(work) {
        Some(value) => value,
        None => panic!("with the feature `sim` this works within sim::Simulation only"),
    }
}

/// How long an operation takes before and after its effect, and how it fails.
pub(crate) struct Fate {
    pub before_ns: u64,
    pub after_ns: u64,
    pub errno: Option<i32>,
}

impl World {
    pub fn new(seed: u64, config: Config) -> World {
        World {
            dice: Dice::new(seed),
            now_ns: 0,
            wall_offset_ms: 1_790_000_000_000,
            life: 0,
            tasks: Tasks::default(),
            timers: BTreeMap::new(),
            next_timer: 0,
            disk: Disk::new(),
            net: Net::default(),
            plan: Plan::default(),
            trace: Trace::new(config.keep_text),
            config,
        }
    }

    pub fn wall_ms(&self) -> i64 {
        self.wall_offset_ms + (self.now_ns / 1_000_000) as i64
    }

    pub fn note(&mut self, kind: &'static str, numbers: [u64; 2], text: impl FnOnce() -> String) {
        self.trace.add(self.now_ns, kind, numbers, text);
    }

    /// The fate of an operation that begins now.
    pub fn begin(&mut self, operation: Operation, path: &Path) -> Fate {
        self.plan.count(operation, path);
        let errno = self.plan.strike(operation, path);
        let whole = operation.latency_ns(&mut self.dice);
        let before_ns = self.dice.below(whole + 1);
        Fate { before_ns, after_ns: whole - before_ns, errno }
    }
}
