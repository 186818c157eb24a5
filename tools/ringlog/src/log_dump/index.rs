//! Offset and time indexes: read, and checked against the batches of their segment as the walk meets them.
//!
//! Entries are read one by one ([`log::format`] refuses a file as a whole). An index that was preallocated and not trimmed
//! (a crash of Apache Kafka) ends in zeros, which are not entries.

use std::io::Read;
use std::path::Path;

use log::format::index::{ENTRY_LEN as OFFSET_ENTRY_LEN, IndexEntry};
use log::format::time_index::{ENTRY_LEN as TIME_ENTRY_LEN, TimeEntry};
use log::limits::INDEX_FILE_ENTRIES;
use model::{BatchHeader, Offset};

/// Problems of one index that are kept; the others are counted.
const PROBLEMS_SHOWN: usize = 8;

/// An entry of either index. `at` is the position of a batch, or a timestamp in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub offset: Offset,
    pub at: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    Offset,
    Time,
}

impl IndexKind {
    pub fn name(self) -> &'static str {
        match self {
            IndexKind::Offset => "index",
            IndexKind::Time => "timeindex",
        }
    }
}

/// An index with what is wrong with it.
#[derive(Clone, Debug)]
pub struct Index {
    pub kind: IndexKind,
    pub entries: Vec<Entry>,
    pub problems: Vec<String>,
    /// All problems, those kept and those counted only.
    pub problem_count: usize,
    /// Entries before this one have been checked.
    checked: usize,
    max_timestamp_ms: i64,
}

impl Index {
    /// `None` when the file is not there.
    pub fn read(path: &Path, kind: IndexKind, base: Offset) -> Result<Option<Index>, String> {
        let limit = (INDEX_FILE_ENTRIES * TIME_ENTRY_LEN) as u64;
        let mut bytes = Vec::new();
        match std::fs::File::open(path).and_then(|f| f.take(limit + 1).read_to_end(&mut bytes)) {
            Ok(read) if read as u64 > limit => Err(format!("{} is larger than any index", path.display())),
            Ok(_) => Ok(Some(Index::parse(&bytes, kind, base))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(format!("{} cannot be read: {e}", path.display())),
        }
    }

    pub fn parse(bytes: &[u8], kind: IndexKind, base: Offset) -> Index {
        let mut index = Index {
            kind,
            entries: Vec::new(),
            problems: Vec::new(),
            problem_count: 0,
            checked: 0,
            max_timestamp_ms: i64::MIN,
        };
        let len = if kind == IndexKind::Offset { OFFSET_ENTRY_LEN } else { TIME_ENTRY_LEN };
        let used =
            bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1).next_multiple_of(len).min(bytes.len());
        for (i, entry) in bytes[..used].chunks_exact(len).enumerate() {
            let Some(entry) = decode(entry, kind, base) else { break };
            if index.entries.last().is_some_and(|last| last.offset >= entry.offset || last.at >= entry.at) {
                index.problem(format!("entry {i} is not beyond the one before it"));
            }
            index.entries.push(entry);
        }
        if used % len != 0 {
            index.problem(format!("{} bytes are left over behind entry {}", used % len, index.entries.len()));
        }
        index
    }

    fn problem(&mut self, text: String) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_SHOWN {
            self.problems.push(text);
        }
    }

    /// The walk met this batch. A batch that is damaged still stands where entries may point.
    pub fn meet(&mut self, position: u64, header: &BatchHeader) {
        self.max_timestamp_ms = self.max_timestamp_ms.max(header.max_timestamp_ms);
        while let Some(entry) = self.entries.get(self.checked).copied() {
            let verdict = match self.kind {
                IndexKind::Offset if entry.at > position as i64 => return,
                IndexKind::Offset if entry.at < position as i64 => Some("no batch begins there"),
                // Reads for this offset begin at the batch: it must not begin beyond it.
                IndexKind::Offset => (entry.offset < header.base_offset).then_some("the batch there begins behind it"),
                IndexKind::Time if entry.offset > header.last_offset() => return,
                IndexKind::Time => {
                    (entry.at != self.max_timestamp_ms).then_some("that is not the largest timestamp up to that offset")
                }
            };
            if let Some(why) = verdict {
                let text = self.entry_text(&entry);
                self.problem(format!("entry {} ({text}): {why}", self.checked));
            }
            self.checked += 1;
        }
    }

    /// The walk is over: entries it did not reach point behind the log.
    pub fn finish(&mut self) {
        let beyond = self.entries.len() - self.checked;
        if beyond > 0 {
            let text = self.entry_text(&self.entries[self.checked]);
            self.problem(format!("{beyond} entries from {} on ({text}) point behind the last batch", self.checked));
            self.checked = self.entries.len();
        }
    }

    pub fn entry_text(&self, entry: &Entry) -> String {
        match self.kind {
            IndexKind::Offset => format!("offset {} at {}", entry.offset, entry.at),
            IndexKind::Time => format!("timestamp {} up to offset {}", entry.at, entry.offset),
        }
    }
}

