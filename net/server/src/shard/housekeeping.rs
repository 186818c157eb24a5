//! What a shard does without being asked: roll by time, retention, forgetting silent producers, and opening partitions
//! after an unclean stop.

use std::rc::Rc;

use log::reserve::SpaceLook;
use model::{PartitionIndex, PartitionKey};
use runtime::clock;

use super::Shard;

/// How often rolls by time are looked for, milliseconds.
const ROLL_CHECK_MS: i64 = 1_000;

impl Shard {
    /// Runs until the shard stops.
    pub async fn keep_house(self: Rc<Self>) {
        let mut next_retention_ms = clock::now_ms() + self.config().topics.retention_check_interval_ms.max(1);
        let mut space_is_known = true;
        while !self.is_stopping() {
            self.pause_ms(ROLL_CHECK_MS).await;
            if self.index == 0 {
                space_is_known = self.mind_space(space_is_known).await;
            }
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

    /// Gives whether the space could be looked at; that it could not is told once.
    async fn mind_space(&self, was_known: bool) -> bool {
        let dir = &self.facts.data_dir;
        match dir.mind_space().await {
            Ok(SpaceLook::BallastReleased { free }) => eprintln!(
                "ringlog: only {free} bytes are free on the disk of {}: the ballast made way. Free space there.",
                dir.path().display()
            ),
            Ok(SpaceLook::Nothing | SpaceLook::BallastMade) => {}
            Err(error) => {
                if was_known {
                    eprintln!("ringlog: the space of the data folder cannot be looked at: {error}");
                }
                return false;
            }
        }
        true
    }

    /// Opens, one after the other, the partitions that have data: retention has to see them, and after an unclean stop
    /// their tails have to be looked at sooner or later.
    pub async fn open_found(self: Rc<Self>) {
        let facts = self.facts.clone();
        if self.index == 0
            && let Err(error) = facts.data_dir.remove_deleted().await
        {
            eprintln!("ringlog: files of deleted partitions stay for now: {error}");
        }
        for found in facts.data_dir.found() {
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
