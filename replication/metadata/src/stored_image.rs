//! Images in bytes: what a snapshot holds. `rkyv` inside an envelope, as [`crate::stored`] has it for commands.
//!
//! Reading checks everything the types of the image promise: an image that was read can be applied to like any other.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{LeaderEpoch, NodeId, TopicId};
use rkyv::rancor;
use rkyv::vec::ArchivedVec;
use rkyv::{Archive, Serialize};

use crate::envelope::{self, Kind};
use crate::error::MetadataError;
use crate::image::{BrokerRegistration, ConfigResource, Configs, Image, Incarnation, PartitionState, Topic};
use crate::limits::{MAX_INDEX, MAX_SNAPSHOT_LEN};
use crate::stored::{StoredEntry, StoredFeature, StoredResource, aligned, from_entry, from_resource};
use crate::stored::{to_entries, to_nodes, to_resource};
use crate::topic_name::{check_topic_name, collision_key};

pub const SNAPSHOT_VERSION: u16 = 1;

#[derive(Archive, Serialize)]
pub struct StoredSnapshot {
    pub index: u64,
    pub term: u64,
    pub image: StoredImage,
}

#[derive(Archive, Serialize)]
pub struct StoredImage {
    pub version: u64,
    pub cluster_id: Option<String>,
    pub brokers: Vec<StoredBroker>,
    pub topics: Vec<StoredTopic>,
    pub configs: Vec<StoredConfigs>,
    pub next_producer_id: i64,
    pub features: Vec<StoredFeature>,
}

#[derive(Archive, Serialize)]
pub struct StoredBroker {
    pub node: i32,
    pub incarnation: [u8; 16],
    pub epoch: i64,
    pub host: String,
    pub port: u16,
    pub rack: Option<String>,
}

#[derive(Archive, Serialize)]
pub struct StoredTopic {
    pub id: [u8; 16],
    pub name: String,
    pub partitions: Vec<StoredPartition>,
    pub configs: Vec<StoredEntry>,
}

#[derive(Archive, Serialize)]
pub struct StoredPartition {
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
    pub leader: i32,
    pub leader_epoch: i32,
    pub partition_epoch: i32,
}

#[derive(Archive, Serialize)]
pub struct StoredConfigs {
    pub resource: StoredResource,
    pub entries: Vec<StoredEntry>,
}

/// What a snapshot says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last entry it covers.
    pub index: u64,
    pub term: u64,
    pub image: Image,
}

pub fn encode_snapshot(index: u64, term: u64, image: &Image) -> Result<Vec<u8>, MetadataError> {
    let stored = StoredSnapshot { index, term, image: to_stored(image) };
    let payload = rkyv::to_bytes::<rancor::Error>(&stored).map_err(|_| MetadataError::Encoding)?;
    if payload.len() > MAX_SNAPSHOT_LEN {
        return Err(MetadataError::Encoding);
    }
    Ok(envelope::seal(Kind::Snapshot, SNAPSHOT_VERSION, 0, &payload))
}

/// Reads a snapshot from any bytes.
pub fn decode_snapshot(bytes: &[u8]) -> Result<Snapshot, MetadataError> {
    let opened = envelope::open_whole(bytes, Kind::Snapshot, SNAPSHOT_VERSION, 0, MAX_SNAPSHOT_LEN)
        .map_err(MetadataError::in_snapshot)?;
    let payload = aligned(opened.payload);
    let stored = rkyv::access::<ArchivedStoredSnapshot, rancor::Error>(&payload)
        .map_err(|_| MetadataError::DamagedSnapshot { what: "its structure is broken" })?;
    let (index, term) = (stored.index.to_native(), stored.term.to_native());
    let image = from_stored(&stored.image).map_err(|what| MetadataError::DamagedSnapshot { what })?;
    if index == 0 || index > MAX_INDEX || term > MAX_INDEX || image.version > index {
        return Err(MetadataError::DamagedSnapshot { what: "its position is impossible" });
    }
    Ok(Snapshot { index, term, image })
}

fn to_stored(image: &Image) -> StoredImage {
    StoredImage {
        version: image.version,
        cluster_id: image.cluster_id.as_ref().map(|id| id.to_string()),
        brokers: image.brokers.values().map(|broker| to_broker(broker)).collect(),
        topics: image.topics.values().map(|topic| to_topic(topic)).collect(),
        configs: image
            .configs
            .iter()
            .map(|(resource, entries)| StoredConfigs {
                resource: to_resource(resource),
                entries: to_entries(entries.iter()),
            })
            .collect(),
        next_producer_id: image.next_producer_id,
        features: image
            .features
            .iter()
            .map(|(name, level)| StoredFeature { name: name.to_string(), level: *level })
            .collect(),
    }
}

