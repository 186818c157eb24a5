//! Shards as sets of tasks of one simulated process. The scheduler takes any of their tasks next, so that what two shards
//! do is interleaved at every wait.

use std::sync::Arc;

pub use crate::shard_types::{HelperSpec, ShardContext, ShardSpec, StartError};
use crate::sim::executor::{self, Owner};
use crate::sim::world::with;
use crate::sync::oneshot;
use crate::task::TaskHandle;

/// Running shards; `joined` waits for all main tasks.
#[derive(Debug)]
pub struct RunningShards<T: Send + 'static> {
    handles: Vec<TaskHandle<T>>,
}

/// Starts `specs.len()` shards in the process that calls.
pub fn start<M, F, T>(specs: &[ShardSpec], _helpers: HelperSpec, main: M) -> Result<RunningShards<T>, StartError>
where
    M: Fn(ShardContext) -> F + Clone + Send + 'static,
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let process = with(|world| world.tasks.current.process);
    let handles = (0..specs.len()).map(|index| {
        let main = main(ShardContext { index, count: specs.len(), pulse: Arc::default() });
        let (sender, receiver) = oneshot();
        let owner = Owner { process, shard: index as u16 };
        executor::start_as(owner, "shard", async move { sender.send(main.await) });
        TaskHandle::new(receiver)
    });
    Ok(RunningShards { handles: handles.collect() })
}

impl<T: Send + 'static> RunningShards<T> {
    /// Resolves when every shard's main task has ended. What a thread waits for, a simulated process awaits.
    pub async fn joined(self) -> Result<Vec<T>, StartError> {
        let mut results = Vec::with_capacity(self.handles.len());
        for (shard, handle) in self.handles.into_iter().enumerate() {
            let ended = handle.join().await;
            results.push(ended.ok_or(StartError::Executor { shard, text: "its process ended".to_string() })?);
        }
        Ok(results)
    }
}
