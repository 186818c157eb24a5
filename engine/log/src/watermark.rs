//! An offset that only rises, and those who wait for it: the written end and the durable end of a partition.
//!
//! On the produce way, stage two: one wait per acknowledged batch, one wake when the offset passes it. Waiters are kept
//! in order of their targets, so that an advance touches only those it satisfies.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use model::Offset;

use crate::error::LogError;
use crate::limits::WATERMARK_WAITERS;

#[derive(Debug)]
pub(crate) struct Watermark {
    value: Cell<Offset>,
    failed: RefCell<Option<LogError>>,
    waiters: RefCell<BTreeMap<(Offset, u64), Waker>>,
    next_id: Cell<u64>,
}

impl Watermark {
    pub fn new(value: Offset) -> Watermark {
        Watermark {
            value: Cell::new(value),
            failed: RefCell::new(None),
            waiters: RefCell::new(BTreeMap::new()),
            next_id: Cell::new(0),
        }
    }

    pub fn get(&self) -> Offset {
        self.value.get()
    }

    /// Raises the offset and wakes those it satisfies; returns whether it moved. Lower values change nothing.
    pub fn advance(&self, to: Offset) -> bool {
        if to <= self.value.get() {
            return false;
        }
        self.value.set(to);
        loop {
            let waker = {
                let mut waiters = self.waiters.borrow_mut();
                match waiters.first_key_value() {
                    Some((&(target, _), _)) if target <= to => waiters.pop_first(),
                    _ => None,
                }
            };
            match waker {
                Some((_, waker)) => waker.wake(),
                None => return true,
            }
        }
    }

    /// Sets the offset after a truncation. No one waits then.
    pub fn reset(&self, to: Offset) {
        self.value.set(to);
    }

    /// Everyone who waits, now or later, for an offset not yet reached gets `error`.
    pub fn fail(&self, error: LogError) {
        *self.failed.borrow_mut() = Some(error);
        let waiters = std::mem::take(&mut *self.waiters.borrow_mut());
        for waker in waiters.into_values() {
            waker.wake();
        }
    }

    pub fn wait(&self, target: Offset) -> Wait<'_> {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        Wait { watermark: self, target, id }
    }
}

/// Resolves when the watermark has reached the target, or with the error that stops it.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    watermark: &'a Watermark,
    target: Offset,
    id: u64,
}

impl Future for Wait<'_> {
    type Output = Result<(), LogError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.watermark.value.get() >= self.target {
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = self.watermark.failed.borrow().clone() {
            return Poll::Ready(Err(error));
        }
        let mut waiters = self.watermark.waiters.borrow_mut();
        let key = (self.target, self.id);
        if waiters.len() >= WATERMARK_WAITERS && !waiters.contains_key(&key) {
            return Poll::Ready(Err(LogError::Overloaded));
        }
        waiters.insert(key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.watermark.waiters.borrow_mut().remove(&(self.target, self.id));
    }
}

#[cfg(test)]
#[path = "watermark_tests.rs"]
mod tests;
