//! Moves one connection's bytes. The state is [`LinkCore`]'s; here are a task that connects and then reads, one that
//! writes, and one that keeps the deadlines. Each ends with the connection, and none of them holds anything but the
//! [`Link`], so that whoever owns it ends them all by [`Link::end`].
//!
//! A read or a write is never dropped midway: it is ended by shutting the socket down.

use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use runtime::sync::{OneshotReceiver, OneshotSender, before, oneshot};
use runtime::{Notify, Socket, TaskGroup, clock};
use wire::{ApiKey, Request};

use super::Address;
use super::core::{Deadline, LinkCore, Outcome, Phase};
use crate::ClientError;
use crate::limits::{ANSWER_GROWTH_BYTES, READ_BYTES};

/// How a connection is made.
#[derive(Clone, Debug)]
pub(crate) struct LinkSetup {
    pub address: Address,
    pub node: i32,
    pub client_id: String,
    /// Not before this time: the back-off after a failure.
    pub start_at_ms: i64,
    pub connect_timeout_ms: i64,
    pub negotiation_timeout_ms: i64,
}

#[derive(Debug)]
pub(crate) struct Link {
    core: RefCell<LinkCore<OneshotSender<Outcome>>>,
    setup: LinkSetup,
    socket: RefCell<Option<Rc<Socket>>>,
    /// There is something to write, or the end has come.
    writable: Notify,
    /// A deadline moved closer, or the end has come.
    rearm: Notify,
    /// When the task that keeps the deadlines looks next.
    armed_ms: Cell<i64>,
    /// Became ready or ended.
    phase_changed: Notify,
    /// The client's event for the same.
    changed: Rc<Notify>,
    ended_at_ms: Cell<i64>,
}

impl Link {
    /// Starts connecting in the background.
    pub fn start(setup: LinkSetup, changed: Rc<Notify>, tasks: &TaskGroup) -> Rc<Link> {
        let link = Rc::new(Link {
            core: RefCell::new(LinkCore::new(setup.node, &setup.client_id, setup.negotiation_timeout_ms)),
            setup,
            socket: RefCell::new(None),
            writable: Notify::new(),
            rearm: Notify::new(),
            armed_ms: Cell::new(i64::MAX),
            phase_changed: Notify::new(),
            changed,
            ended_at_ms: Cell::new(0),
        });
        runtime::spawn("connect to broker", connect(link.clone(), tasks.clone()));
        link
    }

    pub fn address(&self) -> &Address {
        &self.setup.address
    }

    pub fn is_ready(&self) -> bool {
        self.core.borrow().phase() == Phase::Ready
    }

    pub fn is_ended(&self) -> bool {
        self.core.borrow().phase() == Phase::Ended
    }

    pub fn has_room(&self) -> bool {
        self.core.borrow().has_room()
    }

    pub fn under_way(&self) -> usize {
        self.core.borrow().under_way()
    }

    pub fn was_ready(&self) -> bool {
        self.core.borrow().was_ready()
    }

    pub fn ended_at_ms(&self) -> i64 {
        self.ended_at_ms.get()
    }

    pub fn end_reason(&self) -> String {
        self.core.borrow().end_reason().to_string()
    }

    pub fn set_node(&self, node: i32) {
        self.core.borrow_mut().set_node(node);
    }

    pub fn version(&self, api: ApiKey, wanted: Option<&RangeInclusive<i16>>) -> Result<i16, ClientError> {
        self.core.borrow().version(api, wanted)
    }

    /// Resolves once the link is ready or has ended.
    pub async fn settled(&self) {
        loop {
            let seen = self.phase_changed.version();
            if self.is_ready() || self.is_ended() {
                return;
            }
            self.phase_changed.changed_since(seen).await;
        }
    }

    /// Puts a request on the wire behind those before. `answered` is false for a request that has no answer.
    pub fn send<R: Request>(
        &self,
        request: &R,
        wanted: Option<&RangeInclusive<i16>>,
        deadline: Deadline,
        answered: bool,
    ) -> Result<OneshotReceiver<Outcome>, ClientError> {
        let (waiter, receiver) = oneshot();
        {
            let mut core = self.core.borrow_mut();
            if answered {
                core.send(request, wanted, deadline, waiter)?;
            } else {
                core.send_unanswered(request, wanted, deadline, waiter)?;
            }
        }
        self.writable.notify();
        if deadline.at_ms < self.armed_ms.get() {
            self.rearm.notify();
        }
        Ok(receiver)
    }

