//! A connection that never blocks: whole frames go out, whole answers come in.
//!
//! Owned by the lane that uses it, on one thread. A frame is a reference to bytes that were encoded before the run; an
//! answer is a slice of the link's own buffer: neither is copied. Budget: one write for each frame, one read for whatever
//! has arrived.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

use bytes::Bytes;

/// Largest answer that is taken: what a Fetch may ask for, and its header.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Room that a read is given at least.
const READ_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    /// Frames that wait for the socket, the first from `written` on.
    out: VecDeque<Bytes>,
    written: usize,
    input: Vec<u8>,
    /// `input[taken..filled]` has arrived and was not given out.
    taken: usize,
    filled: usize,
}

impl Link {
    pub fn connect(port: u16) -> io::Result<Link> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Link { stream, out: VecDeque::new(), written: 0, input: vec![0; READ_BYTES], taken: 0, filled: 0 })
    }

    pub fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Whether something waits for the socket to take more.
    pub fn wants_write(&self) -> bool {
        !self.out.is_empty()
    }

    pub fn send(&mut self, frame: Bytes) -> io::Result<()> {
        self.out.push_back(frame);
        self.flush()
    }

    pub fn flush(&mut self) -> io::Result<()> {
        while let Some(frame) = self.out.front() {
            match self.stream.write(&frame[self.written..]) {
                Ok(count) if self.written + count == frame.len() => {
                    self.written = 0;
                    self.out.pop_front();
                }
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes what has arrived.
    pub fn fill(&mut self) -> io::Result<()> {
        loop {
            self.make_room()?;
            match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the broker closed the connection")),
                Ok(count) => {
                    self.filled += count;
                    // A read that did not fill its room has emptied the socket.
                    if self.filled < self.input.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.whole() {
                return Ok(());
            }
        }
    }

    fn wanted(&self) -> Option<usize> {
        let size = self.input[self.taken..self.filled].first_chunk::<4>()?;
        Some(u32::from_be_bytes(*size) as usize + 4)
    }

    fn whole(&self) -> bool {
        self.wanted().is_some_and(|wanted| self.filled - self.taken >= wanted)
    }

    /// Room for the rest of the answer that has begun, or for any.
    fn make_room(&mut self) -> io::Result<()> {
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
        }
        let wanted = self.wanted().unwrap_or(READ_BYTES);
        if wanted > ANSWER_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("an answer of {wanted} bytes")));
        }
        if self.taken + wanted > self.input.len() || self.filled == self.input.len() {
            self.input.copy_within(self.taken..self.filled, 0);
            (self.taken, self.filled) = (0, self.filled - self.taken);
        }
        if self.input.len() < wanted.max(self.filled + 1) {
            self.input.resize((wanted + READ_BYTES).max(self.filled + READ_BYTES), 0);
        }
        Ok(())
    }

    /// The next whole answer, behind its correlation id.
    pub fn answer(&mut self) -> Option<&[u8]> {
        let wanted = self.wanted()?;
        if self.filled - self.taken < wanted {
            return None;
        }
        let from = self.taken;
        self.taken += wanted;
        self.input.get(from + 8..from + wanted)
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
