//! The ring: some files of one size, written one after the other, each from its beginning. A file in use is a *lap*. Once
//! everything in it is in the segments, durably, it is *over*, and free when a durable round says so: until then a start
//! goes through it, and must not find it half written over. Where no round with batches has room to say it, a *mark* does,
//! a round of nothing, for which each file keeps its last block. Owned by the journal; plain state, no I/O.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use runtime::DirectFile;

use super::JournalConfig;
use crate::limits::BLOCK;
use crate::mutants::{Mutant, active};
use crate::partition::PartitionLog;

/// A file between its first round and its release.
#[derive(Debug)]
pub(super) struct Lap {
    pub number: u64,
    slot: usize,
    /// Its first round.
    pub first_sequence: u64,
    /// Where its next round goes.
    position: u64,
    /// Partitions with bytes in it that are not yet in their segment, durably.
    pub members: BTreeMap<u64, Rc<PartitionLog>>,
    /// Its members were asked to go to their segments.
    pub emptying: bool,
}

impl Lap {
    /// None of its members can write its segment; where there is none, neither.
    pub fn has_only_failed(&self) -> bool {
        self.members.values().all(|log| log.failure().is_some())
    }
}

/// Where a round goes.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub file: DirectFile,
    pub lap: u64,
    pub position: u64,
    /// The oldest round that is needed, and its lap.
    pub oldest_needed: u64,
    pub oldest_lap: u64,
}

#[derive(Debug)]
pub(super) struct Ring {
    file_bytes: u64,
    tight_bytes: u64,
    files: Vec<DirectFile>,
    free: VecDeque<usize>,
    /// Oldest first, and before them those that are over.
    laps: VecDeque<Lap>,
    over: VecDeque<Lap>,
    /// The newest lap takes no more rounds.
    closed: bool,
    next_lap: u64,
}

impl Ring {
    pub fn new(config: JournalConfig) -> Ring {
        let (files, free, laps, over) = (Vec::new(), VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (file_bytes, tight_bytes) = (config.file_bytes, config.tight_bytes());
        Ring { file_bytes, tight_bytes, files, free, laps, over, closed: false, next_lap: 1 }
    }

    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Files with what no segment has, and the one under way.
    pub fn needed_laps(&self) -> usize {
        self.laps.len()
    }

    /// Files that a start would go through.
    pub fn used_laps(&self) -> usize {
        self.laps.len() + self.over.len()
    }

    /// Times that a file came free.
    pub fn recycles(&self) -> u64 {
        self.next_lap - 1 - self.used_laps() as u64
    }

    /// Bytes of rounds in the files in use.
    pub fn fill_bytes(&self) -> u64 {
        self.over.iter().chain(&self.laps).map(|lap| lap.position).sum()
    }

    pub fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    pub fn add(&mut self, file: DirectFile) {
        self.free.push_back(self.files.len());
        self.files.push(file);
    }

    /// Bytes of the largest round that has a place now, where one of `needs` bytes at least is wanted.
    pub fn room(&self, needs: u64) -> u64 {
        let rest = self.current_rest();
        // The rest of a file is used up unless it is too little for anything.
        if rest >= self.tight_bytes.max(needs) || self.free.is_empty() { rest } else { self.file_bytes - BLOCK }
    }

    /// How much room the newest file has, but for its mark.
    pub fn current_rest(&self) -> u64 {
        match self.laps.back() {
            Some(lap) if !self.closed => (self.file_bytes - BLOCK).saturating_sub(lap.position),
            _ => 0,
        }
    }

    /// The oldest file that is over, where nothing else has room for `needs` bytes, or for much at all.
    pub fn waits_for_mark(&self, needs: u64) -> Option<u64> {
        let full = self.free.is_empty() && self.current_rest() < self.tight_bytes.max(needs);
        self.over.front().filter(|_| full).map(|lap| lap.number)
    }

    /// The partitions of the oldest file were asked for their segments, and one at least can do it: the others are carried.
    pub fn oldest_empties(&self) -> bool {
        self.laps.front().is_some_and(|lap| lap.emptying && !lap.has_only_failed())
    }

    /// A file is free as soon as a round says so durably.
    pub fn comes_free(&self) -> bool {
        !self.over.is_empty()
    }

    /// A place for a round of `len` bytes, which the caller knows to fit.
    pub fn place(&mut self, len: u64, sequence: u64) -> Place {
        if self.current_rest() < len {
            let Some(slot) = self.free.pop_front() else { unreachable!("a round is made to fit its room") };
            let (number, members) = (self.next_lap, BTreeMap::new());
            self.laps.push_back(Lap { number, slot, first_sequence: sequence, position: 0, members, emptying: false });
            self.next_lap += 1;
            self.closed = false;
        }
        self.place_in_newest(len, sequence, self.file_bytes - BLOCK)
    }

    /// A place for a mark, in the newest file of all. A file takes one: the next round after it finds a file that is free.
    pub fn place_mark(&mut self, sequence: u64) -> Place {
        self.place_in_newest(BLOCK, sequence, self.file_bytes)
    }

    fn place_in_newest(&mut self, len: u64, sequence: u64, end: u64) -> Place {
        let oldest = self.laps.front().map(|lap| (lap.first_sequence, lap.number));
        let (oldest_needed, oldest_lap) = oldest.unwrap_or((sequence, self.next_lap));
        let Some(lap) = self.laps.back_mut().or(self.over.back_mut()) else { unreachable!("there is a lap now") };
        let position = lap.position;
        lap.position += len;
        assert!(lap.position <= end, "a round lies within one file");
        Place { file: self.files[lap.slot].clone(), lap: lap.number, position, oldest_needed, oldest_lap }
    }

    pub fn lap_mut(&mut self, number: u64) -> Option<&mut Lap> {
        let first = self.laps.front()?.number;
        self.laps.get_mut(number.checked_sub(first)? as usize)
    }

    pub fn lap(&self, number: u64) -> Option<&Lap> {
        let first = self.laps.front()?.number;
        self.laps.get(number.checked_sub(first)? as usize)
    }

    pub fn oldest(&mut self) -> Option<&mut Lap> {
        self.laps.front_mut()
    }

    /// No further round goes to the newest lap. Gives whether one did until now.
    pub fn close_current(&mut self) -> bool {
        !std::mem::replace(&mut self.closed, true)
    }

    /// The oldest laps are over that nobody needs. Gives how many.
    pub fn retire(&mut self) -> usize {
        let mut retired = 0;
        while let Some(lap) = self.laps.front() {
            let current = self.laps.len() == 1 && !self.closed;
            if current || !(lap.members.is_empty() || active(Mutant::RingRecycledEarly)) {
                break;
            }
            self.over.extend(self.laps.pop_front());
            retired += 1;
        }
        retired
    }

    /// Frees files that are over and that no start would look at: it begins with lap `counted_from`. Gives how many.
    pub fn release(&mut self, counted_from: u64) -> usize {
        let mut freed = 0;
        while let Some(lap) = self.over.pop_front_if(|lap| lap.number < counted_from) {
            self.free.push_back(lap.slot);
            freed += 1;
        }
        freed
    }

    /// Everyone with bytes in the ring.
    pub fn members(&self) -> Vec<Rc<PartitionLog>> {
        let all = self.laps.iter().flat_map(|lap| lap.members.iter());
        let by_id: BTreeMap<u64, Rc<PartitionLog>> = all.map(|(id, log)| (*id, log.clone())).collect();
        by_id.into_values().collect()
    }

    pub fn clear(&mut self) {
        self.files.clear();
        self.free.clear();
        self.laps.clear();
        self.over.clear();
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
