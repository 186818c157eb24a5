//! What a shard knows of the cluster and of this node's configuration: immutable, replaced whole.

use std::sync::Arc;

use metadata::{ConfigResource, Image, Topic};
use model::config::{BrokerConfig, ConfigError, TopicConfig};
use model::{NodeId, PartitionIndex, PartitionKey, TopicId};
use wire::TopicRef;

use crate::placement::Placement;

/// Name of the topic that holds committed offsets.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";
/// Names that only the broker may create: Kafka's internal topics.
pub const INTERNAL_TOPICS: [&str; 4] =
    [OFFSETS_TOPIC, "__transaction_state", "__share_group_state", "__cluster_metadata"];

pub fn is_internal(name: &str) -> bool {
    INTERNAL_TOPICS.contains(&name)
}

/// One version of everything that all shards agree on.
#[derive(Clone, Debug)]
pub struct View {
    pub image: Arc<Image>,
    pub placement: Placement,
    /// The configuration in force, with what was set while running.
    pub config: Arc<BrokerConfig>,
}

/// A partition found in the view.
#[derive(Clone, Copy, Debug)]
pub struct Located {
    pub key: PartitionKey,
    /// The owning shard of this process.
    pub shard: usize,
}

impl View {
    pub fn topic(&self, topic: TopicRef<'_>) -> Option<&Arc<Topic>> {
        match topic {
            TopicRef::Name(name) => self.image.topic_by_name(name),
            TopicRef::Id(id) => self.image.topic(TopicId(id)),
        }
    }

    pub fn locate(&self, topic: TopicRef<'_>, partition: i32) -> Option<Located> {
        let topic = self.topic(topic)?;
        let key = PartitionKey { topic_id: topic.id, partition: PartitionIndex(partition) };
        Some(Located { key, shard: self.placement.shard_of(key)? })
    }

    /// The configuration in force of a topic.
    pub fn topic_config(&self, topic: &Topic) -> Result<TopicConfig, ConfigError> {
        TopicConfig::resolve(&self.config, topic.configs.iter().map(|(k, v)| (k.as_ref(), v.as_ref())))
    }

    /// `base` with what the image says was set while running.
    pub fn effective_config(base: &BrokerConfig, image: &Image, node: NodeId) -> Result<BrokerConfig, ConfigError> {
        let pairs = |resource: &ConfigResource| -> Vec<(String, String)> {
            let configs = image.configs(resource).into_iter().flat_map(|c| c.iter());
            configs.map(|(k, v)| (k.to_string(), v.to_string())).collect()
        };
        let for_all = pairs(&ConfigResource::BrokerDefault);
        let for_this = pairs(&ConfigResource::Broker(node));
        base.with_dynamic(
            for_all.iter().map(|(k, v)| (k.as_str(), v.as_str())),
            for_this.iter().map(|(k, v)| (k.as_str(), v.as_str())),
        )
    }
}
