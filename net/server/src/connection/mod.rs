//! One client connection on its shard: reads frames, hands them to handlers, sends answers in request order.
//!
//! Two tasks: this one reads and begins requests, `writer` waits for their answers in order and sends them. Produce
//! requests are only begun here (the batches get their place), so many may be under way; anything else is finished
//! before the next request is read, as Kafka does. What may be outstanding is bounded by count, by bytes of requests (for
//! the connection and for the shard) and by bytes of answers; beyond it the socket is not read, which is the back-pressure
//! the client feels. A client that does not take its answers is closed by the sweep in `registry`.

mod frames;
mod registry;
mod writer;

use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;

use bytes::Bytes;
use runtime::net::Part;
use runtime::sync::{Budget, BudgetGuard, LocalQueue};
use runtime::{Socket, clock};
use wire::{ApiKey, Reader, RequestHeader, Split, WireError};

pub use registry::Connections;

use crate::limits::{ANSWER_BYTES_PER_CONNECTION, PIPELINE_DEPTH, SEND_STALL_MS};
use crate::metrics::Counters;
use crate::shard::Shard;
use crate::{dispatch, handlers};
use frames::Frames;

/// Why a connection is closed by this side.
#[derive(Debug)]
pub enum Close {
    /// Bytes that are not the protocol.
    Malformed(WireError),
    /// `acks=0` and an error: there is no other way to tell the client.
    NoAnswerForError,
    Stopping,
}

impl From<WireError> for Close {
    fn from(error: WireError) -> Close {
        Close::Malformed(error)
    }
}

/// An answer's parts in order; `None` where the request gets no answer (`acks=0`).
pub type Reply = Option<Vec<Part>>;
/// An answer under way.
pub type Later = Pin<Box<dyn Future<Output = Result<Reply, Close>>>>;

enum Answer {
    Ready(Reply),
    Later(Later),
}

impl Answer {
    /// What the answer keeps in memory until it has left. File ranges keep nothing; answers under way are small.
    fn memory_bytes(&self) -> usize {
        let Answer::Ready(Some(parts)) = self else { return 0 };
        parts.iter().map(|part| if let Part::Bytes(bytes) = part { bytes.len() } else { 0 }).sum()
    }
}

/// An answer in the queue, with what it holds of the budgets until it has left.
struct Outgoing {
    answer: Answer,
    api: ApiKey,
    /// When its last bytes came.
    received_ns: u64,
    /// Of the request for the connection and for the shard, and of the answer.
    _bytes: [BudgetGuard; 3],
    _depth: BudgetGuard,
}

/// What both tasks share, and the registry sees.
pub struct Connection {
    socket: Socket,
    counters: Rc<Counters>,
    outgoing: LocalQueue<Outgoing>,
    /// Requests begun and not answered.
    open: Cell<usize>,
    last_used_ms: Cell<i64>,
    /// Since when the socket has not taken a slice of an answer; `None` while nothing is being sent.
    sending_since_ms: Cell<Option<i64>>,
    /// Nothing can be sent any more: what is still read would be worked on in vain.
    failed: Cell<bool>,
}

impl Connection {
    fn new(socket: Socket, counters: Rc<Counters>) -> Rc<Connection> {
        Rc::new(Connection {
            socket,
            counters,
            outgoing: LocalQueue::new(),
            open: Cell::new(0),
            last_used_ms: Cell::new(clock::now_ms()),
            sending_since_ms: Cell::new(None),
            failed: Cell::new(false),
        })
    }

    pub fn peer(&self) -> SocketAddr {
        self.socket.peer()
    }

    /// Since when nothing happened; `None` while a request is being answered.
    pub fn idle_since_ms(&self) -> Option<i64> {
        (self.open.get() == 0).then(|| self.last_used_ms.get())
    }

    /// Whether the client was silent for `max_idle_ms` (`None`: it may be), or does not take what is sent to it. The
    /// latter holds part of the shard's budgets and ends whatever is under way.
    fn is_overdue(&self, now_ms: i64, max_idle_ms: Option<i64>) -> bool {
        let silent = |max_ms| self.idle_since_ms().is_some_and(|since| since < now_ms.saturating_sub(max_ms));
        let stalled = self.sending_since_ms.get().is_some_and(|since| since < now_ms.saturating_sub(SEND_STALL_MS));
        stalled || max_idle_ms.is_some_and(silent)
    }

