//! The owner's side of a Fetch that waits: news of any of its partitions, the deadline, or being called off.
//!
//! A wait of a fetch session that ended without news is kept, with its subscriptions, for the session's next request:
//! an idle consumer's long poll then costs the same however many partitions it reads. What is kept is owned by a task
//! each, bounded by [`SESSION_PARTITIONS_PER_SHARD`] partitions a shard and swept when nobody came back for
//! [`KEPT_AWAIT_MS`]. A new view (topics, leader epochs) ends all that is kept: the next request looks anew.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use model::{Offset, PartitionKey};
use replica::Replica;
use runtime::sync::Subscription;
use runtime::{Notify, Responder, clock, sync};

use super::Shard;
use crate::limits::{KEPT_AWAIT_MS, SESSION_PARTITIONS_PER_SHARD};
use crate::mail::{AwaitMail, FetchWait, ShardReply, ShardRequest};

/// One wait, running or kept.
pub(super) struct Await {
    /// Partitions pass their events on to it.
    news: Rc<Notify>,
    /// Version of `news` before which nothing was new.
    armed: Cell<u64>,
    partitions: usize,
    /// Of the view that it was begun under.
    view: u64,
    is_waiting: Cell<bool>,
    last_used_ms: Cell<i64>,
    is_over: Cell<bool>,
    over: Notify,
}

impl Await {
    fn end(&self) {
        self.is_over.set(true);
        self.over.notify();
        self.news.notify();
    }

    /// It was called off, or nobody comes back for it.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    async fn ended(&self) {
        loop {
            let seen = self.over.version();
            if self.is_over.get() {
                return;
            }
            self.over.changed_since(seen).await;
        }
    }
}

/// A shard's waits, by ticket.
#[derive(Default)]
pub(crate) struct Awaits {
    running: RefCell<BTreeMap<u64, Rc<Await>>>,
    /// Partitions of those that are kept.
    kept: Cell<usize>,
    view: Cell<u64>,
}

impl Awaits {
    pub(crate) fn cancel(&self, ticket: u64) {
        let cancelled = self.running.borrow_mut().remove(&ticket);
        if let Some(cancelled) = cancelled {
            cancelled.end();
        }
    }

    /// How many wait, apart from those that are kept.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.running.borrow().values().filter(|one| one.is_waiting.get()).count()
    }

    fn end_kept(&self, which: impl Fn(&Await) -> bool) {
        let tickets: Vec<u64> = {
            let running = self.running.borrow();
            running.iter().filter(|(_, one)| !one.is_waiting.get() && which(one)).map(|(&ticket, _)| ticket).collect()
        };
        tickets.into_iter().for_each(|ticket| self.cancel(ticket));
    }

    /// Ends what nobody came back for; every second or so.
    pub(crate) fn sweep(&self, now_ms: i64) {
        self.end_kept(|one| now_ms - one.last_used_ms.get() > KEPT_AWAIT_MS);
    }

    /// Topics or leader epochs changed: whoever comes back has to look.
    pub(crate) fn view_changed(&self) {
        self.view.set(self.view.get() + 1);
        self.end_kept(|_| true);
    }

    pub(super) fn begin(&self, ticket: u64, partitions: usize) -> Rc<Await> {
        let one = Rc::new(Await {
            news: Rc::new(Notify::new()),
            armed: Cell::new(0),
            partitions,
            view: self.view.get(),
            is_waiting: Cell::new(true),
            last_used_ms: Cell::new(clock::now_ms()),
            is_over: Cell::new(false),
            over: Notify::new(),
        });
        self.running.borrow_mut().insert(ticket, one.clone());
        one
    }

    /// One that is kept and has no news.
    fn resume(&self, ticket: u64) -> Option<Rc<Await>> {
        let one = self.running.borrow().get(&ticket).cloned()?;
        let quiet = !one.is_over.get() && one.view == self.view.get() && one.news.version() == one.armed.get();
        if !quiet || one.is_waiting.replace(true) {
            self.cancel(ticket);
            return None;
        }
        Some(one)
    }

    /// After a deadline without news: whether it stays for the next request. Where it does, [`Awaits::until_taken_back`] is
    /// to follow.
    pub(super) fn keep(&self, one: &Await) -> bool {
        let has_room = self.kept.get() + one.partitions <= SESSION_PARTITIONS_PER_SHARD;
        self.keep_again(one) && has_room
    }

    /// The same of one that was kept before.
    fn keep_again(&self, one: &Await) -> bool {
        let stays = !one.is_over.get() && one.view == self.view.get();
        one.is_waiting.set(false);
        one.last_used_ms.set(clock::now_ms());
        stays
    }

    /// Counts what is kept until nobody comes back for it any more.
    pub(super) async fn until_taken_back(&self, one: &Await) {
        self.kept.set(self.kept.get() + one.partitions);
        one.ended().await;
        self.kept.set(self.kept.get() - one.partitions);
    }
}

