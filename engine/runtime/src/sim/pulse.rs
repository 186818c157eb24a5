//! The simulated scheduler never sleeps on runnable tasks, so nothing has to be woken and nothing stalls.

/// What a shard's context shows of its stalls.
#[derive(Debug, Default)]
pub struct PulseState(());

impl PulseState {
    /// Longest stall since the last call, in microseconds: none.
    pub fn take_worst_us(&self) -> u64 {
        0
    }
}
