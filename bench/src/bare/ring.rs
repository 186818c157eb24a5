//! The only place that speaks to io_uring: what is handed to the kernel is owned here until it comes back, so that callers need no
//! `unsafe` and cannot free what the kernel still reads or writes.
//!
//! Owned by the server's thread. A connection has at most one receive and one send under way, and the server at most one round of
//! writes and its sync. Budget: one system call for everything that became due, `QUEUE_ENTRIES` at a time.

use std::fs::File;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::limits::{CONNECTIONS_MAX, PIECES_MAX, QUEUE_ENTRIES};
use super::memory::Memory;
use super::out::{Out, Piece};

const ACCEPT: u64 = 1;
const RECEIVE: u64 = 2;
const SEND: u64 = 3;
const WRITE: u64 = 4;
const SYNC: u64 = 5;
const STOP: u64 = 6;
/// An operation's kind lies above these bits of its tag, its connection or length in them.
const VALUE_BITS: u32 = 56;
/// The log's memory, among registered buffers.
const MEMORY_INDEX: u16 = 0;

/// Something that came back.
#[derive(Debug)]
pub enum Done {
    Accepted(TcpStream),
    Received {
        connection: usize,
        buffer: Vec<u8>,
        count: io::Result<usize>,
    },
    Sent {
        connection: usize,
        out: Out,
        count: io::Result<usize>,
    },
    Written(io::Result<()>),
    Synced(io::Result<()>),
    /// SIGTERM or SIGINT.
    Stop,
}

/// An answer under way, with what the kernel reads to find its pieces.
struct Sending {
    out: Out,
    pieces: Vec<libc::iovec>,
    header: libc::msghdr,
}

pub struct Ring {
    ring: IoUring,
    listener: TcpListener,
    /// SIGTERM and SIGINT arrive here; this thread no longer gets them otherwise.
    signals: OwnedFd,
    /// The memory is registered: its pages are not looked up at each write.
    registered: bool,
    receiving: Vec<Option<Vec<u8>>>,
    sending: Vec<Option<Box<Sending>>>,
}

fn tag(kind: u64, value: usize) -> u64 {
    kind << VALUE_BITS | value as u64
}

/// A completion's count, or its error.
fn counted(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}

impl Ring {
    /// Blocks SIGTERM and SIGINT for the calling thread, which has to be the one that uses the ring.
    pub fn new(listener: TcpListener, memory: &Memory) -> io::Result<Ring> {
        let mut modern = IoUring::builder();
        modern.setup_single_issuer().setup_defer_taskrun().setup_clamp();
        // Kernels before 6.1 know neither.
        let ring = modern.build(QUEUE_ENTRIES).or_else(|_| IoUring::new(QUEUE_ENTRIES))?;
        let whole = libc::iovec { iov_base: memory.address(0).cast_mut().cast(), iov_len: memory.len() as usize };
        // SAFETY: the log's memory is never freed. Where the process may not lock so much, plain writes do.
        let registered = unsafe { ring.submitter().register_buffers(&[whole]) }.is_ok();
        let mut made = Ring {
            ring,
            listener,
            signals: signals()?,
            registered,
            receiving: (0..CONNECTIONS_MAX).map(|_| None).collect(),
            sending: (0..CONNECTIONS_MAX).map(|_| None).collect(),
        };
        made.accept()?;
        let poll = opcode::PollAdd::new(Fd(made.signals.as_raw_fd()), libc::POLLIN as u32).build();
        made.push(&poll.user_data(tag(STOP, 0)))?;
        Ok(made)
    }

