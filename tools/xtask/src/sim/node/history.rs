//! What was sent, what its senders were told, and what anybody saw. Every new piece is held against the rest at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
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
    /// Largest offset that a commit was acknowledged for, and that was tried.
    commits: BTreeMap<TopicPartition, (i64, i64)>,
}

/// Of every actor; never borrowed over a wait.
pub type Shared = Rc<RefCell<History>>;

impl History {
    pub fn add_partition(&mut self, at: TopicPartition, retains: bool) {
        let name = format!("{}-{}", at.topic, at.partition);
        self.partitions.insert(at, Partition::new(name, retains));
    }

    pub fn partition(&mut self, at: &TopicPartition) -> &mut Partition {
        match self.partitions.get_mut(at) {
            Some(partition) => partition,
            None => panic!("{}-{} is read, which nobody made", at.topic, at.partition),
        }
    }

    pub fn all(&self) -> Vec<TopicPartition> {
        self.partitions.keys().cloned().collect()
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
        let entry = self.commits.entry(at.clone()).or_insert((-1, -1));
        entry.1 = entry.1.max(offset);
    }

    pub fn committed(&mut self, at: &TopicPartition, offset: i64) {
        let entry = self.commits.entry(at.clone()).or_insert((-1, -1));
        entry.0 = entry.0.max(offset);
    }

    /// The least that a question asked now may be answered with.
    pub fn least_committed(&self, at: &TopicPartition) -> i64 {
        self.commits.get(at).map_or(-1, |(acknowledged, _)| *acknowledged)
    }

    /// The group's offset as the broker tells it.
    pub fn tell_committed(&self, at: &TopicPartition, least: i64, told: Option<i64>) {
        let name = format!("{}-{}", at.topic, at.partition);
        let told = told.unwrap_or(-1);
        assert!(told >= least, "{name}: the group committed {least}, and {told} is left of it");
        let most = self.commits.get(at).map_or(-1, |(_, tried)| *tried);
        assert!(told <= most, "{name}: {told} is committed, and nobody went beyond {most}");
    }

    /// Records of an idempotent producer are in the order in which they were sent. What its sender gave up on may come
    /// late: the client goes on with a new producer id, and nothing fences the old one.
    pub fn check_order(&self) {
        for partition in self.partitions.values() {
            let mut last: BTreeMap<u32, u32> = BTreeMap::new();
            for (offset, id) in partition.in_order() {
                let counts = |sent: &Sent| sent.idempotent && sent.fate == Some(Fate::Acknowledged);
                if !self.sent.get(&id).is_some_and(counts) {
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
