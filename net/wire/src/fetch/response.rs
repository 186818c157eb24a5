//! Writes a Fetch answer of versions 4 to 18 straight into a writer, topic by topic. Records go in
//! as references: slices of the log's chunks, or bytes the transport sends itself.

use crate::generated::fetch::{AbortedTransaction, NodeEndpoint};
use crate::{ApiKey, Encode, Records, TopicRef, WireError, Writer};

const FIRST_WITH_LOG_START_OFFSET: i16 = 5;
const FIRST_WITH_SESSION: i16 = 7;
const FIRST_WITH_PREFERRED_READ_REPLICA: i16 = 11;
const FIRST_WITH_TOPIC_ID: i16 = 13;
const FIRST_WITH_NODE_ENDPOINTS: i16 = 16;

/// Everything an answer says of a partition but its records.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FetchPartitionHead<'a> {
    pub index: i32,
    pub error_code: i16,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_start_offset: i64,
    /// Epoch and end offset where a follower's log leaves the leader's.
    pub diverging_epoch: Option<(i32, i64)>,
    /// Leader id and epoch, where the client must go elsewhere.
    pub current_leader: Option<(i32, i32)>,
    /// End offset and epoch of a snapshot to be fetched instead.
    pub snapshot_id: Option<(i64, i32)>,
    pub aborted_transactions: Option<&'a [AbortedTransaction]>,
    pub preferred_read_replica: i32,
}

impl FetchPartitionHead<'_> {
    /// An error without more to say; the offsets are -1 as Kafka has them.
    pub fn error(index: i32, error_code: i16) -> Self {
        Self {
            index,
            error_code,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: None,
            current_leader: None,
            snapshot_id: None,
            aborted_transactions: None,
            preferred_read_replica: -1,
        }
    }
}

/// Counts go before what they count, so they are promised first; a broken promise is a bug here
/// and asserted.
#[derive(Debug)]
pub struct FetchResponseWriter<'w> {
    writer: &'w mut Writer,
    version: i16,
    flexible: bool,
    topics_left: usize,
    partitions_left: usize,
    inside_topic: bool,
}

impl<'w> FetchResponseWriter<'w> {
    pub fn begin(
        writer: &'w mut Writer,
        version: i16,
        throttle_time_ms: i32,
        error_code: i16,
        session_id: i32,
        topic_count: usize,
    ) -> Result<Self, WireError> {
        ApiKey::Fetch.check_version(version)?;
        let flexible = ApiKey::Fetch.is_flexible(version);
        writer.i32(throttle_time_ms);
        if version >= FIRST_WITH_SESSION {
            writer.i16(error_code);
            writer.i32(session_id);
        }
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

    pub fn partition(&mut self, head: &FetchPartitionHead<'_>, records: &Records) -> Result<(), WireError> {
        assert!(self.partitions_left > 0, "more partitions than promised");
        self.partitions_left -= 1;
        self.writer.i32(head.index);
        self.writer.i16(head.error_code);
        self.writer.i64(head.high_watermark);
        self.writer.i64(head.last_stable_offset);
        if self.version >= FIRST_WITH_LOG_START_OFFSET {
            self.writer.i64(head.log_start_offset);
        }
        self.aborted_transactions(head.aborted_transactions)?;
        if self.version >= FIRST_WITH_PREFERRED_READ_REPLICA {
            self.writer.i32(head.preferred_read_replica);
        }
        self.writer.records(records, self.flexible)?;
        if self.flexible { self.partition_tags(head) } else { Ok(()) }
    }

    fn aborted_transactions(&mut self, aborted: Option<&[AbortedTransaction]>) -> Result<(), WireError> {
        let Some(aborted) = aborted else {
            self.writer.null_count(self.flexible);
            return Ok(());
        };
        self.writer.count(aborted.len(), self.flexible)?;
        aborted.iter().try_for_each(|one| one.encode(self.writer, self.version))
    }

    /// Every version that has tags has these three.
    fn partition_tags(&mut self, head: &FetchPartitionHead<'_>) -> Result<(), WireError> {
        let diverging = head.diverging_epoch.filter(|value| *value != (-1, -1));
        let leader = head.current_leader.filter(|value| *value != (-1, -1));
        let snapshot = head.snapshot_id.filter(|value| *value != (-1, -1));
        let present = [diverging.is_some(), leader.is_some(), snapshot.is_some()];
        self.writer.uvarint(present.iter().map(|is_present| u32::from(*is_present)).sum());
        if let Some((epoch, end_offset)) = diverging {
            self.pair(0, |writer| (writer.i32(epoch), writer.i64(end_offset)))?;
        }
        if let Some((leader_id, leader_epoch)) = leader {
            self.pair(1, |writer| (writer.i32(leader_id), writer.i32(leader_epoch)))?;
        }
        if let Some((end_offset, epoch)) = snapshot {
            self.pair(2, |writer| (writer.i64(end_offset), writer.i32(epoch)))?;
        }
        Ok(())
    }

    /// A tagged struct of two fixed fields.
    fn pair(&mut self, tag: u32, fields: impl FnOnce(&mut Writer) -> ((), ())) -> Result<(), WireError> {
        self.writer.tagged(tag, |writer| {
            fields(writer);
            writer.uvarint(0);
            Ok(())
        })
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
    pub fn finish(mut self, node_endpoints: &[NodeEndpoint<'_>]) -> Result<(), WireError> {
        self.end_topic();
        assert_eq!(self.topics_left, 0, "fewer topics than promised");
        if node_endpoints.is_empty() || self.version < FIRST_WITH_NODE_ENDPOINTS {
            self.end_struct();
            return Ok(());
        }
        let version = self.version;
        self.writer.uvarint(1);
        self.writer.tagged(0, |writer| {
            writer.count(node_endpoints.len(), true)?;
            node_endpoints.iter().try_for_each(|node| node.encode(writer, version))
        })
    }
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
