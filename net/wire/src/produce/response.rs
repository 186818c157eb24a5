//! Writes a Produce answer of versions 3 to 13 straight into a writer, topic by topic.

use crate::generated::produce::NodeEndpoint;
use crate::{ApiKey, TopicRef, WireError, Writer};

const FIRST_WITH_LOG_START_OFFSET: i16 = 5;
const FIRST_WITH_RECORD_ERRORS: i16 = 8;
const FIRST_WITH_CURRENT_LEADER: i16 = 10;
const FIRST_WITH_TOPIC_ID: i16 = 13;

/// What became of one partition's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionOutcome<'a> {
    pub index: i32,
    pub error_code: i16,
    pub base_offset: i64,
    pub log_append_time_ms: i64,
    pub log_start_offset: i64,
    pub record_errors: &'a [RecordError<'a>],
    pub error_message: Option<&'a str>,
    /// Leader id and epoch, where the client must go elsewhere.
    pub current_leader: Option<(i32, i32)>,
}

/// A record that was refused, by its place in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordError<'a> {
    pub batch_index: i32,
    pub message: Option<&'a str>,
}

impl PartitionOutcome<'_> {
    /// An error without more to say; the offsets are -1 as Kafka has them.
    pub fn error(index: i32, error_code: i16) -> Self {
        Self {
            index,
            error_code,
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: &[],
            error_message: None,
            current_leader: None,
        }
    }
}

/// Counts go before what they count, so they are promised first; a broken promise is a bug here
/// and asserted.
#[derive(Debug)]
pub struct ProduceResponseWriter<'w> {
    writer: &'w mut Writer,
    version: i16,
    flexible: bool,
    topics_left: usize,
    partitions_left: usize,
    inside_topic: bool,
}

impl<'w> ProduceResponseWriter<'w> {
    pub fn begin(writer: &'w mut Writer, version: i16, topic_count: usize) -> Result<Self, WireError> {
        ApiKey::Produce.check_version(version)?;
        let flexible = ApiKey::Produce.is_flexible(version);
        writer.count(topic_count, flexible)?;
        Ok(Self { writer, version, flexible, topics_left: topic_count, partitions_left: 0, inside_topic: false })
    }

    /// Begins a topic. It must be named as the version names it.
    pub fn topic(&mut self, topic: TopicRef<'_>, partition_count: usize) -> Result<(), WireError> {
        self.end_topic();
        assert!(self.topics_left > 0, "more topics than promised");
        self.topics_left -= 1;
        match topic {
            TopicRef::Name(name) => {
                assert!(self.version < FIRST_WITH_TOPIC_ID, "version {} names topics by id", self.version);
                self.writer.string(name, self.flexible)?;
            }
            TopicRef::Id(id) => {
                assert!(self.version >= FIRST_WITH_TOPIC_ID, "version {} names topics by name", self.version);
                self.writer.uuid(&id);
            }
        }
        self.writer.count(partition_count, self.flexible)?;
        self.partitions_left = partition_count;
        self.inside_topic = true;
        Ok(())
    }

    pub fn partition(&mut self, outcome: &PartitionOutcome<'_>) -> Result<(), WireError> {
        assert!(self.partitions_left > 0, "more partitions than promised");
        self.partitions_left -= 1;
        self.writer.i32(outcome.index);
        self.writer.i16(outcome.error_code);
        self.writer.i64(outcome.base_offset);
        self.writer.i64(outcome.log_append_time_ms);
        if self.version >= FIRST_WITH_LOG_START_OFFSET {
            self.writer.i64(outcome.log_start_offset);
        }
        if self.version >= FIRST_WITH_RECORD_ERRORS {
            self.record_errors(outcome.record_errors)?;
            self.writer.nullable_string(outcome.error_message, self.flexible)?;
        }
        self.partition_tags(outcome)
    }

    fn record_errors(&mut self, errors: &[RecordError<'_>]) -> Result<(), WireError> {
        self.writer.count(errors.len(), self.flexible)?;
        for error in errors {
            self.writer.i32(error.batch_index);
            self.writer.nullable_string(error.message, self.flexible)?;
            self.end_struct();
        }
        Ok(())
    }

    fn partition_tags(&mut self, outcome: &PartitionOutcome<'_>) -> Result<(), WireError> {
        let leader = outcome.current_leader.filter(|_| self.version >= FIRST_WITH_CURRENT_LEADER);
        match leader.filter(|leader| *leader != (-1, -1)) {
            None => self.end_struct(),
            Some((leader_id, leader_epoch)) => {
                self.writer.uvarint(1);
                self.writer.tagged(0, |writer| {
                    writer.i32(leader_id);
                    writer.i32(leader_epoch);
                    writer.uvarint(0);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn end_topic(&mut self) {
        assert_eq!(self.partitions_left, 0, "fewer partitions than promised");
        if std::mem::take(&mut self.inside_topic) {
            self.end_struct();
        }
    }

    /// An empty tag section.
    fn end_struct(&mut self) {
        if self.flexible {
            self.writer.uvarint(0);
        }
    }

    /// Ends the answer. `node_endpoints` are those of the leaders named, and are dropped where the
    /// version cannot carry them.
    pub fn finish(mut self, throttle_time_ms: i32, node_endpoints: &[NodeEndpoint<'_>]) -> Result<(), WireError> {
        self.end_topic();
        assert_eq!(self.topics_left, 0, "fewer topics than promised");
        self.writer.i32(throttle_time_ms);
        if node_endpoints.is_empty() || self.version < FIRST_WITH_CURRENT_LEADER {
            self.end_struct();
            return Ok(());
        }
        let version = self.version;
        self.writer.uvarint(1);
        self.writer.tagged(0, |writer| {
            writer.count(node_endpoints.len(), true)?;
            node_endpoints.iter().try_for_each(|node| crate::Encode::encode(node, writer, version))
        })
    }
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
