//! What turns a shard: its ring, its timers and the wakes from elsewhere, in one task that is always ready to run.
//!
//! glommio runs the tasks; this is one of them, and as it never stops asking for another turn the event loop never parks
//! by itself. A turn hands to the kernel what other tasks began, takes what has come back, and wakes who waits for it.
//! When no other task ran since the last turn there is nothing to do, and the turn becomes a sleep: one system call that
//! hands over, waits, and ends with the first completion, timer or ring of the doorbell. Tasks that run for long do not keep
//! the ring waiting: every few polls the time is looked at, and a turn is taken in between.
//!
//! Why not glommio's own reactor: it keeps three rings, two timers that are set and cancelled around every sleep, and a
//! barrier on all cores before each: nine system calls where this takes one or two. See DECISIONS.md.
//!
//! Owned by the shard's thread and found through a thread-local. Nothing of it is borrowed mutably while a task, a waker or the
//! drop of what an operation held runs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use io_uring::squeue;

use crate::clock;
use crate::doorbell::{Doorbell, Seats, caller};
use crate::limits::{END_WAIT, END_WAITS, POLLS_A_LOOK, SHORT_LAP};
use crate::pool::{Job, Pool};
use crate::ring::Ring;
use crate::task::end_process;

thread_local! {
    static DRIVER: RefCell<Option<Rc<Driver>>> = const { RefCell::new(None) };
}

#[derive(Debug, Default)]
struct Timers {
    /// By deadline in monotonic nanoseconds; the number tells those of one deadline apart.
    set: BTreeMap<(u64, u64), Waker>,
    next: u64,
}

#[derive(Debug)]
pub(crate) struct Driver {
    name: String,
    ring: RefCell<Ring>,
    timers: RefCell<Timers>,
    seats: RefCell<Seats>,
    bell: Arc<Doorbell>,
    pool: RefCell<Option<Pool>>,
    /// Polls of tasks so far; the driver's own are none. It begins above `seen`: before the first turn nobody had one.
    polls: Cell<u64>,
    /// `polls` at the last turn, and whether that turn put off handing over.
    seen: Cell<u64>,
    put_off: Cell<bool>,
    turned_at_ns: Cell<u64>,
    longest_ns: u64,
    ended: Cell<bool>,
    /// Used again by each turn.
    woken: RefCell<Vec<Waker>>,
    visitors: RefCell<Vec<usize>>,
}

/// Makes this thread a shard's. `longest`: how long tasks may run before a turn is taken in between.
pub(crate) fn move_in(name: String, longest: Duration) -> io::Result<Rc<Driver>> {
    let bell = Doorbell::new()?;
    let driver = Rc::new(Driver {
        name,
        ring: RefCell::new(Ring::new(bell.fd())?),
        timers: RefCell::default(),
        seats: RefCell::default(),
        bell,
        pool: RefCell::default(),
        polls: Cell::new(1),
        seen: Cell::new(0),
        put_off: Cell::new(false),
        turned_at_ns: Cell::new(clock::now_ns()),
        longest_ns: longest.as_nanos() as u64,
        ended: Cell::new(false),
        woken: RefCell::default(),
        visitors: RefCell::default(),
    });
    Doorbell::move_in(Some(&driver.bell));
    DRIVER.set(Some(driver.clone()));
    Ok(driver)
}

/// The shard of this thread.
fn current() -> Rc<Driver> {
    DRIVER.with_borrow(Clone::clone).expect("files, sockets and timers are used on a shard")
}

fn with<T>(ask: impl FnOnce(&Driver) -> T) -> T {
    DRIVER.with_borrow(|driver| ask(driver.as_ref().expect("tasks run on a shard")))
}

/// Wakes a task of this thread's shard.
pub(crate) fn wake(seat: usize) {
    with(|driver| driver.seats.borrow().wake(seat));
}

/// A task of this thread's shard is about to run.
pub(crate) fn note_poll() {
    with(|driver| {
        let polls = driver.polls.get() + 1;
        driver.polls.set(polls);
        let looks = polls.is_multiple_of(POLLS_A_LOOK);
        if looks && clock::now_ns().saturating_sub(driver.turned_at_ns.get()) > driver.longest_ns {
            driver.turn();
        }
    });
}

impl Driver {
    pub fn bell(&self) -> &Arc<Doorbell> {
        &self.bell
    }

