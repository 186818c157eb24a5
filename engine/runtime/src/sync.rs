//! Waiting within one shard: an event, a one-shot answer, a queue, a byte budget. None of it is `Send`, none locks.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// An event that many tasks may wait for. A waiter that took its [`Notify::version`] before it looked at the guarded
/// state cannot miss a change: `changed_since` returns at once if the version moved on meanwhile.
#[derive(Debug, Default)]
pub struct Notify {
    version: Cell<u64>,
    waiters: RefCell<Vec<Waker>>,
}

impl Notify {
    pub fn new() -> Notify {
        Notify::default()
    }

    pub fn version(&self) -> u64 {
        self.version.get()
    }

    /// Wakes everyone who waits.
    pub fn notify(&self) {
        self.version.set(self.version.get() + 1);
        let waiters = std::mem::take(&mut *self.waiters.borrow_mut());
        for waker in waiters {
            waker.wake();
        }
    }

    /// Resolves once the version differs from `seen`.
    pub async fn changed_since(&self, seen: u64) {
        poll_fn(|cx| {
            if self.version.get() != seen {
                return Poll::Ready(());
            }
            let mut waiters = self.waiters.borrow_mut();
            if !waiters.iter().any(|w| w.will_wake(cx.waker())) {
                waiters.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Resolves at the next `notify` after this call.
    pub async fn changed(&self) {
        self.changed_since(self.version()).await;
    }
}

#[derive(Debug)]
struct OneshotState<T> {
    value: Option<T>,
    closed: bool,
    waker: Option<Waker>,
}

/// The sending half of a one-shot answer. Dropping it unsent resolves the receiver to `None`.
#[derive(Debug)]
pub struct OneshotSender<T>(Rc<RefCell<OneshotState<T>>>);

/// The receiving half: a future.
#[derive(Debug)]
pub struct OneshotReceiver<T>(Rc<RefCell<OneshotState<T>>>);

pub fn oneshot<T>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let state = Rc::new(RefCell::new(OneshotState { value: None, closed: false, waker: None }));
    (OneshotSender(state.clone()), OneshotReceiver(state))
}

impl<T> OneshotSender<T> {
    pub fn send(self, value: T) {
        self.0.borrow_mut().value = Some(value);
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.0.borrow_mut();
            state.closed = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Option<T>;

    fn poll(self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.borrow_mut();
        if let Some(value) = state.value.take() {
            return Poll::Ready(Some(value));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// An unbounded queue within a shard: the caller keeps the bound (and names it).
#[derive(Debug)]
pub struct LocalQueue<T> {
    items: RefCell<VecDeque<T>>,
    closed: Cell<bool>,
    ready: Notify,
}

impl<T> Default for LocalQueue<T> {
    fn default() -> LocalQueue<T> {
        LocalQueue { items: RefCell::new(VecDeque::new()), closed: Cell::new(false), ready: Notify::new() }
    }
}

impl<T> LocalQueue<T> {
    pub fn new() -> LocalQueue<T> {
        LocalQueue::default()
    }

    pub fn push(&self, item: T) {
        self.items.borrow_mut().push_back(item);
        self.ready.notify();
    }

    pub fn try_pop(&self) -> Option<T> {
        self.items.borrow_mut().pop_front()
    }

    pub fn len(&self) -> usize {
        self.items.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.borrow().is_empty()
    }

    /// After this, `pop` gives what is left, then `None`.
    pub fn close(&self) {
        self.closed.set(true);
        self.ready.notify();
    }

    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    pub async fn pop(&self) -> Option<T> {
        loop {
            let seen = self.ready.version();
            if let Some(item) = self.try_pop() {
                return Some(item);
            }
            if self.closed.get() {
                return None;
            }
            self.ready.changed_since(seen).await;
        }
    }
}

/// A budget of bytes (or anything counted) with waiting: the back-pressure of connections.
#[derive(Debug)]
pub struct Budget {
    left: Cell<i64>,
    freed: Notify,
}

impl Budget {
    pub fn new(total: usize) -> Rc<Budget> {
        Rc::new(Budget { left: Cell::new(total as i64), freed: Notify::new() })
    }

    /// Takes `amount`, waiting until anything at all is left. One taker may overdraw, so that an amount larger than the
    /// whole budget still gets its turn.
    pub async fn take(self: &Rc<Budget>, amount: usize) -> BudgetGuard {
        loop {
            let seen = self.freed.version();
            if self.left.get() > 0 || amount == 0 {
                self.left.set(self.left.get() - amount as i64);
                return BudgetGuard { budget: self.clone(), amount };
            }
            self.freed.changed_since(seen).await;
        }
    }

    pub fn left(&self) -> i64 {
        self.left.get()
    }
}

/// Gives its amount back when dropped.
#[derive(Debug)]
pub struct BudgetGuard {
    budget: Rc<Budget>,
    amount: usize,
}

impl Drop for BudgetGuard {
    fn drop(&mut self) {
        self.budget.left.set(self.budget.left.get() + self.amount as i64);
        self.budget.freed.notify();
    }
}

/// Waits for `future`, but no longer than until `deadline_ms`. Only for futures that own no kernel operation (events,
/// answers): dropping a read or write midway loses its outcome.
pub async fn before<T>(deadline_ms: i64, future: impl Future<Output = T>) -> Option<T> {
    futures_lite::future::or(async { Some(future.await) }, async {
        crate::clock::sleep_until_ms(deadline_ms).await;
        None
    })
    .await
}

/// Drives all futures at once and gives their results in order. None is dropped before it is done.
pub async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    poll_fn(|cx| {
        let mut pending = false;
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none() {
                match future.as_mut().poll(cx) {
                    Poll::Ready(value) => *result = Some(value),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    results.into_iter().flatten().collect()
}
