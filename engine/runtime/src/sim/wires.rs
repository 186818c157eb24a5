//! The simulated network: listeners, connections, and what lies on its way between their ends.
//!
//! Each direction of a connection is a row of packets with a time of arrival each, so bytes of a connection keep their
//! order and those of different connections do not. A sender sees a window as of a socket's buffers: full, it waits. What
//! goes wrong is a list that the test dealt ([`NetworkFault`]), by the number of the connection and of its bytes.
//!
//! Nothing here wakes anybody: the calls give wakers back, or put them on the world's timers.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use bytes::Bytes;

use super::process::Death;
use super::world::World;

/// What befalls a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFaultKind {
    /// Both ends hear of a reset; what is on its way may be lost.
    Reset,
    /// Nothing arrives any more, and nobody is told.
    Silence,
    /// What is sent at that moment takes so much longer, and all behind it.
    StallMs(u64),
    /// The attempt to connect gets no answer.
    NoAnswer,
}

/// Befalls the `connection`-th attempt to connect from when it was dealt, once it has carried `after_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkFault {
    pub connection: u64,
    pub after_bytes: u64,
    pub kind: NetworkFaultKind,
}

#[derive(Debug)]
enum Content {
    Bytes(Bytes),
    End,
    Reset,
}

#[derive(Debug)]
struct Packet {
    at_ns: u64,
    content: Content,
}

/// One socket of a connection.
#[derive(Debug)]
struct Side {
    process: u64,
    /// What is on its way to this side, in order.
    inbox: VecDeque<Packet>,
    /// Bytes of it, and of what was sent into silence.
    queued: usize,
    /// Shut down or closed from here.
    is_shut: bool,
    is_reset: bool,
    /// The machine went away, as of this boot.
    gone_at_boot: Option<u64>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Debug)]
struct Connection {
    sides: [Side; 2],
    window: usize,
    latency_ns: u64,
    carried: u64,
    is_silent: bool,
    /// By position, the next one last.
    faults: Vec<NetworkFault>,
}

#[derive(Debug)]
struct Listener {
    id: u64,
    process: u64,
    queues: Vec<VecDeque<u64>>,
    takers: Vec<Option<Waker>>,
    open: Vec<usize>,
    most: Arc<AtomicUsize>,
    accepting: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Net {
    listeners: BTreeMap<u16, Listener>,
    connections: BTreeMap<u64, Connection>,
    next_id: u64,
    attempts: u64,
    /// Starts of something that listens: a machine that is back answers old connections with a reset.
    boots: u64,
    faults: Vec<NetworkFault>,
    pub struck: u64,
}

/// What came of an attempt to connect.
pub(crate) enum Attempt {
    Connected(u64),
    Refused,
    NoAnswer,
}

impl Side {
    fn new(process: u64) -> Side {
        Side {
            process,
            inbox: VecDeque::new(),
            queued: 0,
            is_shut: false,
            is_reset: false,
            gone_at_boot: None,
            reader: None,
            writer: None,
        }
    }

    fn last_at_ns(&self) -> u64 {
        self.inbox.back().map_or(0, |packet| packet.at_ns)
    }
}

impl World {
    fn timer(&mut self, at_ns: u64, waker: Waker) {
        self.next_timer += 1;
        self.timers.insert((at_ns, self.next_timer), waker);
    }

    /// A fault for connections to come; its number counts from now.
    pub fn deal_network_fault(&mut self, fault: NetworkFault) {
        let connection = self.net.attempts + fault.connection;
        self.net.faults.push(NetworkFault { connection, ..fault });
    }

    pub fn clear_network_faults(&mut self) -> u64 {
        self.net.faults.clear();
        for connection in self.net.connections.values_mut() {
            connection.faults.clear();
        }
        std::mem::take(&mut self.net.struck)
    }

    pub fn listen(&mut self, port: u16) -> io::Result<(u64, u16)> {
        let port = if port == 0 { 40_000 + (self.net.next_id % 20_000) as u16 } else { port };
        if self.net.listeners.contains_key(&port) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.net.next_id += 1;
        self.net.boots += 1;
        let listener = Listener {
            id: self.net.next_id,
            process: self.tasks.current.process,
            queues: Vec::new(),
            takers: Vec::new(),
            open: Vec::new(),
            most: Arc::default(),
            accepting: false,
        };
        self.net.listeners.insert(port, listener);
        // What was sent to the machine while it was away is sent again, and answered with a reset.
        let half_open: Vec<(u64, usize)> = self.net.half_open().collect();
        for (connection, side) in half_open {
            let at_ns = self.now_ns + self.dice.below(2_000_000_000);
            self.push(connection, side, Content::Reset, at_ns);
        }
        Ok((self.net.next_id, port))
    }

