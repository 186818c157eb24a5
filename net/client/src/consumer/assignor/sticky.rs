//! Balanced first, then with as few moves as balance allows.
//!
//! What members hold is kept (claims of newer generations win; of two with the same, nobody's counts), what nobody holds
//! goes to whoever has least, and then partitions move along shortest chains from members with more to members with at
//! least two less, until there is no such chain. With equal subscriptions that is "within one of each other".
//! Each chain lowers the sum of squared loads, so it ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use wire::{Reader, WireError};

use super::{Assignments, Member, PartitionCounts, in_order, wanted_partitions};
use crate::TopicPartition;

/// Java's StickyAssignor, version 1 of its user data: what was held, and of which generation.
pub(super) fn user_data(owned: &[TopicPartition], generation: i32) -> Bytes {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for one in owned {
        topics.entry(&one.topic).or_default().push(one.partition);
    }
    let mut out = BytesMut::new();
    out.put_i32(topics.len() as i32);
    for (topic, partitions) in topics {
        out.put_i16(topic.len() as i16);
        out.put_slice(topic.as_bytes());
        out.put_i32(partitions.len() as i32);
        partitions.iter().for_each(|partition| out.put_i32(*partition));
    }
    out.put_i32(generation);
    out.freeze()
}

/// What a member's user data says it held. Version 0 has no generation.
pub(super) fn held(user_data: Option<&Bytes>) -> (Vec<TopicPartition>, i32) {
    let read = |bytes: &Bytes| -> Result<(Vec<TopicPartition>, i32), WireError> {
        let mut reader = Reader::new(bytes);
        let mut held = Vec::new();
        let topics = reader.count(false, 6)?;
        for _ in 0..topics {
            let topic: Rc<str> = reader.string(false)?.into();
            let partitions = reader.array(false, 4, Reader::i32)?;
            held.extend(partitions.into_iter().map(|partition| TopicPartition { topic: topic.clone(), partition }));
        }
        let generation = if reader.remaining() >= 4 { reader.i32()? } else { -1 };
        Ok((held, generation))
    };
    user_data.and_then(|bytes| read(bytes).ok()).unwrap_or((Vec::new(), -1))
}

pub(super) fn assign(counts: &PartitionCounts, members: &[Member]) -> Assignments {
    let members = in_order(members);
    let mut table = Table::new(&members);
    let wanted: Vec<TopicPartition> = wanted_partitions_of(counts, &members);
    table.keep_held(&wanted);
    table.give_out(&wanted);
    while table.move_along_a_chain() {}
    table.into_assignments()
}

fn wanted_partitions_of(counts: &PartitionCounts, members: &[&Member]) -> Vec<TopicPartition> {
    let owned: Vec<Member> =
        members.iter().map(|member| Member { topics: member.topics.clone(), ..Member::default() }).collect();
    wanted_partitions(counts, &owned)
}

/// Who has what, by the members' place in order.
struct Table<'a> {
    members: &'a [&'a Member],
    /// Of each member, by topic.
    holds: Vec<BTreeMap<Rc<str>, BTreeSet<i32>>>,
    loads: Vec<usize>,
    /// Who had it before: a partition that moves anyway moves home where it can.
    homes: BTreeMap<TopicPartition, usize>,
}

