//! Behaviour of whole logs on a real folder. One shard per test; a `Node` is one start of the process.
#![allow(clippy::unwrap_used)]

mod append_read;
mod clock_jumps;
mod closed_reads;
mod compaction;
mod compaction_crash;
mod compaction_limits;
mod compaction_model;
mod compaction_races;
mod damage;
mod device;
mod journal;
mod journal_memory;
mod model_test;
mod places;
mod produce_state;
mod read_ahead;
mod recovery;
mod recovery_exhaustive;
mod reserve;
mod resources;
mod retention;
mod roll;
mod scrub;
mod starts;
mod storage_errors;
mod time_lookup;
mod truncate;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use model::builder::BatchBuilder;
use model::{BatchView, LeaderEpoch, Offset, PartitionIndex, PartitionKey, TopicId};
use runtime::ChunkPool;

use crate::*;

pub(crate) const EPOCH: LeaderEpoch = LeaderEpoch(3);

/// One start of the process on a data folder.
pub(crate) struct Node {
    pub dir: Arc<DataDir>,
    pub shard: Rc<LogShard>,
}

impl Node {
    pub async fn start(path: &Path) -> Node {
        Node::start_with(path, |_| {}).await
    }

    pub async fn start_with(path: &Path, change: impl FnOnce(&mut LogShardConfig)) -> Node {
        let dir = DataDir::open(path).await.unwrap();
        let mut config = LogShardConfig::new(0, ChunkPool::new(8 << 20));
        config.io_bytes = 2 << 20;
        config.journal = both_ways();
        change(&mut config);
        Node { dir, shard: LogShard::new(config) }
    }

    /// Without the journal, whatever the run is about: for what a test does to a segment's file.
    pub async fn start_direct(path: &Path) -> Node {
        Node::start_direct_with(path, |_| {}).await
    }

    pub async fn start_direct_with(path: &Path, change: impl FnOnce(&mut LogShardConfig)) -> Node {
        Node::start_with(path, |config| {
            config.journal = None;
            change(config);
        })
        .await
    }

    pub fn spec(&self, topic: &str, config: LogConfig) -> PartitionSpec {
        let data_dir = self.dir.clone();
        PartitionSpec { data_dir, topic: topic.to_string(), key: key(topic), config, uses_reserve: false }
    }

    pub async fn open(&self, topic: &str, config: LogConfig) -> Rc<PartitionLog> {
        self.try_open(topic, config).await.unwrap().log
    }

    pub async fn try_open(&self, topic: &str, config: LogConfig) -> Result<Opened, LogError> {
        self.shard.open_partition(self.spec(topic, config), self.dir.start_mode(key(topic))).await
    }

    pub async fn stop(self) {
        self.shard.stop_clean().await.unwrap();
        self.dir.close_clean().await.unwrap();
    }

    pub async fn crash(self) {
        self.shard.crash().await;
    }
}

/// All of these run once without and once with the journal: the test runner sets the variable.
pub(crate) fn both_ways() -> Option<JournalConfig> {
    std::env::var_os("RINGLOG_TEST_JOURNAL").map(|_| small_journal())
}

/// Three files that a few batches fill, made with the first commits.
pub(crate) fn small_journal() -> JournalConfig {
    JournalConfig {
        file_bytes: 64 << 10,
        files_max: 3,
        small_bytes: 16 << 10,
        memory_bytes: 64 << 10,
        after_commits: 1,
    }
}

pub(crate) fn key(topic: &str) -> PartitionKey {
    let mut id = [0; 16];
    for (i, b) in topic.bytes().enumerate() {
        id[i % 16] ^= b.wrapping_mul(i as u8 + 1);
    }
    PartitionKey { topic_id: TopicId::from_random(id), partition: PartitionIndex(0) }
}

/// Small segments, so that a test rolls.
pub(crate) fn small() -> LogConfig {
    LogConfig { segment_bytes: 4096, index_interval_bytes: 200, file_delete_delay_ms: 0, ..LogConfig::default() }
}

pub(crate) fn batch(timestamps: &[i64]) -> Vec<u8> {
    batch_of(timestamps, 10)
}

pub(crate) fn batch_of(timestamps: &[i64], value_len: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for (i, ms) in timestamps.iter().enumerate() {
        builder.push(*ms, Some(b"k"), Some(&vec![b'a' + (i % 26) as u8; value_len]), &[]);
    }
    builder.finish()
}

pub(crate) fn append(log: &PartitionLog, batch: &[u8]) -> Appended {
    log.append(batch, Patch::leader(EPOCH)).unwrap()
}

/// Appends and waits until it is durable.
pub(crate) async fn put(log: &PartitionLog, batch: &[u8]) -> Appended {
    let appended = append(log, batch);
    log.wait_durable(appended.next_offset).await.unwrap();
    appended
}

/// Everything goes to its segments, and nothing of it stays in memory.
pub(crate) async fn let_go(log: &PartitionLog) {
    log.wait_durable(log.log_end_offset()).await.unwrap();
    log.settle().await.unwrap();
    log.drop_tail();
}

pub(crate) fn everything() -> ReadLimits {
    ReadLimits { max_bytes: 1 << 20, min_one_batch: true, upper_bound: Offset(i64::MAX) }
}

/// (base offset, record count) of what one read returns; CRCs are checked.
pub(crate) async fn read(log: &PartitionLog, from: i64, limits: ReadLimits) -> Result<Vec<(i64, i32)>, LogError> {
    let read = log.read(Offset(from), limits).await?;
    let mut found = Vec::new();
    let mut bytes = 0;
    for slice in &read.slices {
        let loaded = slice.load().await?;
        bytes += loaded.len();
        let mut rest = &loaded[..];
        while !rest.is_empty() {
            let batch = BatchView::parse(rest).unwrap();
            batch.check_crc().unwrap();
            found.push((batch.header.base_offset.0, batch.header.record_count));
            rest = &rest[batch.bytes.len()..];
        }
    }
    assert_eq!(bytes, read.bytes);
    if let Some(first) = found.first() {
        assert_eq!(read.first_offset.0, first.0);
    }
    Ok(found)
}

/// All batches from an offset to the end, through as many reads as it takes.
pub(crate) async fn read_all(log: &PartitionLog, from: i64, max_bytes: usize) -> Vec<(i64, i32)> {
    let limits = ReadLimits { max_bytes, ..everything() };
    let mut found: Vec<(i64, i32)> = Vec::new();
    let mut at = from;
    while Offset(at) < log.log_end_offset() {
        let part = read(log, at, limits).await.unwrap();
        let (base, count) = *part.last().unwrap();
        at = base + i64::from(count);
        found.extend(part);
    }
    found
}

pub(crate) fn segment_file(log_dir: &Path, base: i64, extension: &str) -> PathBuf {
    log_dir.join(format!("{base:020}.{extension}"))
}
