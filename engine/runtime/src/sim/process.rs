//! Processes beside the one that a life began with: a broker that is killed and started again while its clients live on.
//!
//! Tasks, locks and sockets belong to the process that made them and go with it. The disk is the machine's: what was on
//! its way there when its process ended is there, or never will be.

use super::executor::{self, Owner, Running};
use super::world::with;
use crate::sync::{OneshotReceiver, oneshot};

/// A process under way. Dropping the handle leaves it alone.
#[derive(Debug)]
pub struct Process<T> {
    id: u64,
    result: OneshotReceiver<T>,
}

/// How a process came to its end.
#[derive(Debug, PartialEq, Eq)]
pub enum ProcessEnd<T> {
    /// Its main task did.
    Finished(T),
    Killed,
    /// It ended itself, with this sentence.
    Exited(String),
}

/// What others on the network notice of a process's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// The kernel closes its sockets.
    Killed,
    /// Nothing: the machine is gone, and its peers' connections are half-open.
    PowerCut,
}

impl<T: 'static> Process<T> {
    /// Starts a process; its main task's end is its end.
    pub fn start(name: &'static str, main: impl Future<Output = T> + 'static) -> Process<T> {
        let (sender, result) = oneshot();
        let id = with(|world| {
            let id = world.tasks.add_process(name);
            world.note("process", [id, 0], || format!("{name} is process {id}"));
            id
        });
        executor::start_as(Owner { process: id, shard: 0 }, name, async move {
            sender.send(main.await);
            with(|world| world.tasks.to_end.push((id, Death::Killed)));
        });
        Process { id, result }
    }

    /// Ends it before its next step, if it still runs.
    pub fn kill(&self, how: Death) {
        with(|world| world.tasks.to_end.push((self.id, how)));
    }

    /// Ends it after so many more of its steps, if it lives that long.
    pub fn kill_after(&self, steps: u64, how: Death) {
        with(|world| {
            if let Some(running) = world.tasks.processes.get_mut(&self.id) {
                running.kill_at = Some((running.steps + steps, how));
            }
        });
    }

    pub fn is_running(&self) -> bool {
        with(|world| world.tasks.processes.contains_key(&self.id))
    }

    /// Resolves when it has ended.
    pub async fn ended(self) -> ProcessEnd<T> {
        let id = self.id;
        match self.result.await {
            Some(value) => ProcessEnd::Finished(value),
            None => with(|world| world.tasks.exits.remove(&id)).map_or(ProcessEnd::Killed, ProcessEnd::Exited),
        }
    }
}

/// The process is gone: its tasks, its timers, its locks, its sockets.
pub(crate) fn end(id: u64, how: Death) {
    let Some(Running { name, at_end, .. }) = with(|world| world.tasks.processes.remove(&id)) else { return };
    let wakers = with(|world| {
        world.note("ended", [id, how as u64], || format!("{name}, process {id}: {how:?}"));
        world.process_left_network(id, how)
    });
    executor::drop_tasks_of(id);
    at_end.into_iter().for_each(|work| work());
    with(|world| {
        world.disk.locks.retain(|_, holder| *holder != id);
        world.disk.all_came_back();
    });
    wakers.into_iter().for_each(std::task::Waker::wake);
}
