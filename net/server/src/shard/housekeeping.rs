//! What a shard does without being asked: roll by time, retention, forgetting silent producers, and opening partitions
//! after an unclean stop.

use std::rc::Rc;

use model::{PartitionIndex, PartitionKey};
use runtime::clock;

use super::Shard;

/// How often rolls by time are looked for, milliseconds.
const ROLL_CHECK_MS: i64 = 1_000;

impl Shard {
    /// Runs until the shard stops.
    pub async fn keep_house(self: Rc<Self>) {
        let mut next_retention_ms = clock::now_ms() + self.config().topics.retention_check_interval_ms.max(1);
        while !self.is_stopping() {
            self.pause_ms(ROLL_CHECK_MS).await;
            let retain = clock::now_ms() >= next_retention_ms;
            if retain {
                next_retention_ms = clock::now_ms() + self.config().topics.retention_check_interval_ms.max(1);
            }
            for replica in self.partitions.open() {
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
