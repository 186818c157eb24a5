//! The pulse: one ordinary thread that wakes a task of each shard every few milliseconds.
//!
//! glommio 0.9 may park a shard although tasks are runnable. A wake from outside gets it going again, so a missed wake
//! costs a few milliseconds and not a client's time-out. The wake is unconditional: a message through a channel would
//! be no cure, since a full channel wakes nobody. The task echoes a counter; the distance between wakes and echoes is
//! the shard's stall figure.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::clock;
use crate::limits::PULSE_DEAD_TICKS;

/// What the pulse thread and one shard share.
#[derive(Debug, Default)]
pub struct PulseState {
    waker: Mutex<Option<Waker>>,
    /// Pulses since the last echo.
    unanswered: AtomicU64,
    /// Monotonic time of the last wake, nanoseconds.
    woken_at_ns: AtomicU64,
    /// Longest time between a wake and its echo since last asked, nanoseconds.
    worst_ns: AtomicU64,
}

impl PulseState {
    /// Longest stall since the last call, in microseconds.
    pub fn take_worst_us(&self) -> u64 {
        self.worst_ns.swap(0, Ordering::Relaxed) / 1000
    }

    /// The shard's side: runs for ever in a task of its own until `stopped`.
    pub(crate) async fn echo(self: Arc<PulseState>, stopped: Arc<AtomicBool>) {
        poll_fn(|cx| {
            {
                let mut slot = self.waker.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if !slot.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
                    *slot = Some(cx.waker().clone());
                }
            }
            if self.unanswered.swap(0, Ordering::AcqRel) > 0 {
                let late = clock::now_ns().saturating_sub(self.woken_at_ns.load(Ordering::Acquire));
                self.worst_ns.fetch_max(late, Ordering::Relaxed);
            }
            if stopped.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        self.waker.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    }

    fn beat(&self) -> u64 {
        let slot = self.waker.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(waker) = slot.as_ref() else { return 0 };
        let before = self.unanswered.fetch_add(1, Ordering::AcqRel);
        if before == 0 {
            self.woken_at_ns.store(clock::now_ns(), Ordering::Release);
        }
        waker.wake_by_ref();
        before + 1
    }
}

/// The thread. Dropping the handle ends it.
#[derive(Debug)]
pub struct PulseThread {
    stopped: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl PulseThread {
    /// `cpu`: where to pin the thread, if anywhere.
    pub fn start(shards: Vec<Arc<PulseState>>, interval_ms: u64, cpu: Option<usize>) -> std::io::Result<PulseThread> {
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = stopped.clone();
        let thread = std::thread::Builder::new().name("ringlog-pulse".into()).spawn(move || {
            if let Some(id) = cpu {
                core_affinity::set_for_current(core_affinity::CoreId { id });
            }
            while !flag.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(interval_ms));
                for (index, shard) in shards.iter().enumerate() {
                    if shard.beat() > PULSE_DEAD_TICKS {
                        eprintln!(
                            "ringlog: shard {index} has not answered for {} s; it hangs, so the process ends now. Start it again, and please report this.",
                            PULSE_DEAD_TICKS * interval_ms / 1000
                        );
                        std::process::abort();
                    }
                }
            }
        })?;
        Ok(PulseThread { stopped, thread: Some(thread) })
    }
}

impl Drop for PulseThread {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
