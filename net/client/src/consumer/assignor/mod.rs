//! Who reads what: pure functions that a group's leader runs over its members' subscriptions.
//!
//! Range and round robin give exactly what Java's give without racks (racks are not looked at: a group whose leader is
//! ours spreads as if no member had one). The sticky ones keep what members hold as far as balance allows.

mod cooperative_sticky;
mod range;
mod round_robin;
mod sticky;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use bytes::Bytes;

use crate::TopicPartition;
use crate::consumer_protocol::Subscription;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignorKind {
    Range,
    RoundRobin,
    Sticky,
    CooperativeSticky,
}

/// Partition counts of topics that exist.
pub type PartitionCounts = BTreeMap<Rc<str>, i32>;
/// Partitions by member id. Every member is in it.
pub type Assignments = BTreeMap<String, Vec<TopicPartition>>;

/// A member as its leader sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    pub id: String,
    pub instance_id: Option<String>,
    pub topics: BTreeSet<Rc<str>>,
    /// What it says it holds, and of which generation that is (-1: not said).
    pub owned: Vec<TopicPartition>,
    pub generation: i32,
}

impl AssignorKind {
    /// The name that goes into JoinGroup: all members of a group have to share one.
    pub fn name(self) -> &'static str {
        match self {
            AssignorKind::Range => "range",
            AssignorKind::RoundRobin => "roundrobin",
            AssignorKind::Sticky => "sticky",
            AssignorKind::CooperativeSticky => "cooperative-sticky",
        }
    }

    pub fn from_name(name: &str) -> Option<AssignorKind> {
        [AssignorKind::Range, AssignorKind::RoundRobin, AssignorKind::Sticky, AssignorKind::CooperativeSticky]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    pub fn is_cooperative(self) -> bool {
        self == AssignorKind::CooperativeSticky
    }

    /// What the assignor puts into its member's subscription.
    pub fn user_data(self, owned: &[TopicPartition], generation: i32) -> Option<Bytes> {
        match self {
            AssignorKind::Range | AssignorKind::RoundRobin => None,
            AssignorKind::Sticky => Some(sticky::user_data(owned, generation)),
            AssignorKind::CooperativeSticky => Some(Bytes::copy_from_slice(&generation.to_be_bytes())),
        }
    }

    /// A member from its subscription. User data that cannot be read is as none: the member then holds nothing.
    pub fn member(self, id: &str, instance_id: Option<&str>, subscription: &Subscription) -> Member {
        let (owned, generation) = match self {
            // An eager member has let go of all before it joins, so what it held is in its user data.
            AssignorKind::Sticky => sticky::held(subscription.user_data.as_ref()),
            _ => (subscription.owned_partitions.clone(), cooperative_sticky::generation(subscription)),
        };
        Member {
            id: id.to_string(),
            instance_id: instance_id.map(str::to_string),
            topics: subscription.topics.iter().cloned().collect(),
            owned,
            generation,
        }
    }

    pub fn assign(self, counts: &PartitionCounts, members: &[Member]) -> Assignments {
        match self {
            AssignorKind::Range => range::assign(counts, members),
            AssignorKind::RoundRobin => round_robin::assign(counts, members),
            AssignorKind::Sticky => sticky::assign(counts, members),
            AssignorKind::CooperativeSticky => cooperative_sticky::assign(counts, members),
        }
    }
}

/// Java's order: static members first, by their instance id; then by member id.
fn in_order(members: &[Member]) -> Vec<&Member> {
    let mut sorted: Vec<&Member> = members.iter().collect();
    sorted.sort_by_key(|member| (member.instance_id.is_none(), member.instance_id.clone(), member.id.clone()));
    sorted
}

fn empty(members: &[Member]) -> Assignments {
    members.iter().map(|member| (member.id.clone(), Vec::new())).collect()
}

/// Partitions that anybody subscribes to, topic by topic.
fn wanted_partitions(counts: &PartitionCounts, members: &[Member]) -> Vec<TopicPartition> {
    let topics: BTreeSet<&Rc<str>> = members.iter().flat_map(|member| &member.topics).collect();
    let mut all = Vec::new();
    for topic in topics {
        let count = counts.get(topic).copied().unwrap_or(0);
        all.extend((0..count).map(|partition| TopicPartition { topic: topic.clone(), partition }));
    }
    all
}

#[cfg(test)]
#[path = "assignor_tests.rs"]
mod tests;
