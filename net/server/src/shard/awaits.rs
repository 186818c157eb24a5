//! The owner's side of a Fetch that waits: news of any of its partitions, the deadline, or being called off.
//!
//! A wait of a fetch session that ended without news is kept, with its subscriptions, for the session's next request:
//! an idle consumer's long poll then costs the same however many partitions it reads. What is kept is owned by a task
//! each, bounded by [`SESSION_PARTITIONS_PER_SHARD`] partitions a shard and swept when nobody came back for
//! [`KEPT_AWAIT_MS`]. A new view (topics, leader epochs) ends all that is kept: the next request looks anew.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use runtime::{Notify, Responder, clock, sync};

use super::Shard;
use crate::limits::{KEPT_AWAIT_MS, SESSION_PARTITIONS_PER_SHARD};
use crate::mail::{AwaitMail, ShardReply, ShardRequest};

/// One wait, running or kept.
struct Await {
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

    fn begin(&self, mail: &AwaitMail) -> Rc<Await> {
        let one = Rc::new(Await {
            news: Rc::new(Notify::new()),
            armed: Cell::new(0),
            partitions: mail.parts.len(),
            view: self.view.get(),
            is_waiting: Cell::new(true),
            last_used_ms: Cell::new(clock::now_ms()),
            is_over: Cell::new(false),
            over: Notify::new(),
        });
        self.running.borrow_mut().insert(mail.ticket, one.clone());
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

    /// After a deadline without news: whether it stays for the next request.
    fn keep(&self, one: &Await) -> bool {
        let stays = !one.is_over.get() && one.view == self.view.get();
        one.is_waiting.set(false);
        one.last_used_ms.set(clock::now_ms());
        stays
    }
}

impl Shard {
    pub(super) fn on_await(self: Rc<Self>, mail: AwaitMail, responder: Responder<ShardRequest, ShardReply>) {
        if mail.parts.is_empty() {
            return self.on_await_again(&mail, responder);
        }
        let one = self.awaits.begin(&mail);
        runtime::spawn("await news", async move {
            let mut replicas = Vec::with_capacity(mail.parts.len());
            for &(key, offset) in &mail.parts {
                if let Ok(replica) = self.partition(key).await {
                    replicas.push((replica, offset));
                }
            }
            // One that cannot be opened has an error to tell, which no event announces.
            let keep = mail.keep && replicas.len() == mail.parts.len();
            let mut subscriptions = Vec::new();
            let found = loop {
                one.armed.set(one.news.version());
                if one.is_over.get() || replicas.iter().any(|(replica, offset)| replica.has_news_for(*offset)) {
                    break true;
                }
                subscriptions = (replicas.iter())
                    .map(|(replica, _)| replica.log().durable_advanced().subscribe(&one.news))
                    .collect();
                if sync::before(mail.deadline_ms, one.news.changed_since(one.armed.get())).await.is_none() {
                    break false;
                }
            };
            let room = self.awaits.kept.get() + one.partitions <= SESSION_PARTITIONS_PER_SHARD;
            let kept = !found && keep && room && self.awaits.keep(&one);
            responder.send(ShardReply::Awaited { news: found, kept });
            if kept {
                self.awaits.kept.set(self.awaits.kept.get() + one.partitions);
                one.ended().await;
                self.awaits.kept.set(self.awaits.kept.get() - one.partitions);
            }
            drop(subscriptions);
            self.awaits.cancel(mail.ticket);
        });
    }

    fn on_await_again(self: Rc<Self>, mail: &AwaitMail, responder: Responder<ShardRequest, ShardReply>) {
        let Some(one) = self.awaits.resume(mail.ticket) else {
            return responder.send(ShardReply::Awaited { news: true, kept: false });
        };
        let (ticket, deadline_ms) = (mail.ticket, mail.deadline_ms);
        runtime::spawn("await news again", async move {
            let news = sync::before(deadline_ms, one.news.changed_since(one.armed.get())).await.is_some();
            let kept = !news && self.awaits.keep(&one);
            if !kept {
                self.awaits.cancel(ticket);
            }
            responder.send(ShardReply::Awaited { news, kept });
        });
    }
}

#[cfg(test)]
#[path = "awaits_tests.rs"]
mod tests;
