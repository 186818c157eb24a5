//! Where reading stands in each assigned partition. Owned by the fetcher; nothing here waits or asks: what has to be
//! asked comes out as [`Lookup`]s, and their answers come back in.
//!
//! Two offsets per partition: `offset` is what the program has been given (and what is committed), `fetch_offset` runs
//! ahead of it by what lies fetched. Every jump takes a new `generation`, so an answer that was asked for before the jump
//! is known as stale.

use std::collections::BTreeMap;

use super::config::AutoOffsetReset;
use super::limits;
use crate::{Cluster, TopicPartition};

/// Where a reset goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetTo {
    Earliest,
    Latest,
}

impl ResetTo {
    pub(crate) fn from_policy(policy: AutoOffsetReset) -> Option<ResetTo> {
        match policy {
            AutoOffsetReset::Earliest => Some(ResetTo::Earliest),
            AutoOffsetReset::Latest => Some(ResetTo::Latest),
            AutoOffsetReset::None => None,
        }
    }

    /// The timestamp that ListOffsets takes for it.
    pub(crate) fn timestamp(self) -> i64 {
        match self {
            ResetTo::Earliest => -2,
            ResetTo::Latest => -1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The group's committed offset is to be asked for.
    AwaitsCommitted,
    AwaitsReset(ResetTo),
    /// The leader epoch moved: whether the log still holds what was read has to be asked (KIP-320).
    AwaitsValidation,
    Fetching,
    /// There is no offset and no policy to find one: the program has to seek.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    pub generation: u64,
    pub state: State,
    pub offset: i64,
    /// Leader epoch of the last record given out (or of the committed offset); -1: not known.
    pub offset_epoch: i32,
    pub fetch_offset: i64,
    /// Node id; -1: none known.
    pub leader: i32,
    pub leader_epoch: i32,
    pub topic_id: [u8; 16],
    pub paused: bool,
    /// -1: no answer said it yet.
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_start_offset: i64,
    /// A follower to fetch from, and until when.
    pub preferred: Option<(i32, i64)>,
    /// Until then a follower that the leader names is not believed.
    pub avoids_followers_until_ms: i64,
    pub retry_at_ms: i64,
    /// Nothing more is fetched until what lies fetched is read.
    pub is_held: bool,
    is_looked_up: bool,
}

impl Assigned {
    /// Whether `offset` is where reading goes on, with nothing left to ask.
    pub fn is_settled(&self) -> bool {
        self.state == State::Fetching
    }

    /// The follower that was named is of no use: the leader is fetched from for a while.
    pub fn leave_follower(&mut self, now_ms: i64) {
        self.preferred = None;
        self.avoids_followers_until_ms = now_ms + limits::FOLLOWER_AVOIDED_MS;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupKind {
    Committed,
    Reset(ResetTo),
    Validation { offset_epoch: i32 },
}

/// Something to ask. It is asked once, until its answer or failure comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    pub partition: TopicPartition,
    pub generation: u64,
    /// -1 for committed offsets, which the coordinator has.
    pub leader: i32,
    pub leader_epoch: i32,
    pub kind: LookupKind,
}

/// What a validation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validated {
    Fine,
    /// The position went back to where the logs part; what was read behind it is gone from the log.
    WentBack {
        from: i64,
        to: i64,
    },
    /// The logs part at a place that is not known; a reset by policy follows.
    Reset {
        from: i64,
    },
    /// There is no policy: the program is told and has to seek.
    Lost {
        from: i64,
        diverged_at: Option<i64>,
    },
    Stale,
}

#[derive(Debug, Default)]
pub struct Positions {
    partitions: BTreeMap<TopicPartition, Assigned>,
    last_generation: u64,
    seen_cluster: Option<u64>,
}

impl Positions {
    pub fn get(&self, partition: &TopicPartition) -> Option<&Assigned> {
        self.partitions.get(partition)
    }

    pub fn get_mut(&mut self, partition: &TopicPartition) -> Option<&mut Assigned> {
        self.partitions.get_mut(partition)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&TopicPartition, &Assigned)> {
        self.partitions.iter()
    }

    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// Replaces the assignment. Partitions that stay keep their position; new ones begin in `state`.
    pub fn assign(&mut self, wanted: impl IntoIterator<Item = TopicPartition>, state: State) {
        let mut before = std::mem::take(&mut self.partitions);
        for partition in wanted {
            let assigned = before.remove(&partition).unwrap_or_else(|| self.fresh(state));
            self.partitions.insert(partition, assigned);
        }
        self.seen_cluster = None;
    }

    fn fresh(&mut self, state: State) -> Assigned {
        self.last_generation += 1;
        Assigned {
            generation: self.last_generation,
            state,
            offset: -1,
            offset_epoch: -1,
            fetch_offset: -1,
            leader: -1,
            leader_epoch: -1,
            topic_id: [0; 16],
            paused: false,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            preferred: None,
            avoids_followers_until_ms: 0,
            retry_at_ms: 0,
            is_held: false,
            is_looked_up: false,
        }
    }

    /// A jump: what is under way or read ahead is void.
    fn jump(&mut self, partition: &TopicPartition) -> Option<&mut Assigned> {
        self.last_generation += 1;
        let generation = self.last_generation;
        let assigned = self.partitions.get_mut(partition)?;
        assigned.generation = generation;
        assigned.is_looked_up = false;
        assigned.is_held = false;
        assigned.retry_at_ms = 0;
        assigned.fetch_offset = assigned.offset;
        Some(assigned)
    }

    /// False when the partition is not assigned.
    pub fn seek(&mut self, partition: &TopicPartition, offset: i64, offset_epoch: i32) -> bool {
        let Some(assigned) = self.jump(partition) else { return false };
        (assigned.offset, assigned.fetch_offset, assigned.offset_epoch) = (offset, offset, offset_epoch);
        let can_validate = offset_epoch >= 0 && assigned.leader_epoch >= 0;
        assigned.state = if can_validate { State::AwaitsValidation } else { State::Fetching };
        true
    }

    pub fn reset(&mut self, partition: &TopicPartition, to: ResetTo) -> bool {
        let Some(assigned) = self.jump(partition) else { return false };
        assigned.state = State::AwaitsReset(to);
        true
    }

    /// Back to what the program has been given: what was read ahead is dropped and, after `retry_at_ms`, fetched anew.
    pub fn rewind(&mut self, partition: &TopicPartition, retry_at_ms: i64) {
        if let Some(assigned) = self.jump(partition) {
            assigned.retry_at_ms = retry_at_ms;
        }
    }

    /// Takes over leaders and epochs from the metadata. True when some leader is not known.
    pub fn observe(&mut self, cluster: &Cluster) -> bool {
        if self.seen_cluster == Some(cluster.version) {
            return self.lacks_leader();
        }
        self.seen_cluster = Some(cluster.version);
        let (mut moved, mut made_anew) = (Vec::new(), Vec::new());
        for (partition, assigned) in &mut self.partitions {
            let leader = cluster.leader(&partition.topic, partition.partition);
            let is_gone = assigned.preferred.is_some_and(|(node, _)| !cluster.brokers.contains_key(&node));
            if is_gone || leader != Some(assigned.leader) {
                assigned.preferred = None;
                assigned.leader = leader.unwrap_or(-1);
            }
            let epoch = cluster.partition(&partition.topic, partition.partition).map_or(-1, |found| found.leader_epoch);
            match cluster.topic(&partition.topic).map(|topic| topic.id) {
                Some(id) if assigned.topic_id != [0; 16] && id != assigned.topic_id => {
                    assigned.topic_id = id;
                    made_anew.push((partition.clone(), epoch));
                }
                Some(id) => assigned.topic_id = id,
                // Not known at the moment; what was known of it may still be true.
                None => {}
            }
            if epoch > assigned.leader_epoch {
                assigned.leader_epoch = epoch;
                if assigned.offset_epoch >= 0 && assigned.state == State::Fetching {
                    moved.push(partition.clone());
                }
            }
        }
        for (partition, epoch) in made_anew {
            self.follow_new_topic(&partition, epoch);
        }
        for partition in moved {
            if let Some(assigned) = self.jump(&partition) {
                assigned.state = if assigned.offset_epoch >= 0 { State::AwaitsValidation } else { State::Fetching };
            }
        }
        self.lacks_leader()
    }

    /// The topic was deleted and made again: its epochs begin anew, and nothing that was read is in it. The offset stays,
    /// so that the reset policy decides if it is out of range.
    fn follow_new_topic(&mut self, partition: &TopicPartition, epoch: i32) {
        if let Some(assigned) = self.jump(partition) {
            assigned.leader_epoch = epoch;
            assigned.offset_epoch = -1;
            assigned.high_watermark = -1;
            assigned.last_stable_offset = -1;
            if assigned.state == State::AwaitsValidation {
                assigned.state = State::Fetching;
            }
        }
    }

    fn lacks_leader(&self) -> bool {
        self.partitions.values().any(|assigned| assigned.leader < 0)
    }

    /// What has to be asked now.
    pub fn due_lookups(&mut self, now_ms: i64) -> Vec<Lookup> {
        let mut due = Vec::new();
        for (partition, assigned) in &mut self.partitions {
            let kind = match assigned.state {
                State::AwaitsCommitted => LookupKind::Committed,
                State::AwaitsReset(to) => LookupKind::Reset(to),
                State::AwaitsValidation => LookupKind::Validation { offset_epoch: assigned.offset_epoch },
                State::Fetching | State::Lost => continue,
            };
            let has_target = kind == LookupKind::Committed || assigned.leader >= 0;
            if assigned.is_looked_up || !has_target || assigned.retry_at_ms > now_ms {
                continue;
            }
            assigned.is_looked_up = true;
            due.push(Lookup {
                partition: partition.clone(),
                generation: assigned.generation,
                leader: assigned.leader,
                leader_epoch: assigned.leader_epoch,
                kind,
            });
        }
        due
    }

    /// When the next retry is due; `None`: nothing waits for its time.
    pub fn next_retry_ms(&self, now_ms: i64) -> Option<i64> {
        self.partitions.values().map(|assigned| assigned.retry_at_ms).filter(|at| *at > now_ms).min()
    }

    fn current(&mut self, lookup: &Lookup) -> Option<&mut Assigned> {
        let assigned = self.partitions.get_mut(&lookup.partition)?;
        (assigned.generation == lookup.generation).then_some(assigned)
    }

    pub fn lookup_failed(&mut self, lookup: &Lookup, retry_at_ms: i64) {
        if let Some(assigned) = self.current(lookup) {
            assigned.is_looked_up = false;
            assigned.retry_at_ms = retry_at_ms;
        }
    }

    /// `committed`: offset and leader epoch; `None`: the group has none. False when the partition is lost for want of a
    /// policy.
    pub fn committed_found(&mut self, lookup: &Lookup, committed: Option<(i64, i32)>, policy: AutoOffsetReset) -> bool {
        if self.current(lookup).is_none() {
            return true;
        }
        match (committed, ResetTo::from_policy(policy)) {
            (Some((offset, epoch)), _) => self.seek(&lookup.partition, offset, epoch),
            (None, Some(to)) => self.reset(&lookup.partition, to),
            (None, None) => {
                if let Some(assigned) = self.jump(&lookup.partition) {
                    assigned.state = State::Lost;
                }
                false
            }
        }
    }

    /// The offset that a reset found is the log's own, so there is nothing to validate about it.
    pub fn reset_found(&mut self, lookup: &Lookup, offset: i64) {
        if self.current(lookup).is_some() {
            self.seek(&lookup.partition, offset, -1);
        }
    }

    /// `end`: leader epoch and end offset of the newest epoch at or below ours; -1 in either: there is none.
    pub fn validated(&mut self, lookup: &Lookup, end: (i32, i64), policy: AutoOffsetReset) -> Validated {
        let Some(assigned) = self.current(lookup) else { return Validated::Stale };
        let (end_epoch, end_offset) = end;
        let from = assigned.offset;
        let is_known = end_epoch >= 0 && end_offset >= 0;
        if is_known && end_offset >= from {
            assigned.state = State::Fetching;
            assigned.is_looked_up = false;
            return Validated::Fine;
        }
        match ResetTo::from_policy(policy) {
            Some(_) if is_known => {
                self.seek(&lookup.partition, end_offset, end_epoch);
                if let Some(assigned) = self.partitions.get_mut(&lookup.partition) {
                    assigned.state = State::Fetching;
                }
                Validated::WentBack { from, to: end_offset }
            }
            Some(to) => {
                self.reset(&lookup.partition, to);
                Validated::Reset { from }
            }
            None => {
                if let Some(assigned) = self.jump(&lookup.partition) {
                    assigned.state = State::Lost;
                }
                Validated::Lost { from, diverged_at: is_known.then_some(end_offset) }
            }
        }
    }

    /// For brokers that cannot be asked.
    pub fn validation_skipped(&mut self, lookup: &Lookup) {
        if let Some(assigned) = self.current(lookup) {
            assigned.state = State::Fetching;
            assigned.is_looked_up = false;
        }
    }
}

#[cfg(test)]
#[path = "positions_tests.rs"]
pub(super) mod tests;