fn decode(bytes: &[u8], kind: IndexKind, base: Offset) -> Option<Entry> {
    let (relative, at) = match kind {
        IndexKind::Offset => IndexEntry::decode(bytes).map(|e| (e.relative, i64::from(e.position)))?,
        IndexKind::Time => TimeEntry::decode(bytes).map(|e| (e.relative, e.timestamp_ms))?,
    };
    Some(Entry { offset: Offset(base.0.saturating_add(i64::from(relative))), at })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::builder::BatchBuilder;

    use super::*;

    fn header(base: i64, timestamp_ms: i64) -> BatchHeader {
        let bytes = BatchBuilder::new()
            .base_offset(Offset(base))
            .record(timestamp_ms, None, Some(b"a"))
            .record(timestamp_ms, None, Some(b"b"))
            .finish();
        BatchHeader::parse(&bytes).unwrap()
    }

    fn offsets(entries: &[(i32, i32)]) -> Index {
        let bytes: Vec<u8> = entries.iter().flat_map(|(o, p)| [o.to_be_bytes(), p.to_be_bytes()].concat()).collect();
        Index::parse(&bytes, IndexKind::Offset, Offset(100))
    }

    fn times(entries: &[(i64, i32)]) -> Index {
        let bytes: Vec<u8> =
            entries.iter().flat_map(|(t, o)| [&t.to_be_bytes()[..], &o.to_be_bytes()[..]].concat()).collect();
        Index::parse(&bytes, IndexKind::Time, Offset(100))
    }

    /// Batches of two records at 0, 50 and 100.
    fn checked(mut index: Index) -> Vec<String> {
        for (i, timestamp_ms) in [10, 30, 20].into_iter().enumerate() {
            index.meet(50 * i as u64, &header(100 + 2 * i as i64, timestamp_ms));
        }
        index.finish();
        assert_eq!(index.problem_count, index.problems.len());
        index.problems
    }

    #[test]
    fn right_indexes_have_no_problem() {
        assert_eq!(checked(offsets(&[(3, 50), (5, 100)])), Vec::<String>::new());
        assert_eq!(checked(times(&[(10, 1), (30, 3)])), Vec::<String>::new());
        assert_eq!(checked(offsets(&[])), Vec::<String>::new());
    }

    #[test]
    fn wrong_entries_are_named() {
        assert_eq!(checked(offsets(&[(3, 51)])), ["entry 0 (offset 103 at 51): no batch begins there"]);
        assert_eq!(checked(offsets(&[(1, 50)])), ["entry 0 (offset 101 at 50): the batch there begins behind it"]);
        assert_eq!(
            checked(offsets(&[(9, 900)])),
            ["1 entries from 0 on (offset 109 at 900) point behind the last batch"]
        );
        assert!(checked(times(&[(29, 3)]))[0].contains("not the largest timestamp"));
        assert!(checked(offsets(&[(5, 100), (3, 50)]))[0].contains("entry 1 is not beyond"));
    }

    #[test]
    fn zeros_of_a_preallocated_index_are_no_entries() {
        let mut bytes = [3i32.to_be_bytes(), 50i32.to_be_bytes()].concat();
        bytes.resize(800, 0);
        assert_eq!(checked(Index::parse(&bytes, IndexKind::Offset, Offset(100))), Vec::<String>::new());
        assert_eq!(Index::parse(&[0; 24], IndexKind::Time, Offset(0)).entries, []);
    }

    #[test]
    fn left_over_bytes_and_floods_are_bounded() {
        assert!(Index::parse(&[1; 11], IndexKind::Offset, Offset(0)).problems[0].contains("3 bytes are left over"));
        let flood = Index::parse(&[7; 8000], IndexKind::Offset, Offset(0));
        assert_eq!((flood.problems.len(), flood.problem_count), (PROBLEMS_SHOWN, 999));
    }
}
