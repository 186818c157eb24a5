//! `leader-epoch-checkpoint` (KIP-101): which leadership wrote from which offset. Kafka's text format, and the history
//! itself with the questions that followers and consumers ask of it.

use std::fmt::Write;

use model::{LeaderEpoch, Offset};

use crate::limits::EPOCH_ENTRIES;

const VERSION: &str = "0";

/// The version of the file, where it is newer than the one we know.
pub fn newer_version(bytes: &[u8]) -> Option<u32> {
    super::kafka_text_version(bytes, "")
}

/// One leadership and the offset of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEntry {
    pub epoch: LeaderEpoch,
    pub start_offset: Offset,
}

/// Leaderships in order: epochs and start offsets both rise. Owned by the partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochHistory {
    entries: Vec<EpochEntry>,
}

impl EpochHistory {
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    pub fn latest(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|e| e.epoch)
    }

    /// Takes a new leadership that starts at `start_offset`. Older entries that wrote nothing before it give way. An
    /// epoch that is not newer than the latest changes nothing. Returns whether something changed.
    pub fn assign(&mut self, epoch: LeaderEpoch, start_offset: Offset) -> bool {
        if epoch.0 < 0 || self.latest().is_some_and(|latest| latest >= epoch) {
            return false;
        }
        self.entries.retain(|e| e.start_offset < start_offset);
        self.entries.push(EpochEntry { epoch, start_offset });
        if self.entries.len() > EPOCH_ENTRIES {
            self.entries.remove(0);
        }
        true
    }

    /// OffsetForLeaderEpoch: the largest epoch not above `epoch`, and where it ended (the start of the one after it,
    /// or the log's end).
    pub fn end_of(&self, epoch: LeaderEpoch, log_end_offset: Offset) -> Option<(LeaderEpoch, Offset)> {
        let after = self.entries.partition_point(|e| e.epoch <= epoch);
        // No entry is old enough: its records are gone from the start of the log, and it ended where the oldest that is
        // known begins, at the latest. "Unknown" would send a reader of it to wherever its reset policy says.
        let Some(found) = after.checked_sub(1).and_then(|at| self.entries.get(at)) else {
            return self.entries.first().map(|first| (epoch, first.start_offset));
        };
        Some((found.epoch, self.entries.get(after).map_or(log_end_offset, |next| next.start_offset)))
    }

    pub fn of_offset(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self.entries.partition_point(|e| e.start_offset <= offset);
        Some(self.entries.get(after.checked_sub(1)?)?.epoch)
    }

    /// Forgets leaderships that start at or after `end`: the log was cut there.
    pub fn truncate_from_end(&mut self, end: Offset) -> bool {
        let before = self.entries.len();
        self.entries.retain(|e| e.start_offset < end);
        self.entries.len() != before
    }

    /// Forgets leaderships whose records all lie before `start`; the one that holds `start` begins there now.
    pub fn truncate_from_start(&mut self, start: Offset) -> bool {
        let after = self.entries.partition_point(|e| e.start_offset <= start);
        let Some(holder) = after.checked_sub(1) else { return false };
        let changed = holder > 0 || self.entries[holder].start_offset != start;
        self.entries.drain(..holder);
        self.entries[0].start_offset = start;
        changed
    }

    pub fn encode(&self) -> String {
        let mut out = format!("{VERSION}\n{}\n", self.entries.len());
        for entry in &self.entries {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{} {}", entry.epoch, entry.start_offset);
        }
        out
    }

    /// Reads the file. Entries out of order are refused: recovery then rebuilds the history from the batches.
    pub fn decode(bytes: &[u8]) -> Option<EpochHistory> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.lines();
        if lines.next()? != VERSION {
            return None;
        }
        let count: usize = lines.next()?.parse().ok()?;
        let mut entries = Vec::new();
        for line in lines.by_ref().take(count) {
            let (epoch, start) = line.split_once(' ')?;
            let entry =
                EpochEntry { epoch: LeaderEpoch(epoch.parse().ok()?), start_offset: Offset(start.parse().ok()?) };
            entries.push(entry);
        }
        if entries.len() != count || lines.next().is_some() {
            return None;
        }
        EpochHistory::from_entries(entries)
    }

    /// A history from entries that must be in order.
    pub fn from_entries(entries: Vec<EpochEntry>) -> Option<EpochHistory> {
        let rising = entries.windows(2).all(|w| w[0].epoch < w[1].epoch && w[0].start_offset < w[1].start_offset);
        let valid = entries.iter().all(|e| e.epoch.0 >= 0 && e.start_offset.0 >= 0);
        (rising && valid && entries.len() <= EPOCH_ENTRIES).then_some(EpochHistory { entries })
    }
}

#[cfg(test)]
#[path = "epochs_tests.rs"]
mod tests;
