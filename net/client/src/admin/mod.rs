//! Topics, configurations, groups, offsets, the cluster: what an operator asks for.
//!
//! An [`Admin`] is a [`Client`] with more to say; it keeps nothing of its own. Every call goes on by itself until
//! `default_api_timeout_ms` while what stands in the way is of the kind that passes (a coordinator that loads, a leader
//! that is being elected, a connection that broke), and finds leaders and coordinators again when they moved. Calls about
//! several things give a result for each, in the order they were asked for; the outer error is for what concerns all.
//!
//! A call that was repeated after its connection broke may find its own work done: creating then says "already exists",
//! deleting "unknown", as in Kafka's admin client.
//!
//! | file | noun |
//! |---|---|
//! | `topics.rs` | topics and partitions |
//! | `configs.rs` | configurations of topics and brokers |
//! | `groups.rs` | consumer groups and their members |
//! | `offsets.rs` | offsets of groups and of partitions; deleting records |
//! | `cluster.rs` | brokers, log directories, producers, the quorum |
//! | `coordinator.rs` | who coordinates a group |
//! | `leaders.rs` | questions about partitions, one request by leader node |
//! | `retry.rs` | what is tried again, and until when |

mod cluster;
mod configs;
pub mod coordinator;
mod groups;
mod leaders;
mod offsets;
mod retry;
mod topics;

use std::collections::BTreeMap;

pub use self::cluster::{
    ActiveProducer, ClusterDescription, DescribedBroker, LogDir, LogDirReplica, QuorumDescription, QuorumReplica,
};
pub use self::configs::{ConfigChange, ConfigEntry, ConfigOperation, ConfigResource, ConfigSource, ConfigType};
pub use self::groups::{GroupDescription, GroupListing, MemberDescription};
pub use self::offsets::{CommittedOffset, ListedOffset, NewOffset, OffsetSpec};
pub use self::topics::{CreatedTopic, NewTopic};
use crate::{Client, ClientError, TopicPartition};

/// What was asked about, each with its result.
pub type Each<K, T> = Vec<(K, Result<T, ClientError>)>;

#[derive(Clone, Debug)]
pub struct Admin {
    client: Client,
}

impl Admin {
    pub fn new(client: Client) -> Admin {
        Admin { client }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How long a broker may take for a request that has a time-out of its own.
    fn timeout_ms(&self) -> i32 {
        i32::try_from(self.client.config().request_timeout_ms).unwrap_or(i32::MAX)
    }
}

/// Partitions by topic, as requests list them.
fn by_topic<'a>(partitions: &'a [TopicPartition]) -> BTreeMap<&'a str, Vec<i32>> {
    let mut topics: BTreeMap<&'a str, Vec<i32>> = BTreeMap::new();
    for one in partitions {
        topics.entry(&one.topic).or_default().push(one.partition);
    }
    topics
}

/// For sentences.
fn label(partition: &TopicPartition) -> String {
    format!("{}-{}", partition.topic, partition.partition)
}

fn owned(text: &Option<std::borrow::Cow<'_, str>>) -> Option<String> {
    text.as_ref().map(|text| text.to_string())
}

#[cfg(test)]
#[path = "admin_tests.rs"]
mod tests;
