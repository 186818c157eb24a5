//! The producer: records in, one fate each out.
//!
//! ```text
//! send -> accumulator (a queue of batches per partition) -> sender (a request per node) -> client
//! ```
//!
//! | file | noun |
//! |---|---|
//! | `config.rs`, `limits.rs` | settings with Kafka's names, and the bounds that are none |
//! | `partitioner.rs` | which partition a record goes to |
//! | `batch.rs` | the encoder of record batches, and the split of one that is too large |
//! | `pool.rs` | `buffer_memory` |
//! | `partition.rs` | one partition's batches in order, and its sequence numbers |
//! | `accumulator.rs` | topics, partitions, appends |
//! | `sender.rs`, `answers.rs`, `verdict.rs` | the core: what to send, and what is made of the answers |
//! | `request.rs` | one Produce request, and which batch each answer is for |
//! | `delivery.rs` | what becomes of records |
//! | `driver.rs` | the task that moves what the core decides |
//!
//! Everything but this file and the driver is without I/O, clock and randomness. State lives in one `Sender` behind a
//! `RefCell` that is never borrowed across a wait.
//!
//! Order: an idempotent producer keeps the order of records of a partition, whatever happens. Without idempotence a
//! retry may be overtaken unless `max_in_flight` is 1, as with Kafka's own clients.

mod accumulator;
mod answers;
mod batch;
mod config;
mod delivery;
mod driver;
mod limits;
mod partition;
mod partitioner;
mod pool;
mod request;
mod sender;
#[cfg(test)]
mod test_support;
mod verdict;

use std::fmt;
use std::rc::Rc;

use model::ErrorCode;
use runtime::clock;
use runtime::sync::before;

pub use accumulator::Refused;
pub use config::{Acks, PartitionerKind, ProducerConfig};
pub use delivery::{BatchOutcome, Delivery, DeliveryHandle, Fate, ProducerMetrics, UNTAGGED};
pub use partitioner::{murmur2, partition_of_key};

use crate::{Client, ClientError, ProducerRecord};
use delivery::Mark;
use driver::{OnBatch, Shared};
use sender::Sender;

/// Sends records. Dropping it ends what is under way; [`Producer::close`] sees it through first.
pub struct Producer {
    shared: Rc<Shared>,
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("metrics", &self.metrics()).finish_non_exhaustive()
    }
}

impl Producer {
    /// Checks the configuration and starts the producer's task on this shard.
    pub fn new(client: &Client, config: ProducerConfig) -> Result<Producer, ClientError> {
        Producer::start(client, config, None)
    }

    /// The same, and `on_batch` hears of every batch that ends. It may send again from there.
    pub fn with_outcomes(
        client: &Client,
        config: ProducerConfig,
        on_batch: impl Fn(&BatchOutcome) + 'static,
    ) -> Result<Producer, ClientError> {
        Producer::start(client, config, Some(Box::new(on_batch)))
    }

    fn start(client: &Client, config: ProducerConfig, on_batch: Option<OnBatch>) -> Result<Producer, ClientError> {
        config.check()?;
        let shared = Shared::new(client.clone(), Sender::new(config, runtime::random::u64()), on_batch);
        runtime::spawn("producer", driver::drive(shared.clone()));
        Ok(Producer { shared })
    }

    /// Puts a record into its batch, and waits for metadata and room for that at most `max_block_ms`. The handle gives
    /// the record's fate; dropping it changes nothing. Records of one partition go out in the order of these calls.
    pub async fn send(&self, record: ProducerRecord) -> Result<DeliveryHandle, ClientError> {
        let (mut mark, handle) = Mark::handle();
        let started_ms = clock::now_ms();
        let (max_block_ms, look_again_ms) = {
            let core = self.shared.core.borrow();
            (core.config().max_block_ms, core.config().retry_backoff_ms.max(1))
        };
        loop {
            let now_ms = clock::now_ms();
            let seen_ended = self.shared.ended.version();
            let changed = self.shared.client.changed().clone();
            let seen_cluster = changed.version();
            let refused;
            (refused, mark) = match self.shared.append(&record, mark, now_ms) {
                Ok(()) => return Ok(handle),
                Err(refused) => refused,
            };
            if let Refused::Invalid(error) = refused {
                return Err(error);
            }
            let deadline_ms = started_ms + max_block_ms;
            if now_ms >= deadline_ms || self.is_refused(&record) {
                return Err(self.blocked(&record, &refused, max_block_ms));
            }
            if refused == Refused::Full {
                before(deadline_ms, self.shared.ended.changed_since(seen_ended)).await;
            } else {
                before(deadline_ms.min(now_ms + look_again_ms), changed.changed_since(seen_cluster)).await;
            }
        }
    }

