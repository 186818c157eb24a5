//! Open files of a shard, bounded: the least recently used is closed when another is opened. Files of idle partitions
//! so close by themselves and open again on demand.

use std::cell::RefCell;
use std::collections::BTreeMap;

use model::Offset;

/// A segment's file: the log's number within the shard, and the segment.
pub(crate) type FileKey = (u64, Offset);

#[derive(Debug)]
struct Open<F> {
    by_key: BTreeMap<FileKey, (F, u64)>,
    by_use: BTreeMap<u64, FileKey>,
    clock: u64,
}

/// How many it holds, whoever inserts says.
#[derive(Debug)]
pub(crate) struct FileTable<F> {
    open: RefCell<Open<F>>,
}

impl<F: Clone> FileTable<F> {
    pub fn new() -> FileTable<F> {
        FileTable { open: RefCell::new(Open { by_key: BTreeMap::new(), by_use: BTreeMap::new(), clock: 0 }) }
    }

    pub fn get(&self, key: FileKey) -> Option<F> {
        let mut open = self.open.borrow_mut();
        open.clock += 1;
        let now = open.clock;
        let (file, used) = open.by_key.get_mut(&key)?;
        let file = file.clone();
        let before = std::mem::replace(used, now);
        open.by_use.remove(&before);
        open.by_use.insert(now, key);
        Some(file)
    }

    /// Takes a file that was just opened. Gives back those to be closed: what is more than `most`, and an older one of the
    /// same key.
    #[must_use]
    pub fn insert(&self, key: FileKey, file: F, most: usize) -> Vec<F> {
        let mut out: Vec<F> = self.remove(key).into_iter().collect();
        {
            let mut open = self.open.borrow_mut();
            open.clock += 1;
            let now = open.clock;
            open.by_key.insert(key, (file, now));
            open.by_use.insert(now, key);
        }
        out.extend(self.keep(most));
        out
    }

    /// Gives back those to be closed for no more than `most` to stay: the least recently used, never all.
    #[must_use]
    pub fn keep(&self, most: usize) -> Vec<F> {
        let mut open = self.open.borrow_mut();
        let mut out = Vec::new();
        while open.by_key.len() > most.max(1) {
            let Some((_, oldest)) = open.by_use.pop_first() else { break };
            out.extend(open.by_key.remove(&oldest).map(|(file, _)| file));
        }
        out
    }

    #[must_use]
    pub fn remove(&self, key: FileKey) -> Option<F> {
        let mut open = self.open.borrow_mut();
        let (file, used) = open.by_key.remove(&key)?;
        open.by_use.remove(&used);
        Some(file)
    }

    /// Takes out all files of a log.
    #[must_use]
    pub fn remove_log(&self, log: u64) -> Vec<F> {
        let keys: Vec<FileKey> = {
            let open = self.open.borrow();
            open.by_key.range((log, Offset(i64::MIN))..=(log, Offset(i64::MAX))).map(|(key, _)| *key).collect()
        };
        keys.into_iter().filter_map(|key| self.remove(key)).collect()
    }

    #[must_use]
    pub fn remove_all(&self) -> Vec<F> {
        let mut open = self.open.borrow_mut();
        open.by_use.clear();
        std::mem::take(&mut open.by_key).into_values().map(|(file, _)| file).collect()
    }

    pub fn len(&self) -> usize {
        self.open.borrow().by_key.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_least_recently_used_leaves() {
        let table = FileTable::new();
        assert!(table.insert((1, Offset(0)), 'a', 2).is_empty());
        assert!(table.insert((2, Offset(0)), 'b', 2).is_empty());
        assert_eq!(table.get((1, Offset(0))), Some('a'));
        assert_eq!(table.insert((3, Offset(0)), 'c', 2), vec!['b']);
        assert_eq!(table.insert((3, Offset(0)), 'd', 2), vec!['c']);
        assert!(table.insert((4, Offset(0)), 'e', 3).is_empty(), "more, since whoever inserts allows more");
        assert_eq!(table.keep(2), vec!['a']);
        assert!(table.insert((1, Offset(0)), 'a', 3).is_empty());
        assert_eq!(table.keep(0), vec!['d', 'e'], "one stays open");
        assert!(table.insert((3, Offset(0)), 'd', 2).is_empty());
        assert_eq!(table.remove_log(1), vec!['a']);
        assert_eq!(table.len(), 1);
        assert_eq!(table.remove_all(), vec!['d']);
        assert_eq!(table.get((3, Offset(0))), None);
    }
}
