//! The partitions that this shard owns, opened when they are first needed.
//!
//! A partition that nobody touched since the start costs nothing; its folder is made with its first use. After an
//! unclean stop opening scans the log's tail, so the node answers at once and each partition as soon as it is ready.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use log::PartitionSpec;
use metadata::TopicChange;
use model::{ErrorCode, PartitionKey};
use replica::{Replica, ReplicaError, ReplicaSpec};
use runtime::Notify;

use super::Shard;
use crate::view::View;

#[derive(Clone)]
enum Slot {
    Opening(Rc<Notify>),
    Open(Rc<Replica>),
}

/// Slots by partition. A partition without one was not needed yet.
#[derive(Default)]
pub struct Partitions {
    slots: RefCell<BTreeMap<PartitionKey, Slot>>,
}

impl Partitions {
    /// The replica, if it is open already.
    pub fn get(&self, key: PartitionKey) -> Option<Rc<Replica>> {
        match self.slots.borrow().get(&key) {
            Some(Slot::Open(replica)) => Some(replica.clone()),
            _ => None,
        }
    }

    /// All open replicas, in key order.
    pub fn open(&self) -> Vec<Rc<Replica>> {
        let slots = self.slots.borrow();
        let open = |slot: &Slot| match slot {
            Slot::Open(replica) => Some(replica.clone()),
            Slot::Opening(_) => None,
        };
        slots.values().filter_map(open).collect()
    }

    fn slot(&self, key: PartitionKey) -> Option<Slot> {
        self.slots.borrow().get(&key).cloned()
    }

    fn set(&self, key: PartitionKey, slot: Option<Slot>) {
        match slot {
            Some(slot) => self.slots.borrow_mut().insert(key, slot),
            None => self.slots.borrow_mut().remove(&key),
        };
    }
}

impl Shard {
    /// The replica of a partition that this shard owns, opened if need be. Tasks that wait for the same opening go on in
    /// the order in which they came.
    pub async fn partition(self: &Rc<Self>, key: PartitionKey) -> Result<Rc<Replica>, ErrorCode> {
        loop {
            match self.partitions.slot(key) {
                Some(Slot::Open(replica)) => return Ok(replica),
                Some(Slot::Opening(opened)) => opened.changed().await,
                None => {
                    let opened = Rc::new(Notify::new());
                    let spec = self.spec_of(key)?;
                    self.partitions.set(key, Some(Slot::Opening(opened.clone())));
                    let result = self.open(&spec).await;
                    self.partitions.set(key, result.as_ref().ok().cloned().map(Slot::Open));
                    opened.notify();
                    return result.inspect(|replica| self.after_open(replica)).map_err(|error| {
                        eprintln!("ringlog: partition {}-{} cannot be opened: {error}", spec.topic, key.partition);
                        error.code()
                    });
                }
            }
        }
    }

    /// The image may have moved while the partition was being opened.
    fn after_open(&self, replica: &Replica) {
        let view = self.view();
        if let Some(topic) = view.image.topic(replica.key().topic_id)
            && let Some(state) = topic.partition(replica.key().partition)
            && let Ok(config) = view.topic_config(topic)
        {
            replica.update(config, state.leader_epoch);
        }
    }

    fn spec_of(&self, key: PartitionKey) -> Result<ReplicaSpec, ErrorCode> {
        let view = self.view();
        let topic = view.image.topic(key.topic_id).ok_or(ErrorCode::UnknownTopicId)?;
        let state = topic.partition(key.partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        if view.placement.shard_of(key) != Some(self.index) || self.is_stopping() {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        let config = view.topic_config(topic).map_err(|_| ErrorCode::InvalidConfig)?;
        Ok(ReplicaSpec {
            log: PartitionSpec {
                data_dir: self.facts.data_dir.clone(),
                topic: topic.name.to_string(),
                key,
                config: replica::log_config(&config),
            },
            topic: Rc::from(topic.name.as_ref()),
            config,
            leader_epoch: state.leader_epoch,
        })
    }

    async fn open(&self, spec: &ReplicaSpec) -> Result<Rc<Replica>, ReplicaError> {
        let key = spec.log.key;
        let dir = &self.facts.data_dir;
        let found = dir.found().iter().find(|f| f.topic == spec.log.topic && f.partition == key.partition);
        match found {
            Some(found) if found.topic_id == Some(key.topic_id) => {
                let opened = self.log.open_partition(spec.log.clone(), dir.start_mode(key)).await?;
                Replica::adopt(opened, spec).await
            }
            // A folder of an older topic of this name: its deletion was agreed, only the files are left.
            Some(_) => {
                if runtime::fs::stat(&dir.path().join(format!("{}-{}", spec.log.topic, key.partition)))
                    .await
                    .is_ok_and(|s| s.is_some())
                {
                    dir.discard(&spec.log.topic, key.partition).await?;
                }
                Replica::create(&self.log, spec).await
            }
            None => Replica::create(&self.log, spec).await,
        }
    }

    /// Brings open replicas in line with the newest view; `old` is the one before it.
    pub(super) async fn follow(self: &Rc<Self>, old: &View) {
        let view = self.view();
        let all = view.config.topic_defaults != old.config.topic_defaults;
        let mut gone = Vec::new();
        for change in view.image.changed_topics_since(&old.image) {
            match change {
                TopicChange::Created(_) => {}
                TopicChange::Changed { new, .. } => self.update_topic(&view, new),
                TopicChange::Deleted(topic) => gone.push(topic.clone()),
            }
        }
        if all {
            view.image.topics().for_each(|topic| self.update_topic(&view, topic));
        }
        for topic in gone {
            for partition in 0..topic.partitions.len() as i32 {
                let key = PartitionKey { topic_id: topic.id, partition: model::PartitionIndex(partition) };
                if old.placement.shard_of(key) == Some(self.index) {
                    self.drop_partition(&topic.name, key).await;
                }
            }
        }
    }

    fn update_topic(&self, view: &View, topic: &metadata::Topic) {
        let Ok(config) = view.topic_config(topic) else { return };
        for (index, state) in topic.partitions.iter().enumerate() {
            let key = PartitionKey { topic_id: topic.id, partition: model::PartitionIndex(index as i32) };
            if let Some(replica) = self.partitions.get(key) {
                replica.update(config, state.leader_epoch);
            }
        }
    }

    /// Deletes a partition's files: renamed away durably now, unlinked in the background.
    async fn drop_partition(self: &Rc<Self>, topic: &str, key: PartitionKey) {
        if let Some(Slot::Opening(opened)) = self.partitions.slot(key) {
            opened.changed().await;
        }
        let replica = self.partitions.get(key);
        self.partitions.set(key, None);
        let result = match replica {
            Some(replica) => replica.log().clone().delete().await,
            None => self.discard_unopened(topic, key).await,
        };
        if let Err(error) = result {
            eprintln!("ringlog: the files of deleted partition {topic}-{} stay for now: {error}", key.partition);
        }
    }

    async fn discard_unopened(&self, topic: &str, key: PartitionKey) -> Result<(), log::LogError> {
        let dir = &self.facts.data_dir;
        let ours = |f: &&log::FoundPartition| {
            f.topic == topic && f.partition == key.partition && f.topic_id == Some(key.topic_id)
        };
        if dir.found().iter().any(|f| ours(&f)) {
            let aside = dir.discard(topic, key.partition).await?;
            runtime::fs::remove_dir_all(&aside).await?;
        }
        Ok(())
    }
}
