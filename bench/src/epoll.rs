//! Readiness of many sockets for one thread: `epoll(7)`, level-triggered, with waits to the nanosecond.
//!
//! Owned by one thread. Nothing here is kept after a crash. Budget: one system call for each wait; a change of interest only
//! where it changes.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Events taken by one wait.
const EVENTS: usize = 256;

/// What a socket is ready for.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    pub token: usize,
    pub readable: bool,
    pub writable: bool,
}

#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    ready: Vec<Ready>,
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: takes no pointer; the descriptor it gives is ours alone.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: just made, owned by nothing else.
        Ok(Epoll { fd: unsafe { OwnedFd::from_raw_fd(fd) }, ready: Vec::with_capacity(EVENTS) })
    }

    /// Starts to watch; reading always, writing where `writing`.
    pub fn add(&self, fd: RawFd, token: usize, writing: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, writing)
    }

    pub fn change(&self, fd: RawFd, token: usize, writing: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, writing)
    }

    pub fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, false)
    }

    fn control(&self, operation: libc::c_int, fd: RawFd, token: usize, writing: bool) -> io::Result<()> {
        let events = libc::EPOLLIN | if writing { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: events as u32, u64: token as u64 };
        // SAFETY: both descriptors are open, and the event lives until the call returns.
        checked(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd, &raw mut event) }).map(drop)
    }

    /// Waits for at most `limit`; an empty answer says that it passed.
    pub fn wait(&mut self, limit: Duration) -> io::Result<&[Ready]> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let time = libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
        };
        // SAFETY: room for EVENTS events, a time that lives until the call returns, no signal mask.
        let count = unsafe {
            libc::epoll_pwait2(
                self.fd.as_raw_fd(),
                events.as_mut_ptr(),
                EVENTS as libc::c_int,
                &raw const time,
                std::ptr::null(),
            )
        };
        self.ready.clear();
        let count = match checked(count) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            other => other? as usize,
        };
        let both = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
        self.ready.extend(events[..count].iter().map(|event| Ready {
            token: event.u64 as usize,
            readable: event.events & (libc::EPOLLIN as u32 | both) != 0,
            writable: event.events & (libc::EPOLLOUT as u32 | both) != 0,
        }));
        Ok(&self.ready)
    }
}
