#![allow(clippy::unwrap_used)]

use model::{PartitionIndex, TopicId};
use proptest::prelude::*;

use super::super::plan::plan;
use super::super::testing::RingMaker;
use super::*;
use crate::limits::BLOCK;

const OWNER: Owner = Owner { incarnation: 42, writer: 0 };
const OTHER: Owner = Owner { incarnation: 41, writer: 0 };
const FILE: usize = 64 << 10;

fn key(n: u8) -> PartitionKey {
    PartitionKey { topic_id: TopicId::from_random([n; 16]), partition: PartitionIndex(0) }
}

/// Rounds one behind the other in two files.
struct Ring(RingMaker);

impl std::ops::Deref for Ring {
    type Target = RingMaker;

    fn deref(&self) -> &RingMaker {
        &self.0
    }
}

impl std::ops::DerefMut for Ring {
    fn deref_mut(&mut self) -> &mut RingMaker {
        &mut self.0
    }
}

impl Ring {
    fn new() -> Ring {
        Ring(RingMaker::new(2, FILE))
    }

    /// Each entry writes to a partition's segment, or voids what is below it.
    fn round_of(&mut self, owner: Owner, durable_through: u64, entries: &[(u8, i64, Option<&[u8]>)]) {
        let entry = |&(n, base, bytes): &(u8, i64, Option<&'_ [u8]>)| match bytes {
            Some(bytes) => (key(n), Action::Write { segment_base: Offset(base), position: 0, len: bytes.len() as u32 }),
            None => (key(n), Action::Void { below: Offset(base) }),
        };
        let bytes = entries.iter().map(|(_, _, bytes)| bytes.unwrap_or_default());
        let entries = entries.iter().map(entry).zip(bytes).map(|((key, action), bytes)| (key, action, bytes));
        self.0.round(owner, durable_through, entries.collect());
    }

    fn round(&mut self, durable_through: u64, entries: &[(u8, i64, Option<&[u8]>)]) {
        self.round_of(OWNER, durable_through, entries);
    }

    /// Every round in the order of the files.
    fn rounds(&self) -> Vec<(usize, u64, Owner, Found)> {
        let mut rounds = Vec::new();
        for (file, bytes) in self.files.iter().enumerate() {
            let mut at = 0;
            while at < bytes.len() {
                let Block::Round { owner, found } = block(&bytes[at..]) else {
                    at += BLOCK as usize;
                    continue;
                };
                let len = found.len;
                rounds.push((file, at as u64, owner, found));
                at += len;
            }
        }
        rounds
    }

    fn verdict(&self) -> Verdict {
        let mut judge = Judge::new(OWNER);
        self.rounds().iter().for_each(|(file, at, owner, found)| judge.see(*file, *at, *owner, found));
        judge.verdict()
    }

    fn fates(&self) -> Vec<(u64, RoundFate)> {
        let verdict = self.verdict();
        let fate = |(file, at, owner, found): &(usize, u64, Owner, Found)| {
            (found.round.sequence, verdict.round(*file, *at, *owner, found))
        };
        self.rounds().iter().map(fate).collect()
    }
}

/// Partition 1: three rounds, of which a void takes the first two; partition 2: the last.
fn voided() -> Ring {
    let mut ring = Ring::new();
    ring.round(0, &[(1, 0, Some(b"one"))]);
    ring.round(1, &[(1, 0, Some(b"two"))]);
    ring.round(2, &[(1, 7, None), (1, 7, Some(b"three")), (2, 0, Some(b"x"))]);
    ring
}

#[test]
fn rounds_of_the_chain_are_applied_but_for_what_is_void() {
    let ring = voided();
    use RoundFate::Applied;
    assert_eq!(ring.fates(), [(1, Applied), (2, Applied), (3, Applied)]);
    let verdict = ring.verdict();
    assert_eq!((verdict.counted(), verdict.durable_through(), verdict.lost()), (Some((1, 3)), 2, None));
    let fates: Vec<EntryFate> = ring
        .rounds()
        .iter()
        .flat_map(|(_, _, _, found)| found.round.entries.iter().map(|entry| (found.round.sequence, *entry)))
        .map(|(sequence, entry)| verdict.entry(sequence, &entry))
        .collect();
    use EntryFate::Voided;
    let applied = EntryFate::Applied;
    assert_eq!(fates, [Voided { by: 3 }, Voided { by: 3 }, applied, applied, applied]);
}

