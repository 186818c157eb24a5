//! Sockets: an acceptor thread, and streams on their shard.
//!
//! Accepting is an ordinary blocking thread, not a task: `accept4` sets close-on-exec and no-delay flags in one place,
//! a reserve descriptor keeps the listener alive at the process's descriptor limit, and each connection goes to the
//! shard with the fewest. The thread touches no byte of a connection.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use bytes::{Buf, Bytes, BytesMut};
use io_uring::{opcode, types};

use crate::buffers::Chunk;
use crate::limits::{ACCEPT_QUEUE, LEAST_CONNECT_TIMEOUT, MAX_IOVEC, SLOW_FILE_PIECE};
use crate::shared_file::SharedFile;
use crate::{clock, driver, task};

struct Accepted {
    fd: OwnedFd,
    peer: SocketAddr,
    slot: ConnectionSlot,
}

/// Counts a connection for its shard and for the process while it lives.
#[derive(Debug)]
struct ConnectionSlot {
    counts: Arc<Counts>,
    shard: usize,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.counts.per_shard[self.shard].fetch_sub(1, Ordering::AcqRel);
    }
}

#[derive(Debug)]
struct Counts {
    per_shard: Vec<AtomicUsize>,
    /// Closed because there were too many, or because the process had no descriptor left.
    turned_away: Arc<AtomicU64>,
}

impl Counts {
    fn total(&self) -> usize {
        self.per_shard.iter().map(|c| c.load(Ordering::Acquire)).sum()
    }

    fn least(&self) -> usize {
        let loads = self.per_shard.iter().map(|c| c.load(Ordering::Acquire));
        loads.enumerate().min_by_key(|&(_, n)| n).map_or(0, |(i, _)| i)
    }
}

/// The listening side; dropping it stops the thread and closes the listener.
#[derive(Debug)]
pub struct Acceptor {
    listener: Arc<TcpListener>,
    stopped: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    counts: Arc<Counts>,
}

/// One shard's end: the connections given to it.
#[derive(Debug)]
pub struct AcceptQueue {
    receiver: flume::Receiver<Accepted>,
}

impl std::fmt::Debug for Accepted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Accepted({})", self.peer)
    }
}

/// A bound listener that does not accept yet: the port is known and taken.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
}

impl Bound {
    /// `backlog`: connections that the kernel completes before they are accepted; it caps it at net.core.somaxconn.
    pub fn bind(address: SocketAddr, backlog: u32) -> io::Result<Bound> {
        // std sets SO_REUSEADDR, and a backlog of its own; listening again replaces that.
        let listener = TcpListener::bind(address)?;
        let backlog = libc::c_int::try_from(backlog).unwrap_or(libc::c_int::MAX);
        // SAFETY: the descriptor is a listening socket that `listener` keeps open.
        if unsafe { libc::listen(listener.as_raw_fd(), backlog) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Bound { listener })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Starts accepting for `shards` shards, with at most `max_connections` open at once (it may be changed while running);
    /// further ones are closed at once. `cpu` pins the thread.
    pub fn accept(
        self,
        shards: usize,
        max_connections: Arc<AtomicUsize>,
        cpu: Option<usize>,
    ) -> io::Result<(Acceptor, Vec<AcceptQueue>)> {
        let (senders, queues): (Vec<_>, Vec<_>) = (0..shards)
            .map(|_| flume::bounded(ACCEPT_QUEUE))
            .map(|(s, receiver)| (s, AcceptQueue { receiver }))
            .unzip();
        let counts = Arc::new(Counts {
            per_shard: (0..shards).map(|_| AtomicUsize::new(0)).collect(),
            turned_away: Arc::default(),
        });
        let listener = Arc::new(self.listener);
        let stopped = Arc::new(AtomicBool::new(false));
        let (ready, started) = mpsc::channel();
        let state = AcceptLoop {
            listener: listener.clone(),
            stopped: stopped.clone(),
            counts: counts.clone(),
            senders,
            max_connections,
            reserve: Some(File::open("/dev/null")?),
        };
        let thread = std::thread::Builder::new().name("ringlog-accept".into()).spawn(move || {
            if let Some(id) = cpu {
                core_affinity::set_for_current(core_affinity::CoreId { id });
            }
            let _ = ready.send(());
            state.run();
        })?;
        let _ = started.recv();
        Ok((Acceptor { listener, stopped, thread: Some(thread), counts }, queues))
    }
}

struct AcceptLoop {
    listener: Arc<TcpListener>,
    stopped: Arc<AtomicBool>,
    counts: Arc<Counts>,
    senders: Vec<flume::Sender<Accepted>>,
    max_connections: Arc<AtomicUsize>,
    /// Given up to accept and close one connection when the process has no descriptor left: otherwise the listener
    /// would spin on a connection it cannot take.
    reserve: Option<File>,
}

impl AcceptLoop {
    fn run(mut self) {
        while !self.stopped.load(Ordering::Acquire) {
            match self.listener.accept() {
                Ok((stream, peer)) => self.place(stream, peer),
                Err(e) if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => self.shed(),
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => return,
                Err(_) => {}
            }
        }
    }

