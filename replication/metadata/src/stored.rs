//! Commands in bytes: `rkyv` inside an envelope. The types here are the format; those of [`crate::command`] may change freely.
//!
//! A change of a type here is a new version: the old type stays, under its version's name, as long as journals may hold it.

use std::sync::Arc;

use model::{LeaderEpoch, NodeId, PartitionIndex, TopicId};
use rkyv::rancor;
use rkyv::util::AlignedVec;
use rkyv::vec::ArchivedVec;
use rkyv::{Archive, Serialize};

use crate::command::{Command, ConfigChange, ConfigOp};
use crate::envelope::{self, EnvelopeError, Kind};
use crate::error::MetadataError;
use crate::image::{ConfigResource, Incarnation};
use crate::limits::MAX_COMMAND_LEN;

pub const COMMAND_VERSION: u16 = 1;

/// Name and value of a configuration entry.
#[derive(Archive, Serialize)]
pub struct StoredEntry {
    pub key: String,
    pub value: String,
}

#[derive(Archive, Serialize)]
pub struct StoredFeature {
    pub name: String,
    pub level: i16,
}

#[derive(Archive, Serialize)]
pub enum StoredResource {
    Topic([u8; 16]),
    Broker(i32),
    BrokerDefault,
    Group(String),
    ClientMetrics(String),
}

#[derive(Archive, Serialize)]
pub enum StoredOp {
    Set { key: String, value: String },
    Delete { key: String },
    Append { key: String, items: String, default: String },
    Subtract { key: String, items: String, default: String },
}

#[derive(Archive, Serialize)]
pub enum StoredCommand {
    FormatCluster { cluster_id: String, features: Vec<StoredFeature> },
    SetFeature { name: String, level: i16 },
    RegisterBroker { node: i32, incarnation: [u8; 16], host: String, port: u16, rack: Option<String> },
    CreateTopic { name: String, id: [u8; 16], assignments: Vec<Vec<i32>>, configs: Vec<StoredEntry> },
    DeleteTopic { id: [u8; 16] },
    AddPartitions { id: [u8; 16], first: i32, assignments: Vec<Vec<i32>> },
    ReplaceConfigs { resource: StoredResource, entries: Vec<StoredEntry> },
    ChangeConfigs { resource: StoredResource, ops: Vec<StoredOp> },
    AllocateProducerIds { node: i32, block_len: u32 },
    RaiseLeaderEpochs { node: i32 },
    ChangeIsr { id: [u8; 16], partition: i32, leader: i32, leader_epoch: i32, partition_epoch: i32, isr: Vec<i32> },
    ChangeLeader { id: [u8; 16], partition: i32, partition_epoch: i32, leader: i32, unclean: bool },
}

/// The bytes that are proposed and kept.
pub fn encode_command(command: &Command) -> Result<Vec<u8>, MetadataError> {
    let payload = rkyv::to_bytes::<rancor::Error>(&to_stored(command)).map_err(|_| MetadataError::Encoding)?;
    if payload.len() > MAX_COMMAND_LEN {
        return Err(MetadataError::CommandTooLarge { len: payload.len() });
    }
    Ok(envelope::seal(Kind::Command, COMMAND_VERSION, 0, &payload))
}

/// Reads a command from any bytes. `index` only names it in an error.
pub fn decode_command(bytes: &[u8], index: u64) -> Result<Command, MetadataError> {
    let opened =
        envelope::open_whole(bytes, Kind::Command, COMMAND_VERSION, 0, MAX_COMMAND_LEN).map_err(
            |error| match error {
                EnvelopeError::Newer { version, newest } => {
                    MetadataError::NewerVersion { what: "metadata command", version, newest }
                }
                _ => MetadataError::DamagedCommand { index },
            },
        )?;
    let payload = aligned(opened.payload);
    let stored = rkyv::access::<ArchivedStoredCommand, rancor::Error>(&payload)
        .map_err(|_| MetadataError::DamagedCommand { index })?;
    Ok(from_stored(stored))
}

/// A copy at an alignment that archived types can be read from in place.
pub(crate) fn aligned(payload: &[u8]) -> AlignedVec<16> {
    let mut copy = AlignedVec::<16>::with_capacity(payload.len());
    copy.extend_from_slice(payload);
    copy
}

