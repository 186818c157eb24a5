//! What becomes of records. Every record ends once: acknowledged, certainly not sent, or sent with unknown success.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use runtime::sync::{OneshotReceiver, OneshotSender, oneshot};

use crate::ClientError;

/// The tag of records that were not sent by `send_counted`.
pub const UNTAGGED: u64 = u64::MAX;

/// One record's fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    Acknowledged {
        partition: i32,
        /// -1 when the broker does not say: with acks=0, or for a duplicate that it had already.
        offset: i64,
        /// The broker's where the topic says so, otherwise the record's own.
        timestamp_ms: i64,
    },
    /// It is in no log and never will be.
    NotSent(ClientError),
    /// It may be in the log: the answer never came.
    PossiblySent(ClientError),
}

/// One batch's fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Acknowledged {
        /// -1 when the broker does not say.
        base_offset: i64,
        /// -1 unless the topic's timestamps are the broker's.
        log_append_time_ms: i64,
    },
    NotSent(ClientError),
    PossiblySent(ClientError),
}

/// A batch that ended, for programs that count instead of waiting for each record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchOutcome {
    pub topic: Rc<str>,
    pub partition: i32,
    pub fate: Fate,
    pub records: u32,
    /// Encoded records before compression, without the batch's header.
    pub bytes: usize,
    /// When the first record came, by the monotonic clock.
    pub created_ms: i64,
    pub ended_ms: i64,
    /// One per record in order; [`UNTAGGED`] for those sent without a tag.
    pub tags: Vec<u64>,
}

/// A record's fate to come. Dropping it changes nothing for the record.
#[derive(Debug)]
pub struct DeliveryHandle(OneshotReceiver<Delivery>);

impl Future for DeliveryHandle {
    type Output = Delivery;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Delivery> {
        // A sender is dropped unsent only with the whole producer, and then nobody knows.
        Pin::new(&mut self.0).poll(cx).map(|fate| fate.unwrap_or(Delivery::PossiblySent(ClientError::Closed)))
    }
}

/// Who hears of a record.
#[derive(Debug)]
pub enum Mark {
    Tag(u64),
    Handle(OneshotSender<Delivery>),
}

impl Mark {
    pub fn handle() -> (Mark, DeliveryHandle) {
        let (sender, receiver) = oneshot();
        (Mark::Handle(sender), DeliveryHandle(receiver))
    }
}

/// One that waits for a record of a batch.
#[derive(Debug)]
pub struct Waiter {
    /// The record's index in its batch.
    pub index: u32,
    pub timestamp_ms: i64,
    pub sender: OneshotSender<Delivery>,
}

/// An ended batch with those who wait for its records; the driver tells them outside of the core.
#[derive(Debug)]
pub struct Finished {
    pub outcome: BatchOutcome,
    pub waiters: Vec<Waiter>,
}

impl Finished {
    /// Tells every waiter.
    pub fn tell(&mut self) {
        for waiter in self.waiters.drain(..) {
            let delivery = match &self.outcome.fate {
                Fate::Acknowledged { base_offset, log_append_time_ms } => Delivery::Acknowledged {
                    partition: self.outcome.partition,
                    offset: if *base_offset < 0 { -1 } else { base_offset.saturating_add(i64::from(waiter.index)) },
                    timestamp_ms: if *log_append_time_ms < 0 { waiter.timestamp_ms } else { *log_append_time_ms },
                },
                Fate::NotSent(error) => Delivery::NotSent(error.clone()),
                Fate::PossiblySent(error) => Delivery::PossiblySent(error.clone()),
            };
            waiter.sender.send(delivery);
        }
    }
}

/// What a producer did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerMetrics {
    pub requests: u64,
    /// Batches put into requests, every attempt.
    pub batches: u64,
    /// Of those batches.
    pub records: u64,
    /// Of those batches, as they went on the wire.
    pub bytes: u64,
    pub retries: u64,
    pub splits: u64,
    /// Times that the epoch was raised, or a new producer id taken, because a sequence had a gap.
    pub epoch_bumps: u64,
    pub records_acknowledged: u64,
    /// Records that were not sent, or not for certain.
    pub records_failed: u64,
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;