    fn place(&self, stream: std::net::TcpStream, peer: SocketAddr) {
        if self.counts.total() >= self.max_connections.load(Ordering::Relaxed) {
            self.counts.turned_away.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let _ = stream.set_nodelay(true);
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let shard = self.counts.least();
        self.counts.per_shard[shard].fetch_add(1, Ordering::AcqRel);
        let slot = ConnectionSlot { counts: self.counts.clone(), shard };
        let _ = self.senders[shard].send(Accepted { fd: OwnedFd::from(stream), peer, slot });
    }

    fn shed(&mut self) {
        self.reserve = None;
        if self.listener.accept().is_ok() {
            self.counts.turned_away.fetch_add(1, Ordering::Relaxed);
        }
        self.reserve = File::open("/dev/null").ok();
        if self.reserve.is_none() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

impl Acceptor {
    /// Connections open or on their way to a shard.
    pub fn connections(&self) -> usize {
        self.counts.total()
    }

    /// Counts connections that were closed as soon as they were accepted; it outlives the acceptor.
    pub fn turned_away(&self) -> Arc<AtomicU64> {
        self.counts.turned_away.clone()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // SAFETY: the descriptor is open as long as `listener` lives; shutdown wakes a blocked accept with EINVAL.
        unsafe { libc::shutdown(self.listener.as_raw_fd(), libc::SHUT_RDWR) };
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl AcceptQueue {
    /// The next connection; `None` when the acceptor is gone.
    pub async fn next(&self) -> Option<Socket> {
        let accepted = self.receiver.recv_async().await.ok()?;
        Some(Socket::new(accepted.fd, accepted.peer, Some(accepted.slot)))
    }
}

/// A connected stream on its shard. One task reads, one writes; both may wait at the same time.
///
/// Data moves by system calls that never wait; the ring is only asked when the socket is ready again, so nothing of a
/// caller's memory is with the kernel while it waits, and a caller may go away at any time.
#[derive(Debug)]
pub struct Socket {
    stream: OwnedFd,
    peer: SocketAddr,
    /// There may be something to read: the last read was full, or nobody has looked yet.
    may_read: Cell<bool>,
    _slot: Option<ConnectionSlot>,
}

/// A part of an answer: bytes in memory, or a range of a file.
#[derive(Clone, Debug)]
pub enum Part {
    Bytes(Bytes),
    File { file: SharedFile, position: u64, len: usize },
}

impl Socket {
    fn new(stream: OwnedFd, peer: SocketAddr, slot: Option<ConnectionSlot>) -> Socket {
        Socket { stream, peer, may_read: Cell::new(true), _slot: slot }
    }

    /// Connects to `address` while others go on: a host that does not answer holds up nobody else.
    pub async fn connect(address: SocketAddr, timeout: std::time::Duration) -> io::Result<Socket> {
        let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&address.into()) {
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
            other => other?,
        }
        let connected = async {
            ready(socket.as_raw_fd(), libc::POLLOUT).await?;
            socket.take_error()?.map_or(Ok(()), Err)
        };
        let late = async {
            clock::sleep(timeout.max(LEAST_CONNECT_TIMEOUT)).await;
            Err(io::ErrorKind::TimedOut.into())
        };
        futures_lite::future::or(connected, late).await?;
        Ok(Socket::new(socket.into(), address, None))
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Reads what is there, at most `max` bytes, behind the bytes of `buffer`, which gets room for them. 0: the peer closed
    /// its side.
    pub async fn read(&self, buffer: &mut BytesMut, max: usize) -> io::Result<usize> {
        buffer.reserve(max);
        let count = self.receive_at(buffer.spare_capacity_mut()[..max].as_mut_ptr().cast(), max).await?;
        let len = buffer.len() + count;
        // SAFETY: recv initialised `count` bytes behind the old length.
        unsafe { buffer.set_len(len) };
        Ok(count)
    }

    /// As [`Socket::read`], into a chunk, at most what it has room for.
    pub async fn receive(&self, chunk: &mut Chunk, max: usize) -> io::Result<usize> {
        assert!(chunk.room() > 0 && max > 0, "there is room to receive into");
        let count = self.receive_at(chunk.spare(), chunk.room().min(max)).await?;
        // SAFETY: recv wrote so many bytes there.
        unsafe { chunk.publish(count) };
        Ok(count)
    }

    /// `target` has room for so many bytes, and is the caller's alone while this waits.
    async fn receive_at(&self, target: *mut u8, room: usize) -> io::Result<usize> {
        loop {
            self.readable().await?;
            if let Some(count) = self.try_receive(target, room)? {
                return Ok(count);
            }
        }
    }

    /// Waits until there may be something to read. Where that is so already others get a turn first, since a sender that is
    /// fast enough would keep the shard to itself.
    async fn readable(&self) -> io::Result<()> {
        if self.may_read.get() {
            task::yield_now().await;
            return Ok(());
        }
        ready(self.fd(), libc::POLLIN).await?;
        self.may_read.set(true);
        Ok(())
    }

    /// `None`: there is nothing yet. `target` has room for so many bytes.
    fn try_receive(&self, target: *mut u8, room: usize) -> io::Result<Option<usize>> {
        loop {
            // SAFETY: the caller's memory, which nobody else refers to meanwhile; it is only written to.
            let count = unsafe { libc::recv(self.fd(), target.cast(), room, libc::MSG_DONTWAIT) };
            if let Ok(count) = usize::try_from(count) {
                // An end stays; after less than was asked for there is most likely nothing more.
                self.may_read.set(count == room || count == 0);
                return Ok(Some(count));
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => {
                    self.may_read.set(false);
                    return Ok(None);
                }
                _ => return Err(error),
            }
        }
    }

    fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    async fn writable(&self) -> io::Result<()> {
        ready(self.fd(), libc::POLLOUT).await
    }

    /// Sends all parts in order; memory in vectored writes, files by `sendfile`.
    pub async fn send(&self, parts: Vec<Part>) -> io::Result<()> {
        let mut run: Vec<Bytes> = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Part::Bytes(bytes) if bytes.is_empty() => {}
                Part::Bytes(bytes) => run.push(bytes),
                Part::File { file, position, len } => {
                    self.send_bytes(std::mem::take(&mut run)).await?;
                    self.send_file(&file, position, len).await?;
                }
            }
        }
        self.send_bytes(run).await
    }

    /// Sends slices with as few system calls as the socket takes.
    pub async fn send_bytes(&self, mut slices: Vec<Bytes>) -> io::Result<()> {
        let mut first = 0;
        while first < slices.len() {
            match self.try_sendmsg(&slices[first..]) {
                Ok(sent) => first += advance(&mut slices[first..], sent),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn try_sendmsg(&self, slices: &[Bytes]) -> io::Result<usize> {
        let mut vectors: [libc::iovec; MAX_IOVEC] =
            [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MAX_IOVEC];
        let count = slices.len().min(MAX_IOVEC);
        for (vector, slice) in vectors.iter_mut().zip(slices) {
            *vector = libc::iovec { iov_base: slice.as_ptr().cast_mut().cast(), iov_len: slice.len() };
        }
        // SAFETY: an all-zero msghdr is valid; its vectors point to slices that live through the call and are only read.
        let sent = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = vectors.as_mut_ptr();
            message.msg_iovlen = count as _;
            libc::sendmsg(self.fd(), &raw const message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }

    async fn send_file(&self, file: &SharedFile, mut position: u64, len: usize) -> io::Result<()> {
        let end = position + len as u64;
        while position < end {
            let mut offset = position as libc::off64_t;
            // SAFETY: both descriptors are open; `offset` is a valid place.
            let sent = unsafe { libc::sendfile64(self.fd(), file.fd(), &raw mut offset, (end - position) as usize) };
            if sent > 0 {
                position += sent as u64;
                continue;
            }
            if sent == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the segment file is shorter than its index"));
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                // The socket's buffer is full, or the file would have to be waited for: when it is not the former it is the latter.
                io::ErrorKind::WouldBlock if !self.is_writable() => self.writable().await?,
                io::ErrorKind::WouldBlock => {
                    let piece = ((end - position) as usize).min(SLOW_FILE_PIECE);
                    let bytes = file.read(position, piece).await.map_err(io::Error::other)?;
                    if bytes.is_empty() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    position += bytes.len() as u64;
                    self.send_bytes(vec![Bytes::from(bytes)]).await?;
                }
                _ => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends both directions: pending reads and writes of this socket resolve with an end or an error. This is how a
    /// deadline is enforced, since operations in flight cannot be dropped.
    pub fn shutdown(&self) {
        // SAFETY: the descriptor is open as long as `stream` lives.
        unsafe { libc::shutdown(self.fd(), libc::SHUT_RDWR) };
    }

    fn is_writable(&self) -> bool {
        let mut asked = libc::pollfd { fd: self.fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: one entry, which lives through the call; no time is waited.
        unsafe { libc::poll(&raw mut asked, 1, 0) > 0 }
    }
}

/// Waits until a socket is ready for `events` (as in poll.h) or has met an error or its end. May be dropped at any time.
async fn ready(fd: RawFd, events: i16) -> io::Result<()> {
    let poll = opcode::PollAdd::new(types::Fd(fd), events as u32).build();
    // SAFETY: the entry points to nothing. A descriptor that is closed meanwhile is the caller's, whose waiting ends with it.
    let waiting = unsafe { driver::begin((), |()| poll) }.cancelled_when_dropped();
    waiting.await.0.map(drop)
}

/// Takes `sent` bytes off the front; gives the number of slices used up.
fn advance(slices: &mut [Bytes], mut sent: usize) -> usize {
    let mut used = 0;
    for slice in slices {
        if sent < slice.len() {
            slice.advance(sent);
            break;
        }
        sent -= slice.len();
        used += 1;
    }
    used
}
