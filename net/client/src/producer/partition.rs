//! One partition's batches, in order: those that wait and those in flight, and the sequence numbers of an idempotent
//! producer.
//!
//! Rules, all of them about one partition:
//! - `queue` and `in_flight` are each in the order in which records came. What comes back for another attempt goes to
//!   its old place.
//! - A batch that has its sequence goes out again only when nothing is in flight, so no later one overtakes it.
//! - The first batch under a producer id goes alone until it is acknowledged: a broker takes any sequence from a
//!   producer that it does not know, so the second would be taken where the first was refused.
//! - A batch that ended without being acknowledged may leave a **hole** in the sequence. Batches behind it that have a
//!   sequence are tried with it first (they may be in the log already); none gets a new one. Once it is sure that the
//!   hole is one, the partition **begins anew** from sequence 0 under the next epoch (KIP-360), when nothing is in flight.
//! - What lies in the buffer of a dead connection may still be read by the broker. The first batch of the new epoch fences
//!   it, but until then it may be appended; so what had an attempt of unknown outcome is never sent again under another
//!   epoch: it ends as possibly sent.

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use model::Codec;
use model::batch::HEADER_LEN;

use super::batch::{Builder, Sealed, Stamp};
use super::delivery::{BatchOutcome, Fate, Finished, Waiter};

/// A producer id and epoch with their place among all that this producer had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub generation: u64,
}

#[derive(Debug)]
pub enum Body {
    Open(Builder),
    Sealed(Sealed),
    Stamped(Bytes),
    /// While it changes from one to the other.
    Changing,
}

#[derive(Debug)]
pub struct Batch {
    pub id: u64,
    /// The batch that it was cut from (or its own id), and the index of its first record there: the order of batches.
    pub born: u64,
    pub first: u32,
    pub created_ms: i64,
    pub body: Body,
    pub records: u32,
    /// Encoded records before compression.
    pub bytes: usize,
    /// Its sequence, once it has one.
    pub stamp: Option<Stamp>,
    /// Attempts that failed.
    pub attempts: u32,
    pub not_before_ms: i64,
    /// An attempt ended without saying whether the broker has it.
    pub maybe_appended: bool,
    /// It ended already; only its answer is waited for.
    pub expired: bool,
    /// Of `buffer_memory`.
    pub charge: usize,
    pub tags: Vec<u64>,
    pub waiters: Vec<Waiter>,
}

impl Batch {
    pub fn order(&self) -> (u64, u32) {
        (self.born, self.first)
    }

    /// Bytes on the wire; before it is sealed, at most.
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Open(builder) => builder.len(),
            Body::Sealed(sealed) => sealed.len(),
            Body::Stamped(bytes) => bytes.len(),
            Body::Changing => 0,
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.body, Body::Open(_))
    }

    /// Ends an open batch. Gives the buffer that compression left over; the charge is that of what is kept.
    pub fn seal(&mut self, codec: Codec, scratch: &mut Vec<u8>) -> Option<BytesMut> {
        match std::mem::replace(&mut self.body, Body::Changing) {
            Body::Open(builder) => {
                self.records = builder.records();
                self.bytes = builder.len() - HEADER_LEN;
                let (sealed, left) = builder.seal(codec, scratch);
                self.body = Body::Sealed(sealed);
                left
            }
            other => {
                self.body = other;
                None
            }
        }
    }

    /// The bytes to send, with its stamp.
    pub fn encode(&mut self) -> Bytes {
        let stamp = self.stamp.unwrap_or(Stamp::NONE);
        let bytes = match std::mem::replace(&mut self.body, Body::Changing) {
            Body::Sealed(sealed) => sealed.stamp(stamp),
            Body::Stamped(bytes) => bytes,
            Body::Open(_) | Body::Changing => unreachable!("a batch is sealed before it is sent"),
        };
        self.body = Body::Stamped(bytes.clone());
        bytes
    }

    /// Takes its sequence away, so that it gets another.
    pub fn unstamp(&mut self) {
        self.stamp = None;
        self.body = match std::mem::replace(&mut self.body, Body::Changing) {
            Body::Stamped(bytes) => Body::Sealed(Sealed::again(bytes)),
            other => other,
        };
    }

    /// Records, and their encoded bytes before compression.
    pub fn counts(&self) -> (u32, usize) {
        match &self.body {
            Body::Open(builder) => (builder.records(), builder.len() - HEADER_LEN),
            _ => (self.records, self.bytes),
        }
    }

    /// Takes out those who wait, with the fate that they are to be told.
    pub fn end(&mut self, topic: Rc<str>, partition: i32, fate: Fate, ended_ms: i64) -> Finished {
        let (records, bytes) = self.counts();
        let tags = std::mem::take(&mut self.tags);
        let waiters = std::mem::take(&mut self.waiters);
        let created_ms = self.created_ms;
        let outcome = BatchOutcome { topic, partition, fate, records, bytes, created_ms, ended_ms, tags };
        Finished { outcome, waiters }
    }

    /// Its buffer, if nobody else holds it.
    pub fn into_buffer(self) -> Option<BytesMut> {
        match self.body {
            Body::Stamped(bytes) => bytes.try_into_mut().ok(),
            Body::Open(_) | Body::Sealed(_) | Body::Changing => None,
        }
    }
}

