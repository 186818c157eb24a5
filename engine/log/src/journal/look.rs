//! A ring as `ringlog log dump` sees it: each round on its own, and what a start would do with it. Pure functions of bytes,
//! for tools: nothing here is on the way of a round or of a start, and nothing is written.
//!
//! [`plan`](super::plan::plan) needs all files in memory; this needs one round at a time, and of the others what [`Judge`]
//! keeps: some 70 bytes for each, at most [`LOOK_ROUNDS`] of them. A test holds the two against each other.

use std::collections::BTreeMap;

use model::{Offset, PartitionKey};

use super::format::{self, Action, Entry, Found, HEADER_LEN, Owner, decode};
use crate::limits::{LOOK_ROUNDS, ROUND_ENTRIES};

/// So many bytes from a block on hold the whole list of a round.
pub const HEAD_BYTES: usize = HEADER_LEN + ROUND_ENTRIES * format::ENTRY_LEN;

/// What begins at a block of a ring's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// No round: zeros, or the inside of one.
    Nothing,
    /// A round by its first bytes, whose header or list is damaged or cut.
    Unreadable { sequence: u64 },
    /// A round of whoever it names; its list can be believed.
    Round { owner: Owner, found: Found },
}

/// `bytes` begin at a block. With fewer of them than [`Found::len`] the payload does not count as sound: try with that many.
pub fn block(bytes: &[u8]) -> Block {
    let Some((owner, sequence)) = format::claims(bytes) else { return Block::Nothing };
    match decode(owner, bytes) {
        Some(found) => Block::Round { owner, found },
        None => Block::Unreadable { sequence },
    }
}

/// What a start does with a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundFate {
    Applied,
    /// It would be, but for a round that is lost: a start refuses.
    Refused,
    /// Everything in it is in the segments.
    OldLap,
    /// It does not follow on what came before: it was never synced, or an earlier one was not.
    BehindTheEnd,
    /// Its bytes are damaged, and nobody said that it was synced: the write that was under way.
    Torn,
    /// A later round says that it was synced, and its bytes are damaged: those it names lose records.
    Damaged,
    /// The same number was found before.
    Twice,
    /// Of another start, or of another writer.
    Foreign,
    /// It was not there, or another was, when the ring was judged.
    Changed,
}

/// What a start does with an entry of a round that is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFate {
    Applied,
    /// This round says that it is not to be applied any more.
    Voided {
        by: u64,
    },
    /// This round, damaged, held what came before.
    BehindDamage {
        round: u64,
    },
}

/// What is kept of a round.
#[derive(Clone, Copy, Debug)]
struct Kept {
    place: (usize, u64),
    crc: u32,
    previous_crc: u32,
    durable_through: u64,
    oldest_needed: u64,
    payload_ok: bool,
}

/// Reads a ring round by round, in the order of its files.
#[derive(Clone, Debug)]
pub struct Judge {
    owner: Owner,
    rounds: BTreeMap<u64, Kept>,
    /// By partition: the round that voids, and what.
    voids: BTreeMap<PartitionKey, Vec<(u64, Offset)>>,
    /// Partitions that a round with damaged bytes names, and that round.
    doubtful: BTreeMap<u64, Vec<PartitionKey>>,
    too_many: bool,
}

impl Judge {
    pub fn new(owner: Owner) -> Judge {
        let (rounds, voids, doubtful) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Judge { owner, rounds, voids, doubtful, too_many: false }
    }

    /// Takes note of a round at a place of the ring.
    pub fn see(&mut self, file: usize, position: u64, owner: Owner, found: &Found) {
        let round = &found.round;
        let known = self.rounds.get(&round.sequence).is_some_and(|known| known.payload_ok);
        if owner != self.owner || known {
            return;
        }
        if self.rounds.len() >= LOOK_ROUNDS {
            self.too_many = true;
            return;
        }
        self.forget(round.sequence);
        let kept = Kept {
            place: (file, position),
            crc: found.crc,
            previous_crc: round.previous_crc,
            durable_through: round.durable_through,
            oldest_needed: round.oldest_needed,
            payload_ok: found.payload_ok,
        };
        self.rounds.insert(round.sequence, kept);
        for entry in &round.entries {
            if let Action::Void { below } = entry.action {
                self.voids.entry(entry.key).or_default().push((round.sequence, below));
            }
        }
        if !found.payload_ok {
            self.doubtful.insert(round.sequence, round.entries.iter().map(|entry| entry.key).collect());
        }
    }

