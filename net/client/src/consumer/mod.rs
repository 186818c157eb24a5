//! # The consumer
//!
//! Pulls with fetch sessions from the partitions that the program assigns, or that its group gives it. The cores have no
//! I/O and no clock; `driver` moves their bytes.
//!
//! | file | noun |
//! |---|---|
//! | [`config`] | Kafka's settings |
//! | [`positions`] | where reading stands in each assigned partition, and what has to be asked about it |
//! | [`session`] | one fetch session with one node |
//! | [`fetcher`] | whom to ask for what, what lies read ahead, what the program gets next |
//! | [`batches`] | bytes to records |
//! | [`group`] | membership: which step is due, what an answer means |
//! | [`assignor`] | who reads what |
//! | [`commit`], [`offsets`] | requests and answers about offsets |
//! | `driver` | tasks, timers, answers |
//!
//! Bounds are in [`limits`]. The classic group protocol is spoken; that of KIP-848 is not.

pub mod assignor;
pub mod batches;
pub mod commit;
pub mod config;
mod driver;
pub mod fetcher;
pub mod fuzz_targets;
pub mod group;
pub mod limits;
pub mod offsets;
pub mod positions;
pub mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use runtime::clock::now_ms;

pub use assignor::AssignorKind;
pub use commit::{OffsetAndMetadata, Offsets};
pub use config::{AutoOffsetReset, ConsumerConfig, IsolationLevel};
use driver::{Inner, Source};
pub use fetcher::PartitionBatches;
pub use offsets::OffsetAndTimestamp;
use positions::ResetTo;

use crate::{Client, ClientError, ConsumerRecord, TopicPartition};

/// Told inside of `poll` (and `unsubscribe`, `close`) when partitions change hands. It may use the consumer meanwhile:
/// what it queues with `commit_async` is committed before the group goes on. A listener that holds a [`Consumer`] lives
/// until `close`.
pub trait RebalanceListener {
    /// They go, and are still ours: automatic commits of them are made.
    fn revoked(&mut self, partitions: &[TopicPartition]);

    /// They are ours from now on. Told after every rebalance, with what is new in it.
    fn assigned(&mut self, partitions: &[TopicPartition]);

    /// They are gone, and may be somebody else's already: committing them would be refused.
    fn lost(&mut self, partitions: &[TopicPartition]) {
        self.revoked(partitions);
    }
}

/// A handle; clones share one consumer. With the last one dropped its tasks end, and without `close` the group notices
/// that only after `session_timeout_ms`.
#[derive(Clone)]
pub struct Consumer {
    inner: Rc<Inner>,
    _guard: Rc<Guard>,
}

struct Guard(Rc<Inner>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.shut();
    }
}

impl std::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").field("group_id", &self.inner.config.group_id).finish_non_exhaustive()
    }
}

impl Consumer {
    /// Checks the configuration; asks for nothing yet. Members of one group need a [`Client`] each: a broker holds a
    /// JoinGroup back until the whole group has joined, and with it all that comes behind it on the connection.
    pub fn new(client: &Client, config: ConsumerConfig) -> Result<Consumer, ClientError> {
        config.validate()?;
        if !config.allow_auto_create_topics && client.config().allow_auto_create_topics {
            return Err(ClientError::BadConfig {
                key: "allow_auto_create_topics",
                reason: "is the client's to forbid, as all its metadata requests are shared: set it to false there"
                    .into(),
            });
        }
        let inner = Inner::new(client.clone(), config);
        Ok(Consumer { _guard: Rc::new(Guard(inner.clone())), inner })
    }

    fn check_open(&self) -> Result<(), ClientError> {
        if self.inner.is_closed() { Err(ClientError::Closed) } else { Ok(()) }
    }

