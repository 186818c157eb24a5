//! Waiting within one shard: an event, a one-shot answer, a queue, a byte budget. None of it is `Send`, none locks.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// An event that many tasks may wait for. A waiter that took its [`Notify::version`] before it looked at the guarded
/// state cannot miss a change: `changed_since` returns at once if the version moved on meanwhile.
///
/// Waiters that go away take their entry with them, so an event that never comes keeps nothing of them.
#[derive(Debug, Default)]
pub struct Notify {
    version: Cell<u64>,
    waiters: RefCell<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    entries: std::collections::BTreeMap<u64, Waiter>,
    next: u64,
}

impl Waiters {
    fn insert(&mut self, waiter: Waiter) -> u64 {
        let key = self.next;
        self.next += 1;
        self.entries.insert(key, waiter);
        key
    }
}

#[derive(Debug)]
enum Waiter {
    Task(Waker),
    /// Passes the event on: one task may watch many events without a waker in each (wakers are counted in 16 bits).
    Chain(Rc<Notify>),
}

impl Notify {
    pub fn new() -> Notify {
        Notify::default()
    }

    pub fn version(&self) -> u64 {
        self.version.get()
    }

    /// Wakes everyone who waits, in the order in which they began to.
    pub fn notify(&self) {
        self.version.set(self.version.get() + 1);
        if self.waiters.borrow().entries.is_empty() {
            return;
        }
        let waiters = std::mem::take(&mut self.waiters.borrow_mut().entries);
        for waiter in waiters.into_values() {
            match waiter {
                Waiter::Task(waker) => waker.wake(),
                Waiter::Chain(next) => next.notify(),
            }
        }
    }

    /// Resolves once the version differs from `seen`.
    pub fn changed_since(&self, seen: u64) -> Changed<'_> {
        Changed { notify: self, seen, key: None }
    }

    /// Resolves at the next `notify` after this call.
    pub fn changed(&self) -> Changed<'_> {
        self.changed_since(self.version())
    }

    /// Passes the next event on to `target`, once, unless the subscription is dropped first.
    pub fn subscribe<'a>(&'a self, target: &Rc<Notify>) -> Subscription<'a> {
        let key = self.waiters.borrow_mut().insert(Waiter::Chain(target.clone()));
        Subscription { notify: self, key }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiters.borrow().entries.len()
    }
}

/// See [`Notify::subscribe`].
#[derive(Debug)]
pub struct Subscription<'a> {
    notify: &'a Notify,
    key: u64,
}

impl Drop for Subscription<'_> {
    fn drop(&mut self) {
        self.notify.waiters.borrow_mut().entries.remove(&self.key);
    }
}

/// See [`Notify::changed_since`].
#[derive(Debug)]
pub struct Changed<'a> {
    notify: &'a Notify,
    seen: u64,
    key: Option<u64>,
}

impl Future for Changed<'_> {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        if self.notify.version.get() != self.seen {
            return Poll::Ready(());
        }
        let mut waiters = self.notify.waiters.borrow_mut();
        if let Some(key) = self.key
            && let Some(entry) = waiters.entries.get_mut(&key)
        {
            *entry = Waiter::Task(cx.waker().clone());
            return Poll::Pending;
        }
        let key = waiters.insert(Waiter::Task(cx.waker().clone()));
        drop(waiters);
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.notify.waiters.borrow_mut().entries.remove(&key);
        }
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

    /// Takes the first item if `wanted` says so.
    pub fn try_pop_if(&self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let mut items = self.items.borrow_mut();
        if wanted(items.front()?) { items.pop_front() } else { None }
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
