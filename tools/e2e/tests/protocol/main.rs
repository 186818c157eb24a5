//! The protocol by hand, answer by answer: behaviour that bit people with other brokers, and bytes that no client sends.
//!
//! Against Apache Kafka the same tests pass, but for those that say why not.

#![allow(clippy::unwrap_used)]

mod any_request;
mod api_versions;
mod fetch;
mod group_offsets;
mod groups;
mod hostile;
mod idempotence;
mod internal_topics;
mod list_offsets;
mod produce;
mod timestamps;
mod topics;
mod transactions;

use ringlog_e2e::Broker;
use ringlog_e2e::raw::Raw;

/// A broker with one topic `t` of one partition, and a connection to it.
fn with_topic(configs: &[(&str, &str)]) -> (Broker, Raw) {
    let broker = Broker::start();
    let mut raw = Raw::connect(&broker);
    ringlog_e2e::requests::create_topic(&mut raw, "t", 1, configs);
    (broker, raw)
}