fn to_stored(command: &Command) -> StoredCommand {
    match command {
        Command::FormatCluster { cluster_id, features } => StoredCommand::FormatCluster {
            cluster_id: cluster_id.to_string(),
            features: features
                .iter()
                .map(|(name, level)| StoredFeature { name: name.to_string(), level: *level })
                .collect(),
        },
        Command::SetFeature { name, level } => StoredCommand::SetFeature { name: name.to_string(), level: *level },
        Command::RegisterBroker { node, incarnation, host, port, rack } => StoredCommand::RegisterBroker {
            node: node.0,
            incarnation: incarnation.0,
            host: host.to_string(),
            port: *port,
            rack: rack.as_ref().map(|rack| rack.to_string()),
        },
        Command::CreateTopic { name, id, assignments, configs } => StoredCommand::CreateTopic {
            name: name.to_string(),
            id: id.0,
            assignments: to_assignments(assignments),
            configs: to_entries(configs.iter().map(|(key, value)| (key, value))),
        },
        Command::DeleteTopic { id } => StoredCommand::DeleteTopic { id: id.0 },
        Command::AddPartitions { id, first, assignments } => {
            StoredCommand::AddPartitions { id: id.0, first: first.0, assignments: to_assignments(assignments) }
        }
        Command::AlterConfigs { resource, change } => to_alter_configs(resource, change),
        Command::AllocateProducerIds { node, block_len } => {
            StoredCommand::AllocateProducerIds { node: node.0, block_len: *block_len }
        }
        Command::RaiseLeaderEpochs { node } => StoredCommand::RaiseLeaderEpochs { node: node.0 },
        Command::ChangeIsr { id, partition, leader, leader_epoch, partition_epoch, isr } => StoredCommand::ChangeIsr {
            id: id.0,
            partition: partition.0,
            leader: leader.0,
            leader_epoch: leader_epoch.0,
            partition_epoch: *partition_epoch,
            isr: to_nodes(isr),
        },
        Command::ChangeLeader { id, partition, partition_epoch, leader, unclean } => StoredCommand::ChangeLeader {
            id: id.0,
            partition: partition.0,
            partition_epoch: *partition_epoch,
            leader: leader.0,
            unclean: *unclean,
        },
    }
}

fn to_alter_configs(resource: &ConfigResource, change: &ConfigChange) -> StoredCommand {
    let resource = to_resource(resource);
    match change {
        ConfigChange::Replace(entries) => StoredCommand::ReplaceConfigs {
            resource,
            entries: to_entries(entries.iter().map(|(key, value)| (key, value))),
        },
        ConfigChange::Incremental(ops) => {
            StoredCommand::ChangeConfigs { resource, ops: ops.iter().map(|(key, op)| to_op(key, op)).collect() }
        }
    }
}

fn to_op(key: &str, op: &ConfigOp) -> StoredOp {
    let key = key.to_string();
    match op {
        ConfigOp::Set(value) => StoredOp::Set { key, value: value.to_string() },
        ConfigOp::Delete => StoredOp::Delete { key },
        ConfigOp::Append { items, default } => {
            StoredOp::Append { key, items: items.to_string(), default: default.to_string() }
        }
        ConfigOp::Subtract { items, default } => {
            StoredOp::Subtract { key, items: items.to_string(), default: default.to_string() }
        }
    }
}

pub(crate) fn to_resource(resource: &ConfigResource) -> StoredResource {
    match resource {
        ConfigResource::Topic(id) => StoredResource::Topic(id.0),
        ConfigResource::Broker(node) => StoredResource::Broker(node.0),
        ConfigResource::BrokerDefault => StoredResource::BrokerDefault,
        ConfigResource::Group(name) => StoredResource::Group(name.to_string()),
        ConfigResource::ClientMetrics(name) => StoredResource::ClientMetrics(name.to_string()),
    }
}

pub(crate) fn to_entries<'a>(entries: impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>)>) -> Vec<StoredEntry> {
    entries.map(|(key, value)| StoredEntry { key: key.to_string(), value: value.to_string() }).collect()
}

pub(crate) fn to_nodes(nodes: &[NodeId]) -> Vec<i32> {
    nodes.iter().map(|node| node.0).collect()
}

fn to_assignments(assignments: &[Vec<NodeId>]) -> Vec<Vec<i32>> {
    assignments.iter().map(|nodes| to_nodes(nodes)).collect()
}