    /// Whether the brokers said of the topic what no waiting changes.
    fn is_refused(&self, record: &ProducerRecord) -> bool {
        let cluster = self.shared.client.cluster();
        let code = cluster.failed_topics.get(&record.topic).and_then(|code| ErrorCode::from_code(*code));
        matches!(code, Some(ErrorCode::InvalidTopicException | ErrorCode::TopicAuthorizationFailed))
    }

    fn blocked(&self, record: &ProducerRecord, refused: &Refused, after_ms: i64) -> ClientError {
        if *refused == Refused::Full {
            return ClientError::TimedOut { what: "room in buffer.memory", after_ms };
        }
        let cluster = self.shared.client.cluster();
        match (cluster.topic(&record.topic), record.partition, cluster.failed_topics.get(&record.topic)) {
            (Some(topic), Some(partition), _) => ClientError::BadRequest {
                reason: format!("{} has no partition {partition}, it has {}", record.topic, topic.partitions.len()),
            },
            (None, _, Some(&code)) if code != ErrorCode::UnknownTopicOrPartition.code() => {
                let unknown = ClientError::UnknownTopic { topic: record.topic.to_string() };
                ClientError::check(code, format!("topic {}", record.topic)).err().unwrap_or(unknown)
            }
            _ => ClientError::UnknownTopic { topic: record.topic.to_string() },
        }
    }

    /// The same without waiting: [`Refused::Full`] and [`Refused::UnknownTopic`] say that a later call may do. Let
    /// other tasks run between, or nothing changes.
    pub fn try_send(&self, record: &ProducerRecord) -> Result<DeliveryHandle, Refused> {
        let (mark, handle) = Mark::handle();
        self.shared.append(record, mark, clock::now_ms()).map_err(|(refused, _)| refused)?;
        Ok(handle)
    }

    /// The cheapest way: no handle, but `tag` among the [`BatchOutcome::tags`] that `on_batch` hears of. `now_ms` is the
    /// monotonic clock's, so that a caller that has looked already need not again.
    pub fn send_counted(&self, record: &ProducerRecord, tag: u64, now_ms: i64) -> Result<(), Refused> {
        self.shared.append(record, Mark::Tag(tag), now_ms).map_err(|(refused, _)| refused)
    }

    /// Resolves when there may be room again, at `deadline_ms` (monotonic) at the latest: after [`Refused::Full`].
    pub async fn room(&self, deadline_ms: i64) {
        before(deadline_ms, self.shared.ended.changed()).await;
    }

    /// Sends without lingering, and waits until every record that was sent before has its fate.
    pub async fn flush(&self) {
        let flush = Flush::begin(&self.shared);
        self.shared.work.notify();
        loop {
            let seen = self.shared.ended.version();
            if self.shared.core.borrow().is_flushed(flush.upto) {
                return;
            }
            self.shared.ended.changed_since(seen).await;
        }
    }

    /// Takes no more records and flushes; every record has its fate by `delivery_timeout_ms`.
    pub async fn close(&self) {
        // A little more, so that what is late is told as late and not as closed.
        let timeout_ms = self.shared.core.borrow().config().delivery_timeout_ms + limits::CLOSE_GRACE_MS;
        self.close_within(timeout_ms).await;
    }

    /// The same, but what is under way after `timeout_ms` ends as not or possibly sent.
    pub async fn close_within(&self, timeout_ms: i64) {
        self.shared.core.borrow_mut().refuse_more();
        before(clock::now_ms() + timeout_ms, self.flush()).await;
        self.shared.stop(&ClientError::Closed);
    }

    pub fn metrics(&self) -> ProducerMetrics {
        self.shared.core.borrow().metrics()
    }

    /// Bytes of `buffer_memory` in use.
    pub fn memory_used(&self) -> usize {
        self.shared.core.borrow().memory_used()
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.stop(&ClientError::Closed);
    }
}

/// A flush under way; nothing lingers while it is there.
struct Flush<'a> {
    shared: &'a Shared,
    upto: u64,
}

impl<'a> Flush<'a> {
    fn begin(shared: &'a Shared) -> Flush<'a> {
        let upto = shared.core.borrow_mut().begin_flush();
        Flush { shared, upto }
    }
}

impl Drop for Flush<'_> {
    fn drop(&mut self) {
        self.shared.core.borrow_mut().end_flush();
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
