//! Sockets of the simulated network; the same calls and the same promises as on the real one. Any read gives and any write
//! takes as little as the dice say.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use crate::buffers::Chunk;
use crate::clock::sleep_ns;
use crate::limits::LEAST_CONNECT_TIMEOUT;
use crate::shared_file::SharedFile;
use crate::sim::wires::Attempt;
use crate::sim::world::{try_with, with};

/// Bytes of a file that are looked at for one `sendfile`.
const FILE_PIECE_BYTES: usize = 16 << 10;
/// Longest way of a first packet.
const CONNECT_NS: u64 = 500_000;

fn wake_all(wakers: Vec<Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

/// The listening side; dropping it closes the listener.
#[derive(Debug)]
pub struct Acceptor {
    id: u64,
}

impl Acceptor {
    /// Connections open or on their way to a shard.
    pub fn connections(&self) -> usize {
        with(|world| world.connections_open(self.id))
    }

    /// Not counted here.
    pub fn turned_away(&self) -> Arc<AtomicU64> {
        Arc::default()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        wake_all(try_with(|world| world.stop_listening(self.id)).unwrap_or_default());
    }
}

/// One shard's end: the connections given to it.
#[derive(Debug)]
pub struct AcceptQueue {
    listener: u64,
    shard: usize,
}

impl AcceptQueue {
    /// The next connection; `None` when the acceptor is gone.
    pub async fn next(&self) -> Option<Socket> {
        let id = poll_fn(|cx| with(|world| world.poll_accept(self.listener, self.shard, cx.waker()))).await?;
        let peer = SocketAddr::from(([127, 0, 0, 1], 30_000 + (id % 30_000) as u16));
        Some(Socket { id, side: 1, peer, slot: Some((self.listener, self.shard)) })
    }
}

/// A bound listener that does not accept yet: the port is known and taken.
#[derive(Debug)]
pub struct Bound {
    id: u64,
    address: SocketAddr,
}

impl Bound {
    pub fn bind(address: SocketAddr, _backlog: u32) -> io::Result<Bound> {
        let (id, port) = with(|world| world.listen(address.port()))?;
        Ok(Bound { id, address: SocketAddr::new(address.ip(), port) })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    /// Starts accepting for `shards` shards, with at most `max_connections` open at once; further ones are closed at once.
    pub fn accept(
        self,
        shards: usize,
        max_connections: Arc<AtomicUsize>,
        _cpu: Option<usize>,
    ) -> io::Result<(Acceptor, Vec<AcceptQueue>)> {
        with(|world| world.begin_accepting(self.id, shards, max_connections));
        let queues = (0..shards).map(|shard| AcceptQueue { listener: self.id, shard }).collect();
        Ok((Acceptor { id: self.id }, queues))
    }
}

/// A connected stream. One task reads, one writes; both may wait at the same time.
#[derive(Debug)]
pub struct Socket {
    id: u64,
    side: usize,
    peer: SocketAddr,
    /// Listener and shard that count it.
    slot: Option<(u64, usize)>,
}

/// A part of an answer: bytes in memory, or a range of a file.
#[derive(Clone, Debug)]
pub enum Part {
    Bytes(Bytes),
    File { file: SharedFile, position: u64, len: usize },
}

impl Socket {
    /// Connects to `address`, of which only the port counts: there is one network and one name for everybody in it.
    pub async fn connect(address: SocketAddr, timeout: Duration) -> io::Result<Socket> {
        let timeout_ns = timeout.max(LEAST_CONNECT_TIMEOUT).as_nanos() as u64;
        let there = with(|world| world.dice.below(CONNECT_NS)).min(timeout_ns);
        sleep_ns(there).await;
        let (attempt, taker) = with(|world| world.attempt(address.port()));
        taker.into_iter().for_each(Waker::wake);
        match attempt {
            Attempt::Connected(id) => {
                let socket = Socket { id, side: 0, peer: address, slot: None };
                let back = with(|world| world.dice.below(CONNECT_NS));
                sleep_ns(back).await;
                Ok(socket)
            }
            Attempt::Refused => Err(io::ErrorKind::ConnectionRefused.into()),
            Attempt::NoAnswer => {
                sleep_ns(timeout_ns - there).await;
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Reads what is there, at most `max` bytes, behind the bytes of `buffer`. 0: the peer closed its side.
    pub async fn read(&self, buffer: &mut BytesMut, max: usize) -> io::Result<usize> {
        let bytes = poll_fn(|cx| self.poll_receive(cx, max)).await?;
        buffer.extend_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// As [`Socket::read`], into a chunk, at most what it has room for.
    pub async fn receive(&self, chunk: &mut Chunk, max: usize) -> io::Result<usize> {
        let max = max.min(chunk.room());
        assert!(max > 0, "there is room to receive into");
        let bytes = poll_fn(|cx| self.poll_receive(cx, max)).await?;
        chunk.append(&bytes);
        Ok(bytes.len())
    }

    fn poll_receive(&self, cx: &Context<'_>, max: usize) -> Poll<io::Result<Bytes>> {
        let (polled, writer) = with(|world| world.poll_receive(self.id, self.side, max, cx.waker()));
        writer.into_iter().for_each(Waker::wake);
        polled
    }

    /// Sends all parts in order.
    pub async fn send(&self, parts: Vec<Part>) -> io::Result<()> {
        for part in parts {
            match part {
                Part::Bytes(bytes) => self.send_all(bytes).await?,
                Part::File { file, position, len } => self.send_file(&file, position, len).await?,
            }
        }
        Ok(())
    }

    pub async fn send_bytes(&self, slices: Vec<Bytes>) -> io::Result<()> {
        for slice in slices {
            self.send_all(slice).await?;
        }
        Ok(())
    }

    async fn send_all(&self, mut bytes: Bytes) -> io::Result<()> {
        while !bytes.is_empty() {
            bytes.advance(self.send_some(&bytes).await?);
        }
        Ok(())
    }

    async fn send_some(&self, bytes: &Bytes) -> io::Result<usize> {
        poll_fn(|cx| with(|world| world.poll_send(self.id, self.side, bytes, cx.waker()))).await
    }

    /// As `sendfile`: every piece is what the page cache holds when it goes off.
    async fn send_file(&self, file: &SharedFile, mut position: u64, len: usize) -> io::Result<()> {
        let end = position + len as u64;
        while position < end {
            let piece = ((end - position) as usize).min(FILE_PIECE_BYTES);
            let bytes = Bytes::from(file.read(position, piece).await.map_err(io::Error::other)?);
            if bytes.is_empty() {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the segment file is shorter than its index"));
            }
            position += self.send_some(&bytes).await? as u64;
        }
        Ok(())
    }

    /// Ends both directions: pending reads and writes of this socket resolve with an end or an error.
    pub fn shutdown(&self) {
        wake_all(with(|world| world.shut(self.id, self.side)));
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let wakers = try_with(|world| {
            if let Some((listener, shard)) = self.slot {
                world.slot_left(listener, shard);
            }
            world.leave(self.id, self.side, false)
        });
        wake_all(wakers.unwrap_or_default());
    }
}
