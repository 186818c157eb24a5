//! The scheduler: one thread, and at every step the dice say which of the runnable tasks of all processes goes on. When
//! none is runnable time jumps to the next timer. A task that panics ends the life with its text; nothing left to wait for
//! is a finding.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::process::{self, Death};
use super::world::{try_with, with};
use crate::task::{ProcessExit, panic_text};

type Work = Pin<Box<dyn Future<Output = ()>>>;

/// Whose a task is. What a task starts is its owner's too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    pub process: u64,
    pub shard: u16,
}

struct Slot {
    name: &'static str,
    owner: Owner,
    /// Taken out while it is polled.
    work: Option<Work>,
    queued: bool,
    waker: Waker,
}

/// A process of the life.
#[derive(Default)]
pub(crate) struct Running {
    pub name: &'static str,
    pub steps: u64,
    pub kill_at: Option<(u64, Death)>,
    /// What takes its memory apart.
    pub at_end: Vec<Box<dyn FnOnce()>>,
}

/// The tasks of a life.
#[derive(Default)]
pub(crate) struct Tasks {
    slots: BTreeMap<u64, Slot>,
    ready: Vec<u64>,
    next: u64,
    /// Whose task runs now.
    pub current: Owner,
    pub processes: BTreeMap<u64, Running>,
    next_process: u64,
    /// Processes that end before the next step.
    pub to_end: Vec<(u64, Death)>,
    /// The last words of those that ended themselves.
    pub exits: BTreeMap<u64, String>,
    panicked: Option<String>,
    pub steps: u64,
    pub crash_at: Option<u64>,
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tasks({}, {} runnable)", self.slots.len(), self.ready.len())
    }
}

impl Tasks {
    /// Ids are never used twice, not in a later life either.
    pub fn add_process(&mut self, name: &'static str) -> u64 {
        self.next_process += 1;
        self.processes.insert(self.next_process, Running { name, ..Running::default() });
        self.next_process
    }

    fn wake(&mut self, id: u64) {
        if let Some(slot) = self.slots.get_mut(&id)
            && !slot.queued
        {
            slot.queued = true;
            self.ready.push(id);
        }
    }

    /// A step of the owner's process, which may be its last.
    fn count_step(&mut self, process: u64) {
        self.steps += 1;
        let Some(running) = self.processes.get_mut(&process) else { return };
        running.steps += 1;
        if let Some((at, how)) = running.kill_at
            && running.steps >= at
        {
            self.to_end.push((process, how));
        }
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.slots.values().map(|slot| slot.name).collect();
        names.join(", ")
    }
}

struct TaskWaker(u64);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        try_with(|world| world.tasks.wake(self.0));
    }
}

/// Starts a task. As on a real shard it may run up to its first wait before this returns: the dice decide.
pub(crate) fn start(name: &'static str, work: impl Future<Output = ()> + 'static) {
    let owner = with(|world| world.tasks.current);
    start_as(owner, name, work);
}

/// Starts a task of that owner; of a process that has ended it goes at once.
pub(crate) fn start_as(owner: Owner, name: &'static str, work: impl Future<Output = ()> + 'static) {
    let work: Work = Box::pin(work);
    let Some((id, at_once)) = with(|world| {
        if !world.tasks.processes.contains_key(&owner.process) {
            return None;
        }
        let id = world.tasks.next;
        world.tasks.next += 1;
        let waker = Waker::from(Arc::new(TaskWaker(id)));
        world.tasks.slots.insert(id, Slot { name, owner, work: None, queued: false, waker });
        // Another shard's first step is not taken from within a step of this one.
        Some((id, world.dice.one_in(2) && owner == world.tasks.current))
    }) else {
        return;
    };
    with(|world| {
        if let Some(slot) = world.tasks.slots.get_mut(&id) {
            slot.work = Some(work);
        }
        if !at_once {
            world.tasks.wake(id);
        }
    });
    if at_once {
        poll(id);
    }
}

/// One turn of one task.
fn poll(id: u64) {
    let taken = with(|world| {
        let slot = world.tasks.slots.get_mut(&id)?;
        slot.queued = false;
        let (name, waker, owner) = (slot.name, slot.waker.clone(), slot.owner);
        let work = slot.work.take()?;
        let before = std::mem::replace(&mut world.tasks.current, owner);
        world.now_ns += 200 + world.dice.below(2000);
        world.tasks.count_step(owner.process);
        world.note("run", [id, 0], || format!("{name} #{id} of {}.{}", owner.process, owner.shard));
        Some((work, waker, name, before))
    });
    let Some((mut work, waker, name, before)) = taken else { return };
    let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut Context::from_waker(&waker))));
    match polled {
        Ok(Poll::Pending) => with(|world| {
            if let Some(slot) = world.tasks.slots.get_mut(&id) {
                slot.work = Some(work);
            }
        }),
        Ok(Poll::Ready(())) => {
            drop(with(|world| world.tasks.slots.remove(&id)));
            drop(work);
        }
        Err(panic) => {
            drop(with(|world| world.tasks.slots.remove(&id)));
            drop_quietly(work);
            ended_badly(name, &*panic);
        }
    }
    with(|world| world.tasks.current = before);
}

