//! The one table of configuration properties, and everything that is read off it.
//!
//! Each property is declared once, in a row ([`Property`]): Kafka's name, type, default, unit, bounds, whether a
//! running node takes it, what becomes of a set value, one sentence. From the rows come the parser, the typed
//! [`BrokerConfig`] and [`TopicConfig`], DescribeConfigs, `--help` and the reference. All of it runs at start, at a
//! change or on request, never on the produce or fetch way: those read plain fields of a `TopicConfig`.

mod broker;
mod broker_group_table;
mod broker_log_table;
mod broker_node_table;
mod describe;
mod error;
mod families;
mod layers;
mod listener;
mod properties_file;
mod property;
mod reference;
mod suggest;
mod table;
mod topic;
mod topic_table;
mod value;

pub use broker::{BrokerConfig, CleanerConfig, ConnectionConfig, GroupConfig, NodeConfig, ShardConfig, TopicsConfig};
pub use describe::{Described, Source, SynonymValue, describe_broker, describe_topic};
pub use error::ConfigError;
pub use families::{FAMILIES, Family, family};
pub use listener::Listener;
pub use properties_file::{PropertyLine, parse_pair, parse_properties};
pub use property::{BLOCK_BYTES, Bounds, Effect, Kind, Property, Scope, Unit, Update};
pub use reference::{help_text, reference_markdown};
pub use table::{all, find};
pub use topic::{CleanupPolicy, Durability, TimestampType, TopicConfig, Validation, validate_topic};
pub use value::{Value, parse};

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