    /// Reads these topics as a member of the group; a later call replaces the topics.
    pub fn subscribe(&self, topics: &[&str], listener: Option<Box<dyn RebalanceListener>>) -> Result<(), ClientError> {
        if topics.is_empty() || topics.len() > limits::MAX_SUBSCRIBED_TOPICS {
            let reason = format!("a subscription has 1 to {} topics", limits::MAX_SUBSCRIBED_TOPICS);
            return Err(ClientError::BadRequest { reason });
        }
        let names: BTreeSet<Rc<str>> = topics.iter().map(|topic| Rc::from(*topic)).collect();
        self.begin_subscription(Source::Topics(names), listener)?;
        self.inner.client.watch_topics(topics);
        self.inner.client.want_refresh();
        self.inner.group.borrow_mut().enter(now_ms());
        self.inner.wake();
        Ok(())
    }

    /// Reads every topic whose name `wants` says yes to (internal ones never). Topics that come and go are noticed every
    /// `metadata_max_age_ms`.
    pub fn subscribe_matching(
        &self,
        wants: impl Fn(&str) -> bool + 'static,
        listener: Option<Box<dyn RebalanceListener>>,
    ) -> Result<(), ClientError> {
        let source =
            Source::Filter { wants: Rc::new(wants), topics: BTreeSet::new(), refresh_at_ms: 0, is_refreshing: false };
        self.begin_subscription(source, listener)
    }

    fn begin_subscription(
        &self,
        source: Source,
        listener: Option<Box<dyn RebalanceListener>>,
    ) -> Result<(), ClientError> {
        self.check_open()?;
        self.inner.group_id()?;
        if matches!(*self.inner.source.borrow(), Source::Assigned) {
            let reason = "partitions were assigned by hand: `unsubscribe` first".to_string();
            return Err(ClientError::BadRequest { reason });
        }
        *self.inner.source.borrow_mut() = source;
        *self.inner.listener.borrow_mut() = listener;
        self.inner.keep_alive();
        Ok(())
    }

    /// Reads these partitions, without a group's say. Those that stay keep their position; what was read of the others is
    /// committed first, if that is automatic.
    pub fn assign(&self, partitions: Vec<TopicPartition>) -> Result<(), ClientError> {
        self.check_open()?;
        if matches!(*self.inner.source.borrow(), Source::Topics(_) | Source::Filter { .. }) {
            let reason = "topics are subscribed to: `unsubscribe` first".to_string();
            return Err(ClientError::BadRequest { reason });
        }
        if partitions.len() > limits::MAX_ASSIGNED_PARTITIONS {
            let reason = format!("at most {} partitions can be assigned", limits::MAX_ASSIGNED_PARTITIONS);
            return Err(ClientError::BadRequest { reason });
        }
        let topics: BTreeSet<&str> = partitions.iter().map(|partition| &*partition.topic).collect();
        self.inner.client.watch_topics(&topics.into_iter().collect::<Vec<_>>());
        self.inner.client.want_refresh();
        self.inner.commit_consumed();
        *self.inner.source.borrow_mut() = if partitions.is_empty() { Source::None } else { Source::Assigned };
        self.inner.fetcher.borrow_mut().assign(partitions);
        self.inner.wake();
        Ok(())
    }

    /// Lets go of everything: commits if that is automatic, tells the listener, leaves the group.
    pub async fn unsubscribe(&self) -> Result<(), ClientError> {
        self.check_open()?;
        self.inner.leave_group("the program unsubscribed").await;
        *self.inner.source.borrow_mut() = Source::None;
        *self.inner.listener.borrow_mut() = None;
        self.inner.fetcher.borrow_mut().assign([]);
        Ok(())
    }

    /// Records, at most `max_poll_records`; none when none came within `timeout_ms`. Group membership goes on only in
    /// here, so it has to be called at least every `max_poll_interval_ms`. An error about one partition leaves the others
    /// be: the next call goes on with them. Dropping the future loses no record.
    pub async fn poll(&self, timeout_ms: i64) -> Result<Vec<ConsumerRecord>, ClientError> {
        self.begin().await?;
        self.inner.poll(timeout_ms).await
    }

    /// The same for load tools: whole fetched data, counted by the batches' headers, with nothing inflated.
    pub async fn poll_batches(&self, timeout_ms: i64) -> Result<Vec<PartitionBatches>, ClientError> {
        self.begin().await?;
        self.inner.poll_batches(timeout_ms).await
    }

