//! A connection: what has arrived, where its walk stands, and the answers it is owed, in the order of its requests.
//!
//! Owned by the server. Its buffer is with the ring while a receive is under way. An answer waits until everything its request
//! brought is durable; those behind it wait with it.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::ops::Range;
use std::time::Instant;

use super::fetch::{Fetch, Session};
use super::limits::RECEIVE_BYTES;
use super::out::Out;
use super::produce_answer::ProduceAnswer;
use super::walk::Walk;

/// What has arrived and was not walked.
#[derive(Debug)]
pub struct Inbox {
    pub buffer: Vec<u8>,
    taken: usize,
    filled: usize,
}

impl Inbox {
    pub fn new() -> Inbox {
        Inbox { buffer: vec![0; RECEIVE_BYTES], taken: 0, filled: 0 }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.taken..self.filled]
    }

    pub fn taken(&mut self, count: usize) {
        self.taken += count;
        assert!(self.taken <= self.filled, "no more is walked than has arrived");
    }

    pub fn filled(&mut self, count: usize) {
        self.filled += count;
        assert!(self.filled <= self.buffer.len(), "no more arrives than there is room for");
    }

    /// Room for a receive, so that `wanted` bytes can lie at the front. What has begun is moved to the buffer's start only where it
    /// would not fit; of a batch larger than the usual buffer nothing behind it is received, or that would have to be moved.
    pub fn room(&mut self, wanted: usize) -> Range<usize> {
        let begun = self.filled - self.taken;
        if begun == 0 {
            (self.taken, self.filled) = (0, 0);
        } else if self.taken + wanted > self.buffer.len() || self.filled == self.buffer.len() {
            self.buffer.copy_within(self.taken..self.filled, 0);
            (self.taken, self.filled) = (0, begun);
        }
        if wanted > self.buffer.len() {
            self.buffer.resize(wanted, 0);
        }
        if wanted > RECEIVE_BYTES { self.filled..self.taken + wanted } else { self.filled..self.filled_end() }
    }

    /// A receive is no larger than usual, though the buffer may have grown.
    fn filled_end(&self) -> usize {
        self.buffer.len().min(self.filled + RECEIVE_BYTES)
    }
}

/// A Fetch that waits for a batch.
#[derive(Clone, Copy, Debug)]
pub struct Parked {
    pub fetch: Fetch,
    pub until: Instant,
}

#[derive(Debug)]
struct Answer {
    /// Durable up to here, it may leave.
    after: u64,
    out: Out,
}

#[derive(Debug)]
pub struct Connection {
    pub stream: TcpStream,
    pub inbox: Inbox,
    pub walk: Walk,
    /// The Produce that is being walked, and the topic in it; the topic is missing where there is none of the name.
    pub produce: Option<ProduceAnswer>,
    pub topic: Option<usize>,
    /// Number of the partition; missing where there is none.
    pub partition: Option<usize>,
    answers: VecDeque<Answer>,
    /// May leave, but a send is under way.
    queued: Out,
    pub receiving: bool,
    pub sending: bool,
    pub closing: bool,
    /// Waits for room in the log, or for its answers to leave.
    pub stalled: bool,
    /// Is among those that the end of a round is told to.
    pub awaiting: bool,
    pub session: Session,
    pub parked: Option<Parked>,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Connection {
        Connection {
            stream,
            inbox: Inbox::new(),
            walk: Walk::default(),
            produce: None,
            topic: None,
            partition: None,
            answers: VecDeque::new(),
            queued: Out::default(),
            receiving: false,
            sending: false,
            closing: false,
            stalled: false,
            awaiting: false,
            session: Session::default(),
            parked: None,
        }
    }

    pub fn owed(&self) -> usize {
        self.answers.len()
    }

    pub fn answer(&mut self, after: u64, out: Out) {
        self.answers.push_back(Answer { after, out });
    }

    /// What may leave now, unless a send is under way.
    pub fn sendable(&mut self, durable: u64) -> Option<Out> {
        while self.answers.front().is_some_and(|answer| answer.after <= durable) {
            let Some(answer) = self.answers.pop_front() else { break };
            self.queued.append(answer.out);
        }
        (!self.sending && !self.queued.is_empty()).then(|| std::mem::take(&mut self.queued))
    }

    /// Positions that were lent for what will not be sent any more.
    pub fn lent(&self) -> impl Iterator<Item = u64> {
        let outs = self.answers.iter().map(|answer| &answer.out).chain([&self.queued]);
        outs.flat_map(|out| out.lent().iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_has_begun_is_moved_only_where_it_would_not_fit() {
        let mut inbox = Inbox::new();
        assert_eq!(inbox.room(8), 0..RECEIVE_BYTES);
        inbox.filled(1_000);
        inbox.taken(900);
        assert_eq!(inbox.room(16_000), 1_000..RECEIVE_BYTES);
        inbox.filled(RECEIVE_BYTES - 1_000);
        inbox.buffer[RECEIVE_BYTES - 100..].fill(7);
        inbox.taken(RECEIVE_BYTES - 1_000);
        assert_eq!(inbox.room(16_000), 100..RECEIVE_BYTES);
        assert_eq!(inbox.bytes(), [7; 100]);
    }

    #[test]
    fn of_a_large_batch_nothing_behind_it_is_received() {
        let mut inbox = Inbox::new();
        inbox.room(8);
        inbox.filled(RECEIVE_BYTES);
        inbox.taken(100);
        assert_eq!(inbox.room(1_000_000), RECEIVE_BYTES - 100..1_000_000);
        inbox.filled(1_000_000 - (RECEIVE_BYTES - 100));
        inbox.taken(1_000_000);
        assert_eq!(inbox.room(8), 0..RECEIVE_BYTES, "and the next receive is as small as ever");
    }
}
