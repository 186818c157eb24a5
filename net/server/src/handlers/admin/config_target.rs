//! Which resource a configuration request means: the number and name on the wire, read against the cluster's image.

use metadata::ConfigResource;
use model::{ErrorCode, NodeId};

use super::{Refusal, names};
use crate::view::View;

/// Kafka's numbers of resources.
pub const TOPIC: i8 = 2;
pub const BROKER: i8 = 4;
pub const BROKER_LOGGER: i8 = 8;
pub const CLIENT_METRICS: i8 = 16;
pub const GROUP: i8 = 32;

/// Whether the protocol knows the number.
pub fn is_known(resource_type: i8) -> bool {
    matches!(resource_type, TOPIC | BROKER | BROKER_LOGGER | CLIENT_METRICS | GROUP)
}

/// The resource whose entries a client wants to change.
pub fn of_change(view: &View, node: NodeId, resource_type: i8, name: &str) -> Result<ConfigResource, Refusal> {
    match resource_type {
        TOPIC if name.is_empty() => Err(Refusal::invalid_request("Default topic resources are not allowed.")),
        TOPIC => {
            names::check(name)?;
            view.image.topic_id(name).map(ConfigResource::Topic).ok_or_else(|| {
                Refusal::new(ErrorCode::UnknownTopicOrPartition, format!("The topic '{name}' does not exist."))
            })
        }
        BROKER if name.is_empty() => Ok(ConfigResource::BrokerDefault),
        BROKER => broker(node, name).map(ConfigResource::Broker),
        BROKER_LOGGER => broker(node, name).and(Err(no_loggers())),
        CLIENT_METRICS => Err(Refusal::invalid_request("Client metrics subscriptions are not built yet.")),
        GROUP => Err(Refusal::invalid_request("Groups have no configurations of their own yet.")),
        other => Err(Refusal::invalid_request(format!("Unknown resource type {other}"))),
    }
}

pub fn no_loggers() -> Refusal {
    Refusal::invalid_request("This broker has no loggers whose levels could be seen or set.")
}

/// This broker's id in text.
pub fn broker(node: NodeId, name: &str) -> Result<NodeId, Refusal> {
    match name.parse::<i32>() {
        Ok(id) if id == node.0 => Ok(node),
        Ok(id) => Err(Refusal::invalid_request(format!("Unexpected broker id, expected {node}, but received {id}"))),
        Err(_) => Err(Refusal::invalid_request(format!("Broker id must be an integer, but it is: {name}"))),
    }
}

#[cfg(test)]
#[path = "config_target_tests.rs"]
mod tests;
