//! The pulse: one ordinary thread that wakes a task of each shard every few milliseconds.
//!
//! glommio 0.9 may park a shard although tasks are runnable. A wake from outside gets it going again, so a missed wake
//! costs a few milliseconds and not a client's time-out. The wake is unconditional: a message through a channel would
//! be no cure, since a full channel wakes nobody. A shard whose tasks have done nothing since two wakes can have nothing
//! runnable, and is woken only every twentieth time, and where that is so of all shards the thread sleeps four times as long:
//! the wakes are most of what an idle broker costs. The task echoes a counter; the distance between wakes and echoes is the
//! shard's stall figure.
//!
//! The shard can also be parked before that task ran for the first time, or after it ended (seen here: one start in some
//! 600 on a busy machine hung for ever). Then there is no waker, and the pulse sends the thread a signal instead, which
//! interrupts its wait in the kernel.

use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::clock;
use crate::limits::{PULSE_CONFIRMS, PULSE_DEAD_TICKS, PULSE_NAP, PULSE_SKIPS};

/// Interrupts a wait in the kernel and does nothing else. Kafka's clients and operators send no such signal.
const NUDGE: libc::c_int = libc::SIGUSR2;

/// How the shard can be reached.
#[derive(Debug, Default)]
enum Reach {
    /// The thread does not run the event loop yet, or not any more.
    #[default]
    Nowhere,
    /// The event loop runs, the echo task does not.
    Thread(libc::pthread_t),
    Task(Waker),
}

/// What the pulse thread and one shard share.
#[derive(Debug, Default)]
pub struct PulseState {
    reach: Mutex<Reach>,
    /// Pulses since the last echo.
    unanswered: AtomicU64,
    /// Monotonic time of the last wake, nanoseconds.
    woken_at_ns: AtomicU64,
    /// Longest time between a wake and its echo since last asked, nanoseconds.
    worst_ns: AtomicU64,
    /// Times that a task of the shard was run, the echo too. Written by the shard alone.
    polls: AtomicU64,
    /// Those of the echo.
    echoes: AtomicU64,
}

thread_local! {
    /// The pulse of the shard that this thread runs.
    static OURS: RefCell<Option<Arc<PulseState>>> = const { RefCell::new(None) };
}

