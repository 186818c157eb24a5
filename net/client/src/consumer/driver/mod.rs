//! What moves the consumer's bytes and keeps its time. All state is here, behind `RefCell`s that are never borrowed over
//! an await; the cores decide, this asks.
//!
//! Tasks on the shard: one per Fetch under way (one per node at most), one per lookup or group request under way, one that
//! sends commits, one that sends heartbeats. They hold `Rc<Inner>` and end once it is closed. Partitions change hands only
//! inside of the program's own poll.

mod committing;
mod fetching;
mod listing;
mod membership;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use runtime::clock::now_ms;
use runtime::sync::before;
use runtime::{Notify, spawn};

use super::assignor::PartitionCounts;
use super::commit::CommitState;
use super::config::ConsumerConfig;
use super::fetcher::{Fetcher, PartitionBatches};
use super::group::GroupCore;
use super::{RebalanceListener, limits};
use crate::{Client, ClientError, ConsumerRecord, TopicPartition};

/// Where the partitions come from.
pub(super) enum Source {
    None,
    /// The program named them.
    Assigned,
    Topics(BTreeSet<Rc<str>>),
    /// Every topic whose name it says yes to; what it said yes to last.
    Filter {
        wants: Rc<dyn Fn(&str) -> bool>,
        topics: BTreeSet<Rc<str>>,
        refresh_at_ms: i64,
        is_refreshing: bool,
    },
}

impl Source {
    fn topics(&self) -> Option<&BTreeSet<Rc<str>>> {
        match self {
            Source::Topics(topics) | Source::Filter { topics, .. } => Some(topics),
            Source::None | Source::Assigned => None,
        }
    }
}

pub(super) struct Inner {
    pub client: Client,
    pub config: ConsumerConfig,
    pub fetcher: RefCell<Fetcher>,
    pub group: RefCell<GroupCore>,
    pub source: RefCell<Source>,
    pub listener: RefCell<Option<Box<dyn RebalanceListener>>>,
    pub commits: RefCell<CommitState>,
    /// Topics that the last JoinGroup named.
    joined_topics: RefCell<BTreeSet<Rc<str>>>,
    /// What the leader (if we are it) spread last.
    spread: RefCell<Option<PartitionCounts>>,
    /// The cluster's version that `spread` was last compared with.
    spread_seen: Cell<u64>,
    /// Told whenever a poll may have more to do.
    wake: Rc<Notify>,
    /// Told at the end alone: heartbeats need not be woken by every answer.
    ended: Notify,
    is_closed: Cell<bool>,
    has_heartbeats: Cell<bool>,
}

