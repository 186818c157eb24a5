//! When partitions are compacted: a round every `log.cleaner.backoff.ms`, one partition after the other, the dirtiest first,
//! as Kafka's cleaner chooses them. How is the log's affair.
//!
//! One task of each shard, at work until the shard stops. A partition whose cleaning fails waits, longer each time, and the
//! others go on; its error is told once a minute at most. A crash leaves what `log` says; nothing here is kept.

use std::collections::BTreeMap;
use std::rc::Rc;

use log::{CleanLimits, Cleanable, Cleaned, LogError};
use model::config::CleanerConfig;
use model::{Offset, PartitionKey, ProducerId};
use replica::Replica;
use runtime::clock;

use super::Shard;
use crate::limits::{CLEANER_LOOKS, CLEANER_PAUSE_MS, CLEANER_RETRY_MAX_MS, CLEANER_RETRY_MS, CLEANER_TELL_MS};

/// What a shard's cleaner did since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanerStats {
    pub cleanings: u64,
    pub failures: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub dropped_records: u64,
}

impl CleanerStats {
    fn add(&mut self, cleaned: &Cleaned) {
        self.cleanings += 1;
        self.read_bytes += cleaned.read_bytes;
        self.written_bytes += cleaned.written_bytes;
        self.dropped_records += cleaned.dropped_records;
    }
}

/// A partition that could not be cleaned.
#[derive(Clone, Copy, Debug)]
struct Failure {
    times: u32,
    until_ms: i64,
}

/// Which partitions wait, and when was last told of one. As many entries as open partitions at most.
#[derive(Debug, Default)]
struct Failures {
    by_key: BTreeMap<PartitionKey, Failure>,
    told_ms: Option<i64>,
    untold: u64,
}

impl Failures {
    fn waits(&self, key: PartitionKey, now_ms: i64) -> bool {
        self.by_key.get(&key).is_some_and(|failure| now_ms < failure.until_ms)
    }

    /// Gives when it is tried again, and how many failures were not told so far if it is time to tell.
    fn failed(&mut self, key: PartitionKey, now_ms: i64) -> (i64, Option<u64>) {
        let failure = self.by_key.entry(key).or_insert(Failure { times: 0, until_ms: 0 });
        let wait_ms = (CLEANER_RETRY_MS << failure.times.min(16)).min(CLEANER_RETRY_MAX_MS);
        failure.times += 1;
        failure.until_ms = now_ms + wait_ms;
        self.untold += 1;
        if self.told_ms.is_some_and(|told_ms| now_ms - told_ms < CLEANER_TELL_MS) {
            return (wait_ms, None);
        }
        self.told_ms = Some(now_ms);
        (wait_ms, Some(std::mem::take(&mut self.untold)))
    }
}

/// Kafka's choice: what is due, and what is dirtier than its topic allows.
fn is_wanted(found: &Cleanable, min_ratio: f64) -> bool {
    found.is_due || (found.dirty_bytes > 0 && found.dirty_ratio() > min_ratio)
}

/// This shard's part of what all cleaners may use.
fn limits(config: &CleanerConfig, shards: usize) -> CleanLimits {
    let shards = shards.max(1);
    CleanLimits {
        map_bytes: config.dedupe_buffer_bytes / shards,
        map_load: config.dedupe_load,
        piece_bytes: config.io_buffer_bytes,
        bytes_per_second: config.io_max_bytes_per_second / shards as f64,
    }
}

/// Last offset of each producer, whose last sequence number has to survive.
fn last_offsets(replica: &Replica) -> BTreeMap<ProducerId, Offset> {
    let mut offsets = BTreeMap::new();
    replica.with_producers(|table| {
        table.for_each(|id, entry| {
            if let Some(newest) = entry.batches.last() {
                offsets.insert(id, newest.last_offset);
            }
        });
    });
    offsets
}

impl Shard {
    /// Runs until the shard stops.
    pub(super) async fn clean_logs(self: Rc<Self>) {
        let mut failures = Failures::default();
        while !self.is_stopping() {
            let config = self.config().cleaner;
            let has_cleaned = config.enabled && self.clean_round(&config, &mut failures).await;
            self.pause_ms(if has_cleaned { CLEANER_PAUSE_MS } else { config.backoff_ms.max(1) }).await;
        }
    }

    /// Gives whether something was cleaned: there may be more then.
    async fn clean_round(&self, config: &CleanerConfig, failures: &mut Failures) -> bool {
        let mut wanted = self.wanted(failures).await;
        // Due ones first, then by their share of dirty bytes.
        wanted.sort_by(|(_, a), (_, b)| b.is_due.cmp(&a.is_due).then(b.dirty_ratio().total_cmp(&a.dirty_ratio())));
        let limits = limits(config, self.post.shards());
        let mut has_cleaned = false;
        for (replica, _) in wanted {
            if self.is_stopping() {
                return has_cleaned;
            }
            let producers = last_offsets(&replica);
            match replica.log().clean(limits, producers, clock::wall_ms()).await {
                Ok(Some(cleaned)) => {
                    let mut stats = self.cleaner_stats.get();
                    stats.add(&cleaned);
                    self.cleaner_stats.set(stats);
                    failures.by_key.remove(&replica.key());
                    has_cleaned = true;
                }
                // It made way.
                Ok(None) => {}
                Err(error) => self.cleaning_failed(&replica, &error, failures),
            }
        }
        has_cleaned
    }

    async fn wanted(&self, failures: &mut Failures) -> Vec<(Rc<Replica>, Cleanable)> {
        let mut wanted = Vec::new();
        let open = self.partitions.open();
        failures.by_key.retain(|key, _| open.binary_search_by_key(key, |replica| replica.key()).is_ok());
        for (at, replica) in open.into_iter().enumerate() {
            if at % CLEANER_LOOKS == CLEANER_LOOKS - 1 {
                runtime::task::yield_now().await;
            }
            let config = replica.config();
            if self.is_stopping() || !config.cleanup_policy.compact || failures.waits(replica.key(), clock::now_ms()) {
                continue;
            }
            match replica.log().cleanable(clock::wall_ms()).await {
                Ok(Some(found)) if is_wanted(&found, config.min_cleanable_dirty_ratio) => wanted.push((replica, found)),
                Ok(_) => {}
                Err(error) => self.cleaning_failed(&replica, &error, failures),
            }
        }
        wanted
    }

    fn cleaning_failed(&self, replica: &Replica, error: &LogError, failures: &mut Failures) {
        let mut stats = self.cleaner_stats.get();
        stats.failures += 1;
        self.cleaner_stats.set(stats);
        let (wait_ms, tell) = failures.failed(replica.key(), clock::now_ms());
        let Some(count) = tell else { return };
        let others = if count > 1 { format!(" ({} more since the last message)", count - 1) } else { String::new() };
        eprintln!(
            "ringlog: {}-{} cannot be compacted: {error}; it is tried again in {} s, other partitions go on{others}",
            replica.topic(),
            replica.key().partition,
            wait_ms / 1000
        );
    }
}

#[cfg(test)]
#[path = "cleaner_tests.rs"]
mod tests;