    /// Every caller hands over memory that is owned by `self`, or never freed.
    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: what the entry points to is kept in `receiving` and `sending` until it is completed, is the log's memory, or
        // nothing; both outlive the ring's use of it (see `drop`).
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        let accept = opcode::AcceptMulti::new(Fd(self.listener.as_raw_fd())).flags(libc::SOCK_CLOEXEC).build();
        self.push(&accept.user_data(tag(ACCEPT, 0)))
    }

    /// Receives into `buffer[room]`; the buffer comes back with the count.
    pub fn receive(
        &mut self,
        connection: usize,
        stream: &TcpStream,
        mut buffer: Vec<u8>,
        room: Range<usize>,
    ) -> io::Result<()> {
        assert!(self.receiving[connection].is_none(), "one receive at a time");
        let part = &mut buffer[room];
        let receive = opcode::Recv::new(Fd(stream.as_raw_fd()), part.as_mut_ptr(), part.len() as u32).build();
        self.receiving[connection] = Some(buffer);
        self.push(&receive.user_data(tag(RECEIVE, connection)))
    }

    /// Sends what is left of an answer; it comes back with the count.
    pub fn send(&mut self, connection: usize, stream: &TcpStream, out: Out, memory: &Memory) -> io::Result<()> {
        assert!(self.sending[connection].is_none(), "one send at a time");
        // SAFETY: a header of zeros is one without address, pieces and control data.
        let header: libc::msghdr = unsafe { std::mem::zeroed() };
        let mut sending = Box::new(Sending { out, pieces: Vec::new(), header });
        let (fd, flags) = (Fd(stream.as_raw_fd()), libc::MSG_NOSIGNAL | libc::MSG_WAITALL);
        let (out, pieces) = (&sending.out, &mut sending.pieces);
        out.left(PIECES_MAX, |piece| {
            let (base, len) = match piece {
                Piece::Own(range) => (out.bytes()[range.clone()].as_ptr(), range.len()),
                Piece::Lent { position, len } => (memory.address(position), len),
            };
            pieces.push(libc::iovec { iov_base: base.cast_mut().cast(), iov_len: len });
        });
        let send = match pieces.as_slice() {
            [one] => opcode::Send::new(fd, one.iov_base.cast_const().cast(), one.iov_len as u32).flags(flags).build(),
            _ => {
                sending.header.msg_iov = sending.pieces.as_mut_ptr();
                sending.header.msg_iovlen = sending.pieces.len();
                opcode::SendMsg::new(fd, &raw const sending.header).flags(flags as u32).build()
            }
        };
        self.sending[connection] = Some(sending);
        self.push(&send.user_data(tag(SEND, connection)))
    }

    /// Writes ranges of the log, each to its place in the file, and then syncs the data: one chain, whose end is `Done::Synced`.
    pub fn write_and_sync(&mut self, file: &File, memory: &Memory, writes: &[(Range<u64>, u64)]) -> io::Result<()> {
        let room = { self.ring.submission() };
        let free = room.capacity() - room.len();
        drop(room);
        // A chain ends where a submission does.
        if free <= writes.len() {
            self.ring.submit()?;
        }
        let fd = Fd(file.as_raw_fd());
        for (range, place) in writes {
            let len = range.end - range.start;
            let write = self.write(fd, memory.address(range.start), len as u32, *place);
            self.push(&write.flags(squeue::Flags::IO_LINK).user_data(tag(WRITE, len as usize)))?;
        }
        let sync = opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build();
        self.push(&sync.user_data(tag(SYNC, 0)))
    }

    fn write(&self, fd: Fd, from: *const u8, len: u32, place: u64) -> squeue::Entry {
        if self.registered {
            opcode::WriteFixed::new(fd, from, len, MEMORY_INDEX).offset(place).build()
        } else {
            opcode::Write::new(fd, from, len).offset(place).build()
        }
    }

    /// Hands over what is due, and waits until something has come back or the time has passed.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let waited = match limit {
            None => self.ring.submit_and_wait(1),
            Some(limit) => {
                let time = Timespec::new().sec(limit.as_secs()).nsec(limit.subsec_nanos());
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        match waited {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => Ok(()),
            other => other.map(drop),
        }
    }

    /// The next thing that has come back.
    pub fn next(&mut self) -> io::Result<Option<Done>> {
        loop {
            let Some(entry) = self.ring.completion().next() else { return Ok(None) };
            if let Some(done) = self.done(&entry)? {
                return Ok(Some(done));
            }
        }
    }

    fn done(&mut self, entry: &cqueue::Entry) -> io::Result<Option<Done>> {
        let (kind, value) = (entry.user_data() >> VALUE_BITS, entry.user_data() & ((1 << VALUE_BITS) - 1));
        let (value, result) = (value as usize, counted(entry.result()));
        Ok(Some(match kind {
            ACCEPT => {
                if !cqueue::more(entry.flags()) {
                    self.accept()?;
                }
                let fd = match result {
                    Ok(fd) => fd,
                    // It would fail again at once, for as long as connections stay.
                    Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                        return Err(error);
                    }
                    Err(_) => return Ok(None),
                };
                // SAFETY: the kernel has just made this descriptor for us.
                Done::Accepted(TcpStream::from(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
            }
            RECEIVE => {
                let buffer = self.receiving[value].take().expect("a receive was under way");
                Done::Received { connection: value, buffer, count: result }
            }
            SEND => {
                let sending = self.sending[value].take().expect("a send was under way");
                Done::Sent { connection: value, out: sending.out, count: result }
            }
            WRITE => Done::Written(match result {
                Ok(count) if count != value => Err(io::Error::other("the disk took a part of a write only")),
                other => other.map(drop),
            }),
            SYNC => Done::Synced(result.map(drop)),
            _ => Done::Stop,
        }))
    }
}

impl Drop for Ring {
    /// The kernel may still use what is under way: it is left to the end of the process.
    fn drop(&mut self) {
        std::mem::take(&mut self.receiving).into_iter().for_each(std::mem::forget);
        std::mem::take(&mut self.sending).into_iter().for_each(std::mem::forget);
    }
}

fn signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is made by `sigemptyset` before it is used, and lives until the calls return.
    let fd = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, owned by nothing else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
