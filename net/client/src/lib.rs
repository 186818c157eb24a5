//! # Our own client: producer, consumer, admin
//!
//! What a program on the other end of the wire needs, for Ringlog and for Apache Kafka alike. Every part is a **core**
//! without I/O, clock or randomness of its own (state in, requests and events out: `link::core`, `producer::core`,
//! `consumer::fetcher`, `consumer::group`) and a thin **driver** on `runtime` that moves its bytes and keeps its time.
//! One shard with one event loop drives the connections to all brokers, so a program needs no thread per broker.
//!
//! Everything here is `Rc` and stays on the shard that made it.
//!
//! | module | noun |
//! |---|---|
//! | [`client`] | connections to all brokers, metadata, requests by node: what the others ask through |
//! | `link` | one connection: versions, correlation, order, deadlines |
//! | [`cluster`] | what the last Metadata answers said |
//! | [`producer`] | accumulator by partition, one Produce request by leader node, idempotence |
//! | [`consumer`] | fetch sessions, positions, group membership, commits |
//! | [`admin`] | topics, configurations, groups, the cluster |
//! | [`record`] | what goes in and comes out |

pub mod admin;
pub mod client;
pub mod cluster;
pub mod consumer;
pub mod consumer_protocol;
pub mod error;
pub mod fuzz_targets;
pub mod limits;
mod link;
pub mod producer;
pub mod record;

pub use client::{Answer, Client, ClientConfig, Destination, Pending};
pub use cluster::{Broker, Cluster, Partition, Topic};
pub use error::ClientError;
pub use record::{ConsumerRecord, Header, ProducerRecord, TopicPartition};
