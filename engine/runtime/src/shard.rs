//! Starting and joining shards.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use glommio::{LocalExecutorBuilder, Placement};

use crate::driver;
use crate::limits::{UNUSED_IO_MEMORY, UNUSED_REACTOR_INTERVAL, UNUSED_RING_DEPTH};
use crate::pulse::{PulseState, PulseThread};
pub use crate::shard_types::{HelperSpec, ShardContext, ShardSpec, StartError};
use crate::task;

/// Running shards; `join` waits for all main tasks.
#[derive(Debug)]
pub struct RunningShards<T: Send + 'static> {
    handles: Vec<JoinHandle<Result<T, String>>>,
    _pulse: PulseThread,
}

/// Starts `specs.len()` shards. `main` is called once on each shard's own thread with its context and gives the
/// shard's main task; the shard ends when that task does.
pub fn start<M, F, T>(specs: &[ShardSpec], helpers: HelperSpec, main: M) -> Result<RunningShards<T>, StartError>
where
    M: Fn(ShardContext) -> F + Clone + Send + 'static,
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let pulses: Vec<Arc<PulseState>> = specs.iter().map(|_| Arc::default()).collect();
    let mut handles = Vec::with_capacity(specs.len());
    for (index, spec) in specs.iter().enumerate() {
        let context = ShardContext { index, count: specs.len(), pulse: pulses[index].clone() };
        let (main, spec) = (main.clone(), spec.clone());
        let handle = std::thread::Builder::new()
            .name(format!("shard-{index}"))
            .spawn(move || run(&spec, context, main))
            .map_err(|e| StartError::Executor { shard: index, text: e.to_string() })?;
        handles.push(handle);
    }
    let pulse = PulseThread::start(pulses, helpers.pulse_interval_ms, helpers.cpu).map_err(StartError::Pulse)?;
    Ok(RunningShards { handles, _pulse: pulse })
}

/// The whole life of a shard's thread.
fn run<M, F, T>(spec: &ShardSpec, context: ShardContext, main: M) -> Result<T, String>
where
    M: Fn(ShardContext) -> F + 'static,
    F: Future<Output = T> + 'static,
    T: 'static,
{
    let name = format!("shard-{}", context.index);
    let executor = LocalExecutorBuilder::new(spec.cpu.map_or(Placement::Unbound, Placement::Fixed))
        .name(&name)
        .io_memory(UNUSED_IO_MEMORY)
        .ring_depth(UNUSED_RING_DEPTH)
        .preempt_timer(UNUSED_REACTOR_INTERVAL)
        .make()
        .map_err(|e| e.to_string())?;
    let longest = Duration::from_micros(spec.preempt_timer_us);
    let driver = driver::move_in(name, longest).map_err(|e| format!("io_uring: {e}"))?;
    let pulse = context.pulse.clone();
    let event_loop = pulse.enter(driver.bell().clone());
    let turning = driver.clone();
    // Only what tasks of ours do counts as work: all but the first step and the last happens in one.
    let result = executor.run(async move {
        let turns = glommio::spawn_local(turning.clone().run());
        let echo = task::spawn("pulse", pulse.clone().echo());
        let main = task::spawn("main", async move {
            let result = main(context).await;
            pulse.end();
            let _ = echo.join().await;
            turning.end();
            result
        });
        let result = main.join().await;
        turns.await;
        result
    });
    drop(event_loop);
    drop(executor);
    driver.move_out();
    result.ok_or_else(|| "its main task was given up".to_string())
}

impl<T: Send + 'static> RunningShards<T> {
    /// Waits until every shard's main task has ended.
    pub fn join(self) -> Result<Vec<T>, StartError> {
        let mut results = Vec::with_capacity(self.handles.len());
        for (shard, handle) in self.handles.into_iter().enumerate() {
            let ended = handle.join().unwrap_or_else(|panic| Err(task::panic_text(&*panic).to_string()));
            let result = ended.map_err(|text| StartError::Executor { shard, text })?;
            results.push(result);
        }
        Ok(results)
    }
}
