//! The scheduler: one thread, and at every step the dice say which of the runnable tasks goes on. When none is runnable
//! time jumps to the next timer. A task that panics ends the life with its text; nothing left to wait for is a finding.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::world::{try_with, with};
use crate::task::panic_text;

type Work = Pin<Box<dyn Future<Output = ()>>>;

struct Slot {
    name: &'static str,
    /// Taken out while it is polled.
    work: Option<Work>,
    queued: bool,
    waker: Waker,
}

/// The tasks of a life.
#[derive(Default)]
pub(crate) struct Tasks {
    slots: BTreeMap<u64, Slot>,
    ready: Vec<u64>,
    next: u64,
    /// The life is over: new tasks go at once.
    dying: bool,
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
    fn wake(&mut self, id: u64) {
        if let Some(slot) = self.slots.get_mut(&id)
            && !slot.queued
        {
            slot.queued = true;
            self.ready.push(id);
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
    let work: Work = Box::pin(work);
    let Some((id, at_once)) = with(|world| {
        if world.tasks.dying {
            return None;
        }
        let id = world.tasks.next;
        world.tasks.next += 1;
        let slot = Slot { name, work: None, queued: false, waker: Waker::from(Arc::new(TaskWaker(id))) };
        world.tasks.slots.insert(id, slot);
        Some((id, world.dice.one_in(2)))
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
        let (name, waker) = (slot.name, slot.waker.clone());
        let work = slot.work.take()?;
        world.now_ns += 200 + world.dice.below(2000);
        world.tasks.steps += 1;
        world.note("run", [id, 0], || format!("{name} #{id}"));
        Some((work, waker, name))
    });
    let Some((mut work, waker, name)) = taken else { return };
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
            let text = format!("task `{name}` panicked: {}", panic_text(&*panic));
            drop(with(|world| world.tasks.slots.remove(&id)));
            drop_quietly(work);
            with(|world| {
                world.tasks.panicked.get_or_insert(text);
            });
        }
    }
}

fn drop_quietly<T>(value: T) {
    // Values of a process that is no more: their last words count for nothing.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}

/// How a process ended.
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

/// Runs a process until its main task ends or something else ends it.
pub(crate) fn run<T: 'static>(main: impl Future<Output = T> + 'static) -> Ended<T> {
    let result: Rc<RefCell<Option<T>>> = Rc::default();
    let out = result.clone();
    with(|world| world.tasks.steps = 0);
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
            Turn::End(End::Crashed) => break Ended::Crashed,
            Turn::End(End::Panicked(text)) => break Ended::Panicked(text),
            Turn::End(End::Stuck(text)) => break Ended::Stuck(text),
        }
    };
    end_all();
    end
}

/// The process is gone: all its tasks and timers are.
fn end_all() {
    with(|world| world.tasks.dying = true);
    loop {
        let slots = with(|world| {
            world.tasks.ready.clear();
            std::mem::take(&mut world.tasks.slots)
        });
        let timers = with(|world| std::mem::take(&mut world.timers));
        if slots.is_empty() {
            break;
        }
        drop(timers);
        slots.into_values().for_each(drop_quietly);
    }
    with(|world| {
        world.tasks.dying = false;
        world.tasks.panicked = None;
        world.tasks.crash_at = None;
    });
}
