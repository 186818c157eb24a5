//! The loop: what has come back from the kernel is worked off, then everything that gathered becomes a round, then it waits.
//!
//! One thread owns all of it; nothing is concurrent but the kernel. While a round's sync is under way, connections are read and the
//! next round gathers. A crash at any line loses what was not answered, and perhaps leaves it on the disk. An error of the disk ends
//! the process: nothing may be answered after it.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::intake::{Log, Turn, walk};
use super::limits::CONNECTIONS_MAX;
use super::log_file::LogFile;
use super::memory::Memory;
use super::out::Out;
use super::ring::{Done, Ring};
use super::walk::Malformed;

pub struct Server {
    ring: Ring,
    log: Log,
    connections: Vec<Option<Connection>>,
    /// Connections with answers that wait for a round.
    awaiting: Vec<usize>,
    /// Connections that wait for room.
    stalled: Vec<usize>,
    /// Connections whose Fetch waits for a batch.
    parked: Vec<usize>,
}

impl Server {
    pub fn new(listener: TcpListener, memory_bytes: u64, file: LogFile) -> io::Result<Server> {
        let port = listener.local_addr()?.port();
        let memory = Memory::new(memory_bytes);
        let ring = Ring::new(listener, &memory)?;
        let log = Log::new(memory, file, port);
        let connections = (0..CONNECTIONS_MAX).map(|_| None).collect();
        Ok(Server { ring, log, connections, awaiting: Vec::new(), stalled: Vec::new(), parked: Vec::new() })
    }

    /// Until SIGTERM or SIGINT.
    pub fn run(&mut self) -> io::Result<()> {
        loop {
            let limit = self.next_deadline();
            self.ring.wait(limit)?;
            while let Some(done) = self.ring.next()? {
                match done {
                    Done::Stop => return Ok(()),
                    Done::Accepted(stream) => self.accepted(stream)?,
                    Done::Received { connection, buffer, count } => self.received(connection, buffer, count)?,
                    Done::Sent { connection, out, count } => self.sent(connection, out, count)?,
                    Done::Written(result) => result?,
                    Done::Synced(result) => {
                        result?;
                        self.synced()?;
                    }
                }
            }
            self.wake_parked()?;
            self.log.rounds.start(&mut self.ring, &mut self.log.memory, &mut self.log.file)?;
        }
    }

    fn accepted(&mut self, stream: TcpStream) -> io::Result<()> {
        let Some(id) = self.connections.iter().position(Option::is_none) else { return Ok(()) };
        stream.set_nodelay(true)?;
        self.connections[id] = Some(Connection::new(stream));
        self.turn(id)
    }

    fn received(&mut self, id: usize, buffer: Vec<u8>, count: io::Result<usize>) -> io::Result<()> {
        let Some(connection) = &mut self.connections[id] else { return Ok(()) };
        connection.receiving = false;
        connection.inbox.buffer = buffer;
        match count {
            Ok(count) if count > 0 && !connection.closing => {
                connection.inbox.filled(count);
                self.turn(id)
            }
            _ => {
                self.close(id);
                Ok(())
            }
        }
    }

    fn sent(&mut self, id: usize, mut out: Out, count: io::Result<usize>) -> io::Result<()> {
        let Some(connection) = &mut self.connections[id] else { return Ok(()) };
        connection.sending = false;
        let sent = count.is_ok_and(|count| {
            out.advance(count);
            count > 0
        });
        if sent && !out.is_empty() && !connection.closing {
            connection.sending = true;
            return self.ring.send(id, &connection.stream, out, &self.log.memory);
        }
        out.lent().iter().for_each(|position| self.log.memory.give_back(*position));
        if !sent || connection.closing {
            self.close(id);
            return Ok(());
        }
        self.send(id)?;
        self.resume()
    }

    fn synced(&mut self) -> io::Result<()> {
        self.log.rounds.synced(&mut self.log.memory);
        // What has gathered meanwhile is written at once; answers are sent beside it.
        self.log.rounds.start(&mut self.ring, &mut self.log.memory, &mut self.log.file)?;
        for id in std::mem::take(&mut self.awaiting) {
            self.send(id)?;
            let Some(connection) = &mut self.connections[id] else { continue };
            connection.awaiting = connection.owed() > 0;
            if connection.awaiting {
                self.awaiting.push(id);
            }
        }
        for id in std::mem::take(&mut self.parked) {
            self.fetch(id)?;
        }
        self.resume()
    }

    /// Connections that were stalled go on.
    fn resume(&mut self) -> io::Result<()> {
        for id in std::mem::take(&mut self.stalled) {
            let Some(connection) = &mut self.connections[id] else { continue };
            if std::mem::take(&mut connection.stalled) {
                self.turn(id)?;
            }
        }
        Ok(())
    }

    /// Walks what has arrived, and receives more.
    fn turn(&mut self, id: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[id] else { return Ok(()) };
        let turn = walk(connection, &mut self.log);
        if connection.owed() > 0 && !connection.awaiting {
            connection.awaiting = true;
            self.awaiting.push(id);
        }
        match turn {
            Ok(Turn::Receive(wanted)) => {
                let room = connection.inbox.room(wanted);
                let buffer = std::mem::take(&mut connection.inbox.buffer);
                connection.receiving = true;
                self.ring.receive(id, &connection.stream, buffer, room)?;
            }
            Ok(Turn::Stall) => {
                connection.stalled = true;
                self.stalled.push(id);
            }
            Ok(Turn::Park) => self.fetch(id)?,
            Err(Malformed) => {
                self.close(id);
                return Ok(());
            }
        }
        self.send(id)
    }

    /// Answers a Fetch if it can be; else it waits on.
    fn fetch(&mut self, id: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[id] else { return Ok(()) };
        let Some(parked) = connection.parked else { return Ok(()) };
        let (log, at_last) = (&mut self.log, parked.until <= Instant::now());
        let durable = log.rounds.durable();
        match connection.session.answer(&parked.fetch, &log.topics, &mut log.memory, durable, at_last) {
            Ok(Some(out)) => {
                connection.parked = None;
                connection.answer(0, out);
                self.turn(id)
            }
            Ok(None) => {
                self.parked.push(id);
                Ok(())
            }
            Err(_) => {
                self.close(id);
                Ok(())
            }
        }
    }

    fn next_deadline(&self) -> Option<Duration> {
        let parked = self.parked.iter().filter_map(|id| self.connections[*id].as_ref()?.parked);
        parked.map(|parked| parked.until).min().map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Fetches whose time has come are answered, whatever there is.
    fn wake_parked(&mut self) -> io::Result<()> {
        if self.next_deadline().is_none_or(|left| left > Duration::ZERO) {
            return Ok(());
        }
        for id in std::mem::take(&mut self.parked) {
            self.fetch(id)?;
        }
        Ok(())
    }

    fn send(&mut self, id: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[id] else { return Ok(()) };
        let Some(out) = connection.sendable(self.log.rounds.durable()) else { return Ok(()) };
        connection.sending = true;
        self.ring.send(id, &connection.stream, out, &self.log.memory)
    }

    /// Ends a connection; it goes when nothing of it is with the kernel.
    fn close(&mut self, id: usize) {
        let Some(connection) = &mut self.connections[id] else { return };
        connection.closing = true;
        connection.parked = None;
        let _ = connection.stream.shutdown(std::net::Shutdown::Both);
        if !connection.receiving && !connection.sending {
            connection.lent().for_each(|position| self.log.memory.give_back(position));
            self.connections[id] = None;
        }
    }
}