/// Partitions that a wait watches, each from an offset on.
pub(super) type Watched = Vec<(Rc<Replica>, Offset)>;

/// Resolves to whether there is news, or the wait was called off, before the deadline. The subscriptions are as of its end.
pub(super) async fn news<'a>(
    one: &Await,
    watched: &'a Watched,
    deadline_ms: i64,
    subscriptions: &mut Vec<Subscription<'a>>,
) -> bool {
    loop {
        one.armed.set(one.news.version());
        if one.is_over() || watched.iter().any(|(replica, offset)| replica.has_news_for(*offset)) {
            return true;
        }
        let subscribe = |(replica, _): &'a (Rc<Replica>, Offset)| replica.log().durable_advanced().subscribe(&one.news);
        *subscriptions = watched.iter().map(subscribe).collect();
        if sync::before(deadline_ms, one.news.changed_since(one.armed.get())).await.is_none() {
            return false;
        }
    }
}

impl Shard {
    pub(super) fn on_await(self: Rc<Self>, mail: AwaitMail, responder: Responder<ShardRequest, ShardReply>) {
        let wait = mail.wait;
        if mail.parts.is_empty() {
            return self.on_await_again(wait, responder);
        }
        let one = self.awaits.begin(wait.ticket, mail.parts.len());
        runtime::spawn("await news", async move {
            let watched = self.watched(mail.parts.iter().copied()).await;
            let mut subscriptions = Vec::new();
            let found = news(&one, &watched, wait.deadline_ms, &mut subscriptions).await;
            // One that cannot be opened has an error to tell, which no event announces.
            let kept = !found && wait.keep && watched.len() == mail.parts.len() && self.awaits.keep(&one);
            responder.send(ShardReply::Awaited { news: found, kept });
            if kept {
                self.awaits.until_taken_back(&one).await;
            }
            drop(subscriptions);
            self.awaits.cancel(wait.ticket);
        });
    }

    /// Those that can be opened.
    pub(super) async fn watched(self: &Rc<Self>, parts: impl Iterator<Item = (PartitionKey, Offset)>) -> Watched {
        let mut watched = Vec::with_capacity(parts.size_hint().0);
        for (key, offset) in parts {
            if let Ok(replica) = self.partition(key).await {
                watched.push((replica, offset));
            }
        }
        watched
    }

    fn on_await_again(self: Rc<Self>, wait: FetchWait, responder: Responder<ShardRequest, ShardReply>) {
        let Some(one) = self.awaits.resume(wait.ticket) else {
            return responder.send(ShardReply::Awaited { news: true, kept: false });
        };
        runtime::spawn("await news again", async move {
            let news = sync::before(wait.deadline_ms, one.news.changed_since(one.armed.get())).await.is_some();
            let kept = !news && self.awaits.keep_again(&one);
            if !kept {
                self.awaits.cancel(wait.ticket);
            }
            responder.send(ShardReply::Awaited { news, kept });
        });
    }
}

#[cfg(test)]
#[path = "awaits_tests.rs"]
mod tests;