    /// The task. It ends after [`Driver::end`].
    pub async fn run(self: Rc<Self>) {
        std::future::poll_fn(|cx| {
            if self.ended.get() {
                return Poll::Ready(());
            }
            let ran = self.polls.get() - self.seen.get();
            if ran == 0 {
                self.sleep();
            } else if ran < SHORT_LAP && !self.put_off.replace(true) {
                // After a lap as short as this the next comes soon; if nothing runs in it, handing over and sleeping is one call.
                self.collect();
            } else {
                self.turn();
            }
            self.seen.set(self.polls.get());
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Nothing more is to be turned.
    pub fn end(&self) {
        self.ended.set(true);
    }

    fn turn(&self) {
        self.put_off.set(false);
        let mut ring = self.ring.borrow_mut();
        if ring.needs_submit() {
            or_end(ring.submit());
        }
        drop(ring);
        self.collect();
    }

    fn sleep(&self) {
        self.put_off.set(false);
        let first = self.timers.borrow().set.first_key_value().map(|(&(deadline, _), _)| deadline);
        let left = first.map(|deadline| Duration::from_nanos(deadline.saturating_sub(clock::now_ns())));
        if left == Some(Duration::ZERO) || !self.bell.fall_asleep() {
            return self.turn();
        }
        or_end(self.ring.borrow_mut().wait(left));
        self.bell.wake_up();
        self.collect();
    }

    /// Wakes those for whom something has come back, a timer is over, or another thread asks.
    fn collect(&self) {
        let now = clock::now_ns();
        self.turned_at_ns.set(now);
        let mut woken = self.woken.take();
        self.ring.borrow_mut().reap(&mut woken);
        {
            let mut timers = self.timers.borrow_mut();
            while let Some(entry) = timers.set.first_entry()
                && entry.key().0 <= now
            {
                woken.push(entry.remove());
            }
        }
        woken.drain(..).for_each(Waker::wake);
        self.woken.replace(woken);
        if self.bell.has_visitors() {
            let mut visitors = self.visitors.take();
            self.bell.visitors(&mut visitors);
            let seats = self.seats.borrow();
            visitors.drain(..).for_each(|seat| seats.wake(seat));
            self.visitors.replace(visitors);
        }
    }

    /// Waits for what the kernel still has, after the last task is gone; what does not come back in time is left to it.
    pub fn move_out(&self) {
        drop(self.pool.take());
        let mut woken = Vec::new();
        let mut ring = self.ring.borrow_mut();
        ring.cancel_all();
        for _ in 0..END_WAITS {
            let waited = ring.wait(Some(END_WAIT));
            ring.reap(&mut woken);
            if waited.is_err() || ring.under_way() == 0 {
                break;
            }
        }
        ring.forget_held();
        drop(ring);
        // The event loop is gone; its wakers would look for it.
        std::mem::forget(self.seats.take());
        std::mem::forget(woken);
        Doorbell::move_in(None);
        DRIVER.set(None);
    }
}

/// A ring that takes nothing any more is the end: what is under way would be waited for without end.
fn or_end(result: io::Result<()>) {
    if let Err(e) = result {
        end_process(&format!(
            "io_uring does not go on: {e}. What was acknowledged is on disk. Start again, and please report this."
        ));
    }
}

/// A task's place among those that can be woken, see [`crate::doorbell`].
pub(crate) struct Seated {
    driver: Rc<Driver>,
    seat: usize,
    waker: Waker,
}

/// Of the task whose waker of the event loop this is.
pub(crate) fn sit(waker: &Waker) -> Seated {
    let driver = current();
    let seat = driver.seats.borrow_mut().take(waker.clone());
    let waker = caller(&driver.bell, seat);
    Seated { driver, seat, waker }
}

impl Seated {
    pub fn waker(&self) -> &Waker {
        &self.waker
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        let waker = self.driver.seats.borrow_mut().leave(self.seat);
        drop(waker);
    }
}

/// An operation of the kernel: what came of it, and what was handed over for it.
#[derive(Debug)]
pub(crate) struct Operation<T> {
    driver: Rc<Driver>,
    id: Option<usize>,
    cancel: bool,
    held: PhantomData<T>,
}

/// Begins an operation on `held`, which `entry` may point into.
///
/// # Safety
/// What the entry points to is owned by `held` and has the length that the entry says.
// SAFETY: promised by the caller, as said above.
pub(crate) unsafe fn begin<T: 'static>(held: T, entry: impl FnOnce(&mut T) -> squeue::Entry) -> Operation<T> {
    let driver = current();
    let mut held = Box::new(held);
    let entry = entry(&mut held);
    // SAFETY: by the caller's promise; the box has its final place.
    let begun = unsafe { driver.ring.borrow_mut().begin(entry, held) };
    match begun {
        Ok(id) => Operation { driver, id: Some(id), cancel: false, held: PhantomData },
        Err(e) => {
            or_end(Err(e));
            unreachable!("the process has ended")
        }
    }
}

impl<T> Operation<T> {
    /// If the caller goes away the kernel is asked to end it.
    pub fn cancelled_when_dropped(mut self) -> Operation<T> {
        self.cancel = true;
        self
    }
}

impl<T> Unpin for Operation<T> {}

impl<T: 'static> Future for Operation<T> {
    type Output = (io::Result<u32>, T);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let id = self.id.expect("an operation is not polled after its end");
        let polled = self.driver.ring.borrow_mut().poll(id, cx.waker());
        let Poll::Ready((result, held)) = polled else { return Poll::Pending };
        self.id = None;
        let held = held.and_then(|held| held.downcast().ok()).expect("an operation holds what it began with");
        Poll::Ready((result, *held))
    }
}

impl<T> Drop for Operation<T> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let held = self.driver.ring.borrow_mut().abandon(id, self.cancel);
            drop(held);
        }
    }
}

/// Resolves at a monotonic time.
#[derive(Debug)]
pub(crate) struct Sleep {
    driver: Rc<Driver>,
    deadline_ns: u64,
    key: Option<(u64, u64)>,
}

pub(crate) fn sleep_until(deadline_ns: u64) -> Sleep {
    Sleep { driver: current(), deadline_ns, key: None }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if clock::now_ns() >= self.deadline_ns {
            return Poll::Ready(());
        }
        let driver = self.driver.clone();
        let mut timers = driver.timers.borrow_mut();
        timers.next += 1;
        let fresh = (self.deadline_ns, timers.next);
        let key = *self.key.get_or_insert(fresh);
        timers.set.insert(key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let waker = self.driver.timers.borrow_mut().set.remove(&key);
            drop(waker);
        }
    }
}

/// Has the shard's pool thread do something.
pub(crate) fn on_pool(job: Job) -> io::Result<()> {
    with(|driver| {
        let mut pool = driver.pool.borrow_mut();
        let pool = match &mut *pool {
            Some(pool) => pool,
            none => none.insert(Pool::start(format!("{}-pool", driver.name))?),
        };
        pool.push(job);
        Ok(())
    })
}
