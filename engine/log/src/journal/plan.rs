//! What a start has to do with the rounds that it finds: which ones count, in which order, and what they are worth. A pure
//! function of the files' bytes; `replay.rs` does what it says.
//!
//! The rounds that count are a chain: each names the checksum of the one before. It begins at the oldest that the newest
//! one still needs and ends at the first that is missing or broken, unless a later round says that this one was synced:
//! then it is damage. A damaged payload costs the partitions that the round's list names; a damaged list costs all,
//! because nobody knows whose bytes are gone.

use std::collections::BTreeMap;
use std::ops::Range;

use model::{Offset, PartitionKey};

use super::format::{Action, Found, Owner, Round, decode};
use crate::limits::BLOCK;
use crate::mutants::{Mutant, active};

/// Bytes to be put into a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub segment_base: Offset,
    pub position: u64,
    /// Which of the ring's files holds them, and where.
    pub file: usize,
    pub bytes: Range<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Rounds that count.
    pub rounds: u64,
    pub bytes: u64,
    pub last_sequence: u64,
    /// What goes to each partition's segments, in order.
    pub pieces: BTreeMap<PartitionKey, Vec<Piece>>,
    /// Partitions of which something that was acknowledged is gone, and the round that held it.
    pub damaged: BTreeMap<PartitionKey, u64>,
}

/// A round that was synced, of which not even the list can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub sequence: u64,
}

/// A round and where it is.
#[derive(Clone, Debug)]
pub struct Placed {
    pub file: usize,
    pub position: usize,
    pub found: Found,
}

/// Every round of the owner in the files, those of older laps too.
pub fn scan(owner: Owner, files: &[Vec<u8>]) -> BTreeMap<u64, Placed> {
    let mut rounds: BTreeMap<u64, Placed> = BTreeMap::new();
    for (file, bytes) in files.iter().enumerate() {
        let mut position = 0;
        while position < bytes.len() {
            let Some(found) = decode(owner, &bytes[position..]) else {
                position += BLOCK as usize;
                continue;
            };
            let len = found.len;
            let known = rounds.get(&found.round.sequence).is_some_and(|known| known.found.payload_ok);
            if !known {
                rounds.insert(found.round.sequence, Placed { file, position, found });
            }
            position += len;
        }
    }
    rounds
}

pub fn plan(owner: Owner, files: &[Vec<u8>]) -> Result<Plan, Lost> {
    let rounds = scan(owner, files);
    let mut plan = Plan::default();
    let Some((_, newest)) = rounds.last_key_value() else { return Ok(plan) };
    let durable = rounds.values().map(|placed| placed.found.round.durable_through).max().unwrap_or(0);
    let mut previous: Option<u32> = None;
    for sequence in newest.found.round.oldest_needed..=u64::MAX {
        let placed = rounds.get(&sequence).filter(|placed| is_next(previous, &placed.found));
        let whole = placed.is_some_and(|placed| placed.found.payload_ok);
        if !whole && (sequence > durable || active(Mutant::DamageIsTheEnd)) {
            break;
        }
        let Some(placed) = placed else { return Err(Lost { sequence }) };
        previous = Some(placed.found.crc);
        if whole {
            plan.take(placed);
        } else {
            plan.lose(&placed.found.round);
        }
        plan.last_sequence = sequence;
    }
    if active(Mutant::VoidLast) {
        for entry in rounds.values().flat_map(|placed| &placed.found.round.entries) {
            if let Action::Void { below } = entry.action {
                plan.void(entry.key, below);
            }
        }
    }
    Ok(plan)
}

/// Whether a round follows the one with that checksum.
fn is_next(previous: Option<u32>, found: &Found) -> bool {
    let expected = match previous {
        Some(crc) => crc,
        // Nothing came before the first; what came before the oldest that is needed may have been overwritten.
        None if found.round.sequence == 1 => 0,
        None => return true,
    };
    found.round.previous_crc == expected
}

impl Plan {
    fn take(&mut self, placed: &Placed) {
        let mut at = placed.position + placed.found.payload.start;
        self.rounds += 1;
        for entry in &placed.found.round.entries {
            let bytes = at..at + entry.payload_len();
            at = bytes.end;
            match entry.action {
                Action::Void { .. } if active(Mutant::VoidIgnored) => {}
                Action::Void { below } => self.void(entry.key, below),
                // Behind a hole nothing is worth anything.
                Action::Write { .. } if self.damaged.contains_key(&entry.key) => {}
                Action::Write { segment_base, position, .. } => {
                    self.bytes += bytes.len() as u64;
                    let piece = Piece { segment_base, position, file: placed.file, bytes };
                    self.pieces.entry(entry.key).or_default().push(piece);
                }
            }
        }
    }

    fn void(&mut self, key: PartitionKey, below: Offset) {
        if let Some(pieces) = self.pieces.get_mut(&key) {
            pieces.retain(|piece| piece.segment_base >= below);
        }
    }

    fn lose(&mut self, round: &Round) {
        for entry in &round.entries {
            self.damaged.entry(entry.key).or_insert(round.sequence);
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