    pub fn begin_accepting(&mut self, id: u64, shards: usize, most: Arc<AtomicUsize>) {
        if let Some(listener) = self.net.listener(id) {
            listener.queues = (0..shards).map(|_| VecDeque::new()).collect();
            listener.takers = (0..shards).map(|_| None).collect();
            listener.open = vec![0; shards];
            listener.most = most;
            listener.accepting = true;
        }
    }

    /// Nobody listens any more. Connections that were not taken are reset.
    pub fn stop_listening(&mut self, id: u64) -> Vec<Waker> {
        let Some(port) = self.net.listeners.iter().find(|(_, l)| l.id == id).map(|(port, _)| *port) else {
            return Vec::new();
        };
        let Some(listener) = self.net.listeners.remove(&port) else { return Vec::new() };
        for connection in listener.queues.into_iter().flatten() {
            self.leave(connection, 1, true);
        }
        listener.takers.into_iter().flatten().collect()
    }

    /// The next connection of a shard; `None` when nobody listens any more.
    pub fn poll_accept(&mut self, id: u64, shard: usize, waker: &Waker) -> Poll<Option<u64>> {
        let Some(listener) = self.net.listener(id) else { return Poll::Ready(None) };
        match listener.queues[shard].pop_front() {
            Some(connection) => Poll::Ready(Some(connection)),
            None => {
                listener.takers[shard] = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    pub fn connections_open(&mut self, id: u64) -> usize {
        self.net.listener(id).map_or(0, |listener| listener.open.iter().sum())
    }

    pub fn slot_left(&mut self, id: u64, shard: usize) {
        if let Some(listener) = self.net.listener(id) {
            listener.open[shard] -= 1;
        }
    }

    /// An attempt reaches the other host; the shard that it is for, if any, is to be woken.
    pub fn attempt(&mut self, port: u16) -> (Attempt, Option<Waker>) {
        let number = self.net.attempts;
        self.net.attempts += 1;
        let mut faults: Vec<NetworkFault> =
            self.net.faults.iter().filter(|fault| fault.connection == number).copied().collect();
        if faults.iter().any(|fault| fault.kind == NetworkFaultKind::NoAnswer) {
            self.net.struck += 1;
            return (Attempt::NoAnswer, None);
        }
        faults.sort_by_key(|fault| std::cmp::Reverse(fault.after_bytes));
        let (window, latency_ns) = (4096 << self.dice.below(7), 20_000 << self.dice.below(5));
        let client = self.tasks.current.process;
        let Some(listener) = self.net.listeners.get_mut(&port).filter(|listener| listener.accepting) else {
            return (Attempt::Refused, None);
        };
        self.net.next_id += 1;
        let id = self.net.next_id;
        let mut sides = [Side::new(client), Side::new(listener.process)];
        let mut taker = None;
        if listener.open.iter().sum::<usize>() >= listener.most.load(Ordering::Relaxed) {
            sides[1].is_shut = true;
            sides[0].inbox.push_back(Packet { at_ns: self.now_ns, content: Content::End });
        } else {
            let shard = (0..listener.open.len()).min_by_key(|shard| listener.open[*shard]).unwrap_or(0);
            listener.open[shard] += 1;
            listener.queues[shard].push_back(id);
            taker = listener.takers[shard].take();
        }
        let connection = Connection { sides, window, latency_ns, carried: 0, is_silent: false, faults };
        self.net.connections.insert(id, connection);
        self.note("connect", [id, number], || format!("connection {id}, attempt {number}"));
        (Attempt::Connected(id), taker)
    }

    fn push(&mut self, id: u64, side: usize, content: Content, at_ns: u64) {
        let Some(connection) = self.net.connections.get_mut(&id) else { return };
        let to = &mut connection.sides[side];
        let at_ns = at_ns.max(to.last_at_ns());
        let is_first = to.inbox.is_empty();
        to.inbox.push_back(Packet { at_ns, content });
        if let Some(waker) = to.reader.take().filter(|_| is_first) {
            self.timer(at_ns, waker);
        }
    }

    fn arrival(&mut self, id: u64) -> u64 {
        let latency = self.net.connections.get(&id).map_or(0, |connection| connection.latency_ns);
        let jitter = self.dice.below(latency + 1);
        // Now and then a packet is lost and sent again.
        let again = if self.dice.one_in(200) { 200_000_000 } else { 0 };
        self.now_ns + latency + jitter + again
    }

    /// Bytes for `side`, at most `max`; none: the end. The waker is the other side's, which has room again.
    pub fn poll_receive(
        &mut self,
        id: u64,
        side: usize,
        max: usize,
        waker: &Waker,
    ) -> (Poll<io::Result<Bytes>>, Option<Waker>) {
        let Some(connection) = self.net.connections.get_mut(&id) else { return (Poll::Ready(Ok(Bytes::new())), None) };
        let at = &mut connection.sides[side];
        if at.is_reset {
            return (Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())), None);
        }
        let Some(first) = at.inbox.front_mut() else {
            if at.is_shut {
                return (Poll::Ready(Ok(Bytes::new())), None);
            }
            at.reader = Some(waker.clone());
            return (Poll::Pending, None);
        };
        if first.at_ns > self.now_ns {
            if at.is_shut {
                return (Poll::Ready(Ok(Bytes::new())), None);
            }
            let at_ns = first.at_ns;
            self.timer(at_ns, waker.clone());
            return (Poll::Pending, None);
        }
        match &mut first.content {
            Content::End => (Poll::Ready(Ok(Bytes::new())), None),
            Content::Reset => {
                at.is_reset = true;
                (Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())), at.writer.take())
            }
            Content::Bytes(bytes) => {
                let most = bytes.len().min(max);
                let count = if self.dice.one_in(4) { 1 + self.dice.below(most as u64) as usize } else { most };
                let taken = bytes.split_to(count);
                if bytes.is_empty() {
                    at.inbox.pop_front();
                }
                at.queued -= count;
                (Poll::Ready(Ok(taken)), connection.sides[1 - side].writer.take())
            }
        }
    }