/// A task of this thread's shard is about to run.
pub(crate) fn note_poll() {
    OURS.with(|ours| {
        if let Some(pulse) = &*ours.borrow() {
            pulse.polls.store(pulse.polls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    });
}

/// When a shard is to be woken. Kept by the pulse thread.
#[derive(Debug, Default)]
struct Rhythm {
    seen: u64,
    confirms: u32,
    skipped: u32,
}

impl Rhythm {
    /// `activity` rises whenever the shard does anything; `is_late`: the last wake was not answered; `pulses`: so many have
    /// passed since the last call.
    fn is_due(&mut self, activity: u64, is_late: bool, pulses: u32) -> bool {
        if activity != self.seen {
            self.seen = activity;
            self.confirms = PULSE_CONFIRMS;
        }
        self.skipped += pulses;
        let due = is_late || self.confirms > 0 || self.skipped >= PULSE_SKIPS;
        if due {
            self.confirms = self.confirms.saturating_sub(1);
            self.skipped = 0;
        }
        due
    }
}

/// What came of one look at a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beat {
    /// Not woken: it has nothing to do.
    Idle,
    /// Woken, and it has not answered so many wakes in a row.
    Woken(u64),
}

impl PulseState {
    fn reach(&self) -> std::sync::MutexGuard<'_, Reach> {
        self.reach.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// This thread is about to run a shard's event loop. The value's drop says that it has ended.
    pub(crate) fn enter(self: &Arc<PulseState>) -> EventLoop {
        install_nudge();
        OURS.with(|ours| *ours.borrow_mut() = Some(self.clone()));
        *self.reach() = this_thread();
        EventLoop { pulse: self.clone() }
    }

    /// Longest stall since the last call, in microseconds.
    pub fn take_worst_us(&self) -> u64 {
        self.worst_ns.swap(0, Ordering::Relaxed) / 1000
    }

    /// The shard's side: runs for ever in a task of its own until `stopped`.
    pub(crate) async fn echo(self: Arc<PulseState>, stopped: Arc<AtomicBool>) {
        poll_fn(|cx| {
            self.echoes.fetch_add(1, Ordering::Relaxed);
            {
                let mut reach = self.reach();
                if !matches!(&*reach, Reach::Task(waker) if waker.will_wake(cx.waker())) {
                    *reach = Reach::Task(cx.waker().clone());
                }
            }
            if self.unanswered.swap(0, Ordering::AcqRel) > 0 {
                let late = clock::now_ns().saturating_sub(self.woken_at_ns.load(Ordering::Acquire));
                self.worst_ns.fetch_max(late, Ordering::Relaxed);
            }
            if stopped.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        *self.reach() = this_thread();
    }

    fn activity(&self) -> u64 {
        self.polls.load(Ordering::Relaxed).wrapping_sub(self.echoes.load(Ordering::Relaxed))
    }

    /// Wakes the shard if it is time.
    fn beat(&self, rhythm: &mut Rhythm, pulses: u32) -> Beat {
        let reach = self.reach();
        let waker = match &*reach {
            Reach::Nowhere => return Beat::Woken(0),
            Reach::Thread(thread) => {
                // SAFETY: the thread has not left its event loop: it changes `reach`, under this lock, before it does.
                unsafe { libc::pthread_kill(*thread, NUDGE) };
                return Beat::Woken(0);
            }
            Reach::Task(waker) => waker,
        };
        if !rhythm.is_due(self.activity(), self.unanswered.load(Ordering::Acquire) > 0, pulses) {
            return Beat::Idle;
        }
        let before = self.unanswered.fetch_add(1, Ordering::AcqRel);
        if before == 0 {
            self.woken_at_ns.store(clock::now_ns(), Ordering::Release);
        }
        waker.wake_by_ref();
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
        OURS.with(|ours| *ours.borrow_mut() = None);
        *self.pulse.reach() = Reach::Nowhere;
    }
}

fn this_thread() -> Reach {
    // SAFETY: takes nothing and cannot fail.
    Reach::Thread(unsafe { libc::pthread_self() })
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
            let mut rhythms: Vec<Rhythm> = shards.iter().map(|_| Rhythm::default()).collect();
            let mut pulses = 1;
            while !flag.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(interval_ms * u64::from(pulses)));
                let beats: Vec<Beat> =
                    shards.iter().zip(&mut rhythms).map(|(shard, rhythm)| shard.beat(rhythm, pulses)).collect();
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
    use super::*;

    #[test]
    fn a_shard_that_does_nothing_is_woken_seldom() {
        let mut rhythm = Rhythm::default();
        let woken =
            |rhythm: &mut Rhythm, activity, times| (0..times).filter(|_| rhythm.is_due(activity, false, 1)).count();
        assert_eq!(woken(&mut rhythm, 1, 1), 1);
        assert_eq!(woken(&mut rhythm, 1, 1), 1, "a second wake confirms that nothing is left to run");
        assert_eq!(woken(&mut rhythm, 1, 200), 10);
        assert!((0..4).all(|_| !rhythm.is_due(1, false, PULSE_NAP)));
        assert!(rhythm.is_due(1, false, PULSE_NAP), "naps count for the pulses that they are");
        assert_eq!(woken(&mut rhythm, 2, 1), 1, "activity is followed at once");
    }

    #[test]
    fn a_busy_shard_and_one_that_does_not_answer_are_woken_each_time() {
        let mut rhythm = Rhythm::default();
        assert!((1..100).all(|activity| rhythm.is_due(activity, false, 1)));
        assert!((0..100).all(|_| rhythm.is_due(99, true, 1)));
    }
}