#[test]
fn what_is_damaged_torn_old_or_foreign_is_told_apart() {
    let mut ring = voided();
    ring.flip(1, 64 + 48);
    assert_eq!(ring.fates()[1], (2, RoundFate::Damaged));
    assert_eq!(ring.verdict().damaged(), &BTreeMap::from([(key(1), 2)]));
    let last = ring.rounds().pop().unwrap().3;
    assert_eq!(ring.verdict().entry(3, &last.round.entries[1]), EntryFate::BehindDamage { round: 2 });

    let mut ring = voided();
    ring.flip(2, 64 + 3 * 48);
    assert_eq!(ring.fates()[2], (3, RoundFate::Torn));
    assert_eq!(ring.verdict().counted(), Some((1, 2)));

    let mut ring = voided();
    ring.oldest_needed = 3;
    ring.round(3, &[(2, 0, Some(b"y"))]);
    assert_eq!(ring.fates()[0], (1, RoundFate::OldLap));

    let mut ring = voided();
    ring.at = (1, 0);
    ring.round_of(OTHER, 9, &[(3, 0, Some(b"z"))]);
    assert_eq!(ring.fates()[3], (4, RoundFate::Foreign));
    assert_eq!(ring.verdict().durable_through(), 2, "what another start says does not count");

    let mut ring = voided();
    ring.previous_crc ^= 1;
    ring.round(2, &[(2, 0, Some(b"y"))]);
    assert_eq!(ring.fates()[3], (4, RoundFate::BehindTheEnd));
}

#[test]
fn a_durable_round_whose_list_is_gone_is_lost() {
    let mut ring = voided();
    ring.flip(1, 70);
    assert_eq!(ring.verdict().lost(), Some(2));
    assert_eq!(ring.fates()[0], (1, RoundFate::Refused));
    let (file, at) = ring.places[1];
    assert_eq!(block(&ring.files[file][at..]), Block::Unreadable { sequence: 2 });
}

#[test]
fn nothing_is_nothing() {
    assert_eq!(Ring::new().verdict().counted(), None);
    assert_eq!((block(&[]), block(&[0; 4096])), (Block::Nothing, Block::Nothing));
    // A list without its bytes is a round with bytes to be read.
    let ring = voided();
    let Block::Round { found, .. } = block(&ring.files[0][..64 + 48]) else { panic!("its list is there") };
    assert!(!found.payload_ok && found.len == BLOCK as usize);
}

proptest! {
    /// Whatever is damaged, the look says what a start would do.
    #[test]
    fn the_look_agrees_with_the_start(
        rounds in proptest::collection::vec((0u64..4, proptest::collection::vec((0u8..3, 0i64..3, any::<bool>()), 1..4)), 1..9),
        flips in proptest::collection::vec((0usize..9, 0usize..300), 0..3),
        second_file_at in 0usize..9,
        forget in 0u64..4,
    ) {
        let mut ring = Ring::new();
        for (number, (behind, entries)) in rounds.iter().enumerate() {
            if number == second_file_at {
                ring.at = (1, 0);
            }
            let mut entries: Vec<(u8, i64, Option<&[u8]>)> =
                entries.iter().map(|(n, base, writes)| (*n, *base, writes.then_some(&b"bytes"[..]))).collect();
            entries.sort_by_key(|(_, _, bytes)| bytes.is_some());
            ring.oldest_needed = ring.oldest_needed.max(ring.sequence.saturating_sub(forget + 4)).max(1);
            ring.round(ring.sequence.saturating_sub(1 + behind), &entries);
        }
        for (round, at) in flips {
            ring.flip(round % rounds.len(), at);
        }
        let verdict = ring.verdict();
        match plan(OWNER, &ring.files) {
            Err(lost) => prop_assert_eq!(verdict.lost(), Some(lost.sequence)),
            Ok(plan) => {
                prop_assert_eq!(verdict.lost(), None);
                prop_assert_eq!(verdict.damaged(), &plan.damaged);
                prop_assert_eq!(verdict.counted().map_or(0, |(_, last)| last), plan.last_sequence);
                let mut applied = 0;
                for (file, at, owner, found) in ring.rounds() {
                    if verdict.round(file, at, owner, &found) != RoundFate::Applied {
                        continue;
                    }
                    let sequence = found.round.sequence;
                    let is_write = |entry: &&Entry| matches!(entry.action, Action::Write { .. });
                    let counts = |entry: &&Entry| verdict.entry(sequence, entry) == EntryFate::Applied;
                    applied += found.round.entries.iter().filter(is_write).filter(counts).count();
                }
                prop_assert_eq!(applied, plan.pieces.values().map(Vec::len).sum::<usize>());
            }
        }
    }
}
