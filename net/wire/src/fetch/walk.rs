//! Walks a Fetch request of versions 4 to 18. Fields that stand behind the topics (forgotten
//! topics, rack, tags) are known when [`FetchWalk::open`] returns: it has been to the end.

use crate::topic::{TopicCursor, TopicLayout};
use crate::{ApiKey, Reader, TopicRef, WireError};

const FIRST_WITH_LOG_START_OFFSET: i16 = 5;
const FIRST_WITH_SESSION: i16 = 7;
const FIRST_WITH_LEADER_EPOCH: i16 = 9;
const FIRST_WITH_RACK: i16 = 11;
const FIRST_WITH_LAST_FETCHED_EPOCH: i16 = 12;
const FIRST_WITH_TOPIC_ID: i16 = 13;
/// Before it the replica id is a plain field.
const FIRST_WITH_REPLICA_STATE: i16 = 15;
const FIRST_WITH_DIRECTORY_ID: i16 = 17;
const FIRST_WITH_HIGH_WATERMARK: i16 = 18;

/// A Fetch request that is known to be well-formed to its end. Fields that its version lacks hold
/// Kafka's defaults.
#[derive(Debug, Clone)]
pub struct FetchWalk<'a> {
    pub cluster_id: Option<&'a str>,
    /// The follower that asks; -1 for a consumer.
    pub replica_id: i32,
    pub replica_epoch: i64,
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    pub max_bytes: i32,
    pub isolation_level: i8,
    pub session_id: i32,
    pub session_epoch: i32,
    pub rack_id: &'a str,
    pub topic_count: usize,
    pub partition_count: usize,
    /// Partitions to be dropped from the session.
    pub forgotten_count: usize,
    partitions: FetchPartitions<'a>,
    forgotten: ForgottenPartitions<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPartition<'a> {
    /// Which topic of the request this is, counted from 0.
    pub topic_index: usize,
    pub topic: TopicRef<'a>,
    pub partition: i32,
    pub current_leader_epoch: i32,
    pub fetch_offset: i64,
    pub last_fetched_epoch: i32,
    pub log_start_offset: i64,
    pub partition_max_bytes: i32,
    pub replica_directory_id: [u8; 16],
    pub high_watermark: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForgottenPartition<'a> {
    pub topic: TopicRef<'a>,
    pub partition: i32,
}

/// The partitions to fetch, in the order of the request.
#[derive(Debug, Clone)]
pub struct FetchPartitions<'a> {
    cursor: TopicCursor<'a>,
    version: i16,
}

/// The partitions that the session is to forget.
#[derive(Debug, Clone)]
pub struct ForgottenPartitions<'a> {
    cursor: TopicCursor<'a>,
}

impl<'a> FetchWalk<'a> {
    /// Reads the request's own fields, before and behind the topics, and checks everything between.
    /// `reader` stands behind the request header.
    pub fn open(mut reader: Reader<'a>, version: i16) -> Result<Self, WireError> {
        ApiKey::Fetch.check_version(version)?;
        let replica_id = if version < FIRST_WITH_REPLICA_STATE { reader.i32()? } else { -1 };
        let (max_wait_ms, min_bytes, max_bytes) = (reader.i32()?, reader.i32()?, reader.i32()?);
        let isolation_level = reader.i8()?;
        let (session_id, session_epoch) =
            if version >= FIRST_WITH_SESSION { (reader.i32()?, reader.i32()?) } else { (0, -1) };
        let partitions = FetchPartitions { cursor: TopicCursor::open(reader, layout(version))?, version };
        let (partition_count, reader) = partitions.clone().check()?;
        let forgotten = ForgottenPartitions::open(reader, version)?;
        let (forgotten_count, reader) = forgotten.clone().check()?;
        let mut walk = Self {
            cluster_id: None,
            replica_id,
            replica_epoch: -1,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            rack_id: "",
            topic_count: partitions.cursor.topic_count(),
            partition_count,
            forgotten_count,
            partitions,
            forgotten,
        };
        walk.read_end(reader, version)?;
        Ok(walk)
    }