#[derive(Debug)]
pub struct Partition {
    /// Index of its topic in the accumulator.
    pub topic: u32,
    pub index: i32,
    /// Node id; `None`: no leader now.
    pub leader: Option<i32>,
    pub queue: VecDeque<Batch>,
    pub in_flight: VecDeque<Batch>,
    /// In the accumulator's list of partitions that have batches.
    pub active: bool,
    /// Size of the last batches, large ones forgotten slowly: what the next one's buffer starts with.
    pub usual_len: usize,
    pub identity: Option<Identity>,
    /// The next batch's sequence.
    pub next_sequence: i32,
    /// The sequence behind the last acknowledged batch.
    pub acked_sequence: i32,
    /// A batch was acknowledged under this identity.
    pub proven: bool,
    pub hole: bool,
    /// The sequence cannot be gone on with.
    pub needs_bump: bool,
}

/// Whether the front of a queue may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    Open,
    /// Backing off.
    NotBefore(i64),
    /// Until something of the partition is answered, or it began anew.
    Shut,
}

impl Partition {
    pub fn new(topic: u32, index: i32, leader: Option<i32>) -> Partition {
        Partition {
            topic,
            index,
            leader,
            queue: VecDeque::new(),
            in_flight: VecDeque::new(),
            active: false,
            usual_len: 0,
            identity: None,
            next_sequence: 0,
            acked_sequence: 0,
            proven: false,
            hole: false,
            needs_bump: false,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.in_flight.is_empty()
    }

    pub fn gate(&self, now_ms: i64, idempotent: bool, max_in_flight: usize) -> Gate {
        let Some(front) = self.queue.front() else { return Gate::Shut };
        if self.needs_bump || self.in_flight.len() >= max_in_flight {
            return Gate::Shut;
        }
        let alone = front.stamp.is_some() || (!idempotent && front.attempts > 0);
        let first = idempotent && !self.proven;
        if ((alone || first) && !self.in_flight.is_empty()) || (front.stamp.is_none() && self.hole) {
            return Gate::Shut;
        }
        if front.not_before_ms > now_ms { Gate::NotBefore(front.not_before_ms) } else { Gate::Open }
    }

    /// Puts a batch back to its place.
    pub fn requeue(&mut self, batch: Batch) {
        let at = self.queue.partition_point(|other| other.order() < batch.order());
        self.queue.insert(at, batch);
    }

    pub fn take_in_flight(&mut self, id: u64) -> Option<Batch> {
        let at = self.in_flight.iter().position(|batch| batch.id == id)?;
        self.in_flight.remove(at)
    }

    /// Gives the front batch its sequence, under `current` when the partition has no identity yet.
    pub fn assign_sequence(&mut self, current: Identity) {
        let identity = *self.identity.get_or_insert(current);
        let Some(batch) = self.queue.front_mut().filter(|batch| batch.stamp.is_none()) else { return };
        let stamp = Stamp {
            producer_id: identity.producer_id,
            producer_epoch: identity.producer_epoch,
            base_sequence: self.next_sequence,
        };
        self.next_sequence = stamp.next_sequence(batch.records);
        batch.stamp = Some(stamp);
    }

    /// Whether a batch before this one may still be acknowledged.
    pub fn has_earlier(&self, batch: &Batch) -> bool {
        let earlier = |other: &Batch| other.order() < batch.order();
        self.in_flight.iter().any(earlier) || self.queue.front().is_some_and(earlier)
    }

    pub fn acknowledged(&mut self, batch: &Batch) {
        if let Some(stamp) = batch.stamp {
            self.acked_sequence = stamp.next_sequence(batch.records);
            self.proven = true;
        }
    }

    /// A batch ended without being acknowledged.
    pub fn lost(&mut self, batch: &Batch) {
        let Some(stamp) = batch.stamp else { return };
        let is_last = stamp.next_sequence(batch.records) == self.next_sequence;
        if is_last && !batch.maybe_appended && !self.needs_bump && !self.hole {
            // Nothing was built upon it: the next batch takes its place in the sequence.
            self.next_sequence = stamp.base_sequence;
        } else {
            self.hole = true;
        }
    }

    /// Sees whether a hole closed by itself. `true`: it did not, and the sequence has to begin anew.
    pub fn must_begin_anew(&mut self) -> bool {
        if !self.in_flight.is_empty() {
            return false;
        }
        let none_stamped = self.queue.front().is_none_or(|batch| batch.stamp.is_none());
        if self.hole && !self.needs_bump && none_stamped {
            self.hole = false;
            self.needs_bump = self.acked_sequence != self.next_sequence;
        }
        self.needs_bump
    }

    /// A batch that may be in the log, or may come to be there, under the identity that is left.
    pub fn take_doubtful(&mut self) -> Option<Batch> {
        let at = self.queue.iter().position(|batch| batch.stamp.is_some() && batch.maybe_appended)?;
        self.queue.remove(at)
    }

    /// Goes on under `identity` from sequence 0.
    pub fn begin(&mut self, identity: Identity) {
        assert!(self.in_flight.is_empty(), "nothing of the old identity may be under way when the next begins");
        self.queue.iter_mut().filter(|batch| batch.stamp.is_some()).for_each(Batch::unstamp);
        self.identity = Some(identity);
        (self.next_sequence, self.acked_sequence) = (0, 0);
        (self.hole, self.needs_bump, self.proven) = (false, false, false);
    }
}
