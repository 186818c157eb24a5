//! The ring: some files of one size, written one after the other, each from its beginning. A file in use is a *lap*; it is
//! free again once everything in it is in the segments, durably. Owned by the journal; plain state, no I/O.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use runtime::DirectFile;

use super::JournalConfig;
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
    /// Oldest first.
    laps: VecDeque<Lap>,
    /// The newest lap takes no more rounds.
    closed: bool,
    next_lap: u64,
}

impl Ring {
    pub fn new(config: JournalConfig) -> Ring {
        let (files, free, laps) = (Vec::new(), VecDeque::new(), VecDeque::new());
        let (file_bytes, tight_bytes) = (config.file_bytes, config.tight_bytes());
        Ring { file_bytes, tight_bytes, files, free, laps, closed: false, next_lap: 1 }
    }

    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    pub fn used_laps(&self) -> usize {
        self.laps.len()
    }

    /// Times that a file came free.
    pub fn recycles(&self) -> u64 {
        self.next_lap - 1 - self.laps.len() as u64
    }

    /// Bytes of rounds in the files in use.
    pub fn fill_bytes(&self) -> u64 {
        self.laps.iter().map(|lap| lap.position).sum()
    }

    pub fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    pub fn add(&mut self, file: DirectFile) {
        self.free.push_back(self.files.len());
        self.files.push(file);
    }

    /// Bytes of the largest round that has a place now.
    pub fn room(&self) -> u64 {
        let rest = self.current_rest();
        // The rest of a file is used up unless it is too little for anything.
        if rest >= self.tight_bytes || self.free.is_empty() { rest } else { self.file_bytes }
    }

    /// How much of the newest file is used.
    pub fn current_rest(&self) -> u64 {
        match self.laps.back() {
            Some(lap) if !self.closed => self.file_bytes - lap.position,
            _ => 0,
        }
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
        let oldest = self.laps.front().map(|lap| (lap.first_sequence, lap.number));
        let (Some((oldest_needed, oldest_lap)), Some(lap)) = (oldest, self.laps.back_mut()) else {
            unreachable!("there is a lap now")
        };
        let position = lap.position;
        lap.position += len;
        assert!(lap.position <= self.file_bytes, "a round lies within one file");
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

    /// Frees the oldest laps that nobody needs. Gives how many.
    pub fn recycle(&mut self) -> usize {
        let mut freed = 0;
        while let Some(lap) = self.laps.front() {
            let current = self.laps.len() == 1 && !self.closed;
            if current || !(lap.members.is_empty() || active(Mutant::RingRecycledEarly)) {
                break;
            }
            self.free.push_back(lap.slot);
            self.laps.pop_front();
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
    }
}
