//! Walks a Produce request of versions 3 to 13.

use bytes::Bytes;

use crate::topic::{TopicCursor, TopicLayout};
use crate::{ApiKey, Reader, TopicRef, WireError};

/// The first version that names topics by id.
const FIRST_WITH_TOPIC_ID: i16 = 13;

/// A Produce request that is known to be well-formed to its end: a request is either refused whole
/// or every partition of it can be visited, so nothing is appended from a frame that is broken
/// further on.
#[derive(Debug, Clone)]
pub struct ProduceWalk<'a> {
    pub transactional_id: Option<&'a str>,
    pub acks: i16,
    pub timeout_ms: i32,
    pub topic_count: usize,
    pub partition_count: usize,
    /// Bytes of all records together.
    pub records_len: usize,
    partitions: ProducePartitions<'a>,
}

/// One partition's part of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducePartition<'a> {
    /// Which topic of the request this is, counted from 0: the answer is grouped the same way.
    pub topic_index: usize,
    pub topic: TopicRef<'a>,
    pub index: i32,
    pub records: Option<Bytes>,
}

/// The partitions in the order of the request.
#[derive(Debug, Clone)]
pub struct ProducePartitions<'a> {
    cursor: TopicCursor<'a>,
}

impl<'a> ProduceWalk<'a> {
    /// Reads the request's own fields and checks everything behind them. `reader` stands behind
    /// the request header.
    pub fn open(mut reader: Reader<'a>, version: i16) -> Result<Self, WireError> {
        ApiKey::Produce.check_version(version)?;
        let flexible = ApiKey::Produce.is_flexible(version);
        let transactional_id = reader.nullable_string(flexible)?;
        let acks = reader.i16()?;
        let timeout_ms = reader.i32()?;
        let layout = TopicLayout {
            flexible,
            by_id: version >= FIRST_WITH_TOPIC_ID,
            // Index, length of the records, tags.
            least_partition: if flexible { 4 + 1 + 1 } else { 4 + 4 },
            partition_has_tags: true,
        };
        let partitions = ProducePartitions { cursor: TopicCursor::open(reader, layout)? };
        let (partition_count, records_len) = partitions.clone().check()?;
        Ok(Self {
            transactional_id,
            acks,
            timeout_ms,
            topic_count: partitions.cursor.topic_count(),
            partition_count,
            records_len,
            partitions,
        })
    }

    /// Walks the partitions, as often as wanted. The whole request was checked by
    /// [`ProduceWalk::open`]: no item is an error unless this crate has a bug.
    pub fn partitions(&self) -> ProducePartitions<'a> {
        self.partitions.clone()
    }
}

impl<'a> ProducePartitions<'a> {
    /// Walks to the end without slicing records; counts partitions and record bytes.
    fn check(mut self) -> Result<(usize, usize), WireError> {
        let flexible = self.cursor.layout.flexible;
        let (mut partition_count, mut records_len) = (0, 0);
        while self.cursor.enter_partition()? {
            self.cursor.reader.skip(size_of::<i32>())?;
            records_len += self.cursor.reader.skip_bytes(flexible)?.unwrap_or(0);
            self.cursor.leave_partition()?;
            partition_count += 1;
        }
        if flexible {
            self.cursor.reader.skip_tagged_fields()?;
        }
        Ok((partition_count, records_len))
    }

    fn step(&mut self) -> Result<Option<ProducePartition<'a>>, WireError> {
        if !self.cursor.enter_partition()? {
            return Ok(None);
        }
        let index = self.cursor.reader.i32()?;
        let records = self.cursor.reader.nullable_bytes(self.cursor.layout.flexible)?;
        self.cursor.leave_partition()?;
        let (topic_index, topic) = (self.cursor.topic_index(), self.cursor.topic);
        Ok(Some(ProducePartition { topic_index, topic, index, records }))
    }
}

impl<'a> Iterator for ProducePartitions<'a> {
    type Item = Result<ProducePartition<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        self.cursor.item(step)
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
