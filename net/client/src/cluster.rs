//! What the last Metadata answers said. Replaced whole, so that whoever holds an `Rc<Cluster>` sees one moment.
//!
//! A partition's leader never goes back to an older leader epoch: an answer from a broker that lags is not believed. A
//! topic that was deleted and made again has another id, and then nothing of the old one counts.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::ErrorCode;
use wire::generated::metadata::{MetadataResponse, MetadataResponsePartition, MetadataResponseTopic};

use crate::limits::MAX_BROKERS;
use crate::{ClientError, TopicPartition};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    pub id: i32,
    pub host: String,
    pub port: u16,
    pub rack: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Node id; -1: no leader now.
    pub leader: i32,
    /// -1 when the broker does not say.
    pub leader_epoch: i32,
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
    pub offline: Vec<i32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: Rc<str>,
    /// All zero when the broker gives none.
    pub id: [u8; 16],
    pub is_internal: bool,
    /// By index; the broker's list is checked to have no gap.
    pub partitions: Vec<Partition>,
}

/// One moment of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    pub cluster_id: Option<String>,
    /// Node id; -1: not known.
    pub controller: i32,
    pub brokers: BTreeMap<i32, Broker>,
    pub topics: BTreeMap<Rc<str>, Topic>,
    /// Topics that were asked for and answered with an error, by error number.
    pub failed_topics: BTreeMap<Rc<str>, i16>,
    /// Counts replacements, so that a change is seen cheaply.
    pub version: u64,
}

impl Cluster {
    pub fn topic(&self, name: &str) -> Option<&Topic> {
        self.topics.get(name)
    }

    pub fn partition(&self, topic: &str, partition: i32) -> Option<&Partition> {
        self.topics.get(topic)?.partitions.get(usize::try_from(partition).ok()?)
    }

    /// Every partition of a topic; none of one that is not known.
    pub fn partitions_of(&self, topic: &str) -> Vec<TopicPartition> {
        let count = self.topics.get(topic).map_or(0, |topic| topic.partitions.len()) as i32;
        (0..count).map(|index| TopicPartition::new(topic, index)).collect()
    }

    /// The leader's node id, where there is one that is known.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<i32> {
        let leader = self.partition(topic, partition)?.leader;
        (leader >= 0 && self.brokers.contains_key(&leader)).then_some(leader)
    }
}

/// Which topics a Metadata request was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    All,
    These(BTreeSet<Rc<str>>),
}

impl Cluster {
    /// This cluster after `answer`. Topics that were not asked for stay as they were.
    pub(crate) fn merged(&self, asked: &Asked, answer: &MetadataResponse<'_>) -> Result<Cluster, ClientError> {
        let mut next = Cluster {
            cluster_id: answer.cluster_id.as_ref().map(|id| id.to_string()),
            controller: answer.controller_id,
            brokers: brokers(answer)?,
            topics: self.topics.clone(),
            failed_topics: self.failed_topics.clone(),
            version: self.version,
        };
        match asked {
            Asked::All => {
                let named: BTreeSet<&str> = answer.topics.iter().filter_map(|topic| topic.name.as_deref()).collect();
                next.topics.retain(|name, _| named.contains(&**name));
                next.failed_topics.clear();
            }
            Asked::These(names) => next.failed_topics.retain(|name, _| !names.contains(name)),
        }
        for topic in &answer.topics {
            next.take_topic(topic)?;
        }
        if next != *self {
            next.version += 1;
        }
        Ok(next)
    }

    fn take_topic(&mut self, answer: &MetadataResponseTopic<'_>) -> Result<(), ClientError> {
        let name: Rc<str> = match answer.name.as_deref() {
            Some(name) => name.into(),
            None => return Err(bad("a topic without a name".to_string())),
        };
        if answer.error_code != 0 {
            // A topic that is being made, or whose brokers are just starting, is still the topic it was.
            if answer.error_code != ErrorCode::LeaderNotAvailable.code() {
                self.topics.remove(&name);
            }
            self.failed_topics.insert(name, answer.error_code);
            return Ok(());
        }
        let mut topic = Topic {
            name: name.clone(),
            id: answer.topic_id,
            is_internal: answer.is_internal,
            partitions: partitions(&name, &answer.partitions)?,
        };
        if let Some(known) = self.topics.get(&name)
            && (known.id == topic.id || known.id == [0; 16] || topic.id == [0; 16])
        {
            keep_newer(&known.partitions, &mut topic.partitions);
        }
        self.topics.insert(name, topic);
        Ok(())
    }
}

/// Partitions whose epoch would go back stay, and so do those that a lagging broker has not heard of.
fn keep_newer(known: &[Partition], new: &mut Vec<Partition>) {
    for (old, new) in known.iter().zip(new.iter_mut()) {
        if new.leader_epoch >= 0 && new.leader_epoch < old.leader_epoch {
            *new = old.clone();
        }
    }
    new.extend(known.iter().skip(new.len()).cloned());
}

fn brokers(answer: &MetadataResponse<'_>) -> Result<BTreeMap<i32, Broker>, ClientError> {
    if answer.brokers.is_empty() || answer.brokers.len() > MAX_BROKERS {
        return Err(bad(format!("{} brokers", answer.brokers.len())));
    }
    let mut brokers = BTreeMap::new();
    for one in &answer.brokers {
        let port =
            u16::try_from(one.port).map_err(|_| bad(format!("broker {} with port {}", one.node_id, one.port)))?;
        let rack = one.rack.as_ref().map(|rack| rack.to_string());
        brokers.insert(one.node_id, Broker { id: one.node_id, host: one.host.to_string(), port, rack });
    }
    Ok(brokers)
}

fn partitions(topic: &str, answer: &[MetadataResponsePartition]) -> Result<Vec<Partition>, ClientError> {
    let mut sorted: Vec<&MetadataResponsePartition> = answer.iter().collect();
    sorted.sort_by_key(|one| one.partition_index);
    if !sorted.iter().map(|one| i64::from(one.partition_index)).eq(0..sorted.len() as i64) {
        return Err(bad(format!("partitions of {topic} that are not numbered from 0 without a gap")));
    }
    let partition = |one: &&MetadataResponsePartition| Partition {
        leader: one.leader_id,
        leader_epoch: one.leader_epoch,
        replicas: one.replica_nodes.clone(),
        isr: one.isr_nodes.clone(),
        offline: one.offline_replicas.clone(),
    };
    Ok(sorted.iter().map(partition).collect())
}

fn bad(what: String) -> ClientError {
    ClientError::BadAnswer { reason: format!("Metadata with {what}") }
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
