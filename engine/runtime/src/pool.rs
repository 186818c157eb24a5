//! The shard's pool thread: work that may block, one piece after the other, so that what one shard asks for happens in order.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Dropping it waits for what was asked for.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Callers bound what waits here: each awaits its piece.
    jobs: Option<flume::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Pool {
    pub fn start(name: String) -> io::Result<Pool> {
        let (jobs, queue) = flume::unbounded::<Job>();
        let work = move || queue.iter().for_each(|job| job());
        let thread = std::thread::Builder::new().name(name).spawn(work)?;
        Ok(Pool { jobs: Some(jobs), thread: Some(thread) })
    }

    pub fn push(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The thread ends after this value only.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a piece of work comes to, on its way back to the shard. The shard is woken when the lock is free again: it may be faster
/// than whoever wakes it.
#[derive(Debug)]
struct Outcome<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

fn locked<T>(outcome: &Mutex<Outcome<T>>) -> MutexGuard<'_, Outcome<T>> {
    outcome.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(crate) struct Teller<T>(Arc<Mutex<Outcome<T>>>);

#[derive(Debug)]
pub(crate) struct Told<T>(Arc<Mutex<Outcome<T>>>);

pub(crate) fn outcome<T>() -> (Teller<T>, Told<T>) {
    let outcome = Arc::new(Mutex::new(Outcome { value: None, waker: None }));
    (Teller(outcome.clone()), Told(outcome))
}

impl<T> Teller<T> {
    pub fn tell(self, value: T) {
        let waker = {
            let mut outcome = locked(&self.0);
            outcome.value = Some(value);
            outcome.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl<T> Future for Told<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut outcome = locked(&self.0);
        match outcome.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                outcome.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
