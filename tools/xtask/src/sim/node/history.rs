//! What was sent, what its senders were told, and what anybody saw. Every new piece is held against the rest at once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use client::producer::{Acks, Delivery};
use client::{ConsumerRecord, TopicPartition};
use runtime::sim;

use super::partition::{Partition, Promise};
use super::payload::{Id, decode};

#[derive(Debug)]
struct Sent {
    acks: Acks,
    idempotent: bool,
    fate: Option<Fate>,
    /// How often what was only written might have gone, when it was sent.
    losses: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Acknowledged,
    NotSent,
    PossiblySent,
}

#[derive(Debug, Default)]
pub struct History {
    sent: BTreeMap<Id, Sent>,
    partitions: BTreeMap<TopicPartition, Partition>,
    /// Number of the broker that runs, or ran last.
    pub life: usize,
    losses: u64,
    /// Partitions of each topic: as many as were acknowledged, and as were asked for.
    counts: BTreeMap<String, (i32, i32)>,
    /// Largest offset that a commit was acknowledged for, and all that were tried.
    commits: BTreeMap<TopicPartition, (i64, BTreeSet<i64>)>,
    /// Connections may stall for longer than a request is waited for. A commit that was tried again may then be read once
    /// more after later ones, and nothing in the protocol fences it: the group's offset may go back to it.
    pub late_commits: bool,
}

/// Of every actor; never borrowed over a wait.
pub type Shared = Rc<RefCell<History>>;

impl History {
    pub fn add_partition(&mut self, at: TopicPartition, retains: bool) {
        self.counts.entry(at.topic.to_string()).or_default().1 = at.partition + 1;
        let name = format!("{}-{}", at.topic, at.partition);
        self.partitions.insert(at, Partition::new(name, retains));
    }

    /// The number of partitions to ask for, one more than a topic is known to have. It may have them from now on.
    pub fn growing(&mut self, topic: &str, most: i32, retains: bool) -> Option<i32> {
        let (acknowledged, asked) = self.counted(topic);
        let count = acknowledged + 1;
        if count > most {
            return None;
        }
        if count > asked {
            self.add_partition(TopicPartition::new(topic, count - 1), retains);
        }
        Some(count)
    }

    pub fn grown(&mut self, topic: &str, count: i32) {
        let entry = self.counts.entry(topic.to_string()).or_default();
        entry.0 = entry.0.max(count);
    }

    /// Partitions of a topic: as many as were acknowledged, and as were asked for.
    pub fn counted(&self, topic: &str) -> (i32, i32) {
        self.counts.get(topic).copied().unwrap_or_default()
    }

    pub fn partition(&mut self, at: &TopicPartition) -> &mut Partition {
        match self.partitions.get_mut(at) {
            Some(partition) => partition,
            None => panic!("{}-{} is read, which nobody made", at.topic, at.partition),
        }
    }

    /// The partitions that are there for certain.
    pub fn all(&self) -> Vec<TopicPartition> {
        self.partitions.keys().filter(|at| at.partition < self.counted(&at.topic).0).cloned().collect()
    }

    pub fn send(&mut self, id: Id, acks: Acks, idempotent: bool) {
        let known = self.sent.insert(id, Sent { acks, idempotent, fate: None, losses: self.losses });
        assert!(known.is_none(), "{id} is sent twice by its actor");
    }

    /// What became of a record.
    pub fn tell(&mut self, id: Id, at: &TopicPartition, delivery: &Delivery) {
        let Some(sent) = self.sent.get_mut(&id) else { panic!("{id} was not sent") };
        let acks = sent.acks;
        // The answer may have been on its way when the machine lost what it is about.
        let is_kept = acks == Acks::All || sent.losses == self.losses;
        sent.fate = Some(match delivery {
            Delivery::Acknowledged { .. } => Fate::Acknowledged,
            Delivery::NotSent(_) => Fate::NotSent,
            Delivery::PossiblySent(_) => Fate::PossiblySent,
        });
        sim::note("fate", [u64::from(id.producer), u64::from(id.number)], || {
            format!("{id} for {}-{}: {delivery:?}", at.topic, at.partition)
        });
        match delivery {
            Delivery::Acknowledged { partition, offset, .. } if *offset >= 0 && is_kept => {
                assert!(*partition == at.partition, "{id} was for another partition than {partition}");
                let promise = if acks == Acks::All { Promise::Durable } else { Promise::Written };
                self.partition(at).acknowledge(id, *offset, promise);
            }
            Delivery::NotSent(_) => {
                let place = self.partition(at).in_order().find(|(_, other)| *other == id);
                assert!(place.is_none(), "{id} was not sent, it is said, and was read at {place:?}");
            }
            _ => {}
        }
    }

    /// A record that was given to a reader.
    pub fn see(&mut self, record: &ConsumerRecord) -> Id {
        let at = TopicPartition { topic: record.topic.clone(), partition: record.partition };
        let place = format!("{}-{} at offset {}", at.topic, at.partition, record.offset);
        let id = decode(record.value.as_ref(), &place);
        let Some(sent) = self.sent.get(&id) else { panic!("{place} holds {id}, which nobody sent") };
        assert!(sent.fate != Some(Fate::NotSent), "{place} holds {id}, which was not sent, it was said");
        let once = sent.idempotent;
        self.partition(&at).see(id, record.offset, record.leader_epoch, once);
        id
    }

    /// The machine lost its power, or a disk operation failed.
    pub fn weaken(&mut self) {
        self.losses += 1;
        self.partitions.values_mut().for_each(Partition::weaken);
    }

    pub fn committing(&mut self, at: &TopicPartition, offset: i64) {
        self.commits.entry(at.clone()).or_insert_with(|| (-1, BTreeSet::new())).1.insert(offset);
    }

    pub fn committed(&mut self, at: &TopicPartition, offset: i64) {
        let entry = self.commits.entry(at.clone()).or_insert_with(|| (-1, BTreeSet::new()));
        entry.0 = entry.0.max(offset);
    }

    /// The least that a question asked now may be answered with.
    pub fn least_committed(&self, at: &TopicPartition) -> i64 {
        let Some((acknowledged, tried)) = self.commits.get(at) else { return -1 };
        let first = tried.first().copied().unwrap_or(-1);
        if self.late_commits { first.min(*acknowledged) } else { *acknowledged }
    }

    /// The group's offset as the broker tells it.
    pub fn tell_committed(&self, at: &TopicPartition, least: i64, told: Option<i64>) {
        let name = format!("{}-{}", at.topic, at.partition);
        let told = told.unwrap_or(-1);
        assert!(told >= least, "{name}: the group committed {least}, and {told} is left of it");
        let is_tried = self.commits.get(at).is_some_and(|(_, tried)| tried.contains(&told));
        assert!(told == -1 || is_tried, "{name}: {told} is committed, and nobody tried that");
    }

    /// Records of an idempotent producer are in the order in which they were sent, whatever it was told of them.
    pub fn check_order(&self) {
        for partition in self.partitions.values() {
            let mut last: BTreeMap<u32, u32> = BTreeMap::new();
            for (offset, id) in partition.in_order() {
                if !self.sent.get(&id).is_some_and(|sent| sent.idempotent) {
                    continue;
                }
                if let Some(before) = last.insert(id.producer, id.number) {
                    assert!(
                        id.number > before,
                        "{}: at offset {offset} {id} comes after number {before}",
                        partition.name
                    );
                }
            }
        }
    }

    pub fn records(&self) -> u64 {
        self.partitions.values().map(Partition::records).sum()
    }
}
