//! What shards are started with and why they could not be: the part of [`crate::shard`] that is the same on every back
//! end.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::pulse::PulseState;

/// What one shard is given.
#[derive(Clone, Debug)]
pub struct ShardSpec {
    /// CPU to pin the shard to; `None` leaves it to the kernel.
    pub cpu: Option<usize>,
    /// How long tasks may run before sockets, disk and timers are looked at, in microseconds.
    pub preempt_timer_us: u64,
}

impl Default for ShardSpec {
    fn default() -> ShardSpec {
        ShardSpec { cpu: None, preempt_timer_us: 1000 }
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
