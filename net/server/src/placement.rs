//! Which shard of this process owns which partition.
//!
//! A local decision: no file names a shard, so the number of shards may change at any start. Computed on shard 0 with
//! each new cluster image and handed to all shards together with it; partitions keep their shard while the process lives.

use std::sync::Arc;

use imbl::OrdMap;
use metadata::{Image, TopicChange};
use model::{PartitionKey, TopicId};

/// Owners by topic and partition. Cheap to clone; shares what did not change.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    topics: OrdMap<TopicId, Arc<[u16]>>,
    /// Partitions on each shard.
    loads: Vec<usize>,
}

impl Placement {
    pub fn new(shards: usize) -> Placement {
        Placement { topics: OrdMap::new(), loads: vec![0; shards] }
    }

    /// The shard that owns a partition; `None` when the partition does not exist.
    pub fn shard_of(&self, key: PartitionKey) -> Option<usize> {
        let owners = self.topics.get(&key.topic_id)?;
        owners.get(usize::try_from(key.partition.0).ok()?).map(|&s| usize::from(s))
    }

    /// Partitions on a shard.
    pub fn load(&self, shard: usize) -> usize {
        self.loads.get(shard).copied().unwrap_or(0)
    }

    /// Follows the image from `old` to `new`: new partitions go to the shard with the fewest.
    pub fn follow(&mut self, old: &Image, new: &Image) {
        for change in new.changed_topics_since(old) {
            match change {
                TopicChange::Created(topic) | TopicChange::Changed { new: topic, .. } => {
                    self.place(topic.id, topic.partitions.len());
                }
                TopicChange::Deleted(topic) => self.forget(topic.id),
            }
        }
    }

    fn place(&mut self, id: TopicId, partitions: usize) {
        let known: &[u16] = self.topics.get(&id).map_or(&[], |owners| owners);
        if known.len() >= partitions {
            return;
        }
        let mut owners = known.to_vec();
        while owners.len() < partitions {
            let least = self.loads.iter().enumerate().min_by_key(|&(_, load)| load).map_or(0, |(shard, _)| shard);
            self.loads[least] += 1;
            owners.push(least as u16);
        }
        self.topics.insert(id, owners.into());
    }

    fn forget(&mut self, id: TopicId) {
        for owner in self.topics.remove(&id).iter().flat_map(|owners| owners.iter()) {
            self.loads[usize::from(*owner)] -= 1;
        }
    }
}
