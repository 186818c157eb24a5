//! The pulse: one ordinary thread that looks every few milliseconds whether each shard turns.
//!
//! A shard that waits in the kernel with nothing to do says so ([`Doorbell::is_asleep`]) and is left alone: whoever has
//! something for it rings. One that is awake is woken: a task of it echoes a counter, and the distance between wakes and
//! echoes is the shard's stall figure. One that does not answer for a while gets a signal, which interrupts a wait in the
//! kernel that no doorbell ends (glommio 0.9 may park a shard although tasks are runnable, see DECISIONS.md); one that never
//! answers again is the end of the process.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::clock;
use crate::doorbell::Doorbell;
use crate::limits::{PULSE_DEAD_TICKS, PULSE_NAP, PULSE_NUDGE_TICKS};

/// Interrupts a wait in the kernel and does nothing else. Kafka's clients and operators send no such signal.
const NUDGE: libc::c_int = libc::SIGUSR2;

/// How the shard can be reached while its thread runs the event loop.
#[derive(Debug)]
struct Reach {
    thread: libc::pthread_t,
    bell: Arc<Doorbell>,
    /// Of the echo task, once it has run.
    echo: Option<Waker>,
}

/// What the pulse thread and one shard share.
#[derive(Debug, Default)]
pub struct PulseState {
    reach: Mutex<Option<Reach>>,
    stopped: AtomicBool,
    /// Pulses since the last echo.
    unanswered: AtomicU64,
    /// Monotonic time of the last wake, nanoseconds.
    woken_at_ns: AtomicU64,
    /// Longest time between a wake and its echo since last asked, nanoseconds.
    worst_ns: AtomicU64,
}

/// What came of one look at a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beat {
    /// It sleeps, or does not run.
    Idle,
    /// Woken, and it has not answered so many wakes in a row.
    Woken(u64),
}

impl PulseState {
    fn reach(&self) -> std::sync::MutexGuard<'_, Option<Reach>> {
        self.reach.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// This thread is about to run the event loop of a shard that sleeps at `bell`. The value's drop says that it has ended.
    pub(crate) fn enter(self: &Arc<PulseState>, bell: Arc<Doorbell>) -> EventLoop {
        install_nudge();
        // SAFETY: takes nothing and cannot fail.
        let thread = unsafe { libc::pthread_self() };
        *self.reach() = Some(Reach { thread, bell, echo: None });
        EventLoop { pulse: self.clone() }
    }

    /// Longest stall since the last call, in microseconds.
    pub fn take_worst_us(&self) -> u64 {
        self.worst_ns.swap(0, Ordering::Relaxed) / 1000
    }

    /// The shard's side: runs in a task of its own until [`PulseState::end`].
    pub(crate) async fn echo(self: Arc<PulseState>) {
        poll_fn(|cx| {
            if let Some(reach) = &mut *self.reach()
                && !reach.echo.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
            {
                reach.echo = Some(cx.waker().clone());
            }
            if self.unanswered.swap(0, Ordering::AcqRel) > 0 {
                let late = clock::now_ns().saturating_sub(self.woken_at_ns.load(Ordering::Acquire));
                self.worst_ns.fetch_max(late, Ordering::Relaxed);
            }
            if self.stopped.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Ends the echo task.
    pub(crate) fn end(&self) {
        self.stopped.store(true, Ordering::Release);
        let echo = self.reach().as_mut().and_then(|reach| reach.echo.take());
        echo.into_iter().for_each(Waker::wake);
    }

    /// Wakes the shard unless it sleeps.
    fn beat(&self) -> Beat {
        let reach = self.reach();
        let Some(reach) = &*reach else { return Beat::Idle };
        if reach.bell.is_asleep() {
            return Beat::Idle;
        }
        let before = self.unanswered.fetch_add(1, Ordering::AcqRel);
        if before == 0 {
            self.woken_at_ns.store(clock::now_ns(), Ordering::Release);
        }
        if let Some(echo) = &reach.echo {
            echo.wake_by_ref();
        }
        if before >= PULSE_NUDGE_TICKS {
            // SAFETY: the thread has not left its event loop: it changes `reach`, under this lock, before it does.
            unsafe { libc::pthread_kill(reach.thread, NUDGE) };
        }
        Beat::Woken(before + 1)
    }
}

/// See [`PulseState::enter`].
#[derive(Debug)]
pub(crate) struct EventLoop {
    pulse: Arc<PulseState>,
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        *self.pulse.reach() = None;
    }
}

extern "C" fn nothing(_signal: libc::c_int) {}

/// A handler that does nothing: the default would end the process, and an ignored signal interrupts nothing. Without
/// SA_RESTART, so that the wait does return.
fn install_nudge() {
    // SAFETY: the action is initialised, its handler is async-signal-safe (it is empty), the old action is not asked for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(NUDGE, &raw const action, std::ptr::null_mut());
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
            let mut pulses = 1;
            while !flag.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(interval_ms * u64::from(pulses)));
                let beats: Vec<Beat> = shards.iter().map(|shard| shard.beat()).collect();
                pulses = if beats.iter().all(|beat| *beat == Beat::Idle) { PULSE_NAP } else { 1 };
                for (index, beat) in beats.into_iter().enumerate() {
                    if matches!(beat, Beat::Woken(unanswered) if unanswered > PULSE_DEAD_TICKS) {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_shard_that_sleeps_is_left_alone_and_one_that_is_awake_answers() {
        let bell = Doorbell::new().unwrap();
        let pulse = Arc::new(PulseState::default());
        assert_eq!(pulse.beat(), Beat::Idle, "it does not run");
        let event_loop = pulse.enter(bell.clone());
        assert!(bell.fall_asleep());
        assert_eq!(pulse.beat(), Beat::Idle);
        bell.wake_up();
        assert_eq!((pulse.beat(), pulse.beat()), (Beat::Woken(1), Beat::Woken(2)));
        let mut echo = std::pin::pin!(pulse.clone().echo());
        let mut cx = std::task::Context::from_waker(Waker::noop());
        assert!(echo.as_mut().poll(&mut cx).is_pending());
        assert_eq!(pulse.beat(), Beat::Woken(1), "an echo answers all");
        pulse.end();
        assert!(echo.as_mut().poll(&mut cx).is_ready());
        drop(event_loop);
        assert_eq!(pulse.beat(), Beat::Idle);
    }
}