    /// What a damaged copy of this round said.
    fn forget(&mut self, sequence: u64) {
        if self.rounds.remove(&sequence).is_some() {
            self.doubtful.remove(&sequence);
            self.voids.values_mut().for_each(|voids| voids.retain(|(by, _)| *by != sequence));
        }
    }

    pub fn verdict(self) -> Verdict {
        let (from, durable) = match self.rounds.last_key_value() {
            None => (1, 0),
            Some((_, newest)) => {
                (newest.oldest_needed, self.rounds.values().map(|kept| kept.durable_through).max().unwrap_or(0))
            }
        };
        let mut verdict =
            Verdict { judge: self, from, end: from, durable, lost: None, damaged: BTreeMap::new(), bad: Vec::new() };
        verdict.follow_chain();
        verdict
    }
}

/// What a start would do with the ring.
#[derive(Clone, Debug)]
pub struct Verdict {
    judge: Judge,
    from: u64,
    /// The first round that does not count any more.
    end: u64,
    durable: u64,
    lost: Option<u64>,
    damaged: BTreeMap<PartitionKey, u64>,
    /// Rounds that were synced and are damaged, in order.
    bad: Vec<u64>,
}

impl Verdict {
    fn follow_chain(&mut self) {
        let mut previous: Option<u32> = None;
        if self.judge.rounds.is_empty() {
            return;
        }
        for sequence in self.from..=u64::MAX {
            let expected = previous.or((sequence == 1).then_some(0));
            let follows = |kept: &&Kept| expected.is_none_or(|crc| kept.previous_crc == crc);
            let kept = self.judge.rounds.get(&sequence).filter(follows);
            let whole = kept.is_some_and(|kept| kept.payload_ok);
            if !whole && sequence > self.durable {
                return;
            }
            let Some(kept) = kept else {
                self.lost = Some(sequence);
                return;
            };
            previous = Some(kept.crc);
            self.end = sequence.saturating_add(1);
            if !whole {
                self.bad.push(sequence);
                for key in self.judge.doubtful.get(&sequence).into_iter().flatten() {
                    self.damaged.entry(*key).or_insert(sequence);
                }
            }
        }
    }

    /// A round that was synced and of which not even the list can be read: a start refuses.
    pub fn lost(&self) -> Option<u64> {
        self.lost
    }

    /// Partitions that lose acknowledged records, and the round that held them.
    pub fn damaged(&self) -> &BTreeMap<PartitionKey, u64> {
        &self.damaged
    }

    /// Every round up to this was synced, as far as any round says.
    pub fn durable_through(&self) -> u64 {
        self.durable
    }

    /// The first round that is needed, and the last that counts, if any does.
    pub fn counted(&self) -> Option<(u64, u64)> {
        (self.end > self.from).then(|| (self.from, self.end - 1))
    }

    /// More rounds than are judged.
    pub fn is_partial(&self) -> bool {
        self.judge.too_many
    }

    pub fn round(&self, file: usize, position: u64, owner: Owner, found: &Found) -> RoundFate {
        let sequence = found.round.sequence;
        if owner != self.judge.owner {
            return RoundFate::Foreign;
        }
        match self.judge.rounds.get(&sequence) {
            Some(kept) if kept.place != (file, position) => RoundFate::Twice,
            Some(kept) if kept.crc != found.crc || kept.payload_ok != found.payload_ok => RoundFate::Changed,
            None => RoundFate::Changed,
            Some(_) if sequence < self.from => RoundFate::OldLap,
            Some(_) if sequence < self.end && found.payload_ok && self.lost.is_some() => RoundFate::Refused,
            Some(_) if sequence < self.end && found.payload_ok => RoundFate::Applied,
            Some(_) if sequence < self.end => RoundFate::Damaged,
            Some(kept) if !kept.payload_ok && sequence == self.end => RoundFate::Torn,
            Some(_) => RoundFate::BehindTheEnd,
        }
    }

    /// Of a round that is applied.
    pub fn entry(&self, sequence: u64, entry: &Entry) -> EntryFate {
        let Action::Write { segment_base, .. } = entry.action else { return EntryFate::Applied };
        if let Some(round) = self.damaged.get(&entry.key).filter(|round| **round < sequence) {
            return EntryFate::BehindDamage { round: *round };
        }
        let voids = self.judge.voids.get(&entry.key).into_iter().flatten();
        // Within a round they come first; of a damaged one, or behind the end, they do not count.
        let mut later = voids
            .filter(|(by, below)| *by > sequence && *by < self.end && segment_base < *below && !self.bad.contains(by));
        later.next().map_or(EntryFate::Applied, |(by, _)| EntryFate::Voided { by: *by })
    }
}

#[cfg(test)]
#[path = "look_tests.rs"]
mod tests;
