//! One client connection on its shard: reads frames, hands them to handlers, sends answers in request order.
//!
//! Two tasks: this one reads and begins requests, `writer` waits for their answers in order and sends them. Produce
//! requests are only begun here (the batches get their place), so many may be under way; anything else is finished
//! before the next request is read, as Kafka does. What may be outstanding is bounded by count and by bytes, for the
//! connection and for the shard; beyond it the socket is not read, which is the back-pressure the client feels.

mod registry;
mod writer;

use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use runtime::net::Part;
use runtime::sync::{Budget, BudgetGuard, LocalQueue};
use runtime::{Socket, clock};
use wire::{Reader, RequestHeader, Split, WireError, split_frame};

pub use registry::Connections;

use crate::limits::{FRAME_GROWTH_BYTES, PIPELINE_DEPTH, READ_BYTES};
use crate::shard::Shard;
use crate::{dispatch, handlers};

/// Smallest read: an idle connection holds no more than this.
const FIRST_READ_BYTES: usize = 8 << 10;

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

/// An answer in the queue, with what it holds of the budgets until it has left.
struct Outgoing {
    answer: Answer,
    _bytes: [BudgetGuard; 2],
    _depth: BudgetGuard,
}

/// What both tasks share, and the registry sees.
pub struct Connection {
    socket: Socket,
    outgoing: LocalQueue<Outgoing>,
    /// Requests begun and not answered.
    open: Cell<usize>,
    last_used_ms: Cell<i64>,
}

impl Connection {
    pub fn peer(&self) -> SocketAddr {
        self.socket.peer()
    }

    /// Since when nothing happened; `None` while a request is being answered.
    pub fn idle_since_ms(&self) -> Option<i64> {
        (self.open.get() == 0).then(|| self.last_used_ms.get())
    }

    pub fn close(&self) {
        self.socket.shutdown();
    }
}

/// Serves a connection until either side ends it.
pub async fn serve(shard: Rc<Shard>, socket: Socket) {
    let connection = Rc::new(Connection {
        socket,
        outgoing: LocalQueue::new(),
        open: Cell::new(0),
        last_used_ms: Cell::new(clock::now_ms()),
    });
    let registered = shard.connections.register(&connection);
    let writer = runtime::spawn("connection writer", writer::run(connection.clone()));
    let mut reader = ConnectionReader::new(shard.clone(), connection.clone());
    if let Err(Close::Malformed(error)) = reader.run().await {
        shard.connections.count_refused(connection.peer(), error);
    }
    connection.outgoing.close();
    writer.join().await;
    connection.close();
    drop(registered);
}

struct ConnectionReader {
    shard: Rc<Shard>,
    connection: Rc<Connection>,
    buffer: BytesMut,
    read_bytes: usize,
    bytes: Rc<Budget>,
    depth: Rc<Budget>,
    frame_limit: usize,
}

impl ConnectionReader {
    fn new(shard: Rc<Shard>, connection: Rc<Connection>) -> ConnectionReader {
        let limits = &shard.config().connections;
        ConnectionReader {
            connection,
            buffer: BytesMut::new(),
            read_bytes: FIRST_READ_BYTES,
            bytes: Budget::new(limits.max_inflight_bytes_per_connection),
            depth: Budget::new(PIPELINE_DEPTH.min(limits.queued_max_requests.max(1))),
            frame_limit: limits.request_max_bytes,
            shard,
        }
    }

    async fn run(&mut self) -> Result<(), Close> {
        loop {
            match split_frame(&mut self.buffer, self.frame_limit)? {
                Split::Frame(frame) => self.begin(frame).await?,
                Split::Need(missing) => {
                    if !self.receive(missing).await {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads more. `false`: the connection has ended. A frame's buffer grows as its bytes come, not as its prefix says.
    async fn receive(&mut self, missing: usize) -> bool {
        if missing > self.read_bytes {
            self.buffer.reserve(missing.min(FRAME_GROWTH_BYTES));
        }
        let ask = self.read_bytes;
        match self.connection.socket.read(&mut self.buffer, ask).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                if count == ask {
                    self.read_bytes = (ask * 2).min(READ_BYTES);
                }
                self.connection.last_used_ms.set(clock::now_ms());
                !self.shard.is_stopping()
            }
        }
    }

    async fn begin(&mut self, frame: Bytes) -> Result<(), Close> {
        let depth = self.depth.take(1).await;
        let bytes = [self.bytes.take(frame.len()).await, self.shard.inflight.take(frame.len()).await];
        let mut reader = Reader::new(&frame);
        let header = RequestHeader::decode(&mut reader)?;
        self.connection.open.set(self.connection.open.get() + 1);
        let answer = if header.api_key == wire::ApiKey::Produce {
            Answer::Later(handlers::produce::begin(&self.shard, &header, &frame)?)
        } else {
            let peer = self.connection.peer();
            match dispatch::answer(&self.shard, peer, &header, reader, &frame).await {
                Ok(reply) => Answer::Ready(reply),
                Err(close) => {
                    self.connection.open.set(self.connection.open.get() - 1);
                    return Err(close);
                }
            }
        };
        self.connection.outgoing.push(Outgoing { answer, _bytes: bytes, _depth: depth });
        Ok(())
    }
}
