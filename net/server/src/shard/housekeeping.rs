//! What a shard does without being asked: roll by time, retention, forgetting silent producers, and opening partitions
//! after an unclean stop.

use std::rc::Rc;

use model::{PartitionIndex, PartitionKey};
use runtime::clock;

use super::Shard;
use crate::limits::POOL_TRIM_MS;

/// How often rolls by time are looked for, milliseconds.
const ROLL_CHECK_MS: i64 = 1_000;
/// Partitions for which that is true; of more, each is looked at as often as if so many were looked at a second: walking
/// thousands is most of what they cost while nobody uses them.
const ROLL_CHECKS_A_SECOND: usize = 1_000;
/// But at least so often, milliseconds.
const ROLL_CHECK_MOST_MS: i64 = 10_000;

impl Shard {
    /// Runs until the shard stops.
    pub async fn keep_house(self: Rc<Self>) {
        let mut next_retention_ms = clock::now_ms() + self.config().topics.retention_check_interval_ms.max(1);
        let mut next_roll_ms = 0;
        self.tasks.spawn("log cleaner", self.clone().clean_logs());
        while !self.is_stopping() {
            self.pause_ms(ROLL_CHECK_MS).await;
            self.awaits.sweep(clock::now_ms());
            self.standings.sweep(&self, clock::now_ms());
            let retain = clock::now_ms() >= next_retention_ms;
            if retain {
                next_retention_ms = clock::now_ms() + self.config().topics.retention_check_interval_ms.max(1);
            }
            if !retain && clock::now_ms() < next_roll_ms {
                continue;
            }
            let open = self.partitions.open();
            let rounds = (open.len() / ROLL_CHECKS_A_SECOND) as i64;
            next_roll_ms = clock::now_ms() + (rounds * ROLL_CHECK_MS).min(ROLL_CHECK_MOST_MS);
            for replica in open {
                if self.is_stopping() {
                    return;
                }
                let log = replica.log();
                if let Err(error) = log.roll_if_due(clock::wall_ms()).await {
                    eprintln!("ringlog: {}-{} cannot roll: {error}", replica.topic(), replica.key().partition);
                }
                if retain {
                    let oldest_ms = clock::wall_ms() - self.config().groups.producer_id_expiration_ms;
                    replica.expire_producers(oldest_ms);
                    if let Err(error) = log.apply_retention(clock::wall_ms()).await {
                        eprintln!("ringlog: retention of {}-{}: {error}", replica.topic(), replica.key().partition);
                    }
                }
            }
        }
    }

    /// Gives chunks that nobody took for a while back to the system, and what small ones leave in the heap once the last has
    /// gone. For all shards: the pool is one.
    pub async fn mind_free_chunks(self: Rc<Self>) {
        let pool = self.log.pool().clone();
        let mut gave = false;
        while !self.is_stopping() {
            self.pause_ms(POOL_TRIM_MS).await;
            if pool.bytes_free() > 0 {
                let pool = pool.clone();
                gave = runtime::spawn_blocking(move || pool.trim()).await.is_ok();
            } else if std::mem::take(&mut gave) {
                let _ = runtime::spawn_blocking(runtime::buffers::give_back).await;
            }
        }
    }

    /// Opens, one after the other, the partitions that have data: retention has to see them, and after an unclean stop
    /// their tails have to be looked at sooner or later.
    pub async fn open_found(self: Rc<Self>) {
        let facts = self.facts.clone();
        for dir in facts.dirs.online() {
            if self.index == 0
                && let Err(error) = dir.remove_deleted().await
            {
                eprintln!("ringlog: files of deleted partitions in {} stay for now: {error}", dir.path().display());
            }
        }
        for found in facts.dirs.online().flat_map(|dir| dir.found()) {
            if self.is_stopping() {
                return;
            }
            let Some(topic_id) = found.topic_id else { continue };
            let key = PartitionKey { topic_id, partition: PartitionIndex(found.partition.0) };
            if self.view().placement.shard_of(key) == Some(self.index) {
                let _ = self.partition(key).await;
            }
        }
    }
}
