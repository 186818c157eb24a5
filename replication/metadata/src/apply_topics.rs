//! Topics: made, grown, deleted, and their epochs raised at a start. Part of [`crate::apply`].

use std::sync::Arc;

use model::{LeaderEpoch, NodeId, PartitionIndex, TopicId};

use crate::command::{Outcome, Rejection};
use crate::image::{Configs, Image, PartitionState, Topic};
use crate::limits::{MAX_PARTITIONS_PER_COMMAND, MAX_PARTITIONS_PER_TOPIC, MAX_REPLICAS};
use crate::topic_name::{check_topic_name, collision_key};

impl Image {
    pub(crate) fn create_topic(
        &mut self,
        name: &Arc<str>,
        id: TopicId,
        assignments: &[Vec<NodeId>],
        configs: &[(Arc<str>, Arc<str>)],
    ) -> Result<Outcome, Rejection> {
        check_topic_name(name).map_err(Rejection::InvalidTopicName)?;
        if let Some(existing) = self.topic_ids.get(name) {
            return Err(Rejection::TopicExists { id: *existing });
        }
        if let Some(existing) = collision_key(name).and_then(|key| self.collisions.get(key.as_str())) {
            return Err(Rejection::NameCollision { existing: Arc::clone(existing) });
        }
        if id.is_zero() || self.topics.contains_key(&id) {
            return Err(Rejection::TopicIdInUse);
        }
        let partitions = self.new_partitions(assignments, None)?;
        let mut entries = Configs::new();
        for (key, value) in configs {
            crate::apply_configs::set_entry(&mut entries, key, value)?;
        }
        self.put_topic(Arc::new(Topic { id, name: Arc::clone(name), partitions, configs: Arc::new(entries) }));
        Ok(Outcome::TopicCreated { id })
    }

    pub(crate) fn delete_topic(&mut self, id: TopicId) -> Result<Outcome, Rejection> {
        self.take_topic(id).map(|_| Outcome::Done).ok_or(Rejection::UnknownTopic)
    }

    pub(crate) fn add_partitions(
        &mut self,
        id: TopicId,
        first: PartitionIndex,
        assignments: &[Vec<NodeId>],
    ) -> Result<Outcome, Rejection> {
        let topic = self.topics.get(&id).ok_or(Rejection::UnknownTopic)?;
        if usize::try_from(first.0).ok() != Some(topic.partitions.len()) {
            return Err(Rejection::InvalidPartitions("the topic has another number of partitions by now"));
        }
        if topic.partitions.len() + assignments.len() > MAX_PARTITIONS_PER_TOPIC {
            return Err(Rejection::TooManyPartitions);
        }
        let replication_factor = topic.partitions.first().map(|p| p.replicas.len());
        let added = self.new_partitions(assignments, replication_factor)?;
        let mut grown = Topic::clone(topic);
        grown.partitions.extend(added);
        self.put_topic(Arc::new(grown));
        Ok(Outcome::Done)
    }

    pub(crate) fn raise_leader_epochs(&mut self, node: NodeId) -> Result<Outcome, Rejection> {
        let mut raised = 0;
        let mut changed = Vec::new();
        for topic in self.topics.values().filter(|t| t.partitions.iter().any(|p| p.leader == node)) {
            let mut topic = Topic::clone(topic);
            for partition in topic.partitions.iter_mut().filter(|p| p.leader == node) {
                partition.raise_leader_epoch()?;
                raised += 1;
            }
            changed.push(Arc::new(topic));
        }
        for topic in changed {
            self.topics.insert(topic.id, topic);
        }
        Ok(Outcome::EpochsRaised { partitions: raised })
    }

    /// States of new partitions: all replicas in sync, because nothing was written yet, and the first one leads.
    fn new_partitions(
        &self,
        assignments: &[Vec<NodeId>],
        replication_factor: Option<usize>,
    ) -> Result<Vec<PartitionState>, Rejection> {
        if assignments.is_empty() {
            return Err(Rejection::InvalidPartitions("there are none"));
        }
        if assignments.len() > MAX_PARTITIONS_PER_COMMAND {
            return Err(Rejection::TooManyPartitions);
        }
        let replication_factor = replication_factor.unwrap_or(assignments[0].len());
        let mut partitions: Vec<PartitionState> = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            self.check_assignment(assignment, replication_factor)?;
            // Neighbours mostly have the same replicas: they share them.
            let replicas: Arc<[NodeId]> = match partitions.last() {
                Some(last) if *last.replicas == **assignment => Arc::clone(&last.replicas),
                _ => assignment.as_slice().into(),
            };
            partitions.push(PartitionState {
                isr: Arc::clone(&replicas),
                replicas,
                leader: assignment[0],
                leader_epoch: LeaderEpoch(0),
                partition_epoch: 0,
            });
        }
        Ok(partitions)
    }

    fn check_assignment(&self, assignment: &[NodeId], replication_factor: usize) -> Result<(), Rejection> {
        if assignment.is_empty() || assignment.len() > MAX_REPLICAS {
            return Err(Rejection::InvalidReplicaAssignment("a partition has no replica or too many"));
        }
        if assignment.len() != replication_factor {
            return Err(Rejection::InvalidReplicaAssignment("the partitions differ in their number of replicas"));
        }
        for (i, node) in assignment.iter().enumerate() {
            if assignment[..i].contains(node) {
                return Err(Rejection::InvalidReplicaAssignment("a partition names a broker twice"));
            }
            if !self.brokers.contains_key(node) {
                return Err(Rejection::InvalidReplicaAssignment("a broker is not registered"));
            }
        }
        Ok(())
    }
}

impl PartitionState {
    pub(crate) fn raise_leader_epoch(&mut self) -> Result<(), Rejection> {
        let next = self.leader_epoch.0.checked_add(1).ok_or(Rejection::Exhausted("leader epochs"))?;
        self.leader_epoch = LeaderEpoch(next);
        self.raise_partition_epoch()
    }

    pub(crate) fn raise_partition_epoch(&mut self) -> Result<(), Rejection> {
        self.partition_epoch = self.partition_epoch.checked_add(1).ok_or(Rejection::Exhausted("partition epochs"))?;
        Ok(())
    }
}
