//! The replica itself: what it holds, how it opens and closes.

use std::cell::Cell;
use std::rc::Rc;

use log::{LogConfig, LogShard, Opened, PartitionLog, PartitionSpec};
use model::config::TopicConfig;
use model::{LeaderEpoch, Offset, PartitionKey};
use runtime::clock;

use crate::error::ReplicaError;
use crate::mutants::{Mutant, active};
use crate::producer_states::ProducerStates;
use crate::producers::ProducerTable;
use crate::snapshot::{self, SnapshotError};

/// One partition on the shard that owns it. All of it is `Cell`s, and its part of the shard's producers, which is never
/// borrowed across an await; the log does its own input and output. A crash at any line loses nothing acknowledged: producers are rebuilt
/// from the log, and the leader epoch comes from the cluster image at each start.
#[derive(Debug)]
pub struct Replica {
    pub(crate) key: PartitionKey,
    pub(crate) topic: Rc<str>,
    pub(crate) log: Rc<PartitionLog>,
    pub(crate) config: Cell<TopicConfig>,
    pub(crate) leader_epoch: Cell<LeaderEpoch>,
    pub(crate) producers: ProducerTable,
    /// Batch headers read to rebuild `producers` when it was opened.
    replayed_batches: u64,
}

/// What a replica is opened with.
#[derive(Clone, Debug)]
pub struct ReplicaSpec {
    pub log: PartitionSpec,
    pub topic: Rc<str>,
    pub config: TopicConfig,
    pub leader_epoch: LeaderEpoch,
    /// The shard's.
    pub producers: Rc<ProducerStates>,
}

/// The log's part of a topic's configuration.
pub fn log_config(config: &TopicConfig) -> LogConfig {
    LogConfig {
        segment_bytes: u64::from(config.segment_bytes),
        segment_ms: config.segment_ms,
        segment_jitter_ms: config.segment_jitter_ms,
        segment_index_bytes: u64::from(config.segment_index_bytes),
        index_interval_bytes: u64::from(config.index_interval_bytes),
        retention_ms: config.retention_ms,
        retention_bytes: config.retention_bytes,
        file_delete_delay_ms: config.file_delete_delay_ms,
        cleanup_delete: config.cleanup_policy.delete,
        compact: config.cleanup_policy.compact,
        delete_retention_ms: config.delete_retention_ms,
        min_compaction_lag_ms: config.min_compaction_lag_ms,
        max_compaction_lag_ms: config.max_compaction_lag_ms,
        gaps: config.cleanup_policy.compact,
        durability: match config.durability {
            model::config::Durability::Fsync => log::Durability::Sync,
            model::config::Durability::Memory => log::Durability::Memory,
        },
    }
}

/// Producers' batches from `from` to the log's end; gives how many batches were looked at.
async fn replay(log: &Rc<PartitionLog>, from: Offset, producers: &ProducerTable) -> Result<u64, ReplicaError> {
    let (mut scan, now_ms, mut looked_at) = (log.scan_headers(from), clock::wall_ms(), 0);
    while let Some(header) = scan.next().await? {
        producers.remember(&header, header.base_offset, now_ms);
        looked_at += 1;
    }
    Ok(looked_at)
}

/// The table as the log's end has it: the newest snapshot that can be read, and the headers behind it.
async fn rebuild(opened: &Opened, spec: &ReplicaSpec) -> Result<(ProducerTable, u64), ReplicaError> {
    let producers = ProducerTable::within(&spec.producers);
    let mut from = opened.log.log_start_offset();
    if let Some((at, bytes)) = &opened.producer_snapshot {
        match snapshot::decode_into(&producers, bytes, clock::wall_ms()) {
            Ok(()) => from = *at,
            Err(SnapshotError::Newer(version)) => return Err(ReplicaError::NewerSnapshot(version)),
            // Damaged: the log says the same.
            Err(_) => {}
        }
    }
    let looked_at = replay(&opened.log, from, &producers).await?;
    Ok((producers, looked_at))
}

