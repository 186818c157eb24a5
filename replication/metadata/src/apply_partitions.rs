//! ISR and leader of one partition, changed under its epochs. Part of [`crate::apply`].
//!
//! Every change names the partition epoch that its proposer saw, so that of two changes from one state only one is made.

use std::sync::Arc;

use model::{LeaderEpoch, NodeId, PartitionIndex, TopicId};

use crate::command::{Command, Outcome, Rejection};
use crate::image::{Image, PartitionState, Topic};

impl Image {
    pub(crate) fn change_isr(&mut self, command: &Command) -> Result<Outcome, Rejection> {
        let Command::ChangeIsr { id, partition, leader, leader_epoch, partition_epoch, isr } = command else {
            unreachable!("the caller matched the command");
        };
        self.change_partition(*id, *partition, *partition_epoch, |state| {
            check_leader(state, *leader, *leader_epoch)?;
            check_isr(state, isr)?;
            state.isr = share(state, isr);
            state.raise_partition_epoch()
        })
    }

    pub(crate) fn change_leader(&mut self, command: &Command) -> Result<Outcome, Rejection> {
        let Command::ChangeLeader { id, partition, partition_epoch, leader, unclean } = command else {
            unreachable!("the caller matched the command");
        };
        self.change_partition(*id, *partition, *partition_epoch, |state| {
            let known = if *unclean { &state.replicas } else { &state.isr };
            if *leader != NodeId::NONE && !known.contains(leader) {
                return Err(Rejection::IneligibleLeader);
            }
            // A leader from outside may have lost what the others acknowledged: they are not in sync with it any more.
            // Without a leader the ISR stays: it names those who have everything.
            if *leader != NodeId::NONE && !state.isr.contains(leader) {
                state.isr = Arc::from([*leader]);
            }
            state.leader = *leader;
            state.raise_leader_epoch()
        })
    }

    fn change_partition(
        &mut self,
        id: TopicId,
        partition: PartitionIndex,
        partition_epoch: i32,
        change: impl FnOnce(&mut PartitionState) -> Result<(), Rejection>,
    ) -> Result<Outcome, Rejection> {
        let mut topic = Topic::clone(self.topics.get(&id).ok_or(Rejection::UnknownTopic)?);
        let index = usize::try_from(partition.0).map_err(|_| Rejection::UnknownPartition)?;
        let state = topic.partitions.get_mut(index).ok_or(Rejection::UnknownPartition)?;
        if state.partition_epoch != partition_epoch {
            return Err(Rejection::StalePartitionEpoch { current: state.partition_epoch });
        }
        change(state)?;
        let outcome =
            Outcome::PartitionChanged { leader_epoch: state.leader_epoch, partition_epoch: state.partition_epoch };
        self.put_topic(Arc::new(topic));
        Ok(outcome)
    }
}

fn check_leader(state: &PartitionState, leader: NodeId, leader_epoch: LeaderEpoch) -> Result<(), Rejection> {
    if state.leader_epoch != leader_epoch || state.leader != leader {
        return Err(Rejection::StaleLeaderEpoch { current: state.leader_epoch });
    }
    Ok(())
}

fn check_isr(state: &PartitionState, isr: &[NodeId]) -> Result<(), Rejection> {
    if !isr.contains(&state.leader) {
        return Err(Rejection::InvalidIsr("the leader is missing"));
    }
    for (i, node) in isr.iter().enumerate() {
        if isr[..i].contains(node) {
            return Err(Rejection::InvalidIsr("a broker is named twice"));
        }
        if !state.replicas.contains(node) {
            return Err(Rejection::InvalidIsr("a broker is not a replica"));
        }
    }
    Ok(())
}

/// The full ISR is the replica list itself where the order is the same.
fn share(state: &PartitionState, isr: &[NodeId]) -> Arc<[NodeId]> {
    if *state.replicas == *isr { Arc::clone(&state.replicas) } else { isr.into() }
}
