//! Rings of any making, for tests of whoever reads them and for the fuzzer's corpus: rounds one behind the other as the journal
//! writes them, which may then be damaged.

use model::PartitionKey;

use super::format::{Action, Entry, Owner, Round, encode};
use crate::limits::BLOCK;

/// A ring in memory. What is public may be turned as a test needs it.
#[derive(Clone, Debug)]
pub struct RingMaker {
    pub files: Vec<Vec<u8>>,
    /// File and byte of the next round.
    pub at: (usize, usize),
    /// Those of the rounds so far.
    pub places: Vec<(usize, usize)>,
    pub sequence: u64,
    pub previous_crc: u32,
    pub oldest_needed: u64,
}

impl RingMaker {
    pub fn new(files: usize, file_bytes: usize) -> RingMaker {
        let files = vec![vec![0; file_bytes]; files];
        RingMaker { files, at: (0, 0), places: Vec::new(), sequence: 1, previous_crc: 0, oldest_needed: 1 }
    }

    /// Writes the next round; what an entry that writes has to write stands beside it. Panics where the file has no room.
    pub fn round(&mut self, owner: Owner, durable_through: u64, entries: Vec<(PartitionKey, Action, &[u8])>) {
        let payload: Vec<&[u8]> = entries.iter().map(|(_, _, bytes)| *bytes).collect();
        let round = Round {
            sequence: self.sequence,
            previous_crc: self.previous_crc,
            durable_through,
            oldest_needed: self.oldest_needed,
            entries: entries.iter().map(|&(key, action, _)| Entry { key, action }).collect(),
        };
        let (mut bytes, crc) = encode(owner, &round, payload.iter().copied());
        bytes.extend(payload.concat());
        bytes.resize(bytes.len().next_multiple_of(BLOCK as usize), 0);
        let (file, at) = self.at;
        self.files[file][at..at + bytes.len()].copy_from_slice(&bytes);
        self.places.push(self.at);
        self.at.1 += bytes.len();
        self.sequence += 1;
        self.previous_crc = crc;
    }

    /// Flips a bit of a round, counted from 0.
    pub fn flip(&mut self, round: usize, at: usize) {
        let (file, position) = self.places[round];
        self.files[file][position + at] ^= 1;
    }
}