    fn fail(&self) {
        self.failed.set(true);
        self.close();
    }

    pub fn close(&self) {
        self.socket.shutdown();
    }
}

fn as_ms(ns: u64) -> i64 {
    (ns / 1_000_000) as i64
}

/// Serves a connection until either side ends it.
pub async fn serve(shard: Rc<Shard>, socket: Socket) {
    let connection = Connection::new(socket, shard.counters.clone());
    let registered = shard.connections.register(&connection);
    let writer = runtime::spawn("connection writer", writer::run(connection.clone()));
    let mut reader = ConnectionReader::new(shard.clone(), connection.clone(), registered.id);
    if let Err(Close::Malformed(error)) = reader.run().await {
        shard.connections.count_refused(connection.peer(), error);
    }
    shard.standings.take(registered.id).call_off(&shard);
    connection.outgoing.close();
    writer.join().await;
    connection.close();
    drop(registered);
}

struct ConnectionReader {
    shard: Rc<Shard>,
    connection: Rc<Connection>,
    /// The connection's number.
    id: u64,
    frames: Frames,
    /// When bytes came last.
    received_ns: u64,
    bytes: Rc<Budget>,
    depth: Rc<Budget>,
    answers: Rc<Budget>,
}

impl ConnectionReader {
    fn new(shard: Rc<Shard>, connection: Rc<Connection>, id: u64) -> ConnectionReader {
        let limits = &shard.config().connections;
        ConnectionReader {
            connection,
            id,
            frames: Frames::new(shard.log.pool().clone(), limits.request_max_bytes),
            received_ns: 0,
            bytes: Budget::new(limits.max_inflight_bytes_per_connection),
            depth: Budget::new(PIPELINE_DEPTH.min(limits.queued_max_requests.max(1))),
            answers: Budget::new(ANSWER_BYTES_PER_CONNECTION),
            shard,
        }
    }

    async fn run(&mut self) -> Result<(), Close> {
        while !self.connection.failed.get() {
            match self.frames.next()? {
                Split::Frame(frame) => self.begin(frame).await?,
                Split::Need(missing) => {
                    if !self.receive(missing).await {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads more. `false`: the connection has ended.
    async fn receive(&mut self, missing: usize) -> bool {
        match self.frames.receive(&self.connection.socket, missing).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.received_ns = clock::now_ns();
                self.connection.last_used_ms.set(as_ms(self.received_ns));
                self.connection.counters.received(count);
                !self.shard.is_stopping()
            }
        }
    }

    async fn begin(&mut self, frame: Bytes) -> Result<(), Close> {
        let depth = self.depth.take(1).await;
        let own = self.bytes.take(frame.len()).await;
        let shards = self.shard.inflight.take(frame.len()).await;
        let mut reader = Reader::new(&frame);
        let header = RequestHeader::decode(&mut reader)?;
        let api = header.api_key;
        self.connection.open.set(self.connection.open.get() + 1);
        self.connection.counters.request(api);
        let answer = if header.api_key == wire::ApiKey::Produce {
            let begun = handlers::produce::begin(&self.shard, &header, &frame);
            Answer::Later(begun.inspect_err(|_| self.connection.counters.request_closed(api))?)
        } else {
            let who = (self.id, self.connection.peer());
            match dispatch::answer(&self.shard, who, &header, reader, &frame).await {
                Ok(reply) => Answer::Ready(reply),
                Err(close) => {
                    self.connection.counters.request_closed(api);
                    self.connection.open.set(self.connection.open.get() - 1);
                    return Err(close);
                }
            }
        };
        let answers = self.answers.take(answer.memory_bytes()).await;
        let (received_ns, bytes) = (self.received_ns, [own, shards, answers]);
        self.connection.outgoing.push(Outgoing { answer, api, received_ns, _bytes: bytes, _depth: depth });
        Ok(())
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