impl Replica {
    /// Wraps an opened log: takes its producer snapshot, reads the batch headers behind it, begins the leader epoch.
    pub async fn adopt(opened: Opened, spec: &ReplicaSpec) -> Result<Rc<Replica>, ReplicaError> {
        match rebuild(&opened, spec).await {
            Ok((producers, looked_at)) => Ok(Replica::lead(opened.log, spec, producers, looked_at)),
            Err(error @ ReplicaError::NewerSnapshot(_)) => {
                opened.log.leave().await;
                Err(error)
            }
            Err(error) => {
                // The log must not stay open without its replica: it is opened again with the next request.
                let _ = opened.log.close().await;
                Err(error)
            }
        }
    }

    /// Makes the partition's folder and an empty log.
    pub async fn create(shard: &Rc<LogShard>, spec: &ReplicaSpec) -> Result<Rc<Replica>, ReplicaError> {
        let log = shard.create_partition(spec.log.clone()).await?;
        Ok(Replica::lead(log, spec, ProducerTable::within(&spec.producers), 0))
    }

    fn lead(log: Rc<PartitionLog>, spec: &ReplicaSpec, producers: ProducerTable, replayed_batches: u64) -> Rc<Replica> {
        log.begin_epoch(spec.leader_epoch);
        Rc::new(Replica {
            key: spec.log.key,
            topic: spec.topic.clone(),
            log,
            config: Cell::new(spec.config),
            leader_epoch: Cell::new(spec.leader_epoch),
            producers,
            replayed_batches,
        })
    }

    pub fn key(&self) -> PartitionKey {
        self.key
    }

    pub fn topic(&self) -> &Rc<str> {
        &self.topic
    }

    pub fn log(&self) -> &Rc<PartitionLog> {
        &self.log
    }

    pub fn config(&self) -> TopicConfig {
        self.config.get()
    }

    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch.get()
    }

    /// A new configuration or leader epoch from the cluster image.
    pub fn update(&self, config: TopicConfig, leader_epoch: LeaderEpoch) {
        if self.config.get() != config {
            self.config.set(config);
            self.log.set_config(log_config(&config));
        }
        if leader_epoch > self.leader_epoch.get() {
            self.leader_epoch.set(leader_epoch);
            self.log.begin_epoch(leader_epoch);
        }
    }

    /// Compares a request's idea of the leader epoch with ours (KIP-320). -1: the client does not know one.
    pub fn check_epoch(&self, asked: i32) -> Result<(), ReplicaError> {
        let ours = self.leader_epoch.get().0;
        if asked == -1 || asked == ours {
            Ok(())
        } else if asked < ours {
            Err(ReplicaError::FencedEpoch)
        } else {
            Err(ReplicaError::UnknownEpoch)
        }
    }

    /// Where consumers may read to: what all in-sync replicas have durably. With this node alone, our durable end.
    pub fn high_watermark(&self) -> Offset {
        if active(Mutant::HighWatermarkAhead) {
            return self.log.log_end_offset();
        }
        self.log.durable_end()
    }

    /// Where `read_committed` consumers may read to. Without transactions nothing is undecided.
    pub fn last_stable_offset(&self) -> Offset {
        self.high_watermark()
    }

    /// Writes the producers' state at the log's end, for a start without a scan. Called once, when nothing is appended
    /// any more.
    pub async fn save_producers(&self) -> Result<(), ReplicaError> {
        let bytes = snapshot::encode(&self.producers);
        Ok(self.log.put_producer_snapshot(self.log.log_end_offset(), bytes).await?)
    }

    /// Forgets producers that were silent for `producer.id.expiration.ms`.
    pub fn expire_producers(&self, oldest_ms: i64) {
        self.producers.expire(oldest_ms);
    }

    pub fn producer_count(&self) -> usize {
        self.producers.len()
    }

    /// Batches whose headers were read when it was opened: those behind the newest producer snapshot.
    pub fn replayed_batches(&self) -> u64 {
        self.replayed_batches
    }

    /// Active producers with their last batch, for DescribeProducers and tools.
    pub fn with_producers<T>(&self, look: impl FnOnce(&ProducerTable) -> T) -> T {
        look(&self.producers)
    }
}
