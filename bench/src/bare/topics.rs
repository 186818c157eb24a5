//! Topics, where each partition ends, and where the newest batches lie in memory.
//!
//! Owned by the server; nothing of it is kept on disk. A partition's batches are known for as long as the memory holds them: what
//! is overwritten is forgotten in the order in which it came, so that the lists are bounded by the memory. Budget: two list entries
//! for each batch.

use std::collections::VecDeque;

use super::limits::PARTITIONS_MAX;

/// A batch in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub base_offset: i64,
    pub next_offset: i64,
    pub position: u64,
    pub len: u32,
}

impl Entry {
    fn end(&self) -> u64 {
        self.position + u64::from(self.len)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Partition {
    pub next_offset: i64,
    entries: VecDeque<Entry>,
}

impl Partition {
    /// Behind the last batch that is durable.
    pub fn high_watermark(&self, durable: u64) -> i64 {
        let hidden = self.entries.iter().rev().take_while(|entry| entry.end() > durable).last();
        hidden.map_or(self.next_offset, |first| first.base_offset)
    }

    /// The durable batches from the one on that holds an offset; nothing where it is no longer, or never was, in memory, which
    /// begins at `oldest`.
    pub fn from(&self, offset: i64, oldest: u64, durable: u64) -> Option<impl Iterator<Item = &Entry>> {
        let first = self.entries.partition_point(|entry| entry.next_offset <= offset);
        let known = match self.entries.get(first) {
            Some(entry) => entry.base_offset <= offset && entry.position >= oldest,
            None => offset == self.next_offset,
        };
        known.then(|| self.entries.range(first..).take_while(move |entry| entry.end() <= durable))
    }
}

#[derive(Debug)]
pub struct Topic {
    pub name: String,
    /// Number of its first partition among all.
    first: usize,
    pub partitions: usize,
}

#[derive(Debug, Default)]
pub struct Topics {
    topics: Vec<Topic>,
    partitions: Vec<Partition>,
    /// Partitions of the batches in memory, oldest first.
    order: VecDeque<usize>,
}

impl Topics {
    /// Makes a topic; false where the name is taken or there would be too many partitions.
    pub fn create(&mut self, name: &str, partitions: usize) -> bool {
        let first = self.partitions.len();
        if self.find(name).is_some() || first + partitions > PARTITIONS_MAX {
            return false;
        }
        self.topics.push(Topic { name: name.to_owned(), first, partitions });
        self.partitions.resize_with(first + partitions, Partition::default);
        true
    }

    pub fn all(&self) -> &[Topic] {
        &self.topics
    }

    /// A topic's number. There are few.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.topics.iter().position(|topic| topic.name == name)
    }

    /// A partition's number among all.
    pub fn number(&self, topic: usize, index: i32) -> Option<usize> {
        let topic = &self.topics[topic];
        usize::try_from(index).ok().filter(|index| *index < topic.partitions).map(|index| topic.first + index)
    }

    pub fn partition(&self, number: usize) -> &Partition {
        &self.partitions[number]
    }

    /// The topic's number and the partition's index of a partition's number.
    pub fn named(&self, number: usize) -> (usize, i32) {
        let topic = self.topics.partition_point(|topic| topic.first <= number) - 1;
        (topic, (number - self.topics[topic].first) as i32)
    }

    /// Notes a batch, and forgets those that begin before `oldest`.
    pub fn append(&mut self, number: usize, entry: Entry, oldest: u64) {
        let partition = &mut self.partitions[number];
        partition.next_offset = entry.next_offset;
        partition.entries.push_back(entry);
        self.order.push_back(number);
        while let Some(&eldest) = self.order.front() {
            let entries = &mut self.partitions[eldest].entries;
            if entries.front().is_some_and(|entry| entry.position >= oldest) {
                return;
            }
            entries.pop_front();
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn entry(base_offset: i64, position: u64) -> Entry {
        Entry { base_offset, next_offset: base_offset + 10, position, len: 100 }
    }

    fn topics() -> Topics {
        let mut topics = Topics::default();
        assert!(topics.create("a", 2) && topics.create("b", 3));
        topics
    }

    #[test]
    fn partitions_are_numbered_through() {
        let mut topics = topics();
        assert_eq!((topics.find("b"), topics.find("c")), (Some(1), None));
        assert_eq!((topics.number(1, 0), topics.number(1, 3), topics.number(0, -1)), (Some(2), None, None));
        for number in 0..5 {
            let (topic, index) = topics.named(number);
            assert_eq!(topics.number(topic, index), Some(number));
        }
        assert!(!topics.create("a", 1), "the name is taken");
        assert!(!topics.create("c", PARTITIONS_MAX));
    }

    #[test]
    fn only_what_is_durable_is_shown() {
        let mut topics = topics();
        for at in 0..3 {
            topics.append(3, entry(at * 10, at as u64 * 100), 0);
        }
        let partition = topics.partition(3);
        assert_eq!([0, 100, 199, 200, 300].map(|d| partition.high_watermark(d)), [0, 10, 10, 20, 30]);
        let bases = |offset, durable| -> Vec<i64> {
            partition.from(offset, 0, durable).unwrap().map(|entry| entry.base_offset).collect()
        };
        assert_eq!((bases(0, 200), bases(15, 300), bases(30, 300)), (vec![0, 10], vec![10, 20], vec![]));
        assert!(partition.from(5, 1, 300).is_none(), "it is overwritten, and only not forgotten yet");
        assert_eq!((partition.from(31, 0, 300).is_none(), partition.from(-1, 0, 300).is_none()), (true, true));
    }

    #[test]
    fn what_is_overwritten_is_forgotten_in_every_partition() {
        let mut topics = topics();
        topics.append(0, entry(0, 0), 0);
        topics.append(1, entry(0, 100), 0);
        topics.append(0, entry(10, 200), 150);
        assert!(topics.partition(0).from(0, 0, 300).is_none() && topics.partition(1).from(0, 0, 300).is_none());
        assert!(topics.partition(0).from(10, 0, 300).is_some());
        assert_eq!((topics.partition(1).next_offset, topics.order.len()), (10, 1));
        assert_eq!(topics.partition(1).from(10, 0, 300).unwrap().count(), 0, "its end is still known");
    }
}