impl<'a> Table<'a> {
    fn new(members: &'a [&'a Member]) -> Table<'a> {
        Table {
            members,
            holds: vec![BTreeMap::new(); members.len()],
            loads: vec![0; members.len()],
            homes: BTreeMap::new(),
        }
    }

    fn give(&mut self, to: usize, partition: &TopicPartition) {
        self.holds[to].entry(partition.topic.clone()).or_default().insert(partition.partition);
        self.loads[to] += 1;
    }

    fn take(&mut self, from: usize, topic: &Rc<str>, partition: i32) {
        if let Some(partitions) = self.holds[from].get_mut(topic)
            && partitions.remove(&partition)
        {
            self.loads[from] -= 1;
            if partitions.is_empty() {
                self.holds[from].remove(topic);
            }
        }
    }

    fn keep_held(&mut self, wanted: &[TopicPartition]) {
        let exists: BTreeSet<&TopicPartition> = wanted.iter().collect();
        // Partition -> newest generation that claims it, and by whom; `None`: two claim it at once.
        let mut claims: BTreeMap<&TopicPartition, (i32, Option<usize>)> = BTreeMap::new();
        for (at, member) in self.members.iter().enumerate() {
            for partition in &member.owned {
                let claim = claims.entry(partition).or_insert((member.generation, Some(at)));
                if member.generation > claim.0 {
                    *claim = (member.generation, Some(at));
                } else if member.generation == claim.0 && claim.1 != Some(at) {
                    claim.1 = None;
                }
            }
        }
        for (partition, (_, owner)) in claims {
            if let Some(owner) = owner
                && exists.contains(partition)
                && self.members[owner].topics.contains(&partition.topic)
            {
                self.homes.insert(partition.clone(), owner);
                self.give(owner, partition);
            }
        }
    }

    fn give_out(&mut self, wanted: &[TopicPartition]) {
        // By (load, place), so that the least loaded reader is found without looking at all members.
        let mut by_load: BTreeSet<(usize, usize)> = self.loads.iter().copied().zip(0..).collect();
        for partition in wanted {
            if self.homes.contains_key(partition) {
                continue;
            }
            let reads = |entry: &&(usize, usize)| self.members[entry.1].topics.contains(&partition.topic);
            let Some(&(load, to)) = by_load.iter().find(reads) else { continue };
            self.give(to, partition);
            by_load.remove(&(load, to));
            by_load.insert((load + 1, to));
        }
    }

    /// Moves one partition along each step of a shortest chain from one of the most loaded members that has one.
    fn move_along_a_chain(&mut self) -> bool {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(self.loads[at]), at));
        let least = self.loads.iter().copied().min().unwrap_or(0);
        for from in order {
            if self.loads[from] < least + 2 {
                return false;
            }
            if let Some(chain) = self.chain(from) {
                self.follow(&chain);
                return true;
            }
        }
        false
    }

    /// Members from `from` to the least loaded one with at least two less, each holding something that the next reads.
    fn chain(&self, from: usize) -> Option<Vec<usize>> {
        let mut came_from: BTreeMap<usize, usize> = BTreeMap::from([(from, from)]);
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            let mut found: Option<usize> = None;
            for next in 0..self.members.len() {
                let is_new = !came_from.contains_key(&next);
                if !is_new || !self.holds[at].keys().any(|topic| self.members[next].topics.contains(topic)) {
                    continue;
                }
                came_from.insert(next, at);
                queue.push_back(next);
                let is_end = self.loads[next] + 2 <= self.loads[from];
                if is_end && found.is_none_or(|found| self.loads[next] < self.loads[found]) {
                    found = Some(next);
                }
            }
            if let Some(mut end) = found {
                let mut chain = vec![end];
                while end != from {
                    end = came_from[&end];
                    chain.push(end);
                }
                chain.reverse();
                return Some(chain);
            }
        }
        None
    }

    fn follow(&mut self, chain: &[usize]) {
        for step in chain.windows(2) {
            let &[from, to] = step else { continue };
            if let Some((topic, partition)) = self.best_to_move(from, to) {
                self.take(from, &topic, partition);
                self.give(to, &TopicPartition { topic, partition });
            }
        }
    }

    /// Best is what comes home, then what is not at home where it is, then the last one.
    fn best_to_move(&self, from: usize, to: usize) -> Option<(Rc<str>, i32)> {
        let mut best = None;
        for (topic, partitions) in &self.holds[from] {
            if !self.members[to].topics.contains(topic) {
                continue;
            }
            for &partition in partitions {
                let home = self.homes.get(&TopicPartition { topic: topic.clone(), partition }).copied();
                let rank = if home == Some(to) { 2 } else { u8::from(home != Some(from)) };
                if best.as_ref().is_none_or(|(known, _, _)| rank >= *known) {
                    best = Some((rank, topic.clone(), partition));
                }
            }
        }
        best.map(|(_, topic, partition)| (topic, partition))
    }

    fn into_assignments(self) -> Assignments {
        let members = self.members.iter().map(|member| member.id.clone());
        members.zip(self.holds.into_iter().map(flatten)).collect()
    }
}

fn flatten(holds: BTreeMap<Rc<str>, BTreeSet<i32>>) -> Vec<TopicPartition> {
    let mut out = Vec::new();
    for (topic, partitions) in holds {
        out.extend(partitions.into_iter().map(|partition| TopicPartition { topic: topic.clone(), partition }));
    }
    out
}
