//! The rows together, and finding one by name.

use super::property::{Property, Scope};
use super::{broker_group_table, broker_log_table, broker_node_table, topic_table};

/// In the order of the reference.
const TABLES: &[&[Property]] = &[
    topic_table::TOPIC,
    broker_node_table::NODE,
    broker_log_table::LOG,
    broker_log_table::TOPICS,
    broker_group_table::GROUPS,
    broker_group_table::PRODUCERS,
    broker_node_table::CONNECTIONS,
    broker_node_table::SHARDS,
    broker_log_table::LOG_INERT,
    broker_node_table::NODE_INERT,
    broker_node_table::NODE_REFUSED,
];

/// Every property.
pub fn all() -> impl Iterator<Item = &'static Property> {
    TABLES.iter().flat_map(|rows| rows.iter())
}

/// The property of that name and scope.
pub fn find(scope: Scope, name: &str) -> Option<&'static Property> {
    all().find(|property| property.scope == scope && property.name == name)
}
