//! The cross-shard mailbox: typed requests and answers between shards.
//!
//! One bounded inbox per shard. A shard collects what it has for another in an outbox and sends it as one vector, since
//! the hop (a foreign wake) costs far more than a message. Answers come back through the caller's own inbox by token,
//! so a call costs one hop each way. A call to the own shard runs the handler at once, without a hop.
//!
//! The receiving task is woken by the sender itself, after the vector lies in the channel and the channel is unlocked: a
//! channel that wakes while it is locked has the receiver, on another core, wait for that lock at once.
//!
//! Bound: outboxes hold no more than what callers have outstanding, which connections bound by bytes in flight; inboxes
//! hold [`INBOX_VECTORS`] vectors, beyond which the sender's flush task waits while everything else goes on. Inboxes are
//! drained whatever outboxes do, so two full inboxes cannot block each other.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Poll, Waker};

use crate::limits::{INBOX_TURN, INBOX_VECTORS, MAILBOX_BATCH};
use crate::sync::{Notify, OneshotSender, oneshot};
use crate::task;

enum Envelope<Q, R> {
    Request { from: usize, token: u64, request: Q },
    Tell { request: Q },
    Answer { token: u64, answer: Option<R> },
}

type Vector<Q, R> = Vec<Envelope<Q, R>>;
/// A shard's inbox until that shard takes it.
type Untaken<Q, R> = Mutex<Option<flume::Receiver<Vector<Q, R>>>>;

/// All inboxes of a process; made before the shards start and shared by them.
pub struct Mailboxes<Q: 'static, R: 'static> {
    senders: Vec<flume::Sender<Vector<Q, R>>>,
    receivers: Vec<Untaken<Q, R>>,
    /// Of the tasks that receive, once they have run.
    wakers: Vec<OnceLock<Waker>>,
}

impl<Q, R> std::fmt::Debug for Mailboxes<Q, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mailboxes({})", self.senders.len())
    }
}

impl<Q, R> Mailboxes<Q, R> {
    pub fn new(shards: usize) -> Arc<Mailboxes<Q, R>> {
        let (senders, receivers) =
            (0..shards).map(|_| flume::bounded(INBOX_VECTORS)).map(|(s, r)| (s, Mutex::new(Some(r)))).unzip();
        let wakers = (0..shards).map(|_| OnceLock::new()).collect();
        Arc::new(Mailboxes { senders, receivers, wakers })
    }

    /// Something lies in the shard's inbox. Before its task has run for the first time it looks by itself.
    fn ring(&self, to: usize) {
        if let Some(waker) = self.wakers[to].get() {
            waker.wake_by_ref();
        }
    }
}

/// One shard's post office.
pub struct Post<Q: 'static, R: 'static> {
    index: usize,
    boxes: Arc<Mailboxes<Q, R>>,
    outboxes: Vec<RefCell<Vector<Q, R>>>,
    outgoing: Notify,
    pending: RefCell<Pending<R>>,
    handler: OnceCell<Handler<Q, R>>,
    hops: Cell<u64>,
}

type Handler<Q, R> = Box<dyn Fn(Q, Responder<Q, R>)>;

struct Pending<R> {
    slots: Vec<(u32, Option<OneshotSender<R>>)>,
    free: Vec<u32>,
}

impl<R> Pending<R> {
    fn insert(&mut self, sender: OneshotSender<R>) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(sender);
        u64::from(slot.0) << 32 | u64::from(index)
    }

    fn take(&mut self, token: u64) -> Option<OneshotSender<R>> {
        let index = token as u32;
        let slot = self.slots.get_mut(index as usize)?;
        if slot.0 != (token >> 32) as u32 {
            return None;
        }
        let sender = slot.1.take()?;
        slot.0 = slot.0.wrapping_add(1);
        self.free.push(index);
        Some(sender)
    }
}

/// Where an answer goes. Dropping it unsent tells the caller that no answer will come.
pub struct Responder<Q: 'static, R: 'static> {
    post: Rc<Post<Q, R>>,
    to: usize,
    token: Option<u64>,
}

impl<Q, R> Responder<Q, R> {
    pub fn send(mut self, answer: R) {
        if let Some(token) = self.token.take() {
            self.post.answer(self.to, token, Some(answer));
        }
    }
}

impl<Q, R> Drop for Responder<Q, R> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            self.post.answer(self.to, token, None);
        }
    }
}

impl<Q, R> std::fmt::Debug for Responder<Q, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Responder(to shard {})", self.to)
    }
}

impl<Q, R> std::fmt::Debug for Post<Q, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Post(shard {})", self.index)
    }
}

impl<Q: Send + 'static, R: Send + 'static> Post<Q, R> {
    /// The post office of shard `index`; call once for each shard, on that shard, then [`Post::serve`].
    pub fn new(boxes: Arc<Mailboxes<Q, R>>, index: usize) -> Rc<Post<Q, R>> {
        let outboxes = boxes.senders.iter().map(|_| RefCell::new(Vec::new())).collect();
        Rc::new(Post {
            index,
            boxes,
            outboxes,
            outgoing: Notify::new(),
            pending: RefCell::new(Pending { slots: Vec::new(), free: Vec::new() }),
            handler: OnceCell::new(),
            hops: Cell::new(0),
        })
    }

