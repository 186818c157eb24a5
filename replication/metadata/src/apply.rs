//! Applies commands to images: deterministic, total, without I/O. The only judge of names, epochs and assignments.
//!
//! Runs on the metadata shard for each committed command, and again for those behind the last snapshot at a start: the same
//! command at the same index on the same image gives the same image on every node, whatever its version of the outside world.

use std::sync::Arc;

use imbl::OrdMap;
use model::{NodeId, ProducerId, TopicId};

use crate::command::{Command, Outcome, Rejection};
use crate::image::{BrokerRegistration, Image, Incarnation};
use crate::limits::{MAX_HOST_LEN, MAX_PRODUCER_ID_BLOCK};

/// A new image with what came of the command, or why nothing did.
pub type Applied = Result<(Image, Outcome), Rejection>;

/// Applies `command`, which was committed at `index`.
pub fn apply(image: &Image, index: u64, command: &Command) -> Applied {
    assert!(index > image.version, "commands are applied in order");
    let mut next = image.clone();
    next.version = index;
    let outcome = change(&mut next, command)?;
    Ok((next, outcome))
}

/// A refused command may leave `image` half changed: the caller throws it away.
fn change(image: &mut Image, command: &Command) -> Result<Outcome, Rejection> {
    if let Command::FormatCluster { cluster_id, features } = command {
        return format_cluster(image, cluster_id, features);
    }
    if image.cluster_id.is_none() {
        return Err(Rejection::NotFormatted);
    }
    match command {
        Command::FormatCluster { .. } => Ok(Outcome::Done),
        Command::SetFeature { name, level } => set_feature(&mut image.features, name, *level).map(|()| Outcome::Done),
        Command::RegisterBroker { node, incarnation, host, port, rack } => {
            register_broker(image, *node, *incarnation, host, *port, rack.as_ref())
        }
        Command::CreateTopic { name, id, assignments, configs } => image.create_topic(name, *id, assignments, configs),
        Command::DeleteTopic { id } => image.delete_topic(*id),
        Command::AddPartitions { id, first, assignments } => image.add_partitions(*id, *first, assignments),
        Command::AlterConfigs { resource, change } => image.alter_configs(resource, change),
        Command::AllocateProducerIds { node, block_len } => allocate_producer_ids(image, *node, *block_len),
        Command::RaiseLeaderEpochs { node } => image.raise_leader_epochs(*node),
        Command::ChangeIsr { .. } => image.change_isr(command),
        Command::ChangeLeader { .. } => image.change_leader(command),
    }
}

fn format_cluster(
    image: &mut Image,
    cluster_id: &Arc<str>,
    features: &[(Arc<str>, i16)],
) -> Result<Outcome, Rejection> {
    match &image.cluster_id {
        Some(current) if current == cluster_id => return Ok(Outcome::Done),
        Some(current) => return Err(Rejection::ClusterIdMismatch { current: Arc::clone(current) }),
        None => {}
    }
    if TopicId::parse(cluster_id).is_none() {
        return Err(Rejection::InvalidClusterId);
    }
    image.cluster_id = Some(Arc::clone(cluster_id));
    for (name, level) in features {
        set_feature(&mut image.features, name, *level)?;
    }
    Ok(Outcome::Done)
}

/// Level 0 means that the feature is off, and takes the entry out.
fn set_feature(features: &mut OrdMap<Arc<str>, i16>, name: &Arc<str>, level: i16) -> Result<(), Rejection> {
    if name.is_empty() || name.len() > MAX_HOST_LEN || level < 0 {
        return Err(Rejection::InvalidFeature);
    }
    if level == 0 {
        features.remove(name);
    } else {
        features.insert(Arc::clone(name), level);
    }
    Ok(())
}

fn register_broker(
    image: &mut Image,
    node: NodeId,
    incarnation: Incarnation,
    host: &Arc<str>,
    port: u16,
    rack: Option<&Arc<str>>,
) -> Result<Outcome, Rejection> {
    if node.0 < 0 {
        return Err(Rejection::InvalidBroker("its id is negative"));
    }
    if host.is_empty() || host.len() > MAX_HOST_LEN || rack.is_some_and(|r| r.len() > MAX_HOST_LEN) {
        return Err(Rejection::InvalidBroker("its host is empty, or its host or rack too long"));
    }
    let mut registration = BrokerRegistration {
        node,
        incarnation,
        epoch: i64::try_from(image.version).map_err(|_| Rejection::Exhausted("broker epochs"))?,
        host: Arc::clone(host),
        port,
        rack: rack.cloned(),
    };
    if let Some(current) = image.brokers.get(&node) {
        // The answer to a registration may be lost and the broker ask again: it is still the same one.
        if current.incarnation == incarnation {
            registration.epoch = current.epoch;
        }
    }
    let epoch = registration.epoch;
    image.brokers.insert(node, Arc::new(registration));
    Ok(Outcome::BrokerRegistered { epoch })
}

fn allocate_producer_ids(image: &mut Image, node: NodeId, block_len: u32) -> Result<Outcome, Rejection> {
    if !image.brokers.contains_key(&node) {
        return Err(Rejection::UnknownBroker(node));
    }
    if block_len == 0 || block_len > MAX_PRODUCER_ID_BLOCK {
        return Err(Rejection::InvalidBlock);
    }
    let first = image.next_producer_id;
    image.next_producer_id = first.checked_add(i64::from(block_len)).ok_or(Rejection::Exhausted("producer ids"))?;
    Ok(Outcome::ProducerIds { first: ProducerId(first), len: block_len })
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
