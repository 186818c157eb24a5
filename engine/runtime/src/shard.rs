//! Starting and joining shards.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use glommio::{LocalExecutorBuilder, Placement};

use crate::limits::RING_DEPTH;
use crate::pulse::{PulseState, PulseThread};
use crate::{checks, task};

/// What one shard is given.
#[derive(Clone, Debug)]
pub struct ShardSpec {
    /// CPU to pin the shard to; `None` leaves it to the kernel.
    pub cpu: Option<usize>,
    /// Registered memory for direct I/O, in bytes.
    pub io_memory_bytes: usize,
    /// How long tasks may run before sockets, disk and timers are looked at, in microseconds.
    pub preempt_timer_us: u64,
}

impl Default for ShardSpec {
    fn default() -> ShardSpec {
        ShardSpec { cpu: None, io_memory_bytes: 16 << 20, preempt_timer_us: 1000 }
    }
}

/// The threads that are no shards.
#[derive(Clone, Copy, Debug)]
pub struct HelperSpec {
    /// CPU to pin them to, if anywhere.
    pub cpu: Option<usize>,
    /// Milliseconds between two pulses.
    pub pulse_interval_ms: u64,
}

impl Default for HelperSpec {
    fn default() -> HelperSpec {
        HelperSpec { cpu: None, pulse_interval_ms: crate::limits::PULSE_INTERVAL_MS }
    }
}

/// Who this shard is; given to its main task.
#[derive(Clone, Debug)]
pub struct ShardContext {
    pub index: usize,
    pub count: usize,
    pub pulse: Arc<PulseState>,
}

/// Why shards could not start.
#[derive(Debug)]
pub enum StartError {
    Executor { shard: usize, text: String },
    Pulse(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Executor { shard, text } => write!(f, "shard {shard} could not start: {text}"),
            StartError::Pulse(e) => write!(f, "the pulse thread could not start: {e}"),
        }
    }
}

impl std::error::Error for StartError {}

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
    let executor = LocalExecutorBuilder::new(spec.cpu.map_or(Placement::Unbound, Placement::Fixed))
        .name(&format!("shard-{}", context.index))
        .io_memory(checks::io_memory_that_fits(spec.io_memory_bytes))
        .ring_depth(RING_DEPTH)
        .preempt_timer(Duration::from_micros(spec.preempt_timer_us))
        .make()
        .map_err(|e| e.to_string())?;
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