impl Inner {
    pub fn new(client: Client, config: ConsumerConfig) -> Rc<Inner> {
        let backoff_ms = client.config().retry_backoff_ms;
        Rc::new(Inner {
            fetcher: RefCell::new(Fetcher::new(config.clone(), backoff_ms)),
            group: RefCell::new(GroupCore::new(&config, backoff_ms)),
            source: RefCell::new(Source::None),
            listener: RefCell::new(None),
            commits: RefCell::new(CommitState::new(config.auto_commit_interval_ms, now_ms())),
            joined_topics: RefCell::new(BTreeSet::new()),
            spread: RefCell::new(None),
            spread_seen: Cell::new(0),
            wake: Rc::new(Notify::new()),
            ended: Notify::new(),
            is_closed: Cell::new(false),
            has_heartbeats: Cell::new(false),
            client,
            config,
        })
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Nothing new is begun from here on; tasks end as their answers come.
    pub fn shut(&self) {
        self.is_closed.set(true);
        self.ended.notify();
        self.wake.notify();
    }

    pub fn wake(&self) {
        self.wake.notify();
    }

    pub fn group_id(&self) -> Result<&str, ClientError> {
        self.config.group_id.as_deref().ok_or_else(|| ClientError::BadConfig {
            key: "group_id",
            reason: "is not set, and this needs a group".to_string(),
        })
    }

    pub fn backoff_until_ms(&self) -> i64 {
        now_ms() + self.client.config().retry_backoff_ms
    }

    /// Everything that is due, without waiting for answers, except for commits before partitions go.
    pub async fn advance(self: &Rc<Inner>) -> Result<(), ClientError> {
        if self.is_closed() {
            return Err(ClientError::Closed);
        }
        self.group.borrow_mut().polled(now_ms());
        self.commit_if_due();
        self.follow_topics();
        self.advance_membership().await?;
        self.look_up();
        self.pump();
        match self.fetcher.borrow_mut().take_fault() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Advances until `found` has something or the time is over.
    async fn poll_until<T>(
        self: &Rc<Inner>,
        timeout_ms: i64,
        mut found: impl FnMut(&Inner) -> Option<T>,
    ) -> Result<Option<T>, ClientError> {
        let deadline_ms = now_ms().saturating_add(timeout_ms.max(0));
        loop {
            let seen = self.wake.version();
            let client_changes = self.client.changed().clone();
            let _chained = client_changes.subscribe(&self.wake);
            self.advance().await?;
            if let Some(found) = found(self) {
                return Ok(Some(found));
            }
            let now = now_ms();
            if now >= deadline_ms {
                return Ok(None);
            }
            let nap_until_ms = deadline_ms.min(self.next_time_ms(now));
            let _ = before(nap_until_ms, self.wake.changed_since(seen)).await;
        }
    }

    fn next_time_ms(&self, now: i64) -> i64 {
        let mut next = now + limits::MAX_NAP_MS;
        next = next.min(self.fetcher.borrow().next_retry_ms(now).unwrap_or(next));
        next = next.min(self.group.borrow().next_time_ms(now).unwrap_or(next));
        if self.config.commits_automatically() && !self.group.borrow().is_rebalancing() {
            next = next.min(self.commits.borrow().next_auto_ms());
        }
        next.max(now + 1)
    }

    pub async fn poll(self: &Rc<Inner>, timeout_ms: i64) -> Result<Vec<ConsumerRecord>, ClientError> {
        let max = self.config.max_poll_records;
        let records = self
            .poll_until(timeout_ms, |inner| {
                let records = inner.fetcher.borrow_mut().take_records(max, now_ms());
                (!records.is_empty()).then_some(records)
            })
            .await?;
        // What was taken made room: the next answer is asked for while the program works.
        self.pump();
        Ok(records.unwrap_or_default())
    }

    pub async fn poll_batches(self: &Rc<Inner>, timeout_ms: i64) -> Result<Vec<PartitionBatches>, ClientError> {
        let batches = self
            .poll_until(timeout_ms, |inner| {
                let batches = inner.fetcher.borrow_mut().take_batches(now_ms());
                (!batches.is_empty()).then_some(batches)
            })
            .await?;
        self.pump();
        Ok(batches.unwrap_or_default())
    }

    /// Where reading of a partition stands, waiting until that is known.
    pub async fn position(self: &Rc<Inner>, partition: &TopicPartition) -> Result<i64, ClientError> {
        let after_ms = self.client.config().default_api_timeout_ms;
        let found = self.poll_until(after_ms, |inner| {
            let fetcher = inner.fetcher.borrow();
            match fetcher.positions.get(partition) {
                Some(assigned) => (assigned.offset >= 0 && assigned.is_settled()).then_some(Ok(assigned.offset)),
                None => Some(Err(super::not_assigned(partition))),
            }
        });
        found.await?.unwrap_or(Err(ClientError::TimedOut { what: "finding a position", after_ms }))
    }

    /// Partitions of `topics` by what is known now.
    fn counts(&self, topics: &BTreeSet<Rc<str>>) -> PartitionCounts {
        let cluster = self.client.cluster();
        let count =
            |topic: &Rc<str>| Some((topic.clone(), i32::try_from(cluster.topic(topic)?.partitions.len()).ok()?));
        topics.iter().filter_map(count).collect()
    }

    /// Rejoins when what members agreed on is no longer so: the topics wanted, or (for the leader) their partitions.
    fn follow_topics(self: &Rc<Inner>) {
        self.refresh_filter();
        if !self.group.borrow().is_stable() {
            return;
        }
        let is_same = self.source.borrow().topics() == Some(&*self.joined_topics.borrow());
        let version = self.client.cluster().version;
        let is_new = self.spread_seen.replace(version) != version;
        let is_spread = match (&*self.spread.borrow(), is_new && self.group.borrow().is_leader()) {
            (Some(spread), true) => {
                let now = self.counts(&spread.keys().cloned().collect());
                now.iter().all(|(topic, count)| spread.get(topic) == Some(count))
            }
            _ => true,
        };
        if !is_same || !is_spread {
            self.group.borrow_mut().want_rejoin();
        }
    }

    fn refresh_filter(self: &Rc<Inner>) {
        let mut source = self.source.borrow_mut();
        let Source::Filter { refresh_at_ms, is_refreshing, .. } = &mut *source else { return };
        if *is_refreshing || *refresh_at_ms > now_ms() {
            return;
        }
        *is_refreshing = true;
        drop(source);
        let inner = self.clone();
        spawn("consumer-topics", async move {
            let all = inner.client.refresh_all().await;
            let found = all.map(|cluster| {
                cluster.topics.values().filter(|topic| !topic.is_internal).map(|topic| topic.name.clone()).collect()
            });
            inner.take_filtered(found.ok());
            inner.wake();
        });
    }

    fn take_filtered(&self, found: Option<Vec<Rc<str>>>) {
        if let Source::Filter { wants, topics, refresh_at_ms, is_refreshing } = &mut *self.source.borrow_mut() {
            *is_refreshing = false;
            let config = self.client.config();
            *refresh_at_ms = now_ms() + config.metadata_max_age_ms;
            match found {
                Some(all) => {
                    *topics =
                        all.into_iter().filter(|topic| wants(topic)).take(limits::MAX_SUBSCRIBED_TOPICS).collect();
                    let names: Vec<&str> = topics.iter().map(|topic| &**topic).collect();
                    self.client.watch_topics(&names);
                    if !self.group.borrow().is_member() {
                        self.group.borrow_mut().enter(now_ms());
                    }
                }
                None => *refresh_at_ms = now_ms() + config.retry_backoff_max_ms,
            }
        }
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
