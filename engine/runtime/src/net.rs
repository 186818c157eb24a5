//! Sockets: an acceptor thread, and streams on their shard.
//!
//! Accepting is an ordinary blocking thread, not a task: `accept4` sets close-on-exec and no-delay flags in one place,
//! a reserve descriptor keeps the listener alive at the process's descriptor limit, and each connection goes to the
//! shard with the fewest. The thread touches no byte of a connection.

use std::cell::RefCell;
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use bytes::{Buf, Bytes, BytesMut};
use futures_lite::{AsyncRead, AsyncWrite};

use crate::buffers::Chunk;
use crate::limits::{ACCEPT_QUEUE, LEAST_CONNECT_TIMEOUT, MAX_IOVEC, WRITABLE_PROBE_BYTES};
use crate::shared_file::SharedFile;

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
#[derive(Debug)]
pub struct Socket {
    stream: RefCell<glommio::net::TcpStream>,
    fd: RawFd,
    peer: SocketAddr,
    _slot: Option<ConnectionSlot>,
}

/// A part of an answer: bytes in memory, or a range of a file.
#[derive(Clone, Debug)]
pub enum Part {
    Bytes(Bytes),
    File { file: SharedFile, position: u64, len: usize },
}

impl Socket {
    fn new(fd: OwnedFd, peer: SocketAddr, slot: Option<ConnectionSlot>) -> Socket {
        use std::os::fd::IntoRawFd;
        let fd = fd.into_raw_fd();
        // SAFETY: the descriptor is a connected stream socket, and ownership moves into the stream.
        let stream = unsafe { glommio::net::TcpStream::from_raw_fd(fd) };
        Socket { stream: RefCell::new(stream), fd, peer, _slot: slot }
    }

    /// Connects to `address` on the shard's ring: a host that does not answer holds up nobody else.
    pub async fn connect(address: SocketAddr, timeout: std::time::Duration) -> io::Result<Socket> {
        let stream = glommio::net::TcpStream::connect_timeout(address, timeout.max(LEAST_CONNECT_TIMEOUT))
            .await
            .map_err(crate::error::io_of)?;
        stream.set_nodelay(true).map_err(crate::error::io_of)?;
        let fd = stream.as_raw_fd();
        Ok(Socket { stream: RefCell::new(stream), fd, peer: address, _slot: None })
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Reads what is there, at most `max` bytes, behind the bytes of `buffer`, which gets room for them. 0: the peer closed
    /// its side.
    pub async fn read(&self, buffer: &mut BytesMut, max: usize) -> io::Result<usize> {
        buffer.reserve(max);
        let spare = &mut buffer.spare_capacity_mut()[..max];
        // SAFETY: the slice is only written to (by recv), never read, before `set_len` covers what was written.
        let target = unsafe { std::slice::from_raw_parts_mut(spare.as_mut_ptr().cast::<u8>(), spare.len()) };
        let count = poll_fn(|cx| Pin::new(&mut *self.stream.borrow_mut()).poll_read(cx, target)).await?;
        let len = buffer.len() + count;
        // SAFETY: recv initialised `count` bytes behind the old length.
        unsafe { buffer.set_len(len) };
        Ok(count)
    }

    /// As [`Socket::read`], into a chunk, at most what it has room for.
    pub async fn receive(&self, chunk: &mut Chunk, max: usize) -> io::Result<usize> {
        assert!(chunk.room() > 0 && max > 0, "there is room to receive into");
        chunk
            .fill(max, async |target| {
                poll_fn(|cx| Pin::new(&mut *self.stream.borrow_mut()).poll_read(cx, target)).await
            })
            .await
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
            let sent = match self.try_sendmsg(&slices[first..]) {
                Ok(sent) => sent,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.send_when_writable(&slices[first]).await?,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            first += advance(&mut slices[first..], sent);
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
            libc::sendmsg(self.fd, &raw const message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }

    /// The event loop has no "wait until writable": writing the next few KiB through it waits and sends them.
    async fn send_when_writable(&self, slice: &Bytes) -> io::Result<usize> {
        let piece = &slice[..slice.len().min(WRITABLE_PROBE_BYTES)];
        poll_fn(|cx| Pin::new(&mut *self.stream.borrow_mut()).poll_write(cx, piece)).await
    }

    async fn send_file(&self, file: &SharedFile, mut position: u64, len: usize) -> io::Result<()> {
        let end = position + len as u64;
        while position < end {
            let mut offset = position as libc::off64_t;
            // SAFETY: both descriptors are open; `offset` is a valid place.
            let sent = unsafe { libc::sendfile64(self.fd, file.fd(), &raw mut offset, (end - position) as usize) };
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
                io::ErrorKind::WouldBlock => {
                    let piece = ((end - position) as usize).min(WRITABLE_PROBE_BYTES);
                    let bytes = file.read(position, piece).await.map_err(io::Error::other)?;
                    if bytes.is_empty() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    position += self.send_when_writable(&Bytes::from(bytes)).await? as u64;
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
        unsafe { libc::shutdown(self.fd, libc::SHUT_RDWR) };
    }
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
