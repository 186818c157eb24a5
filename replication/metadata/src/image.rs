//! The cluster's state at one version: immutable, shared, read by every shard without a lock.
//!
//! Lookups on the produce and fetch ways borrow from it and allocate nothing. A new version shares all it does not change
//! (`imbl` trees of `Arc`s): creating one topic among 10 000 copies a few tree nodes. Only [`crate::apply`] makes versions.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use model::{LeaderEpoch, NodeId, PartitionIndex, ProducerId, TopicId};

/// Configuration entries by Kafka's name, as text.
pub type Configs = BTreeMap<Arc<str>, Arc<str>>;

/// Random bits of one start of a broker: the same node with another incarnation is another process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub [u8; 16]);

/// A broker as it registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerRegistration {
    pub node: NodeId,
    pub incarnation: Incarnation,
    /// Grows with every registration of the node: the index of its command, as Kafka's is the offset of the record.
    pub epoch: i64,
    pub host: Arc<str>,
    pub port: u16,
    pub rack: Option<Arc<str>>,
}

/// Who holds a partition and who leads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// In order of preference: the first is the preferred leader.
    pub replicas: Arc<[NodeId]>,
    pub isr: Arc<[NodeId]>,
    /// `NodeId::NONE` while nobody may lead.
    pub leader: NodeId,
    pub leader_epoch: LeaderEpoch,
    /// Counts every change of this state; changes name the value they saw.
    pub partition_epoch: i32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub id: TopicId,
    pub name: Arc<str>,
    /// By partition index, without gaps.
    pub partitions: Vec<PartitionState>,
    /// What was set on the topic itself; defaults are not in here.
    pub configs: Arc<Configs>,
}

impl Topic {
    pub fn partition(&self, index: PartitionIndex) -> Option<&PartitionState> {
        self.partitions.get(usize::try_from(index.0).ok()?)
    }
}

/// What configuration entries belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigResource {
    Topic(TopicId),
    Broker(NodeId),
    /// The default of all brokers.
    BrokerDefault,
    Group(Arc<str>),
    ClientMetrics(Arc<str>),
}

/// What happened to a topic between two images.
#[derive(Debug, PartialEq, Eq)]
pub enum TopicChange<'a> {
    Created(&'a Arc<Topic>),
    Changed { old: &'a Arc<Topic>, new: &'a Arc<Topic> },
    Deleted(&'a Arc<Topic>),
}

/// One version of the cluster's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub(crate) version: u64,
    pub(crate) cluster_id: Option<Arc<str>>,
    pub(crate) brokers: OrdMap<NodeId, Arc<BrokerRegistration>>,
    pub(crate) topics: OrdMap<TopicId, Arc<Topic>>,
    pub(crate) topic_ids: OrdMap<Arc<str>, TopicId>,
    /// `collision_key` to the name that holds it, for the names that have one.
    pub(crate) collisions: OrdMap<Arc<str>, Arc<str>>,
    pub(crate) partition_count: u64,
    /// Of everything but topics, which carry their own.
    pub(crate) configs: OrdMap<ConfigResource, Arc<Configs>>,
    pub(crate) next_producer_id: i64,
    pub(crate) features: OrdMap<Arc<str>, i16>,
}

impl Image {
    /// Index of the last command that changed the state. Grows with every change; 0 before the first.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The 22 characters of the cluster's id; `None` until the cluster is formatted.
    pub fn cluster_id(&self) -> Option<&Arc<str>> {
        self.cluster_id.as_ref()
    }

    pub fn topic(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.topics.get(&id)
    }