    /// Others get a turn first, whatever comes of the call: a loop over `poll(0)`, or over its errors, must not keep the
    /// shard to itself. Nothing is taken yet.
    async fn begin(&self) -> Result<(), ClientError> {
        runtime::task::yield_now().await;
        self.check_source()
    }

    fn check_source(&self) -> Result<(), ClientError> {
        self.check_open()?;
        if matches!(*self.inner.source.borrow(), Source::None) {
            let reason = "nothing is subscribed to or assigned".to_string();
            return Err(ClientError::BadRequest { reason });
        }
        Ok(())
    }

    /// The next record to come is the one at `offset` or the first behind it.
    pub fn seek(&self, partition: &TopicPartition, offset: i64) -> Result<(), ClientError> {
        if offset < 0 {
            let reason = format!("{offset} is no offset to seek to");
            return Err(ClientError::BadRequest { reason });
        }
        let is_assigned = self.inner.fetcher.borrow_mut().positions.seek(partition, offset, -1);
        self.jumped(is_assigned, partition)
    }

    /// The same to what was committed; with a leader epoch it is checked that the log still holds what was read.
    pub fn seek_to_committed(&self, partition: &TopicPartition, to: &OffsetAndMetadata) -> Result<(), ClientError> {
        if to.offset < 0 {
            let reason = format!("{} is no offset to seek to", to.offset);
            return Err(ClientError::BadRequest { reason });
        }
        let is_assigned = self.inner.fetcher.borrow_mut().positions.seek(partition, to.offset, to.leader_epoch);
        self.jumped(is_assigned, partition)
    }

    fn jumped(&self, is_assigned: bool, partition: &TopicPartition) -> Result<(), ClientError> {
        self.check_open()?;
        self.inner.fetcher.borrow_mut().drop_stale();
        self.inner.wake();
        if is_assigned { Ok(()) } else { Err(not_assigned(partition)) }
    }

    /// No partitions: all that are assigned.
    pub fn seek_to_beginning(&self, partitions: &[TopicPartition]) -> Result<(), ClientError> {
        self.seek_to(partitions, ResetTo::Earliest)
    }

    /// No partitions: all that are assigned. Where the end is, is looked up at the next poll.
    pub fn seek_to_end(&self, partitions: &[TopicPartition]) -> Result<(), ClientError> {
        self.seek_to(partitions, ResetTo::Latest)
    }

    fn seek_to(&self, partitions: &[TopicPartition], to: ResetTo) -> Result<(), ClientError> {
        let all = if partitions.is_empty() { self.assignment() } else { partitions.to_vec() };
        for partition in &all {
            let is_assigned = self.inner.fetcher.borrow_mut().positions.reset(partition, to);
            self.jumped(is_assigned, partition)?;
        }
        Ok(())
    }

    /// The first offset at or after each time (milliseconds since 1970); `None` where no record is that new.
    pub async fn offsets_for_times(
        &self,
        times: BTreeMap<TopicPartition, i64>,
    ) -> Result<BTreeMap<TopicPartition, Option<OffsetAndTimestamp>>, ClientError> {
        self.check_open()?;
        if let Some(bad) = times.values().find(|time| **time < 0) {
            return Err(ClientError::BadRequest { reason: format!("{bad} is no time to look for") });
        }
        self.inner.list(times).await
    }