    /// Sets the handler and starts receiving and sending. The handler must not block; it spawns what takes time.
    pub fn serve(self: &Rc<Self>, handler: impl Fn(Q, Responder<Q, R>) + 'static) {
        let first = self.handler.set(Box::new(handler)).is_ok();
        assert!(first, "a post office is served once");
        let receiver = self.boxes.receivers[self.index]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take()
            .expect("each shard takes its own inbox, once");
        task::spawn("mailbox inbox", self.clone().receive(receiver));
        task::spawn("mailbox outbox", self.clone().flush());
    }

    pub fn shards(&self) -> usize {
        self.outboxes.len()
    }

    pub fn index(&self) -> usize {
        self.index
    }

    /// Vectors sent to other shards so far.
    pub fn hops(&self) -> u64 {
        self.hops.get()
    }

    /// Asks a shard. `None`: it dropped the request without an answer (it is stopping).
    pub fn call(self: &Rc<Self>, to: usize, request: Q) -> impl Future<Output = Option<R>> + 'static + use<Q, R> {
        let (sender, receiver) = oneshot();
        let token = self.pending.borrow_mut().insert(sender);
        if to == self.index {
            self.handle(request, Responder { post: self.clone(), to, token: Some(token) });
        } else {
            self.put(to, Envelope::Request { from: self.index, token, request });
        }
        receiver
    }

    /// Tells a shard something that has no answer.
    pub fn tell(self: &Rc<Self>, to: usize, request: Q) {
        if to == self.index {
            self.handle(request, Responder { post: self.clone(), to, token: None });
        } else {
            self.put(to, Envelope::Tell { request });
        }
    }

    fn handle(&self, request: Q, responder: Responder<Q, R>) {
        match self.handler.get() {
            Some(handler) => handler(request, responder),
            None => drop(responder),
        }
    }

    async fn receive(self: Rc<Self>, receiver: flume::Receiver<Vector<Q, R>>) {
        let waker = &self.boxes.wakers[self.index];
        loop {
            let mut woken = false;
            // Whoever rings after the waker is there has this polled again, also while it runs.
            poll_fn(|cx| {
                waker.get_or_init(|| cx.waker().clone());
                if std::mem::replace(&mut woken, true) || !receiver.is_empty() {
                    return Poll::Ready(());
                }
                Poll::Pending
            })
            .await;
            for _ in 0..INBOX_TURN {
                match receiver.try_recv() {
                    Ok(vector) => self.deliver(vector),
                    Err(_) => break,
                }
            }
            task::yield_now().await;
        }
    }

    fn deliver(self: &Rc<Self>, vector: Vector<Q, R>) {
        for envelope in vector {
            match envelope {
                Envelope::Request { from, token, request } => {
                    self.handle(request, Responder { post: self.clone(), to: from, token: Some(token) });
                }
                Envelope::Tell { request } => {
                    self.handle(request, Responder { post: self.clone(), to: self.index, token: None });
                }
                Envelope::Answer { token, answer } => self.settle(token, answer),
            }
        }
    }

    async fn flush(self: Rc<Self>) {
        let mut seen = 0;
        loop {
            self.outgoing.changed_since(seen).await;
            seen = self.outgoing.version();
            for (to, outbox) in self.outboxes.iter().enumerate() {
                loop {
                    let vector: Vector<Q, R> = {
                        let mut outbox = outbox.borrow_mut();
                        let count = outbox.len().min(MAILBOX_BATCH);
                        outbox.drain(..count).collect()
                    };
                    if vector.is_empty() {
                        break;
                    }
                    self.hops.set(self.hops.get() + 1);
                    let undelivered = match self.boxes.senders[to].try_send(vector) {
                        Ok(()) => {
                            self.boxes.ring(to);
                            continue;
                        }
                        Err(flume::TrySendError::Full(vector)) => {
                            let sent = self.boxes.senders[to].send_async(vector).await;
                            self.boxes.ring(to);
                            sent.err().map(|error| error.0)
                        }
                        Err(flume::TrySendError::Disconnected(vector)) => Some(vector),
                    };
                    self.give_up(undelivered.unwrap_or_default());
                }
            }
        }
    }
}

impl<Q, R> Post<Q, R> {
    /// The other shard has ended: nobody will answer.
    fn give_up(&self, vector: Vector<Q, R>) {
        for envelope in vector {
            if let Envelope::Request { token, .. } = envelope {
                self.settle(token, None);
            }
        }
    }

    fn put(&self, to: usize, envelope: Envelope<Q, R>) {
        self.outboxes[to].borrow_mut().push(envelope);
        self.outgoing.notify();
    }

    fn answer(&self, to: usize, token: u64, answer: Option<R>) {
        if to == self.index {
            self.settle(token, answer);
        } else {
            self.put(to, Envelope::Answer { token, answer });
        }
    }

    fn settle(&self, token: u64, answer: Option<R>) {
        let sender = self.pending.borrow_mut().take(token);
        if let (Some(sender), Some(answer)) = (sender, answer) {
            sender.send(answer);
        }
    }
}