    /// Gives the connection up.
    pub fn end(&self, reason: &str) {
        self.with_core(|core| core.end(reason));
    }

    /// Changes the state and tells everybody whom it concerns.
    fn with_core<V>(&self, change: impl FnOnce(&mut LinkCore<OneshotSender<Outcome>>) -> V) -> V {
        let (value, done, before, after, has_output) = {
            let mut core = self.core.borrow_mut();
            let before = core.phase();
            let value = change(&mut core);
            (value, core.take_done(), before, core.phase(), core.has_output())
        };
        for (waiter, outcome) in done {
            waiter.send(outcome);
        }
        if has_output {
            self.writable.notify();
        }
        if before != after {
            self.phase_moved(after);
        }
        value
    }

    fn phase_moved(&self, phase: Phase) {
        if phase == Phase::Ended {
            self.ended_at_ms.set(clock::now_ms());
            let socket = self.socket.borrow_mut().take();
            if let Some(socket) = socket {
                socket.shutdown();
            }
            self.writable.notify();
        }
        self.rearm.notify();
        if matches!(phase, Phase::Ready | Phase::Ended) {
            self.phase_changed.notify();
            self.changed.notify();
        }
    }
}

async fn connect(link: Rc<Link>, tasks: TaskGroup) {
    wait_for_start(&link).await;
    if link.is_ended() {
        return;
    }
    match reach(&link).await {
        Err(reason) => link.end(&reason),
        Ok(socket) if link.is_ended() => socket.shutdown(),
        Ok(socket) => {
            let socket = Rc::new(socket);
            link.socket.replace(Some(socket.clone()));
            // First: a task may run before `spawn` returns, and the one that reads may find the connection ended.
            link.with_core(|core| core.connected(clock::now_ms()));
            tasks.spawn("write to broker", write(link.clone(), socket.clone()));
            tasks.spawn("deadlines of a connection", keep_deadlines(link.clone()));
            tasks.spawn("read from broker", read(link.clone(), socket));
        }
    }
}

async fn wait_for_start(link: &Link) {
    while !link.is_ended() && clock::now_ms() < link.setup.start_at_ms {
        let seen = link.phase_changed.version();
        before(link.setup.start_at_ms, link.phase_changed.changed_since(seen)).await;
    }
}

/// Tries every address that the name has. One that does not answer must not use up the time of the next.
async fn reach(link: &Link) -> Result<Socket, String> {
    let addresses = link.setup.address.resolve().await?;
    let timeout = Duration::from_millis(link.setup.connect_timeout_ms.max(1) as u64);
    let mut reason = String::new();
    for address in addresses {
        if link.is_ended() {
            break;
        }
        match Socket::connect(address, timeout).await {
            Ok(socket) => return Ok(socket),
            Err(error) => reason = format!("{address}: {error}"),
        }
    }
    Err(reason)
}

async fn write(link: Rc<Link>, socket: Rc<Socket>) {
    while !link.is_ended() {
        let seen = link.writable.version();
        let output = link.core.borrow_mut().take_output();
        if output.is_empty() {
            link.writable.changed_since(seen).await;
            continue;
        }
        let count = output.iter().map(bytes::Bytes::len).sum();
        match socket.send_bytes(output).await {
            Ok(()) => link.with_core(|core| core.wrote(count)),
            Err(error) => link.end(&format!("writing failed: {error}")),
        }
    }
}

async fn read(link: Rc<Link>, socket: Rc<Socket>) {
    let mut buffer = BytesMut::new();
    let mut more = 0;
    while !link.is_ended() {
        let room = more.clamp(READ_BYTES, ANSWER_GROWTH_BYTES);
        match socket.read(&mut buffer, room).await {
            Ok(0) => link.end("it closed the connection"),
            Ok(_) => more = link.with_core(|core| core.received(&mut buffer, clock::now_ms())),
            Err(error) => link.end(&format!("reading failed: {error}")),
        }
    }
}

async fn keep_deadlines(link: Rc<Link>) {
    while !link.is_ended() {
        let seen = link.rearm.version();
        let next = link.core.borrow().next_deadline_ms();
        link.armed_ms.set(next.unwrap_or(i64::MAX));
        match next {
            None => link.rearm.changed_since(seen).await,
            Some(at_ms) if at_ms > clock::now_ms() => {
                before(at_ms, link.rearm.changed_since(seen)).await;
            }
            Some(_) => link.with_core(|core| core.expire(clock::now_ms())),
        }
    }
}