fn to_broker(broker: &BrokerRegistration) -> StoredBroker {
    StoredBroker {
        node: broker.node.0,
        incarnation: broker.incarnation.0,
        epoch: broker.epoch,
        host: broker.host.to_string(),
        port: broker.port,
        rack: broker.rack.as_ref().map(|rack| rack.to_string()),
    }
}

fn to_topic(topic: &Topic) -> StoredTopic {
    let partitions = topic.partitions.iter().map(|partition| StoredPartition {
        replicas: to_nodes(&partition.replicas),
        isr: to_nodes(&partition.isr),
        leader: partition.leader.0,
        leader_epoch: partition.leader_epoch.0,
        partition_epoch: partition.partition_epoch,
    });
    StoredTopic {
        id: topic.id.0,
        name: topic.name.to_string(),
        partitions: partitions.collect(),
        configs: to_entries(topic.configs.iter()),
    }
}

/// Node lists seen so far: most partitions have the same few, and share them.
type NodeSets = BTreeMap<Vec<NodeId>, Arc<[NodeId]>>;

fn from_stored(stored: &ArchivedStoredImage) -> Result<Image, &'static str> {
    let mut image = Image {
        version: stored.version.to_native(),
        cluster_id: stored.cluster_id.as_ref().map(|id| id.as_str().into()),
        next_producer_id: stored.next_producer_id.to_native(),
        features: stored.features.iter().map(|f| (Arc::<str>::from(f.name.as_str()), f.level.to_native())).collect(),
        ..Image::default()
    };
    if image.cluster_id.as_ref().is_some_and(|id| TopicId::parse(id).is_none()) || image.next_producer_id < 0 {
        return Err("its cluster id or next producer id is impossible");
    }
    for broker in stored.brokers.iter() {
        let broker = from_broker(broker);
        image.brokers.insert(broker.node, Arc::new(broker));
    }
    let (mut sets, mut no_configs) = (NodeSets::new(), None);
    for topic in stored.topics.iter() {
        let topic = from_topic(topic, &mut sets, &mut no_configs)?;
        let collides = collision_key(&topic.name).is_some_and(|key| image.collisions.contains_key(key.as_str()));
        if collides || image.topics.contains_key(&topic.id) || image.topic_ids.contains_key(&topic.name) {
            return Err("it names a topic twice");
        }
        image.put_topic(Arc::new(topic));
    }
    for configs in stored.configs.iter() {
        let resource = from_resource(&configs.resource);
        if matches!(resource, ConfigResource::Topic(_)) {
            return Err("a topic's configuration is in the wrong place");
        }
        image.configs.insert(resource, Arc::new(configs.entries.iter().map(from_entry).collect()));
    }
    Ok(image)
}

fn from_broker(broker: &ArchivedStoredBroker) -> BrokerRegistration {
    BrokerRegistration {
        node: NodeId(broker.node.to_native()),
        incarnation: Incarnation(broker.incarnation),
        epoch: broker.epoch.to_native(),
        host: broker.host.as_str().into(),
        port: broker.port.to_native(),
        rack: broker.rack.as_ref().map(|rack| rack.as_str().into()),
    }
}

fn from_topic(
    topic: &ArchivedStoredTopic,
    sets: &mut NodeSets,
    no_configs: &mut Option<Arc<Configs>>,
) -> Result<Topic, &'static str> {
    let id = TopicId(topic.id);
    if id.is_zero() || check_topic_name(topic.name.as_str()).is_err() {
        return Err("a topic's id or name is impossible");
    }
    let mut partitions = Vec::with_capacity(topic.partitions.len());
    for partition in topic.partitions.iter() {
        partitions.push(PartitionState {
            replicas: from_nodes(&partition.replicas, sets),
            isr: from_nodes(&partition.isr, sets),
            leader: NodeId(partition.leader.to_native()),
            leader_epoch: LeaderEpoch(partition.leader_epoch.to_native()),
            partition_epoch: partition.partition_epoch.to_native(),
        });
    }
    if partitions.is_empty() || partitions.iter().any(|p| p.replicas.is_empty()) {
        return Err("a topic has no partition, or a partition no replica");
    }
    let configs = if topic.configs.is_empty() {
        Arc::clone(no_configs.get_or_insert_default())
    } else {
        Arc::new(topic.configs.iter().map(from_entry).collect())
    };
    Ok(Topic { id, name: topic.name.as_str().into(), partitions, configs })
}

fn from_nodes(nodes: &ArchivedVec<rkyv::rend::i32_le>, sets: &mut NodeSets) -> Arc<[NodeId]> {
    let nodes: Vec<NodeId> = nodes.iter().map(|node| NodeId(node.to_native())).collect();
    if let Some(shared) = sets.get(&nodes) {
        return Arc::clone(shared);
    }
    let shared: Arc<[NodeId]> = nodes.as_slice().into();
    sets.insert(nodes, Arc::clone(&shared));
    shared
}

#[cfg(test)]
#[path = "stored_image_tests.rs"]
mod tests;