/// A panic is a finding, but for the one that ends a process on purpose.
fn ended_badly(name: &str, panic: &(dyn std::any::Any + Send)) {
    with(|world| match panic.downcast_ref::<ProcessExit>() {
        Some(exit) => {
            let process = world.tasks.current.process;
            world.note("exit", [process, 0], || exit.0.clone());
            world.tasks.exits.insert(process, exit.0.clone());
            world.tasks.to_end.push((process, Death::Killed));
        }
        None => {
            let text = format!("task `{name}` panicked: {}", panic_text(panic));
            world.tasks.panicked.get_or_insert(text);
        }
    });
}

fn drop_quietly<T>(value: T) {
    // Values of a process that is no more: their last words count for nothing.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}

/// How a life ended.
#[derive(Debug)]
pub enum Ended<T> {
    /// Its main task did.
    Finished(T),
    /// Killed, as [`super::Simulation::crash_after`] or [`super::crash`] asked.
    Crashed,
    Panicked(String),
    /// Nothing runs and nothing is waited for, or it takes more steps than it may.
    Stuck(String),
}

enum Turn {
    Poll(u64),
    Wake(Vec<Waker>),
    EndProcess(u64, Death),
    End(End),
}

enum End {
    Crashed,
    Panicked(String),
    Stuck(String),
}

fn next_turn() -> Turn {
    with(|world| {
        if let Some(text) = world.tasks.panicked.take() {
            return Turn::End(End::Panicked(text));
        }
        if world.tasks.crash_at.is_some_and(|at| world.tasks.steps >= at) {
            return Turn::End(End::Crashed);
        }
        if let Some((process, how)) = world.tasks.to_end.pop() {
            return Turn::EndProcess(process, how);
        }
        if world.tasks.steps >= world.config.step_limit {
            return Turn::End(End::Stuck(format!("it runs and runs: {}", world.tasks.names())));
        }
        let due = world.timers.first_key_value().is_some_and(|((at, _), _)| *at <= world.now_ns);
        if !due && !world.tasks.ready.is_empty() {
            let at = world.dice.below(world.tasks.ready.len() as u64) as usize;
            return Turn::Poll(world.tasks.ready.swap_remove(at));
        }
        let Some((&(next, _), _)) = world.timers.first_key_value() else {
            return Turn::End(End::Stuck(format!("all wait for each other: {}", world.tasks.names())));
        };
        world.now_ns = world.now_ns.max(next);
        let later = world.timers.split_off(&(world.now_ns + 1, 0));
        let fired = std::mem::replace(&mut world.timers, later);
        Turn::Wake(fired.into_values().collect())
    })
}

/// Runs a process, and those that it starts, until its main task ends or something else ends them.
pub(crate) fn run<T: 'static>(main: impl Future<Output = T> + 'static) -> Ended<T> {
    let result: Rc<RefCell<Option<T>>> = Rc::default();
    let out = result.clone();
    with(|world| {
        world.tasks.steps = 0;
        world.tasks.current = Owner { process: world.tasks.add_process("main"), shard: 0 };
    });
    start("main", async move {
        let value = main.await;
        *out.borrow_mut() = Some(value);
    });
    let end = loop {
        if let Some(value) = result.borrow_mut().take() {
            break Ended::Finished(value);
        }
        match next_turn() {
            Turn::Poll(id) => poll(id),
            Turn::Wake(wakers) => wakers.into_iter().for_each(Waker::wake),
            Turn::EndProcess(id, how) => process::end(id, how),
            Turn::End(End::Crashed) => break Ended::Crashed,
            Turn::End(End::Panicked(text)) => break Ended::Panicked(text),
            Turn::End(End::Stuck(text)) => break Ended::Stuck(text),
        }
    };
    end_all();
    end
}

/// Drops the tasks of a process that is not in the list any more, so that what their ends start goes at once.
pub(crate) fn drop_tasks_of(process: u64) {
    let before = with(|world| std::mem::replace(&mut world.tasks.current, Owner { process, shard: 0 }));
    let slots = with(|world| {
        let tasks = &mut world.tasks;
        let (gone, kept) =
            std::mem::take(&mut tasks.slots).into_iter().partition(|(_, slot)| slot.owner.process == process);
        tasks.slots = kept;
        let slots: BTreeMap<u64, Slot> = gone;
        tasks.ready.retain(|id| !slots.contains_key(id));
        slots
    });
    slots.into_values().for_each(drop_quietly);
    with(|world| world.tasks.current = before);
}

/// Every process is gone, and with them their timers.
fn end_all() {
    while let Some(id) = with(|world| world.tasks.processes.last_key_value().map(|(id, _)| *id)) {
        process::end(id, Death::PowerCut);
    }
    drop(with(|world| std::mem::take(&mut world.timers)));
    with(|world| {
        world.tasks.ready.clear();
        world.tasks.to_end.clear();
        world.tasks.exits.clear();
        world.tasks.panicked = None;
        world.tasks.crash_at = None;
    });
}
