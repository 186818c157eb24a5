//! Waking tasks: from their own shard, and from any other thread.
//!
//! A task of ours has a **seat**, a number under which its shard keeps the event loop's own waker. The waker that the
//! task's futures see is the number and the shard's [`Doorbell`]: on the shard it wakes directly; elsewhere the number is
//! left at the bell, which is rung (an eventfd) only if the shard sleeps. So the event loop's wakers, whose counts have 16
//! bits and which cost a system call from elsewhere, never leave their thread, and there is one of them for each task.
//!
//! Who sleeps first says so and then looks whether anything was left; who leaves something first leaves it and then looks
//! whether the shard sleeps. With sequential consistency at least one of them sees the other.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use crate::driver;

thread_local! {
    /// The bell of the shard that this thread runs: only its address counts.
    static OURS: Cell<*const Doorbell> = const { Cell::new(std::ptr::null()) };
}

/// What other threads reach of a shard.
#[derive(Debug)]
pub(crate) struct Doorbell {
    event: OwnedFd,
    asleep: AtomicBool,
    left: AtomicUsize,
    seats: Mutex<Vec<usize>>,
}

impl Doorbell {
    pub fn new() -> io::Result<Arc<Doorbell>> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, owned by nothing else.
        let event = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Arc::new(Doorbell {
            event,
            asleep: AtomicBool::new(false),
            left: AtomicUsize::new(0),
            seats: Mutex::default(),
        }))
    }

    pub fn fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// This thread runs the bell's shard from now on, or none any more.
    pub fn move_in(bell: Option<&Arc<Doorbell>>) {
        OURS.set(bell.map_or(std::ptr::null(), Arc::as_ptr));
    }

    fn leave(&self, seat: usize) {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).push(seat);
        self.left.fetch_add(1, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            let one = 1u64.to_ne_bytes();
            // SAFETY: eight bytes that live through the call. It fails only when the count is full, and then the bell rings.
            unsafe { libc::write(self.fd(), one.as_ptr().cast(), one.len()) };
        }
    }

    /// Whether its shard waits in the kernel with nothing to do.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Says that the shard sleeps from now on, unless something was left for it.
    pub fn fall_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let may_sleep = !self.has_visitors();
        if !may_sleep {
            self.wake_up();
        }
        may_sleep
    }

    pub fn wake_up(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    pub fn has_visitors(&self) -> bool {
        self.left.load(Ordering::SeqCst) > 0
    }

    /// Takes the seats that others woke.
    pub fn visitors(&self, into: &mut Vec<usize>) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        self.left.fetch_sub(seats.len(), Ordering::SeqCst);
        into.append(&mut seats);
    }
}

/// A shard's tasks by seat, with the event loop's wakers.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    wakers: Vec<Option<Waker>>,
    free: Vec<usize>,
}

impl Seats {
    pub fn take(&mut self, waker: Waker) -> usize {
        match self.free.pop() {
            Some(seat) => {
                self.wakers[seat] = Some(waker);
                seat
            }
            None => {
                self.wakers.push(Some(waker));
                self.wakers.len() - 1
            }
        }
    }

    pub fn leave(&mut self, seat: usize) -> Option<Waker> {
        // None at all after the end of the shard.
        let waker = self.wakers.get_mut(seat)?.take();
        self.free.push(seat);
        waker
    }

    /// Wakes who sits there. Somebody who came later than the one that was meant wakes for nothing.
    pub fn wake(&self, seat: usize) {
        if let Some(Some(waker)) = self.wakers.get(seat) {
            waker.wake_by_ref();
        }
    }
}

/// What the futures of a task see as their waker.
struct Caller {
    bell: Arc<Doorbell>,
    seat: usize,
}

pub(crate) fn caller(bell: &Arc<Doorbell>, seat: usize) -> Waker {
    Waker::from(Arc::new(Caller { bell: bell.clone(), seat }))
}

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if OURS.get() == Arc::as_ptr(&self.bell) {
            driver::wake(self.seat);
        } else {
            self.bell.leave(self.seat);
        }
    }
}
