//! Kafka's broker properties that come in families and that this broker takes no part in: known by their prefix, so
//! that a file written for Kafka gets a reason instead of "unknown".

use super::property::Effect;

/// A family of names.
pub struct Family {
    pub prefix: &'static str,
    pub effect: Effect,
}

const fn refused(prefix: &'static str, reason: &'static str) -> Family {
    Family { prefix, effect: Effect::Refused(reason) }
}

const fn inert(prefix: &'static str, reason: &'static str) -> Family {
    Family { prefix, effect: Effect::Inert(reason) }
}

const NO_TLS: &str = "TLS is not built yet, so the node would be open where you expect it closed";
const NO_SASL: &str = "SASL is not built yet, so the node would be open where you expect it closed";

/// The table's rows go first; a longer prefix goes before a shorter one.
pub const FAMILIES: &[Family] = &[
    refused("ssl.", NO_TLS),
    refused("listener.name.", "listeners have no settings of their own yet"),
    refused("sasl.", NO_SASL),
    refused("super.users", "access control is not built yet"),
    refused("delegation.token.", NO_SASL),
    refused("zookeeper.", "ZooKeeper is not used; remove the line"),
    inert("connections.max.reauth.", "SASL is not built yet"),
    inert("connection.failed.authentication.", "SASL is not built yet"),
    refused("remote.log.storage.system.enable", "tiered storage is not built; remove the line"),
    inert("remote.", "tiered storage is not built"),
    inert("follower.fetch.last.tiered.", "tiered storage is not built"),
    inert("share.", "share groups are not built"),
    inert("group.share.", "share groups are not built"),
    inert("errors.deadletterqueue.", "share groups are not built"),
    inert("group.streams.", "streams groups are not built"),
    inert("group.consumer.", "groups of the consumer protocol are not built yet"),
    inert("group.coordinator.", "coordinators run on the shards of their partitions"),
    inert("controller.quorum.", "clusters of several nodes are not built yet"),
    inert("controller.socket.", "clusters of several nodes are not built yet"),
    inert("metadata.", "the metadata log has its own sizes and snapshots"),
    inert("kafka.metrics.", "metrics are kept by this broker's own means"),
    inert("leader.replication.throttled.", "clusters of several nodes are not built yet"),
    inert("follower.replication.throttled.", "clusters of several nodes are not built yet"),
    inert("replica.", "clusters of several nodes are not built yet"),
    inert("replication.quota.", "quotas are not built"),
    inert("alter.log.dirs.replication.quota.", "quotas are not built"),
    inert("controller.quota.", "quotas are not built"),
    inert("quota.window.", "quotas are not built"),
    inert("socket.connection.setup.", "clusters of several nodes are not built yet"),
    inert("add.partitions.to.txn.", "transactions are not built yet"),
    inert("early.start.listeners", "access control is not built yet"),
    inert("initial.broker.registration.", "clusters of several nodes are not built yet"),
    inert("delete.records.purgatory.", "waiting requests are taken off when they end"),
    inert("security.providers", "Java classes cannot be loaded"),
];

/// The family that `name` belongs to.
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| name.starts_with(family.prefix))
}
