//! Handles and groups of tasks: the part of [`crate::task`] that is the same on every back end.

use std::cell::Cell;
use std::rc::Rc;

use crate::sync::{Notify, OneshotReceiver};
use crate::task::spawn;

/// What came of a task: join it, or let it go on by itself by dropping the handle.
#[derive(Debug)]
pub struct TaskHandle<T>(OneshotReceiver<T>);

impl<T> TaskHandle<T> {
    pub(crate) fn new(result: OneshotReceiver<T>) -> TaskHandle<T> {
        TaskHandle(result)
    }

    /// Waits for the task's result. `None` only when the shard ends first.
    pub async fn join(self) -> Option<T> {
        self.0.await
    }
}

/// Tasks with one owner that waits for all of them.
#[derive(Clone, Debug, Default)]
pub struct TaskGroup {
    state: Rc<GroupState>,
}

#[derive(Debug, Default)]
struct GroupState {
    running: Cell<usize>,
    ended: Notify,
}

impl TaskGroup {
    pub fn new() -> TaskGroup {
        TaskGroup::default()
    }

    pub fn spawn(&self, name: &'static str, future: impl Future<Output = ()> + 'static) {
        let state = self.state.clone();
        state.running.set(state.running.get() + 1);
        spawn(name, async move {
            future.await;
            state.running.set(state.running.get() - 1);
            state.ended.notify();
        });
    }

    pub fn running(&self) -> usize {
        self.state.running.get()
    }

    /// Resolves when none runs any more.
    pub async fn wait(&self) {
        loop {
            let seen = self.state.ended.version();
            if self.state.running.get() == 0 {
                return;
            }
            self.state.ended.changed_since(seen).await;
        }
    }
}