    /// What stands behind the topics.
    fn read_end(&mut self, mut reader: Reader<'a>, version: i16) -> Result<(), WireError> {
        let flexible = ApiKey::Fetch.is_flexible(version);
        if version >= FIRST_WITH_RACK {
            self.rack_id = reader.string(flexible)?;
        }
        if !flexible {
            return Ok(());
        }
        reader.tagged_fields(|tag, reader| {
            match tag {
                0 => self.cluster_id = reader.nullable_string(true)?,
                1 if version >= FIRST_WITH_REPLICA_STATE => {
                    (self.replica_id, self.replica_epoch) = (reader.i32()?, reader.i64()?);
                    reader.skip_tagged_fields()?;
                }
                _ => {}
            }
            Ok(())
        })
    }

    /// Walks the partitions to fetch, as often as wanted. The whole request was checked by
    /// [`FetchWalk::open`]: no item is an error unless this crate has a bug.
    pub fn partitions(&self) -> FetchPartitions<'a> {
        self.partitions.clone()
    }

    /// Walks the partitions to forget; as above.
    pub fn forgotten(&self) -> ForgottenPartitions<'a> {
        self.forgotten.clone()
    }
}

fn layout(version: i16) -> TopicLayout {
    let flexible = ApiKey::Fetch.is_flexible(version);
    TopicLayout {
        flexible,
        by_id: version >= FIRST_WITH_TOPIC_ID,
        // Partition, offset, limit: what every version has.
        least_partition: 4 + 8 + 4 + usize::from(flexible),
        partition_has_tags: true,
    }
}

impl<'a> FetchPartitions<'a> {
    /// Walks to the end; counts, and gives the reader back that stands there.
    fn check(mut self) -> Result<(usize, Reader<'a>), WireError> {
        let mut partition_count = 0;
        while self.step()?.is_some() {
            partition_count += 1;
        }
        Ok((partition_count, self.cursor.reader))
    }

    fn step(&mut self) -> Result<Option<FetchPartition<'a>>, WireError> {
        if !self.cursor.enter_partition()? {
            return Ok(None);
        }
        let version = self.version;
        let reader = &mut self.cursor.reader;
        let partition = reader.i32()?;
        let current_leader_epoch = if version >= FIRST_WITH_LEADER_EPOCH { reader.i32()? } else { -1 };
        let fetch_offset = reader.i64()?;
        let last_fetched_epoch = if version >= FIRST_WITH_LAST_FETCHED_EPOCH { reader.i32()? } else { -1 };
        let log_start_offset = if version >= FIRST_WITH_LOG_START_OFFSET { reader.i64()? } else { -1 };
        let partition_max_bytes = reader.i32()?;
        let (mut replica_directory_id, mut high_watermark) = ([0; 16], i64::MAX);
        self.cursor.leave_partition_with(|tag, reader| {
            match tag {
                0 if version >= FIRST_WITH_DIRECTORY_ID => replica_directory_id = reader.uuid()?,
                1 if version >= FIRST_WITH_HIGH_WATERMARK => high_watermark = reader.i64()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(Some(FetchPartition {
            topic_index: self.cursor.topic_index(),
            topic: self.cursor.topic,
            partition,
            current_leader_epoch,
            fetch_offset,
            last_fetched_epoch,
            log_start_offset,
            partition_max_bytes,
            replica_directory_id,
            high_watermark,
        }))
    }
}

impl<'a> Iterator for FetchPartitions<'a> {
    type Item = Result<FetchPartition<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        self.cursor.item(step)
    }
}

impl<'a> ForgottenPartitions<'a> {
    fn open(reader: Reader<'a>, version: i16) -> Result<Self, WireError> {
        let layout = TopicLayout { least_partition: size_of::<i32>(), partition_has_tags: false, ..layout(version) };
        let cursor = if version >= FIRST_WITH_SESSION {
            TopicCursor::open(reader, layout)?
        } else {
            TopicCursor::empty(reader, layout)
        };
        Ok(Self { cursor })
    }

    fn check(mut self) -> Result<(usize, Reader<'a>), WireError> {
        let mut forgotten_count = 0;
        while self.step()?.is_some() {
            forgotten_count += 1;
        }
        Ok((forgotten_count, self.cursor.reader))
    }

    fn step(&mut self) -> Result<Option<ForgottenPartition<'a>>, WireError> {
        if !self.cursor.enter_partition()? {
            return Ok(None);
        }
        let partition = self.cursor.reader.i32()?;
        self.cursor.leave_partition()?;
        Ok(Some(ForgottenPartition { topic: self.cursor.topic, partition }))
    }
}

impl<'a> Iterator for ForgottenPartitions<'a> {
    type Item = Result<ForgottenPartition<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        self.cursor.item(step)
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
