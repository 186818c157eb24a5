//! Rounds: everything that was appended since the last write is written at once and synced once, while the next round gathers.
//!
//! Owned by the server. At most one round is under way; its memory is lent from its first byte until its sync has returned, and
//! `durable` moves then.

use std::fs::File;
use std::io;
use std::ops::Range;

use model::{LeaderEpoch, Offset};

use super::log_file::LogFile;
use super::memory::Memory;
use super::ring::Ring;

#[derive(Debug, Default)]
pub struct Rounds {
    /// What gathers; more than one range where the memory began anew between them.
    open: Vec<Range<u64>>,
    /// What is being written.
    under_way: Vec<Range<u64>>,
    /// Everything before this position is on the disk.
    durable: u64,
}

impl Rounds {
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Copies a batch into the log and gives it its place there and its offset; gives the place. There has to be room.
    pub fn append(&mut self, memory: &mut Memory, batch: &[u8], base_offset: i64) -> u64 {
        let len = batch.len() as u64;
        if memory.wraps(len) {
            self.close(memory);
            memory.skip_to_start();
            self.begin(memory);
        } else if self.open.is_empty() {
            self.begin(memory);
        }
        let position = memory.head();
        let copy = memory.take(len);
        copy.copy_from_slice(batch);
        model::batch::patch_position(copy, Offset(base_offset), LeaderEpoch(0));
        position
    }

    fn begin(&mut self, memory: &mut Memory) {
        memory.lend(memory.head());
        self.open.push(memory.head()..memory.head());
    }

    /// Ends the range that gathers, at a block.
    fn close(&mut self, memory: &mut Memory) {
        let Some(last) = self.open.last_mut() else { return };
        memory.fill_block();
        last.end = memory.head();
    }

    /// Writes what has gathered, unless a round is under way.
    pub fn start(&mut self, ring: &mut Ring, memory: &mut Memory, file: &mut LogFile) -> io::Result<()> {
        if !self.under_way.is_empty() || self.open.is_empty() {
            return Ok(());
        }
        self.close(memory);
        self.under_way = std::mem::take(&mut self.open);
        let place = |range: &Range<u64>| Ok((range.clone(), file.place(range)?));
        let writes: Vec<(Range<u64>, u64)> = self.under_way.iter().map(place).collect::<io::Result<_>>()?;
        let file: &File = file.file();
        ring.write_and_sync(file, memory, &writes)
    }

    /// The round that is under way was synced.
    pub fn synced(&mut self, memory: &mut Memory) {
        for range in self.under_way.drain(..) {
            memory.give_back(range.start);
            self.durable = range.end;
        }
    }
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