    pub fn topic_by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(self.topic_ids.get(name)?)
    }

    pub fn topic_id(&self, name: &str) -> Option<TopicId> {
        self.topic_ids.get(name).copied()
    }

    pub fn partition(&self, id: TopicId, index: PartitionIndex) -> Option<&PartitionState> {
        self.topics.get(&id)?.partition(index)
    }

    /// All topics in the order of their names.
    pub fn topics_by_name(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.topic_ids.values().filter_map(|id| self.topics.get(id))
    }

    /// Topics in the order of their names, beginning with the first name that is not below `first`: a cursor for answers
    /// that come in pages.
    pub fn topics_from(&self, first: &str) -> impl Iterator<Item = &Arc<Topic>> {
        let range = (Bound::Included(first), Bound::Unbounded);
        self.topic_ids.range::<_, str>(range).filter_map(|(_, id)| self.topics.get(id))
    }

    /// All topics in the order of their ids.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.topics.values()
    }

    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    pub fn partition_count(&self) -> u64 {
        self.partition_count
    }

    pub fn broker(&self, node: NodeId) -> Option<&Arc<BrokerRegistration>> {
        self.brokers.get(&node)
    }

    /// All registered brokers in the order of their ids.
    pub fn brokers(&self) -> impl Iterator<Item = &Arc<BrokerRegistration>> {
        self.brokers.values()
    }

    pub fn broker_count(&self) -> usize {
        self.brokers.len()
    }

    /// What was set on `resource`; `None` when nothing was, or when the topic does not exist.
    pub fn configs(&self, resource: &ConfigResource) -> Option<&Arc<Configs>> {
        match resource {
            ConfigResource::Topic(id) => self.topics.get(id).map(|topic| &topic.configs),
            other => self.configs.get(other),
        }
    }

    /// Resources other than topics that have configuration entries, in order.
    pub fn config_resources(&self) -> impl Iterator<Item = (&ConfigResource, &Arc<Configs>)> {
        self.configs.iter()
    }

    /// The first producer id that no block holds yet.
    pub fn next_producer_id(&self) -> ProducerId {
        ProducerId(self.next_producer_id)
    }

    pub fn feature(&self, name: &str) -> Option<i16> {
        self.features.get(name).copied()
    }

    /// Finalised feature levels in the order of their names.
    pub fn features(&self) -> impl Iterator<Item = (&Arc<str>, i16)> {
        self.features.iter().map(|(name, level)| (name, *level))
    }

    /// What became of topics since `older`, in the order of their ids. Costs what changed, not what exists: shared parts
    /// of the two trees are skipped by their pointers.
    pub fn changed_topics_since<'a>(&'a self, older: &'a Image) -> impl Iterator<Item = TopicChange<'a>> {
        older.topics.diff(&self.topics).map(|item| match item {
            DiffItem::Add(_, new) => TopicChange::Created(new),
            DiffItem::Update { old: (_, old), new: (_, new) } => TopicChange::Changed { old, new },
            DiffItem::Remove(_, old) => TopicChange::Deleted(old),
        })
    }

    /// Puts `topic` in, over its older state if there is one, and keeps the derived maps in step.
    pub(crate) fn put_topic(&mut self, topic: Arc<Topic>) {
        self.partition_count += topic.partitions.len() as u64;
        match self.topics.insert(topic.id, Arc::clone(&topic)) {
            Some(old) => {
                assert_eq!(old.name, topic.name, "a topic keeps its name");
                self.partition_count -= old.partitions.len() as u64;
            }
            None => {
                let previous = self.topic_ids.insert(Arc::clone(&topic.name), topic.id);
                assert_eq!(previous, None, "a name belongs to one topic");
                if let Some(key) = crate::topic_name::collision_key(&topic.name) {
                    self.collisions.insert(key.into(), Arc::clone(&topic.name));
                }
            }
        }
    }

    pub(crate) fn take_topic(&mut self, id: TopicId) -> Option<Arc<Topic>> {
        let topic = self.topics.remove(&id)?;
        self.partition_count -= topic.partitions.len() as u64;
        let named = self.topic_ids.remove(&topic.name);
        assert_eq!(named, Some(id), "names and ids agree");
        if let Some(key) = crate::topic_name::collision_key(&topic.name) {
            self.collisions.remove(key.as_str());
        }
        Some(topic)
    }
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