    pub async fn beginning_offsets(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, i64>, ClientError> {
        self.ends(partitions, offsets::EARLIEST).await
    }

    /// The high watermarks; at read_committed the last stable offsets.
    pub async fn end_offsets(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, i64>, ClientError> {
        self.ends(partitions, offsets::LATEST).await
    }

    async fn ends(
        &self,
        partitions: &[TopicPartition],
        which: i64,
    ) -> Result<BTreeMap<TopicPartition, i64>, ClientError> {
        self.check_open()?;
        let wanted = partitions.iter().map(|partition| (partition.clone(), which)).collect();
        let found = self.inner.list(wanted).await?;
        Ok(found.into_iter().filter_map(|(partition, end)| Some((partition, end?.offset))).collect())
    }

    /// The offset of the next record to come, looked up if it is not known yet.
    pub async fn position(&self, partition: &TopicPartition) -> Result<i64, ClientError> {
        self.begin().await?;
        self.inner.position(partition).await
    }

    /// What the group has committed; what it has not is left out.
    pub async fn committed(&self, partitions: &[TopicPartition]) -> Result<Offsets, ClientError> {
        self.check_open()?;
        self.inner.fetch_committed(partitions).await
    }

    /// Commits `offsets`, or what `poll` has given out, and waits; retries until `default_api_timeout_ms`.
    pub async fn commit_sync(&self, offsets: Option<Offsets>) -> Result<(), ClientError> {
        self.check_open()?;
        let offsets = offsets.unwrap_or_else(|| commit::consumed(&self.inner.fetcher.borrow()));
        let timeout_ms = self.inner.client.config().default_api_timeout_ms;
        self.inner.commit_and_wait(offsets, timeout_ms).await
    }

    /// The same in the background. Of commits that wait for one under way, a partition's latest offset wins. What became
    /// of it: [`Consumer::take_commit_error`].
    pub fn commit_async(&self, offsets: Option<Offsets>) -> Result<(), ClientError> {
        self.check_open()?;
        let offsets = offsets.unwrap_or_else(|| commit::consumed(&self.inner.fetcher.borrow()));
        self.inner.commit_later(offsets)
    }

    /// What the last failed asynchronous or automatic commit failed with, once.
    pub fn take_commit_error(&self) -> Option<ClientError> {
        self.inner.commits.borrow_mut().take_error()
    }

    /// Gives out nothing of them until `resume`; what lies read ahead is kept.
    pub fn pause(&self, partitions: &[TopicPartition]) -> Result<(), ClientError> {
        self.set_paused(partitions, true)
    }

    pub fn resume(&self, partitions: &[TopicPartition]) -> Result<(), ClientError> {
        self.set_paused(partitions, false)
    }

    fn set_paused(&self, partitions: &[TopicPartition], paused: bool) -> Result<(), ClientError> {
        for partition in partitions {
            if !self.inner.fetcher.borrow_mut().pause(partition, paused) {
                return Err(not_assigned(partition));
            }
        }
        self.inner.wake();
        Ok(())
    }

    pub fn paused(&self) -> Vec<TopicPartition> {
        let fetcher = self.inner.fetcher.borrow();
        fetcher.positions.iter().filter(|(_, one)| one.paused).map(|(partition, _)| partition.clone()).collect()
    }

    pub fn assignment(&self) -> Vec<TopicPartition> {
        self.inner.owned()
    }

    /// Records between the position and the end as the last answer told it; `None` before the first.
    pub fn lag(&self, partition: &TopicPartition) -> Option<i64> {
        let fetcher = self.inner.fetcher.borrow();
        let assigned = fetcher.positions.get(partition)?;
        let end = match self.inner.config.isolation_level {
            IsolationLevel::ReadUncommitted => assigned.high_watermark,
            IsolationLevel::ReadCommitted => assigned.last_stable_offset,
        };
        (end >= 0 && assigned.offset >= 0).then(|| (end - assigned.offset).max(0))
    }

    /// Commits if that is automatic, tells the listener, leaves the group unless the member is static.
    pub async fn close(&self) {
        if self.inner.is_closed() {
            return;
        }
        let deadline_ms = now_ms() + limits::RELEASE_COMMIT_TIMEOUT_MS;
        self.inner.leave_group("the consumer was closed").await;
        self.inner.flush_commits(deadline_ms).await;
        self.inner.shut();
        *self.inner.source.borrow_mut() = Source::None;
        *self.inner.listener.borrow_mut() = None;
    }
}

/// The way to a node is broken, whatever the node thinks.
pub(crate) fn is_broken(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::NoBroker { .. }
            | ClientError::UnknownNode { .. }
            | ClientError::NotConnected { .. }
            | ClientError::Disconnected { .. }
            | ClientError::TimedOut { .. }
    )
}

pub(crate) fn not_assigned(partition: &TopicPartition) -> ClientError {
    ClientError::BadRequest {
        reason: format!("partition {} of {} is not assigned to this consumer", partition.partition, partition.topic),
    }
}