fn from_stored(stored: &ArchivedStoredCommand) -> Command {
    match stored {
        ArchivedStoredCommand::FormatCluster { cluster_id, features } => Command::FormatCluster {
            cluster_id: cluster_id.as_str().into(),
            features: features.iter().map(|f| (f.name.as_str().into(), f.level.to_native())).collect(),
        },
        ArchivedStoredCommand::SetFeature { name, level } => {
            Command::SetFeature { name: name.as_str().into(), level: level.to_native() }
        }
        ArchivedStoredCommand::RegisterBroker { node, incarnation, host, port, rack } => Command::RegisterBroker {
            node: NodeId(node.to_native()),
            incarnation: Incarnation(*incarnation),
            host: host.as_str().into(),
            port: port.to_native(),
            rack: rack.as_ref().map(|rack| rack.as_str().into()),
        },
        ArchivedStoredCommand::CreateTopic { name, id, assignments, configs } => Command::CreateTopic {
            name: name.as_str().into(),
            id: TopicId(*id),
            assignments: assignments.iter().map(from_nodes).collect(),
            configs: configs.iter().map(from_entry).collect(),
        },
        ArchivedStoredCommand::DeleteTopic { id } => Command::DeleteTopic { id: TopicId(*id) },
        ArchivedStoredCommand::AddPartitions { id, first, assignments } => Command::AddPartitions {
            id: TopicId(*id),
            first: PartitionIndex(first.to_native()),
            assignments: assignments.iter().map(from_nodes).collect(),
        },
        ArchivedStoredCommand::ReplaceConfigs { resource, entries } => Command::AlterConfigs {
            resource: from_resource(resource),
            change: ConfigChange::Replace(entries.iter().map(from_entry).collect()),
        },
        ArchivedStoredCommand::ChangeConfigs { resource, ops } => Command::AlterConfigs {
            resource: from_resource(resource),
            change: ConfigChange::Incremental(ops.iter().map(from_op).collect()),
        },
        ArchivedStoredCommand::AllocateProducerIds { node, block_len } => {
            Command::AllocateProducerIds { node: NodeId(node.to_native()), block_len: block_len.to_native() }
        }
        ArchivedStoredCommand::RaiseLeaderEpochs { node } => {
            Command::RaiseLeaderEpochs { node: NodeId(node.to_native()) }
        }
        ArchivedStoredCommand::ChangeIsr { id, partition, leader, leader_epoch, partition_epoch, isr } => {
            Command::ChangeIsr {
                id: TopicId(*id),
                partition: PartitionIndex(partition.to_native()),
                leader: NodeId(leader.to_native()),
                leader_epoch: LeaderEpoch(leader_epoch.to_native()),
                partition_epoch: partition_epoch.to_native(),
                isr: from_nodes(isr),
            }
        }
        ArchivedStoredCommand::ChangeLeader { id, partition, partition_epoch, leader, unclean } => {
            Command::ChangeLeader {
                id: TopicId(*id),
                partition: PartitionIndex(partition.to_native()),
                partition_epoch: partition_epoch.to_native(),
                leader: NodeId(leader.to_native()),
                unclean: *unclean,
            }
        }
    }
}

fn from_op(op: &ArchivedStoredOp) -> (Arc<str>, ConfigOp) {
    match op {
        ArchivedStoredOp::Set { key, value } => (key.as_str().into(), ConfigOp::Set(value.as_str().into())),
        ArchivedStoredOp::Delete { key } => (key.as_str().into(), ConfigOp::Delete),
        ArchivedStoredOp::Append { key, items, default } => {
            (key.as_str().into(), ConfigOp::Append { items: items.as_str().into(), default: default.as_str().into() })
        }
        ArchivedStoredOp::Subtract { key, items, default } => {
            (key.as_str().into(), ConfigOp::Subtract { items: items.as_str().into(), default: default.as_str().into() })
        }
    }
}

pub(crate) fn from_resource(resource: &ArchivedStoredResource) -> ConfigResource {
    match resource {
        ArchivedStoredResource::Topic(id) => ConfigResource::Topic(TopicId(*id)),
        ArchivedStoredResource::Broker(node) => ConfigResource::Broker(NodeId(node.to_native())),
        ArchivedStoredResource::BrokerDefault => ConfigResource::BrokerDefault,
        ArchivedStoredResource::Group(name) => ConfigResource::Group(name.as_str().into()),
        ArchivedStoredResource::ClientMetrics(name) => ConfigResource::ClientMetrics(name.as_str().into()),
    }
}

pub(crate) fn from_entry(entry: &ArchivedStoredEntry) -> (Arc<str>, Arc<str>) {
    (entry.key.as_str().into(), entry.value.as_str().into())
}

fn from_nodes(nodes: &ArchivedVec<rkyv::rend::i32_le>) -> Vec<NodeId> {
    nodes.iter().map(|node| NodeId(node.to_native())).collect()
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
