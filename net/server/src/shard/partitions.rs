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
use runtime::{Notify, clock};

use super::Shard;
use crate::limits::{DELETIONS_AT_ONCE, REOPEN_AFTER_MS};
use crate::view::View;
use crate::view::is_internal;

type Opened = Result<Rc<Replica>, ErrorCode>;
/// Work that waits for a partition to be open, in the order in which it came.
type Parked = Box<dyn FnOnce(&Opened)>;

/// An opening under way.
#[derive(Default)]
struct Opening {
    done: Notify,
    result: RefCell<Option<Opened>>,
    parked: RefCell<Vec<Parked>>,
}

#[derive(Clone)]
enum Slot {
    Opening(Rc<Opening>),
    Open(Rc<Replica>),
    /// Not tried again for a moment, so that a damaged partition does not keep the shard busy.
    Failed {
        code: ErrorCode,
        until_ms: i64,
    },
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
            Slot::Opening(_) | Slot::Failed { .. } => None,
        };
        slots.values().filter_map(open).collect()
    }

    /// Partitions that could not be opened when that was last tried.
    pub fn failed_count(&self) -> usize {
        self.slots.borrow().values().filter(|slot| matches!(slot, Slot::Failed { .. })).count()
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
    /// The replica of a partition that this shard owns, opened if need be.
    pub async fn partition(self: &Rc<Self>, key: PartitionKey) -> Opened {
        let opening = match self.reach(key) {
            Ok(replica) => return Ok(replica),
            Err(Ok(opening)) => opening,
            Err(Err(code)) => return Err(code),
        };
        loop {
            let seen = opening.done.version();
            if let Some(result) = opening.result.borrow().clone() {
                return result;
            }
            opening.done.changed_since(seen).await;
        }
    }

    /// Does `work` with the replica at once if it is open, else as soon as it is. Work on one partition is done in the order
    /// in which it was given, whether it had to wait or not: the produce way rests on that.
    pub(super) fn with_partition(self: &Rc<Self>, key: PartitionKey, work: impl FnOnce(&Opened) + 'static) {
        match self.reach(key) {
            Ok(replica) => work(&Ok(replica)),
            Err(Ok(opening)) => {
                // An opening that has nothing to wait for is done before `begin_opening` returns.
                let result = opening.result.borrow().clone();
                match result {
                    Some(result) => work(&result),
                    None => opening.parked.borrow_mut().push(Box::new(work)),
                }
            }
            Err(Err(code)) => work(&Err(code)),
        }
    }

    /// The open replica, or the opening to wait for (begun now if need be), or why there is neither.
    fn reach(self: &Rc<Self>, key: PartitionKey) -> Result<Rc<Replica>, Result<Rc<Opening>, ErrorCode>> {
        match self.partitions.slot(key) {
            // One failing folder takes its partitions down, whatever of them is still in memory.
            Some(Slot::Open(replica)) if replica.log().folder_failure().is_some() => {
                Err(Err(ErrorCode::KafkaStorageError))
            }
            Some(Slot::Open(replica)) => Ok(replica),
            Some(Slot::Opening(opening)) => Err(Ok(opening)),
            Some(Slot::Failed { code, until_ms }) if clock::now_ms() < until_ms => Err(Err(code)),
            Some(Slot::Failed { .. }) | None => Err(self.begin_opening(key)),
        }
    }

    fn begin_opening(self: &Rc<Self>, key: PartitionKey) -> Result<Rc<Opening>, ErrorCode> {
        let spec = self.spec_of(key)?;
        let opening = Rc::new(Opening::default());
        self.partitions.set(key, Some(Slot::Opening(opening.clone())));
        let shard = self.clone();
        let begun = opening.clone();
        runtime::spawn("open partition", async move {
            let result = shard.open(&spec).await.map_err(|error| {
                eprintln!("ringlog: partition {}-{} cannot be opened: {error}", spec.topic, key.partition);
                error.code()
            });
            shard.finish_opening(key, &begun, result);
        });
        Ok(opening)
    }

    /// Without an await in it: nobody can come between the slot and the parked work.
    fn finish_opening(&self, key: PartitionKey, opening: &Opening, result: Opened) {
        let slot = match &result {
            Ok(replica) => {
                self.after_open(replica);
                Slot::Open(replica.clone())
            }
            Err(code) => Slot::Failed { code: *code, until_ms: clock::now_ms() + REOPEN_AFTER_MS },
        };
        self.partitions.set(key, Some(slot));
        for work in opening.parked.take() {
            work(&result);
        }
        *opening.result.borrow_mut() = Some(result);
        opening.done.notify();
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
        let topic = view.image.topic(key.topic_id).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let state = topic.partition(key.partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        if view.placement.shard_of(key) != Some(self.index) || self.is_stopping() {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        let config = view.topic_config(topic).map_err(|_| ErrorCode::InvalidConfig)?;
        Ok(ReplicaSpec {
            log: PartitionSpec {
                data_dir: self.facts.dirs.home(key).map_err(|_| ErrorCode::KafkaStorageError)?.clone(),
                topic: topic.name.to_string(),
                key,
                config: replica::log_config(&config),
                uses_reserve: is_internal(&topic.name),
            },
            topic: Rc::from(topic.name.as_ref()),
            config,
            leader_epoch: state.leader_epoch,
            producers: self.producers.clone(),
        })
    }

    async fn open(&self, spec: &ReplicaSpec) -> Result<Rc<Replica>, ReplicaError> {
        let key = spec.log.key;
        let dir = &spec.log.data_dir;
        match dir.found_partition(&spec.log.topic, key.partition) {
            // One whose owner cannot be read is opened too: the log looks again, and refuses rather than begin anew.
            Some(found) if found.topic_id.is_none_or(|id| id == key.topic_id) => {
                let opened = self.log.open_partition(spec.log.clone(), dir.start_mode(key)).await?;
                Replica::adopt(opened, spec).await
            }
            // A folder of an older topic of this name was discarded at the start or with its topic.
            Some(_) | None => Replica::create(&self.log, spec).await,
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
            self.drop_topic(old, &topic).await;
        }
    }

    /// Several at a time: publishing the image waits for it.
    async fn drop_topic(self: &Rc<Self>, old: &View, topic: &metadata::Topic) {
        let key = |partition| PartitionKey { topic_id: topic.id, partition: model::PartitionIndex(partition) };
        let all = (0..topic.partitions.len() as i32).map(key);
        let ours: Vec<_> = all.filter(|&key| old.placement.shard_of(key) == Some(self.index)).collect();
        for some in ours.chunks(DELETIONS_AT_ONCE) {
            runtime::sync::all(some.iter().map(|&key| self.drop_partition(&topic.name, key)).collect()).await;
        }
        self.freed.add(topic.partitions.len(), clock::now_ms());
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
        if let Some(Slot::Opening(opening)) = self.partitions.slot(key) {
            opening.done.changed().await;
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
        // What lies in a folder that is offline goes when that is back: nobody has its topic then.
        let Ok(dir) = self.facts.dirs.home(key) else { return Ok(()) };
        let found = dir.found_partition(topic, key.partition);
        if found.is_some_and(|found| found.topic_id == Some(key.topic_id))
            && let Some(aside) = dir.discard(topic, key.partition, Some(key.topic_id)).await?
        {
            runtime::fs::remove_dir_all(&aside).await?;
        }
        Ok(())
    }
}
