//! Starting and joining shards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use glommio::{LocalExecutorBuilder, Placement};

use crate::limits::RING_DEPTH;
use crate::pulse::{PulseState, PulseThread};
use crate::shard_types::lendable_bytes;
pub use crate::shard_types::{HelperSpec, ShardContext, ShardSpec, StartError};
use crate::{checks, lent, task};

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
    checks::register_membarrier();
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
    M: Fn(ShardContext) -> F,
    F: Future<Output = T> + 'static,
    T: 'static,
{
    let io_memory = checks::io_memory_that_fits(spec.io_memory_bytes);
    let executor = LocalExecutorBuilder::new(spec.cpu.map_or(Placement::Unbound, Placement::Fixed))
        .name(&format!("shard-{}", context.index))
        .io_memory(io_memory)
        .ring_depth(RING_DEPTH)
        .preempt_timer(Duration::from_micros(spec.preempt_timer_us))
        .make()
        .map_err(|e| e.to_string())?;
    lent::may_lend(lendable_bytes(io_memory));
    let stopped = Arc::new(AtomicBool::new(false));
    let _event_loop = context.pulse.enter();
    executor.run(async move {
        let echo = task::spawn("pulse", context.pulse.clone().echo(stopped.clone()));
        let Some(result) = task::spawn("main", main(context)).join().await else {
            unreachable!("the main task sends its result or ends the process")
        };
        // The last pulse ends the echo task, so that its waker is gone before the executor is.
        stopped.store(true, Ordering::Release);
        let _ = echo.join().await;
        Ok(result)
    })
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