    /// How many of `bytes` went off, at least one.
    pub fn poll_send(&mut self, id: u64, side: usize, bytes: &Bytes, waker: &Waker) -> Poll<io::Result<usize>> {
        let boots = self.net.boots;
        let Some(connection) = self.net.connections.get_mut(&id) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let [from, to] = {
            let [first, second] = &mut connection.sides;
            if side == 0 { [first, second] } else { [second, first] }
        };
        let due = |packet: &Packet| packet.at_ns <= self.now_ns && matches!(packet.content, Content::Reset);
        if from.is_reset || from.inbox.iter().any(due) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if from.is_shut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if to.is_shut || to.gone_at_boot.is_some_and(|boot| boots > boot) {
            // Nobody is there: the bytes go off, and a reset comes back.
            let at_ns = self.arrival(id);
            self.push(id, side, Content::Reset, at_ns);
            return Poll::Ready(Ok(bytes.len()));
        }
        let room = connection.window.saturating_sub(to.queued);
        if room == 0 {
            from.writer = Some(waker.clone());
            return Poll::Pending;
        }
        let most = room.min(bytes.len());
        let count = if self.dice.one_in(4) { 1 + self.dice.below(most as u64) as usize } else { most };
        to.queued += count;
        let is_lost = connection.is_silent || to.gone_at_boot.is_some();
        connection.carried += count as u64;
        let mut stall_ns = 0;
        let mut reset = false;
        while let Some(fault) = connection.faults.pop_if(|fault| fault.after_bytes <= connection.carried) {
            self.net.struck += 1;
            match fault.kind {
                NetworkFaultKind::StallMs(ms) => stall_ns += ms * 1_000_000,
                NetworkFaultKind::Silence => connection.is_silent = true,
                NetworkFaultKind::Reset => reset = true,
                NetworkFaultKind::NoAnswer => {}
            }
        }
        let at_ns = self.arrival(id) + stall_ns;
        if !is_lost {
            self.push(id, 1 - side, Content::Bytes(bytes.slice(..count)), at_ns);
        }
        if reset {
            self.reset(id);
        }
        Poll::Ready(Ok(count))
    }

    /// Both ends hear of it after what arrives before; the rest is lost.
    fn reset(&mut self, id: u64) {
        let at_ns = self.now_ns + self.dice.below(1_000_000);
        self.note("reset", [id, 0], || format!("connection {id}"));
        for side in 0..2 {
            let Some(connection) = self.net.connections.get_mut(&id) else { return };
            connection.is_silent = true;
            let to = &mut connection.sides[side];
            to.inbox.retain(|packet| packet.at_ns <= at_ns);
            if let Some(writer) = to.writer.take() {
                self.timer(at_ns, writer);
            }
            if let Some(connection) = self.net.connections.get_mut(&id)
                && let Some(reader) = connection.sides[side].reader.take()
            {
                self.timer(at_ns, reader);
            }
            self.push(id, side, Content::Reset, at_ns);
        }
    }

    /// Shuts both directions from `side`: its own waits end, the other side hears of the end.
    pub fn shut(&mut self, id: u64, side: usize) -> Vec<Waker> {
        let Some(connection) = self.net.connections.get_mut(&id) else { return Vec::new() };
        let is_silent = connection.is_silent;
        let [from, to] = {
            let [first, second] = &mut connection.sides;
            if side == 0 { [first, second] } else { [second, first] }
        };
        if std::mem::replace(&mut from.is_shut, true) {
            return Vec::new();
        }
        let mut wakers: Vec<Waker> = from.reader.take().into_iter().chain(from.writer.take()).collect();
        // A writer to a side that is shut goes on into nothing.
        wakers.extend(to.writer.take());
        if !is_silent {
            let at_ns = self.arrival(id);
            self.push(id, 1 - side, Content::End, at_ns);
        }
        wakers
    }

    /// The socket is closed. With unread bytes, or `harshly`, the other side hears of a reset.
    pub fn leave(&mut self, id: u64, side: usize, harshly: bool) -> Vec<Waker> {
        let now_ns = self.now_ns;
        let Some(connection) = self.net.connections.get(&id) else { return Vec::new() };
        // A machine without power says nothing more.
        if connection.sides[side].gone_at_boot.is_some() {
            return Vec::new();
        }
        let unread = |packet: &Packet| packet.at_ns <= now_ns && matches!(packet.content, Content::Bytes(_));
        let harshly = harshly || connection.sides[side].inbox.iter().any(unread);
        let is_silent = connection.is_silent;
        let wakers = self.shut(id, side);
        if harshly && !is_silent {
            let at_ns = self.arrival(id);
            self.push(id, 1 - side, Content::Reset, at_ns);
        }
        let Some(connection) = self.net.connections.get_mut(&id) else { return wakers };
        connection.sides[side].process = 0;
        connection.sides[side].inbox.clear();
        if connection.sides.iter().all(|one| one.process == 0) {
            self.net.connections.remove(&id);
        }
        wakers
    }

    /// A process has ended: its listeners close, its sockets too, or they are there no more.
    pub fn process_left_network(&mut self, process: u64, how: Death) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let own = self.net.connections.iter().flat_map(|(id, connection)| {
            let sides = connection.sides.iter().enumerate();
            sides.filter(|(_, side)| side.process == process).map(|(side, _)| (*id, side))
        });
        let own: Vec<(u64, usize)> = own.collect();
        for (id, side) in own {
            if how == Death::Killed {
                let harshly = self.dice.one_in(2);
                wakers.extend(self.leave(id, side, harshly));
            } else if let Some(connection) = self.net.connections.get_mut(&id) {
                connection.sides[side].gone_at_boot = Some(self.net.boots);
                connection.sides[side].process = 0;
            }
        }
        self.net.connections.retain(|_, connection| connection.sides.iter().any(|side| side.process != 0));
        let listeners: Vec<u64> =
            self.net.listeners.values().filter(|l| l.process == process).map(|listener| listener.id).collect();
        for id in listeners {
            wakers.extend(self.stop_listening(id));
        }
        wakers
    }
}

impl Net {
    fn listener(&mut self, id: u64) -> Option<&mut Listener> {
        self.listeners.values_mut().find(|listener| listener.id == id)
    }

    /// Living sides whose last bytes went to a machine that is gone.
    fn half_open(&self) -> impl Iterator<Item = (u64, usize)> {
        self.connections.iter().flat_map(|(id, connection)| {
            let waits = |side: &usize| {
                let other = &connection.sides[1 - side];
                connection.sides[*side].process != 0 && other.gone_at_boot.is_some() && other.queued > 0
            };
            (0..2).filter(waits).map(|side| (*id, side))
        })
    }
}
